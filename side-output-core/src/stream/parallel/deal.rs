use super::super::chunk::Chunk;
use super::super::source::{CHUNK, TURNS};
use super::super::{BoxSource, DataStream, Fed, Intake, Source};
use crate::error::StreamError;
use crate::stream::Lane;
use crate::sync::{Mutex, Shelter, wake_all};
use crate::time::{Mark, Timestamp};
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::mem;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// How much may wait for one partition before the others have to wait too.
const CAPACITY: usize = 4 * CHUNK;

/// What one partition reads: the records of its keys, and every mark.
///
/// Whichever partition finds nothing for itself reads the input, for all of them; nobody waits
/// under a lock while it does.
pub struct DealtSource<T> {
    table: Arc<Exchange<T>>,
    partition: usize,
    chunk: Chunk<T>,
}

struct Exchange<T> {
    dealer: Mutex<Dealer<T>>,
    wakers: Arc<WaitingPartitions>,
}

struct Dealer<T> {
    /// Taken out by the partition that reads.
    input: Option<Box<dyn Deal<T> + Send>>,
    lanes: Vec<Lane<T>>,
    /// Partitions whose task is gone: what comes for them is dropped.
    closed: Vec<bool>,
    end: Option<Result<(), StreamError>>,
}

/// All that wait, for the input or for each other. They are few, so they are woken together.
struct WaitingPartitions(Mutex<Vec<Waker>>);

impl WaitingPartitions {
    fn add(&self, waker: &Waker) {
        let mut wakers = self.0.lock();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    fn wake_all(&self) {
        let wakers = mem::take(&mut *self.0.lock());
        wake_all(wakers);
    }
}

impl Wake for WaitingPartitions {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// The input and the function that says whose a record is.
trait Deal<T> {
    fn deal(&mut self, cx: &mut Context<'_>, lanes: &mut [Lane<T>]) -> Fed;
}

struct Hashed<T, F> {
    stream: DataStream<T, BoxSource<T>>,
    key: F,
}

impl<T, K: Hash, F: FnMut(&T) -> K> Deal<T> for Hashed<T, F> {
    fn deal(&mut self, cx: &mut Context<'_>, lanes: &mut [Lane<T>]) -> Fed {
        let mut dealing = Dealing { key: &mut self.key, lanes, taken: 0 };
        self.stream.feed(cx, &mut dealing)
    }
}

struct Dealing<'a, T, F> {
    key: &'a mut F,
    lanes: &'a mut [Lane<T>],
    taken: usize,
}

impl<T, F> Dealing<'_, T, F> {
    const fn flow(&mut self) -> ControlFlow<()> {
        self.taken += 1;
        if self.taken < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl<T, K: Hash, F: FnMut(&T) -> K> Intake<T> for Dealing<'_, T, F> {
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        let hash = FxBuildHasher.hash_one((self.key)(&value));
        // By the upper half: the partition's own table looks at the lower bits, and would find
        // them all alike.
        let partition = ((hash >> 32) * self.lanes.len() as u64) >> 32;
        let partition = usize::try_from(partition).expect("less than the number of partitions");
        self.lanes[partition].push(value, at);
        self.flow()
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.lanes.iter_mut().for_each(|lane| lane.mark(mark));
        self.flow()
    }
}

/// Deals the records of `stream` out to `partitions` by the hash of their key.
pub(super) fn deal<T, K, F, Src>(
    stream: DataStream<T, Src>,
    key: F,
    partitions: usize,
) -> Vec<DealtSource<T>>
where
    T: Send + 'static,
    K: Hash,
    F: FnMut(&T) -> K + Send + 'static,
    Src: Source<T> + Send + 'static,
{
    let dealer = Dealer {
        input: Some(Box::new(Hashed { stream: stream.boxed(), key })),
        lanes: (0..partitions).map(|_| Lane::new()).collect(),
        closed: vec![false; partitions],
        end: None,
    };
    let table = Exchange {
        dealer: Mutex::new(dealer),
        wakers: Arc::new(WaitingPartitions(Mutex::new(Vec::new()))),
    };
    let table = Arc::new(table);
    (0..partitions)
        .map(|partition| DealtSource { table: Arc::clone(&table), partition, chunk: Chunk::new() })
        .collect()
}

impl<T> Source<T> for DealtSource<T> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { table, partition, chunk } = self;
        chunk.feed_from(intake, |chunk, _| {
            let fed = table.refill(*partition, cx, chunk.recycle());
            chunk.load();
            fed
        })
    }

    fn resumes() -> bool {
        true
    }
}

