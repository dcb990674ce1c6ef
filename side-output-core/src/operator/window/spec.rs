use super::{Aggregated, Applied, Processed, Reduced, WindowOperator};
use crate::error::StreamError;
use crate::operator::AtEnd;
use crate::output::{Collect, Collector, OwnContext, Routes as _, Single, Splitter};
use crate::state::Map;
use crate::time::saturating_millis;
use crate::window::{
    Aggregate, Assigner, Late, RouteLate, TriggerOf, Window, WindowProcess, WindowResult,
};
use side_output_macros::splitter;
use std::hash::Hash;
use std::marker::PhantomData;
use std::time::Duration;

/// Where what comes out of windows goes: results of type `V` by keys of type `K`, or late records
/// of type `T`.
#[splitter(crate = crate, streams = WindowStreams, wiring = WindowWiring, tag = WindowTag)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Windowed<K, V, T> {
    /// The results of windows.
    #[main]
    #[output(name = "results")]
    Result(WindowResult<K, V>),
    /// Records that came after their windows were gone.
    Late(Late<T>),
}

/// Says nothing yet about late records: such windows are not complete.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LateUndecided;

/// Late records go to an output of their own.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LateToOutput;

/// Late records are dropped and counted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LateDropped;

/// Windows keep all of their records.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct KeepAll;

/// Windows keep only their last records.
#[derive(Clone, Copy, Debug)]
pub struct KeepLast(usize);

/// It was said where late records go.
///
/// This is the bound that a program meets, and not [`LatePolicy`]: that one has an implementation
/// for windows without a decision too. Without it, their methods would not be found, which the
/// compiler reports without the text below; and it would report each use of the result as well.
#[diagnostic::on_unimplemented(
    message = "these windows do not say where late records go",
    label = "call `.side_output_late_data()` or `.drop_late_data()` before this",
    note = "a record is late when it comes after its windows were complete and the allowed lateness \
            is over; without a decision it would vanish without a word"
)]
pub trait LateDecided {}

#[diagnostic::do_not_recommend]
impl LateDecided for LateToOutput {}
#[diagnostic::do_not_recommend]
impl LateDecided for LateDropped {}

/// What becomes of late records, and so what the outputs are.
pub trait LatePolicy {
    /// The splitter.
    type Out<K, V, T>: Splitter;

    /// The route of a result.
    fn result<K, V, T>(result: WindowResult<K, V>) -> Self::Out<K, V, T>;

    /// The route of a late record, unless it is dropped.
    fn late<K, V, T>(late: Late<T>) -> Option<Self::Out<K, V, T>>;
}

impl LatePolicy for LateToOutput {
    type Out<K, V, T> = Windowed<K, V, T>;

    #[inline]
    fn result<K, V, T>(result: WindowResult<K, V>) -> Windowed<K, V, T> {
        Windowed::Result(result)
    }

    #[inline]
    fn late<K, V, T>(late: Late<T>) -> Option<Windowed<K, V, T>> {
        Some(Windowed::Late(late))
    }
}

impl LatePolicy for LateDropped {
    type Out<K, V, T> = Single<WindowResult<K, V>>;

    #[inline]
    fn result<K, V, T>(result: WindowResult<K, V>) -> Single<WindowResult<K, V>> {
        Single(result)
    }

    #[inline]
    fn late<K, V, T>(_late: Late<T>) -> Option<Single<WindowResult<K, V>>> {
        None
    }
}

/// What becomes of late records of a [`WindowProcess`].
pub trait ProcessLate<P: WindowProcess> {
    /// Routes a late record, or counts it.
    fn late<C: Collect<P::Out>>(
        process: &mut P,
        late: Late<P::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;
}

// Never runs. The outputs are those that a program without a decision most likely takes apart, so
// that it is told about the decision alone.
impl LatePolicy for LateUndecided {
    type Out<K, V, T> = Windowed<K, V, T>;

    fn result<K, V, T>(result: WindowResult<K, V>) -> Windowed<K, V, T> {
        LateToOutput::result(result)
    }

    fn late<K, V, T>(late: Late<T>) -> Option<Windowed<K, V, T>> {
        <LateToOutput as LatePolicy>::late::<K, V, T>(late)
    }
}

#[diagnostic::do_not_recommend]
impl<P: WindowProcess> ProcessLate<P> for LateUndecided {
    fn late<C: Collect<P::Out>>(
        _process: &mut P,
        _late: Late<P::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        out.drop_late();
        Ok(())
    }
}

impl<P: RouteLate> ProcessLate<P> for LateToOutput {
    fn late<C: Collect<P::Out>>(
        process: &mut P,
        late: Late<P::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let at = late.timestamp;
        process.on_late(late).route(at, out)
    }
}

#[diagnostic::do_not_recommend]
impl<P: WindowProcess> ProcessLate<P> for LateDropped {
    fn late<C: Collect<P::Out>>(
        _process: &mut P,
        _late: Late<P::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        out.drop_late();
        Ok(())
    }
}

/// A description of windows: everything but the stream.
///
/// [`KeyedStream::window`](crate::stream::KeyedStream::window) is what a program uses; this
/// makes the bare [`WindowOperator`], for those who drive operators themselves.
///
/// # Examples
///
/// ```
/// use side_output::operator::Windows;
/// use side_output::{Count, Tumbling};
/// use std::time::Duration;
///
/// let operator = Windows::new(Tumbling::of(Duration::from_secs(60)))
///     .drop_late_data()
///     .aggregate(|word: &String| word.clone(), Count::new());
/// assert_eq!(operator.windows_kept(), 0);
/// ```
#[derive(Clone, Debug)]
#[must_use = "windows do nothing without a function"]
pub struct Windows<A, Tr, Ev = KeepAll, L = LateUndecided> {
    pub(super) assigner: A,
    pub(super) trigger: Tr,
    evictor: Ev,
    /// Milliseconds.
    pub(super) lateness: i64,
    pub(super) finals: bool,
    pub(super) at_end: AtEnd,
    late: PhantomData<fn() -> L>,
}

impl<A: Assigner> Windows<A, A::Trigger> {
    /// Windows by `assigner`, with its own trigger.
    pub fn new(assigner: A) -> Self {
        let trigger = A::Trigger::default();
        let (lateness, finals, at_end) = (0, false, AtEnd::default());
        Self { assigner, trigger, evictor: KeepAll, lateness, finals, at_end, late: PhantomData }
    }
}

impl<A, Tr, Ev, L> Windows<A, Tr, Ev, L> {
    /// Keeps windows for that long after their end, in watermarks: a late record fires its window
    /// again.
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.lateness = saturating_millis(lateness);
        self
    }

