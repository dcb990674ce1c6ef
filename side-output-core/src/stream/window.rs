#[cfg(feature = "job")]
use super::Uid;
use super::data_stream::open;
use super::{DataStream, KeyedStream, Naming, OperatorStreams, Source, Streamed, Unnamed};
use crate::operator::{
    Aggregated, Applied, AtEnd, Evictor, KeepAll, KeepLast, LateDecided, LateDropped, LatePolicy,
    LateToOutput, LateUndecided, ProcessLate, Processed, Reduced, WindowOperator, Windows,
};
use crate::window::{Aggregate, Assigner, Trigger, TriggerOf, Window, WindowProcess};
use std::fmt;
use std::hash::Hash;
use std::panic::Location;
use std::time::Duration;

/// Windows over a stream, on the way to their function.
///
/// Before [`aggregate`](Self::aggregate), [`reduce`](Self::reduce), [`apply`](Self::apply) or
/// [`process`](Self::process) it has to be said where late records go:
/// [`side_output_late_data`](Self::side_output_late_data) or
/// [`drop_late_data`](Self::drop_late_data).
///
/// ```compile_fail
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::{Count, Tumbling};
/// use std::time::Duration;
///
/// DataStream::from_stream(stream::iter([1, 2]))
///     .window_all(Tumbling::of(Duration::from_secs(60)))
///     .aggregate(Count::new()); // these windows do not say where late records go
/// ```
#[must_use = "windows do nothing without a function"]
pub struct WindowedStream<T, K, F, Src, A, Tr, Ev = KeepAll, L = LateUndecided, N = Unnamed>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    keyed: KeyedStream<T, K, F, Src, N>,
    windows: Windows<A, Tr, Ev, L>,
}

/// What windows over a stream without keys take for a key.
pub type NoKey<T> = fn(&T);

/// The streams of windows with the function `B`.
pub type WindowFunctionStreams<T, K, F, Src, A, Tr, B> =
    OperatorStreams<DataStream<T, Src>, WindowOperator<T, K, F, A, Tr, B>>;

impl<T, K, F, Src, N> KeyedStream<T, K, F, Src, N>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Collects the records of each key in windows of event time.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, future, stream};
    /// use side_output::operator::WindowStreams;
    /// use side_output::prelude::*;
    /// use side_output::{Count, Tumbling, Watermarks};
    /// use std::time::Duration;
    ///
    /// let clicks = stream::iter([("ann", 1), ("bob", 2), ("ann", 3), ("ann", 75), ("bob", 4)]);
    /// let WindowStreams { results, late } = DataStream::from_stream(clicks)
    ///     .assign_timestamps(
    ///         |(_, second)| Timestamp::from_secs(*second),
    ///         Watermarks::bounded_out_of_orderness(Duration::from_secs(10)),
    ///     )
    ///     .key_by(|(name, _)| *name)
    ///     .window(Tumbling::of(Duration::from_secs(60)))
    ///     .side_output_late_data()
    ///     .aggregate(Count::new());
    /// let (results, late) = block_on(future::join(
    ///     results.map(|result| (result.key, result.value)).collect::<Vec<_>>(),
    ///     late.map(|late| late.to_string()).collect::<Vec<_>>(),
    /// ));
    /// assert_eq!(results, [("ann", 2), ("bob", 1), ("ann", 1)]);
    /// assert_eq!(late, [
    ///     "at 4000 (1970-01-01T00:00:04Z), \
    ///      60999 ms behind the watermark 64999 (1970-01-01T00:01:04.999Z); \
    ///      window [0, 60000) (1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z) \
    ///      had been complete for 5000 ms",
    /// ]);
    /// ```
    pub fn window<A: Assigner>(
        self,
        assigner: A,
    ) -> WindowedStream<T, K, F, Src, A, A::Trigger, KeepAll, LateUndecided, N> {
        WindowedStream { keyed: self, windows: Windows::new(assigner) }
    }
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Collects all records in windows of event time, without keys: the results' key is `()`.
    pub fn window_all<A: Assigner>(
        self,
        assigner: A,
    ) -> WindowedStream<T, (), NoKey<T>, Src, A, A::Trigger> {
        let no_key: NoKey<T> = |_| ();
        self.key_by(no_key).window(assigner)
    }
}

#[cfg(feature = "job")]
impl<T, K, F, Src, A, Tr, Ev, L> WindowedStream<T, K, F, Src, A, Tr, Ev, L>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Names the state of these windows: a [job](crate::stream::job::Job) saves it under this name.
    ///
    /// From here on the key, and what the windows keep, must be serializable. Outside of a job
    /// nothing is saved.
    pub fn uid(self, name: impl Into<String>) -> WindowedStream<T, K, F, Src, A, Tr, Ev, L, Uid> {
        let Self { keyed, windows } = self;
        WindowedStream { keyed: keyed.uid(name), windows }
    }
}

