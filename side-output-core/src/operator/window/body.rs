use super::{LatePolicy, ProcessLate};
use crate::error::StreamError;
use crate::output::{Collect, Collector, OwnContext, Routes as _, Splitter};
use crate::state::{Changes, Map};
use crate::time::Timestamp;
use crate::window::{Aggregate, Late, Pane, Window, WindowContext, WindowProcess, WindowResult};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

/// What a window keeps of its records, and its result when it fires.
///
/// Implemented by what `aggregate`, `reduce`, `apply` and `process` make.
pub trait WindowBody<K, T> {
    /// What is kept of the records of one window of one key.
    type Contents;

    /// What is kept beside, also when the contents are purged.
    type Side: Default;

    /// The outputs.
    type Out: Splitter;

    /// Whether the contents of a window can be put together from those of its slices, by
    /// [`copy`](Self::copy) and [`merge`](Self::merge). Nothing is kept beside them then.
    const SHARES: bool = false;

    /// The contents of a window with one record.
    fn first(&mut self, value: Share<'_, T>) -> Self::Contents;

    /// Adds a record.
    fn add(&mut self, contents: &mut Self::Contents, value: Share<'_, T>);

    /// A copy of the contents of a slice, for one of the windows that share it. `None` if they do
    /// not [share](Self::SHARES).
    #[inline]
    fn copy(&self, contents: &Self::Contents) -> Option<Self::Contents> {
        let _ = contents;
        None
    }

    /// Adds the contents of a window that merges with this one, or of another slice of it.
    fn merge(&mut self, contents: &mut Self::Contents, other: Self::Contents);

    /// Adds what was kept beside the contents of a window that merges with this one.
    fn merge_side(&mut self, side: &mut Self::Side, other: Self::Side) {
        drop((side, other));
    }

    /// Whether an evictor has left no records: such a window does not fire until one comes.
    fn is_empty(&self, contents: &Self::Contents) -> bool {
        let _ = contents;
        false
    }

    /// Emits the window's result.
    fn fire<C: Collect<Self::Out>>(
        &mut self,
        firing: Firing<'_, K>,
        contents: &mut Self::Contents,
        side: &mut Self::Side,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// The same, when nothing is kept after it.
    #[expect(clippy::too_many_arguments, reason = "a firing, taken apart")]
    fn fire_last<C: Collect<Self::Out>>(
        &mut self,
        key: K,
        window: Window,
        pane: Pane,
        watermark: Timestamp,
        mut contents: Self::Contents,
        mut side: Self::Side,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        // It fires for a record or at its end, when it has one, and without either for a final pane.
        if pane == Pane::Final && self.is_empty(&contents) {
            return Ok(());
        }
        let firing = Firing { key: &key, window, pane, watermark };
        self.fire(firing, &mut contents, &mut side, out)
    }

    /// Emits a late record, or drops it.
    fn late<C: Collect<Self::Out>>(
        &mut self,
        late: Late<T>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;
}

/// A window that fires.
#[derive(Debug)]
pub struct Firing<'a, K> {
    /// The key.
    pub key: &'a K,
    /// The window.
    pub window: Window,
    /// Which of its results this is.
    pub pane: Pane,
    /// The current watermark.
    pub watermark: Timestamp,
}

/// A record that may belong to several windows.
#[derive(Debug)]
pub enum Share<'a, T> {
    /// Other windows take it too.
    Borrowed(&'a T),
    /// This is the last one.
    Owned(T),
}

impl<T> Share<'_, T> {
    /// The record.
    #[inline]
    pub const fn get(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
        }
    }

    /// The record itself, cloned if others take it too.
    #[inline]
    pub fn into_owned(self) -> T
    where
        T: Clone,
    {
        match self {
            Self::Borrowed(value) => value.clone(),
            Self::Owned(value) => value,
        }
    }
}

#[inline]
fn emit_result<L, K, V, T, C>(
    window: Window,
    pane: Pane,
    key: K,
    value: V,
    out: &mut Collector<'_, C>,
) where
    L: LatePolicy,
    C: Collect<L::Out<K, V, T>>,
{
    out.emit(L::result(WindowResult { key, window, value, pane }), window.max_timestamp());
}

#[inline]
fn emit_late<L, K, V, T, C>(late: Late<T>, out: &mut Collector<'_, C>)
where
    L: LatePolicy,
    C: Collect<L::Out<K, V, T>>,
{
    let at = late.timestamp;
    match L::late(late) {
        Some(route) => out.emit(route, at),
        None => out.drop_late(),
    }
}

/// Condenses records by an [`Aggregate`].
pub struct Aggregated<G, L> {
    pub(super) aggregate: G,
    pub(super) late: PhantomData<fn() -> L>,
}

impl<K: Clone, G: Aggregate, L: LatePolicy> WindowBody<K, G::In> for Aggregated<G, L> {
    type Contents = G::Accumulator;
    type Side = ();
    type Out = L::Out<K, G::Output, G::In>;

    const SHARES: bool = !G::IN_ORDER;

    #[inline]
    fn first(&mut self, value: Share<'_, G::In>) -> G::Accumulator {
        let mut accumulator = self.aggregate.create();
        self.aggregate.add(&mut accumulator, value.get());
        accumulator
    }

    #[inline]
    fn add(&mut self, accumulator: &mut G::Accumulator, value: Share<'_, G::In>) {
        self.aggregate.add(accumulator, value.get());
    }

    #[inline]
    fn copy(&self, accumulator: &G::Accumulator) -> Option<G::Accumulator> {
        Some(accumulator.clone())
    }

    #[inline]
    fn merge(&mut self, accumulator: &mut G::Accumulator, other: G::Accumulator) {
        self.aggregate.merge(accumulator, other);
    }

    #[inline]
    fn fire<C: Collect<Self::Out>>(
        &mut self,
        firing: Firing<'_, K>,
        accumulator: &mut G::Accumulator,
        (): &mut (),
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let value = self.aggregate.result(accumulator);
        let Firing { key, window, pane, .. } = firing;
        emit_result::<L, _, _, G::In, _>(window, pane, key.clone(), value, out);
        Ok(())
    }

    #[inline]
    fn fire_last<C: Collect<Self::Out>>(
        &mut self,
        key: K,
        window: Window,
        pane: Pane,
        _watermark: Timestamp,
        accumulator: G::Accumulator,
        (): (),
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let value = self.aggregate.result(&accumulator);
        emit_result::<L, _, _, G::In, _>(window, pane, key, value, out);
        Ok(())
    }

    #[inline]
    fn late<C: Collect<Self::Out>>(
        &mut self,
        late: Late<G::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        emit_late::<L, K, G::Output, _, _>(late, out);
        Ok(())
    }
}

impl<G, L> fmt::Debug for Aggregated<G, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aggregated").finish_non_exhaustive()
    }
}

