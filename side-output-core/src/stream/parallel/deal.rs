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
    unread: usize,
}

struct Exchange<T> {
    dealer: Mutex<Dealer<T>>,
    wakers: Arc<WaitingPartitions>,
}

struct Dealer<T> {
    /// Taken out by the partition that reads. It stays after its end: some of it may be unread.
    input: Option<DealtInput<T>>,
    lanes: Vec<Lane<T>>,
    /// Partitions whose task is gone: what comes for them is dropped.
    closed: Vec<bool>,
    end: Option<Result<(), StreamError>>,
    /// What was dealt to partitions whose task is gone.
    unread: usize,
    /// The input is to be asked for an error where it stalls.
    fail_on_stall: bool,
}

type DealtInput<T> = Box<dyn Deal<T> + Send>;

/// Those that wait, for the input or for each other: a place for each partition. They are few, so
/// they are woken together.
struct WaitingPartitions(Mutex<Vec<Option<Waker>>>);

impl WaitingPartitions {
    /// Lets a partition wait; the waker that it had, to be dropped without a lock.
    fn add(&self, partition: usize, waker: &Waker) -> Option<Waker> {
        let mut wakers = self.0.lock();
        match &mut wakers[partition] {
            Some(known) if known.will_wake(waker) => None,
            place => place.replace(waker.clone()),
        }
    }

    fn wake_all(&self) {
        let wakers: Vec<_> = self.0.lock().iter_mut().filter_map(Option::take).collect();
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

    fn unread(&mut self, records: usize);

    fn fail_on_stall(&mut self);
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

    fn unread(&mut self, records: usize) {
        self.stream.unread(records);
    }

    fn fail_on_stall(&mut self) {
        Source::fail_on_stall(&mut self.stream);
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
        unread: 0,
        fail_on_stall: false,
    };
    let wakers = WaitingPartitions(Mutex::new(vec![None; partitions]));
    let table = Arc::new(Exchange { dealer: Mutex::new(dealer), wakers: Arc::new(wakers) });
    let source = |partition| {
        let table = Arc::clone(&table);
        DealtSource { table, partition, chunk: Chunk::new(), unread: 0 }
    };
    (0..partitions).map(source).collect()
}

impl<T> Source<T> for DealtSource<T> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { table, partition, chunk, .. } = self;
        chunk.feed_from(intake, |chunk, _| {
            let fed = table.refill(*partition, cx, chunk.recycle());
            chunk.load();
            fed
        })
    }

    fn resumes() -> bool {
        true
    }

    fn unread(&mut self, records: usize) {
        self.unread += records;
    }

    fn fail_on_stall(&mut self) {
        self.table.dealer.lock().fail_on_stall = true;
    }
}

impl<T> Exchange<T> {
    /// Takes what is there for a partition, and reads the input if nothing is.
    fn refill(&self, partition: usize, cx: &Context<'_>, into: &mut Lane<T>) -> Fed {
        // What is read may all be for others, or for nobody: a poll has an end.
        for _ in 0..TURNS {
            let input = match self.take_input(partition, cx, into) {
                Ok(input) => input,
                Err(fed) => return fed,
            };
            if self.read(input) {
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
    ) -> Result<DealtInput<T>, Fed> {
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
        let old = wakers.add(partition, cx.waker());
        let Dealer { lanes, closed, .. } = &*dealer;
        let full = |(lane, closed): (&Lane<T>, &bool)| !closed && lane.len() >= CAPACITY;
        let input = if lanes.iter().zip(closed).any(full) { None } else { dealer.input.take() };
        // Dropping a waker may drop a task: not under the lock.
        drop(dealer);
        drop(old);
        // If another one reads, it wakes us when it has found something.
        input.ok_or(Fed::Pending)
    }

    /// Reads what is ready, for all partitions, and gives the input back: if it panics, it ends with
    /// an error for all of them.
    ///
    /// True if nothing is: then the input wakes all of us.
    fn read(&self, mut input: DealtInput<T>) -> bool {
        let Self { dealer, wakers } = self;
        let (mut dealt, asked): (Vec<Lane<T>>, _) = {
            let mut dealer = dealer.lock();
            let lanes = dealer.lanes.iter().map(|_| Lane::new()).collect();
            (lanes, mem::take(&mut dealer.fail_on_stall))
        };
        let waker = Waker::from(Arc::clone(wakers));
        let deal = || {
            if asked {
                input.fail_on_stall();
            }
            input.deal(&mut Context::from_waker(&waker), &mut dealt)
        };
        let fed = catch_unwind(AssertUnwindSafe(deal))
            .unwrap_or_else(|panic| Fed::Failed(StreamError::from_panic(&*panic)));
        let waits = matches!(fed, Fed::Pending) && dealt.iter().all(Lane::is_empty);
        {
            let mut dealer = dealer.lock();
            let Dealer { input: seat, lanes, closed, end, unread, .. } = &mut *dealer;
            for ((lane, dealt), closed) in lanes.iter_mut().zip(&mut dealt).zip(closed) {
                if *closed {
                    // It stays behind, and is dropped after the lock.
                    *unread += dealt.len();
                } else {
                    lane.append(dealt);
                }
            }
            *seat = Some(input);
            match fed {
                Fed::More | Fed::Pending => {}
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
        shelter.leave();
        waits
    }
}

impl<T> Drop for Exchange<T> {
    fn drop(&mut self) {
        let mut dealer = self.dealer.lock();
        let unread = dealer.unread;
        if let Some(input) = &mut dealer.input {
            input.unread(unread);
        }
    }
}

impl<T> Drop for DealtSource<T> {
    fn drop(&mut self) {
        let mut lane = {
            let mut dealer = self.table.dealer.lock();
            dealer.closed[self.partition] = true;
            let lane = mem::take(&mut dealer.lanes[self.partition]);
            dealer.unread += self.unread + self.chunk.len() + lane.len();
            lane
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
