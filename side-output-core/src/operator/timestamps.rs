use super::Operator;
#[cfg(feature = "job")]
use super::snapshot::values;
use crate::error::StreamError;
use crate::output::{Collect, Collector, Single, Splitter};
#[cfg(feature = "job")]
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
#[cfg(feature = "job")]
use crate::time::Progress;
use crate::time::{
    Clock, Emission, Mark, NoSkewBound, SkewBound, Timestamp, WatermarkGenerator, Watermarks,
};
use side_output_macros::splitter;
use std::fmt;
use std::marker::PhantomData;

/// Where a record goes when its timestamp may be too far in the future; see
/// [`Watermarks::max_future_skew`].
#[splitter(crate = crate)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stamped<T> {
    /// Records with their timestamps.
    #[main]
    #[output(name = "records")]
    Record(T),
    /// Records whose timestamps are too far ahead of the clock.
    FutureSkew(T),
}

/// Whether timestamps may be in the future, and so what the outputs are.
pub trait FutureSkew {
    /// The splitter.
    type Out<T>: Splitter;

    /// Whether `at` is too far ahead.
    fn is_ahead(&mut self, at: Timestamp) -> bool;

    /// The route of a record: `ahead` if it is too far ahead.
    fn route<T>(value: T, ahead: bool) -> Self::Out<T>;
}

impl FutureSkew for NoSkewBound {
    type Out<T> = Single<T>;

    #[inline]
    fn is_ahead(&mut self, _at: Timestamp) -> bool {
        false
    }

    #[inline]
    fn route<T>(value: T, _ahead: bool) -> Single<T> {
        Single(value)
    }
}

impl<C: Clock> FutureSkew for SkewBound<C> {
    type Out<T> = Stamped<T>;

    #[inline]
    fn is_ahead(&mut self, at: Timestamp) -> bool {
        at > self.clock.now() + self.bound
    }

    #[inline]
    fn route<T>(value: T, ahead: bool) -> Stamped<T> {
        if ahead { Stamped::FutureSkew(value) } else { Stamped::Record(value) }
    }
}

/// The operator behind [`assign_timestamps`](crate::stream::DataStream::assign_timestamps).
///
/// Watermarks and idleness from upstream are dropped, except the end of the input, which goes on
/// once.
pub struct AssignTimestamps<T, F, G, S = NoSkewBound> {
    timestamp: F,
    emission: Emission<G>,
    /// What comes as idleness is the strategy's own.
    idleness: bool,
    skew: S,
    types: PhantomData<fn(T)>,
}

impl<T, F, G, S> AssignTimestamps<T, F, G, S>
where
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    S: FutureSkew,
{
    /// An operator that stamps records by `timestamp`. Idleness is not its business: it knows no
    /// time but that of the records.
    pub fn new<I>(timestamp: F, watermarks: Watermarks<G, I, S>) -> Self {
        let Watermarks { generator, period, skew, .. } = watermarks;
        let emission = Emission::new(generator, period);
        Self { timestamp, emission, idleness: false, skew, types: PhantomData }
    }

    /// Forwards idleness: its source declares it.
    pub(crate) const fn forwarding_idleness(mut self) -> Self {
        self.idleness = true;
        self
    }
}

impl<T, F, G, S> Operator for AssignTimestamps<T, F, G, S>
where
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    S: FutureSkew,
{
    type In = T;
    type Out = S::Out<T>;

    const STATEFUL: bool = false;

    #[inline]
    fn on_record<C: Collect<Self::Out>>(
        &mut self,
        value: T,
        _at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let at = (self.timestamp)(&value);
        if self.skew.is_ahead(at) {
            out.emit(S::route(value, true), at);
            return Ok(());
        }
        let watermark = self.emission.after(&value, at);
        out.emit(S::route(value, false), at);
        if let Some(watermark) = watermark {
            out.mark(Mark::Watermark(watermark));
        }
        Ok(())
    }

    #[inline]
    fn on_mark<C: Collect<Self::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let status = matches!(mark, Mark::Idle | Mark::Active);
        if self.emission.passes(mark) && (self.idleness || !status) {
            out.mark(mark);
        } else {
            out.swallow();
        }
        Ok(())
    }
}

impl<T, F, G: fmt::Debug, S> fmt::Debug for AssignTimestamps<T, F, G, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssignTimestamps").field("emission", &self.emission).finish_non_exhaustive()
    }
}

/// The name of what the strategy has seen and emitted.
#[cfg(feature = "job")]
const WATERMARKS: &str = "watermarks";

#[cfg(feature = "job")]
impl<T, F, G: WatermarkGenerator<T>, S> Snapshot for AssignTimestamps<T, F, G, S> {
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        save_emission(&mut self.emission, to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        load_emission(&mut self.emission, from)
    }
}

/// Saves how far watermarks have come, also of a stream that stamps its records on the way.
#[cfg(feature = "job")]
pub(crate) fn save_emission<T, G: WatermarkGenerator<T>>(
    emission: &mut Emission<G>,
    to: &mut StateChanges,
) -> Result<(), SnapshotError> {
    to.value(WATERMARKS, &emission.progress())
}

#[cfg(feature = "job")]
pub(crate) fn load_emission<T, G: WatermarkGenerator<T>>(
    emission: &mut Emission<G>,
    from: &SavedState,
) -> Result<(), SnapshotError> {
    if from.is_empty() {
        return Ok(());
    }
    let progress: Vec<Progress> = values(from, WATERMARKS)?;
    let furthest_behind = progress.into_iter().min_by_key(|progress| progress.emitted);
    if furthest_behind.is_some_and(|progress| emission.resume(&progress)) {
        Ok(())
    } else {
        Err(SnapshotError::new(WATERMARKS, "this generator remembers something else"))
    }
}