/// Folds records into the first one.
pub struct Reduced<R, L> {
    pub(super) reduce: R,
    pub(super) late: PhantomData<fn() -> L>,
}

impl<K, T, R, L> WindowBody<K, T> for Reduced<R, L>
where
    K: Clone,
    T: Clone,
    R: FnMut(&mut T, T),
    L: LatePolicy,
{
    type Contents = T;
    type Side = ();
    type Out = L::Out<K, T, T>;

    fn first(&mut self, value: Share<'_, T>) -> T {
        value.into_owned()
    }

    fn add(&mut self, reduced: &mut T, value: Share<'_, T>) {
        (self.reduce)(reduced, value.into_owned());
    }

    fn merge(&mut self, reduced: &mut T, other: T) {
        (self.reduce)(reduced, other);
    }

    fn fire<C: Collect<Self::Out>>(
        &mut self,
        firing: Firing<'_, K>,
        reduced: &mut T,
        (): &mut (),
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let Firing { key, window, pane, .. } = firing;
        emit_result::<L, _, _, T, _>(window, pane, key.clone(), reduced.clone(), out);
        Ok(())
    }

    fn fire_last<C: Collect<Self::Out>>(
        &mut self,
        key: K,
        window: Window,
        pane: Pane,
        _watermark: Timestamp,
        reduced: T,
        (): (),
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        emit_result::<L, _, _, T, _>(window, pane, key, reduced, out);
        Ok(())
    }

    fn late<C: Collect<Self::Out>>(
        &mut self,
        late: Late<T>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        emit_late::<L, K, T, _, _>(late, out);
        Ok(())
    }
}

impl<R, L> fmt::Debug for Reduced<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduced").finish_non_exhaustive()
    }
}

/// The records of a window, in the order in which they came.
#[derive(Debug)]
#[cfg_attr(feature = "job", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Elements<T>(Vec<T>);

impl<T: Clone> Elements<T> {
    fn first(value: Share<'_, T>) -> Self {
        Self(vec![value.into_owned()])
    }

    fn add(&mut self, value: Share<'_, T>) {
        self.0.push(value.into_owned());
    }