type DealtInput<T> = Box<dyn Deal<T> + Send>;

impl<T> Exchange<T> {
    /// Takes what is there for a partition, and reads the input if nothing is.
    fn refill(&self, partition: usize, cx: &Context<'_>, into: &mut Lane<T>) -> Fed {
        // What is read may all be for others, or for nobody: a poll has an end.
        for _ in 0..TURNS {
            let (input, partitions) = match self.take_input(partition, cx, into) {
                Ok(input) => input,
                Err(fed) => return fed,
            };
            if self.read(input, partitions) {
                return Fed::Pending;
            }
        }
        Fed::More
    }

    /// Takes what is there for a partition, or the input to read more, or has to wait.
    fn take_input(
        &self,
        partition: usize,
        cx: &Context<'_>,
        into: &mut Lane<T>,
    ) -> Result<(DealtInput<T>, usize), Fed> {
        let Self { dealer, wakers } = self;
        let mut dealer = dealer.lock();
        let lane = &mut dealer.lanes[partition];
        if !lane.is_empty() {
            mem::swap(lane, into);
            drop(dealer);
            // Somebody may have waited for this lane to have room.
            wakers.wake_all();
            return Err(Fed::More);
        }
        if let Some(end) = &dealer.end {
            return Err(Fed::from(end.clone()));
        }
        // Under the lock, so that whoever changes what is looked at here will wake us.
        wakers.add(cx.waker());
        let Dealer { lanes, closed, .. } = &*dealer;
        let full = |(lane, closed): (&Lane<T>, &bool)| !closed && lane.len() >= CAPACITY;
        if lanes.iter().zip(closed).any(full) {
            return Err(Fed::Pending);
        }
        match dealer.input.take() {
            Some(input) => Ok((input, dealer.lanes.len())),
            // Another one reads; it wakes us when it has found something.
            None => Err(Fed::Pending),
        }
    }

    /// Reads what is ready, for all partitions, and gives the input back: if it panics, it ends with
    /// an error for all of them.
    ///
    /// True if nothing is: then the input wakes all of us.
    fn read(&self, mut input: DealtInput<T>, partitions: usize) -> bool {
        let Self { dealer, wakers } = self;
        let mut dealt: Vec<Lane<T>> = (0..partitions).map(|_| Lane::new()).collect();
        let waker = Waker::from(Arc::clone(wakers));
        let deal = || input.deal(&mut Context::from_waker(&waker), &mut dealt);
        let fed = catch_unwind(AssertUnwindSafe(deal))
            .unwrap_or_else(|panic| Fed::Failed(StreamError::from_panic(&*panic)));
        let waits = matches!(fed, Fed::Pending) && dealt.iter().all(Lane::is_empty);
        let mut input = Some(input);
        {
            let mut dealer = dealer.lock();
            let Dealer { lanes, closed, input: seat, end } = &mut *dealer;
            for ((lane, dealt), closed) in lanes.iter_mut().zip(&mut dealt).zip(closed) {
                // What stays behind is dropped after the lock.
                if !*closed {
                    lane.append(dealt);
                }
            }
            match fed {
                Fed::More | Fed::Pending => *seat = input.take(),
                Fed::End => *end = Some(Ok(())),
                Fed::Failed(error) => *end = Some(Err(error)),
            }
        }
        let mut shelter = Shelter::default();
        if !waits {
            shelter.run(|| wakers.wake_all());
        }
        for lane in &mut dealt {
            shelter.run(|| lane.clear());
        }
        shelter.run(|| drop(input));
        shelter.leave();
        waits
    }
}

impl<T> Drop for DealtSource<T> {
    fn drop(&mut self) {
        let mut lane = {
            let mut dealer = self.table.dealer.lock();
            dealer.closed[self.partition] = true;
            mem::take(&mut dealer.lanes[self.partition])
        };
        let mut shelter = Shelter::default();
        shelter.run(|| self.table.wakers.wake_all());
        shelter.run(|| lane.clear());
        shelter.leave();
    }
}

impl<T> fmt::Debug for DealtSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DealtSource").field("partition", &self.partition).finish_non_exhaustive()
    }
}