impl<T, K, F, Src, A, Tr, Ev, L, N> WindowedStream<T, K, F, Src, A, Tr, Ev, L, N>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Keeps windows for that long after their end: a late record fires its window again, and the
    /// result says so. Without this, windows are gone when the watermark reaches their last
    /// instant.
    pub fn allowed_lateness(self, lateness: Duration) -> Self {
        let Self { keyed, windows } = self;
        Self { keyed, windows: windows.allowed_lateness(lateness) }
    }

    /// Emits a final result of each window of each key when it is freed, at the end of the allowed
    /// lateness: with what it holds then, marked [`Pane::Final`](crate::window::Pane::Final).
    ///
    /// For sinks that may take only results that nothing corrects any more: they take the final
    /// ones alone. A window that a [`Purging`](crate::window::Purging) trigger has emptied holds
    /// nothing, and has no final result.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{Count, Pane};
    /// use std::time::Duration;
    ///
    /// let counts = DataStream::from_stream(stream::iter([1, 61, 2]))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(60)))
    ///     .allowed_lateness(Duration::from_secs(30))
    ///     .with_final_panes()
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// let counts: Vec<_> = block_on(counts.map(|count| (count.value, count.pane)).collect());
    /// assert_eq!(counts[..3], [(1, Pane::OnTime), (2, Pane::Late(1)), (2, Pane::Final)]);
    /// ```
    pub fn with_final_panes(self) -> Self {
        let Self { keyed, windows } = self;
        Self { keyed, windows: windows.with_final_panes() }
    }

    /// What a trigger's timers before the end of their window do when the input ends. By default
    /// they fire, so that the last day of a
    /// [`ContinuousEventTime`](crate::window::ContinuousEventTime) of ten seconds has thousands of
    /// results that are all the same; dropped, it has the one at the end of the window.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{AtEnd, ContinuousEventTime, Count};
    /// use std::time::Duration;
    ///
    /// let counts = DataStream::from_stream(stream::iter([1, 25, 31]))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(86_400)))
    ///     .trigger(ContinuousEventTime::every(Duration::from_secs(10)))
    ///     .timers_at_end(AtEnd::Drop)
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// let counts: Vec<_> = block_on(counts.map(|count| (count.value, count.pane)).collect());
    /// assert_eq!(counts, [(2, Pane::Early(1)), (2, Pane::Early(2)), (3, Pane::Early(3)), (3, Pane::OnTime)]);
    /// ```
    pub fn timers_at_end(self, at_end: AtEnd) -> Self {
        let Self { keyed, windows } = self;
        Self { keyed, windows: windows.timers_at_end(at_end) }
    }

    /// Fires windows by `trigger` instead of at their end; those that merge, by a
    /// [`MergingTrigger`](crate::window::MergingTrigger).
    pub fn trigger<Tr2: Trigger<T>>(
        self,
        trigger: Tr2,
    ) -> WindowedStream<T, K, F, Src, A, Tr2, Ev, L, N> {
        let Self { keyed, windows } = self;
        WindowedStream { keyed, windows: windows.trigger(trigger) }
    }

    /// Keeps only the last `count` records of a window, whenever it fires.
    pub fn keep_last(self, count: usize) -> WindowedStream<T, K, F, Src, A, Tr, KeepLast, L, N> {
        let Self { keyed, windows } = self;
        WindowedStream { keyed, windows: windows.keep_last(count) }
    }

    /// Sends late records to an output of their own, each with the reason why it is late.
    pub fn side_output_late_data(self) -> WindowedStream<T, K, F, Src, A, Tr, Ev, LateToOutput, N> {
        let Self { keyed, windows } = self;
        WindowedStream { keyed, windows: windows.side_output_late_data() }
    }

    /// Drops late records, and counts them in the ledger, as `late`.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    /// use side_output::Count;
    /// use std::time::Duration;
    ///
    /// let counts = DataStream::from_stream(stream::iter([1, 61, 2]))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(60)))
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// let ledger = counts.ledger_handle().expect("the stream of an operator");
    /// block_on(counts.for_each(drop))?;
    /// assert_eq!(ledger.read().late, 1);
    /// # Ok::<(), StreamError>(())
    /// ```
    pub fn drop_late_data(self) -> WindowedStream<T, K, F, Src, A, Tr, Ev, LateDropped, N> {
        let Self { keyed, windows } = self;
        WindowedStream { keyed, windows: windows.drop_late_data() }
    }
}