    fn merge(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// What is left when only the last `keep` records stay.
    fn evict(&mut self, keep: Option<usize>) -> &[T] {
        if let Some(excess) = keep.and_then(|keep| self.0.len().checked_sub(keep)) {
            self.0.drain(..excess);
        }
        &self.0
    }
}

/// Calls a closure with all records of a window.
pub struct Applied<F, R, L> {
    pub(super) function: F,
    pub(super) keep: Option<usize>,
    pub(super) types: PhantomData<fn() -> (R, L)>,
}

impl<K, T, R, F, L> WindowBody<K, T> for Applied<F, R, L>
where
    K: Clone,
    T: Clone,
    F: FnMut(&K, Window, &[T]) -> R,
    L: LatePolicy,
{
    type Contents = Elements<T>;
    type Side = ();
    type Out = L::Out<K, R, T>;

    fn first(&mut self, value: Share<'_, T>) -> Elements<T> {
        Elements::first(value)
    }

    fn add(&mut self, elements: &mut Elements<T>, value: Share<'_, T>) {
        elements.add(value);
    }

    fn merge(&mut self, elements: &mut Elements<T>, other: Elements<T>) {
        elements.merge(other);
    }

    fn is_empty(&self, elements: &Elements<T>) -> bool {
        elements.0.is_empty()
    }

    fn fire<C: Collect<Self::Out>>(
        &mut self,
        firing: Firing<'_, K>,
        elements: &mut Elements<T>,
        (): &mut (),
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let Firing { key, window, pane, .. } = firing;
        let value = (self.function)(key, window, elements.evict(self.keep));
        emit_result::<L, _, _, T, _>(window, pane, key.clone(), value, out);
        Ok(())
    }

    fn late<C: Collect<Self::Out>>(
        &mut self,
        late: Late<T>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        emit_late::<L, K, R, _, _>(late, out);
        Ok(())
    }
}

impl<F, R, L> fmt::Debug for Applied<F, R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied").field("keep", &self.keep).finish_non_exhaustive()
    }
}

/// Calls a [`WindowProcess`] with all records of a window.
pub struct Processed<P: WindowProcess, L> {
    pub(super) process: P,
    pub(super) keep: Option<usize>,
    pub(super) keys: Map<P::Key, Option<P::KeyState>>,
    /// What has changed of them since they were saved, once they were.
    pub(super) changes: Option<Box<Changes<P::Key>>>,
    pub(super) taps: OwnContext<P::Out>,
    pub(super) late: PhantomData<fn() -> L>,
}

impl<P, L> WindowBody<P::Key, P::In> for Processed<P, L>
where
    P: WindowProcess,
    P::Key: Hash + Eq + Clone,
    P::In: Clone,
    L: ProcessLate<P>,
{
    type Contents = Elements<P::In>;
    type Side = P::State;
    type Out = P::Out;

    fn first(&mut self, value: Share<'_, P::In>) -> Elements<P::In> {
        Elements::first(value)
    }

    fn add(&mut self, elements: &mut Elements<P::In>, value: Share<'_, P::In>) {
        elements.add(value);
    }

    fn merge(&mut self, elements: &mut Elements<P::In>, other: Elements<P::In>) {
        elements.merge(other);
    }

    fn is_empty(&self, elements: &Elements<P::In>) -> bool {
        elements.0.is_empty()
    }

    fn merge_side(&mut self, state: &mut P::State, other: P::State) {
        self.process.merge(state, other);
    }

    fn fire<C: Collect<P::Out>>(
        &mut self,
        firing: Firing<'_, P::Key>,
        elements: &mut Elements<P::In>,
        state: &mut P::State,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let Firing { key, window, pane, watermark } = firing;
        let at = window.max_timestamp();
        let slot = self.keys.find(key);
        let mut key_state = slot.and_then(|slot| self.keys.value_mut(slot)?.take());
        self.taps.set(at, watermark);
        let (key_state_ref, taps) = (&mut key_state, &mut self.taps);
        let mut cx =
            WindowContext { window, pane, watermark, state, key_state: key_state_ref, taps };
        let routes = self.process.process(key, elements.evict(self.keep), &mut cx);
        let result = routes.route(at, out);
        self.taps.flush(at, out);
        match (slot, key_state) {
            (None, None) => {}
            (None, key_state) => {
                let slot = self.keys.enter(key, || key_state);
                if let Some(changes) = &mut self.changes {
                    changes.touch(slot);
                }
            }
            (Some(slot), None) => {
                let removed = self.keys.remove(slot);
                if let (Some(changes), Some((key, _))) = (&mut self.changes, removed) {
                    changes.remove(slot, key);
                }
            }
            (Some(slot), key_state) => {
                if let Some(place) = self.keys.value_mut(slot) {
                    *place = key_state;
                }
                if let Some(changes) = &mut self.changes {
                    changes.touch(slot);
                }
            }
        }
        result
    }

    fn late<C: Collect<P::Out>>(
        &mut self,
        late: Late<P::In>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        L::late(&mut self.process, late, out)
    }
}

impl<P: WindowProcess, L> fmt::Debug for Processed<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processed").field("keep", &self.keep).finish_non_exhaustive()
    }
}
