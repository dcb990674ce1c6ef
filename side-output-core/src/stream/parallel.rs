//! One keyed function on several tasks: records are dealt out by the hash of their key, and what
//! the tasks emit is gathered into the outputs of one operator.

mod deal;
mod gather;
mod task;

pub use self::deal::DealtSource;
pub use self::gather::Gather;
pub use self::task::PartitionTask;

use super::{Drive, Hub, KeyedStream, Source, Streamed, Typed};
use crate::operator::{Keyed, KeyedProcess};
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;

/// A keyed stream whose function runs in several partitions. Made by [`KeyedStream::parallel`].
pub struct Parallel<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    keyed: KeyedStream<T, K, F, Src>,
    partitions: NonZeroUsize,
}

impl<T, K, F, Src> KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Splits the keys over `partitions` tasks, by the hash of the key: the records of one key
    /// always go to the same, in their order.
    ///
    /// What comes out is what one task gives, up to the order between different keys; the
    /// watermark is the lowest of all. An error or a panic in one task is an error of them all.
    ///
    /// # Panics
    ///
    /// If `partitions` is zero.
    #[track_caller]
    pub fn parallel(self, partitions: usize) -> Parallel<T, K, F, Src> {
        let partitions = NonZeroUsize::new(partitions).expect("at least one partition");
        #[cfg(feature = "job")]
        if let Some(link) = self.stream.job() {
            let why = "partitions are not saved yet: leave `parallel` out in a job";
            link.refuse(std::panic::Location::caller(), why);
        }
        Parallel { keyed: self, partitions }
    }
}

/// The streams of a parallel function `P`.
pub type ParallelStreams<P, Tk> =
    <<P as KeyedProcess>::Out as Streamed>::Streams<Typed<Gather<<P as KeyedProcess>::Out, Tk>>>;

/// The task of a partition of the function `P`.
pub type KeyedTask<T, F, P> =
    PartitionTask<<P as KeyedProcess>::Out, Drive<DealtSource<T>, Keyed<P, F>>>;

impl<T, K, F, Src> Parallel<T, K, F, Src>
where
    K: Hash + Eq + Clone,
    F: FnMut(&T) -> K + Clone + Send + 'static,
    Src: Source<T> + Send + 'static,
    T: Send + 'static,
{
    /// Routes the records by functions that `make` makes, one for each partition, all in the task
    /// that reads the outputs.
    pub fn process<P>(self, make: impl FnMut() -> P) -> ParallelStreams<P, KeyedTask<T, F, P>>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
    {
        let mut tasks = Vec::new();
        let gather = self.start(make, |task| tasks.push(task));
        Hub::open(gather.with_tasks(tasks))
    }

    /// Routes the records by functions that `make` makes, one for each partition, each in a task
    /// that is handed to `spawn`.
    ///
    /// # Examples
    ///
    /// With a thread for each partition; an executor's `spawn` is the usual choice:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{KeyedContext, KeyedProcess};
    ///
    /// #[splitter]
    /// enum Counted {
    ///     #[main]
    ///     Count((u32, u32)),
    /// }
    ///
    /// struct Count;
    ///
    /// impl KeyedProcess for Count {
    ///     type Key = u32;
    ///     type In = u32;
    ///     type State = u32;
    ///     type Out = Counted;
    ///
    ///     fn on_record(
    ///         &mut self,
    ///         number: u32,
    ///         count: &mut u32,
    ///         cx: &mut KeyedContext<Self>,
    ///     ) -> impl Routes<Counted> {
    ///         *count += 1;
    ///         let _ = number;
    ///         Counted::Count((*cx.key(), *count))
    ///     }
    /// }
    ///
    /// let CountedStreams { count } = DataStream::from_stream(stream::iter(0..100))
    ///     .key_by(|number: &u32| number % 7)
    ///     .parallel(2)
    ///     .process_on(|task| drop(std::thread::spawn(|| block_on(task))), || Count);
    /// let counts = block_on(count.collect::<Vec<_>>());
    /// assert_eq!(counts.len(), 100);
    /// assert!(counts.contains(&(0, 15)));
    /// ```
    pub fn process_on<P>(
        self,
        spawn: impl FnMut(KeyedTask<T, F, P>),
        make: impl FnMut() -> P,
    ) -> ParallelStreams<P, KeyedTask<T, F, P>>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
    {
        Hub::open(self.start(make, spawn))
    }

    fn start<P>(
        self,
        mut make: impl FnMut() -> P,
        mut spawn: impl FnMut(KeyedTask<T, F, P>),
    ) -> Gather<P::Out, KeyedTask<T, F, P>>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
    {
        let partitions = self.partitions.get();
        let KeyedStream { stream, key, .. } = self.keyed;
        let gather = Gather::new(partitions);
        for (index, source) in deal::deal(stream, key.clone(), partitions).into_iter().enumerate() {
            let drive = Drive::new(source, Keyed::new(key.clone(), make()));
            spawn(gather.task(index, drive));
        }
        gather
    }
}

impl<T, K, F, Src> fmt::Debug for Parallel<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallel").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