    /// Emits a final result of each window when it is freed, with
    /// [`Pane::Final`](crate::window::Pane).
    pub const fn with_final_panes(mut self) -> Self {
        self.finals = true;
        self
    }

    /// What a trigger's timers before the end of their window do when the input ends.
    pub const fn timers_at_end(mut self, at_end: AtEnd) -> Self {
        self.at_end = at_end;
        self
    }

    /// Fires windows by `trigger`.
    pub fn trigger<Tr2>(self, trigger: Tr2) -> Windows<A, Tr2, Ev, L> {
        let Self { assigner, evictor, lateness, finals, at_end, late, .. } = self;
        Windows { assigner, trigger, evictor, lateness, finals, at_end, late }
    }

    /// Keeps only the last `count` records of a window, whenever it fires.
    pub fn keep_last(self, count: usize) -> Windows<A, Tr, KeepLast, L> {
        let Self { assigner, trigger, lateness, finals, at_end, late, .. } = self;
        Windows { assigner, trigger, evictor: KeepLast(count), lateness, finals, at_end, late }
    }

    /// Sends late records to an output of their own.
    pub fn side_output_late_data(self) -> Windows<A, Tr, Ev, LateToOutput> {
        self.late()
    }

    /// Drops late records, and counts them in the [`Ledger`](crate::output::Ledger).
    pub fn drop_late_data(self) -> Windows<A, Tr, Ev, LateDropped> {
        self.late()
    }

    fn late<L2>(self) -> Windows<A, Tr, Ev, L2> {
        let Self { assigner, trigger, evictor, lateness, finals, at_end, .. } = self;
        Windows { assigner, trigger, evictor, lateness, finals, at_end, late: PhantomData }
    }
}

impl<A: Assigner, Tr, L> Windows<A, Tr, KeepAll, L> {
    /// Condenses the records of each window as they come.
    pub fn aggregate<K, F, G>(
        self,
        key: F,
        aggregate: G,
    ) -> WindowOperator<G::In, K, F, A, Tr, Aggregated<G, L>>
    where
        K: Hash + Eq + Clone,
        F: FnMut(&G::In) -> K,
        Tr: TriggerOf<G::In, A::Merging>,
        G: Aggregate,
        L: LateDecided + LatePolicy,
    {
        let body = Aggregated { aggregate, late: PhantomData };
        WindowOperator::new(key, self, body)
    }

    /// Folds the records of each window into its first one, and what was folded into one another.
    pub fn reduce<T, K, F, R>(
        self,
        key: F,
        reduce: R,
    ) -> WindowOperator<T, K, F, A, Tr, Reduced<R, L>>
    where
        T: Clone,
        K: Hash + Eq + Clone,
        F: FnMut(&T) -> K,
        Tr: TriggerOf<T, A::Merging>,
        R: FnMut(&mut T, T),
        L: LateDecided + LatePolicy,
    {
        let body = Reduced { reduce, late: PhantomData };
        WindowOperator::new(key, self, body)
    }
}

/// How many records a window keeps.
pub trait Evictor {
    /// The last so many; all of them if `None`.
    fn keep(&self) -> Option<usize>;
}

impl Evictor for KeepAll {
    fn keep(&self) -> Option<usize> {
        None
    }
}

impl Evictor for KeepLast {
    fn keep(&self) -> Option<usize> {
        Some(self.0)
    }
}

impl<A: Assigner, Tr, Ev: Evictor, L> Windows<A, Tr, Ev, L> {
    /// Calls a closure with all records of each window.
    pub fn apply<T, K, F, Fn, R>(
        self,
        key: F,
        function: Fn,
    ) -> WindowOperator<T, K, F, A, Tr, Applied<Fn, R, L>>
    where
        T: Clone,
        K: Hash + Eq + Clone,
        F: FnMut(&T) -> K,
        Tr: TriggerOf<T, A::Merging>,
        Fn: FnMut(&K, Window, &[T]) -> R,
        L: LateDecided + LatePolicy,
    {
        let body = Applied { function, keep: self.evictor.keep(), types: PhantomData };
        WindowOperator::new(key, self, body)
    }

    /// Calls a function with all records of each window.
    pub fn process<F, P>(
        self,
        key: F,
        process: P,
    ) -> WindowOperator<P::In, P::Key, F, A, Tr, Processed<P, L>>
    where
        P: WindowProcess,
        P::Key: Hash + Eq + Clone,
        P::In: Clone,
        F: FnMut(&P::In) -> P::Key,
        Tr: TriggerOf<P::In, A::Merging>,
        L: LateDecided + ProcessLate<P>,
    {
        let keep = self.evictor.keep();
        let (keys, taps) = (Map::new(), OwnContext::new());
        let body = Processed { process, keep, keys, changes: None, taps, late: PhantomData };
        WindowOperator::new(key, self, body)
    }
}