impl<T, K, F, Src, A, Tr, L, N> WindowedStream<T, K, F, Src, A, Tr, KeepAll, L, N>
where
    K: Hash + Eq + Clone,
    F: FnMut(&T) -> K,
    Src: Source<T>,
    A: Assigner,
    Tr: Trigger<T>,
{
    /// Condenses the records of each window as they come.
    #[track_caller]
    pub fn aggregate<G>(
        self,
        aggregate: G,
    ) -> WindowFunctionStreams<T, K, F, Src, A, Tr, Aggregated<G, L>>
    where
        Tr: TriggerOf<T, A::Merging>,
        G: Aggregate<In = T>,
        L: LateDecided + LatePolicy,
        L::Out<K, G::Output, T>: Streamed,
        N: Naming<WindowOperator<T, K, F, A, Tr, Aggregated<G, L>>>,
    {
        let KeyedStream { stream, key, name } = self.keyed;
        open(stream, self.windows.aggregate(key, aggregate), name, Location::caller())
    }

    /// Folds the records of each window into its first one, and what was folded into one another:
    /// of sessions that merge, and of the slices of [`Sliding`](crate::window::Sliding) windows. So
    /// the function must not depend on how records are grouped, nor on the order of those after the
    /// first.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use std::time::Duration;
    ///
    /// let highest = DataStream::from_stream(stream::iter([3, 7, 5, 61]))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(60)))
    ///     .drop_late_data()
    ///     .reduce(|highest: &mut i64, next| *highest = (*highest).max(next));
    /// let highest: Vec<_> = block_on(highest.map(|result| result.value).collect());
    /// assert_eq!(highest, [7, 61]);
    /// ```
    #[track_caller]
    pub fn reduce<R>(self, reduce: R) -> WindowFunctionStreams<T, K, F, Src, A, Tr, Reduced<R, L>>
    where
        T: Clone,
        Tr: TriggerOf<T, A::Merging>,
        R: FnMut(&mut T, T),
        L: LateDecided + LatePolicy,
        L::Out<K, T, T>: Streamed,
        N: Naming<WindowOperator<T, K, F, A, Tr, Reduced<R, L>>>,
    {
        let KeyedStream { stream, key, name } = self.keyed;
        open(stream, self.windows.reduce(key, reduce), name, Location::caller())
    }
}

impl<T, K, F, Src, A, Tr, Ev, L, N> WindowedStream<T, K, F, Src, A, Tr, Ev, L, N>
where
    K: Hash + Eq + Clone,
    F: FnMut(&T) -> K,
    Src: Source<T>,
    A: Assigner,
    Tr: Trigger<T>,
    Ev: Evictor,
{
    /// Calls a closure with all records of each window; the result is the window's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use std::time::Duration;
    ///
    /// let medians = DataStream::from_stream(stream::iter([3, 9, 5, 61]))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(60)))
    ///     .drop_late_data()
    ///     .apply(|(), _window, records: &[i64]| {
    ///         let mut sorted = records.to_vec();
    ///         sorted.sort();
    ///         sorted[sorted.len() / 2]
    ///     });
    /// let medians: Vec<_> = block_on(medians.map(|result| result.value).collect());
    /// assert_eq!(medians, [5, 61]);
    /// ```
    #[track_caller]
    pub fn apply<Fn, R>(
        self,
        function: Fn,
    ) -> WindowFunctionStreams<T, K, F, Src, A, Tr, Applied<Fn, R, L>>
    where
        T: Clone,
        Tr: TriggerOf<T, A::Merging>,
        Fn: FnMut(&K, Window, &[T]) -> R,
        L: LateDecided + LatePolicy,
        L::Out<K, R, T>: Streamed,
        N: Naming<WindowOperator<T, K, F, A, Tr, Applied<Fn, R, L>>>,
    {
        let KeyedStream { stream, key, name } = self.keyed;
        open(stream, self.windows.apply(key, function), name, Location::caller())
    }

    /// Calls a function with all records of each window, which has outputs and state of its own.
    #[track_caller]
    pub fn process<P>(
        self,
        process: P,
    ) -> WindowFunctionStreams<T, K, F, Src, A, Tr, Processed<P, L>>
    where
        T: Clone,
        Tr: TriggerOf<T, A::Merging>,
        P: WindowProcess<In = T, Key = K, Out: Streamed>,
        L: LateDecided + ProcessLate<P>,
        N: Naming<WindowOperator<T, K, F, A, Tr, Processed<P, L>>>,
    {
        let KeyedStream { stream, key, name } = self.keyed;
        open(stream, self.windows.process(key, process), name, Location::caller())
    }
}

impl<T, K, F, Src, A, Tr, Ev, L, N> fmt::Debug for WindowedStream<T, K, F, Src, A, Tr, Ev, L, N>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
    Windows<A, Tr, Ev, L>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedStream")
            .field("keyed", &self.keyed)
            .field("windows", &self.windows)
            .finish()
    }
}
