use super::generator::{BoundedOutOfOrderness, Punctuated};
use super::timestamp::saturating_millis;
use super::{Advice, Clock, Mark, Monotonic, Quiet, Timestamp, WatermarkGenerator};
use std::fmt;
use std::time::Duration;

/// How the watermarks of a stream come about; see
/// [`assign_timestamps`](crate::stream::DataStream::assign_timestamps).
///
/// A watermark `t` says that no records at or before `t` are expected any more. When it is
/// emitted depends on the records alone, never on the time of day or on how the stream is read:
/// after every record that raises it, or [every so much](Self::emit_every) event time.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Element, Watermarks};
/// use std::time::Duration;
///
/// let seconds = stream::iter([10, 30, 20]);
/// let stream = DataStream::from_stream(seconds).assign_timestamps(
///     |second: &i64| Timestamp::from_secs(*second),
///     Watermarks::bounded_out_of_orderness(Duration::from_secs(5)),
/// );
/// let elements: Vec<_> = block_on(stream.elements().map(Result::unwrap).collect());
/// assert_eq!(elements[1], Element::watermark(Timestamp::from_millis(4_999)));
/// assert_eq!(elements[3], Element::watermark(Timestamp::from_millis(24_999)));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a strategy does nothing until a stream uses it"]
pub struct Watermarks<G, I = NeverIdle, S = NoSkewBound> {
    pub(crate) generator: G,
    /// Milliseconds of event time between two emissions; zero is after every record.
    pub(crate) period: i64,
    pub(crate) idleness: I,
    pub(crate) skew: S,
}

/// Streams that are never idle.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NeverIdle;

/// Streams that are idle after a while without a record.
#[derive(Clone, Debug)]
pub struct IdleAfter<C> {
    /// Milliseconds.
    pub(crate) timeout: i64,
    pub(crate) clock: Monotonic<C>,
    pub(crate) quiet: Quiet,
}

/// Timestamps may be as far in the future as they like.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NoSkewBound;

/// Timestamps may be this far ahead of a clock.
#[derive(Clone, Debug)]
pub struct SkewBound<C> {
    pub(crate) bound: Duration,
    pub(crate) clock: C,
}

impl Watermarks<BoundedOutOfOrderness> {
    /// Records come at most `bound` behind the highest timestamp so far: the watermark is that
    /// timestamp - `bound` - 1 ms.
    pub fn bounded_out_of_orderness(bound: Duration) -> Self {
        Self::from_generator(BoundedOutOfOrderness::new(bound))
    }

    /// Timestamps never go back: the watermark is the highest so far - 1 ms.
    pub fn monotonous() -> Self {
        Self::bounded_out_of_orderness(Duration::ZERO)
    }

    /// A dry run over recorded timestamps, in the order in which their records came: how far
    /// behind records come, and what a bound and a lateness would have lost.
    #[must_use]
    pub fn advise(timestamps: impl IntoIterator<Item = Timestamp>) -> Advice {
        timestamps.into_iter().collect()
    }
}

impl<F> Watermarks<Punctuated<F>> {
    /// The watermarks that `propose` makes of single records.
    ///
    /// # Examples
    ///
    /// ```
    /// use side_output::{Timestamp, Watermarks};
    ///
    /// // Records that say themselves how far time has come.
    /// let strategy = Watermarks::punctuated(|record: &(char, Option<i64>), _at| {
    ///     record.1.map(Timestamp::from_millis)
    /// });
    /// ```
    pub fn punctuated<T>(propose: F) -> Self
    where
        F: FnMut(&T, Timestamp) -> Option<Timestamp>,
    {
        Self::from_generator(Punctuated(propose))
    }
}

impl<G> Watermarks<G> {
    /// The watermarks of a generator of your own.
    pub const fn from_generator(generator: G) -> Self {
        Self { generator, period: 0, idleness: NeverIdle, skew: NoSkewBound }
    }
}

impl<G, I, S> Watermarks<G, I, S> {
    /// Asks the generator for a watermark only when timestamps have come into the next stretch of
    /// `period`, counted from 1970. Fewer watermarks are less work; results come later.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use std::time::Duration;
    ///
    /// let stream = DataStream::from_stream(stream::iter(0..100)).assign_timestamps(
    ///     |second| Timestamp::from_secs(*second),
    ///     Watermarks::monotonous().emit_every(Duration::from_secs(60)),
    /// );
    /// // 100 records, a watermark with the first, one in the second minute, and the end.
    /// assert_eq!(block_on(stream.elements().count()), 103);
    /// ```
    pub fn emit_every(mut self, period: Duration) -> Self {
        self.period = saturating_millis(period);
        self
    }

    /// Declares the stream idle when no record came for `timeout`, so that it does not hold back
    /// the time of those it is united with. A stream that never had a record becomes idle too.
    ///
    /// Only the time counts in which the stream was asked for a record and had none: not the time
    /// that a reader spends with the last one.
    ///
    /// # Examples
    ///
    /// ```
    /// use side_output::{SystemClock, Watermarks};
    /// use std::time::Duration;
    ///
    /// let strategy = Watermarks::bounded_out_of_orderness(Duration::from_secs(5))
    ///     .with_idleness(Duration::from_secs(60), SystemClock);
    /// ```
    pub fn with_idleness<C: Clock>(
        self,
        timeout: Duration,
        clock: C,
    ) -> Watermarks<G, IdleAfter<C>, S> {
        let Self { generator, period, skew, .. } = self;
        let (timeout, clock) = (saturating_millis(timeout), Monotonic::new(clock));
        let idleness = IdleAfter { timeout, clock, quiet: Quiet::default() };
        Watermarks { generator, period, idleness, skew }
    }

    /// Sends records whose timestamps are more than `bound` ahead of `clock` to an output of
    /// their own, `future_skew`; they do not move the watermark. One clock that is wrong would
    /// make everybody else's records late otherwise. Not for replays of old data with new clocks:
    /// nothing is ahead then.
    pub fn max_future_skew<C: Clock>(
        self,
        bound: Duration,
        clock: C,
    ) -> Watermarks<G, I, SkewBound<C>> {
        let Self { generator, period, idleness, .. } = self;
        Watermarks { generator, period, idleness, skew: SkewBound { bound, clock } }
    }
}

/// When a generator is asked, and which of its proposals go out.
pub(crate) struct Emission<G> {
    generator: G,
    period: i64,
    /// The first timestamp after the current period.
    next: Timestamp,
    emitted: Timestamp,
}

impl<G> Emission<G> {
    pub(crate) const fn new(generator: G, period: i64) -> Self {
        Self { generator, period, next: Timestamp::MIN, emitted: Timestamp::MIN }
    }

    /// The watermark to emit after this record.
    #[inline]
    pub(crate) fn after<T>(&mut self, value: &T, at: Timestamp) -> Option<Timestamp>
    where
        G: WatermarkGenerator<T>,
    {
        let mut proposed = self.generator.on_record(value, at);
        if self.is_due(at) {
            proposed = proposed.max(self.generator.on_period());
        }
        let watermark = proposed.filter(|watermark| *watermark > self.emitted)?;
        self.emitted = watermark;
        Some(watermark)
    }

    /// Whether a mark from upstream goes on: no watermark but the end, and that one once.
    #[inline]
    pub(crate) fn passes(&mut self, mark: Mark) -> bool {
        let Mark::Watermark(watermark) = mark else { return true };
        watermark == Timestamp::MAX && std::mem::replace(&mut self.emitted, watermark) != watermark
    }

    #[inline]
    fn is_due(&mut self, at: Timestamp) -> bool {
        if self.period == 0 {
            return true;
        }
        if at < self.next {
            return false;
        }
        let into = at.as_millis().rem_euclid(self.period);
        self.next = at.saturating_add_millis(self.period - into);
        true
    }
}

impl<G: fmt::Debug> fmt::Debug for Emission<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emission")
            .field("generator", &self.generator)
            .field("emitted", &self.emitted)
            .finish_non_exhaustive()
    }
}

/// How far an [`Emission`] has come.
#[cfg(feature = "job")]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Progress {
    pub(crate) emitted: Timestamp,
    next: Timestamp,
    /// By the generator.
    seen: Vec<i64>,
}

#[cfg(feature = "job")]
impl<G> Emission<G> {
    pub(crate) fn progress<T>(&self) -> Progress
    where
        G: WatermarkGenerator<T>,
    {
        Progress { emitted: self.emitted, next: self.next, seen: self.generator.seen() }
    }

    /// Goes on from there; `false` if the generator cannot.
    pub(crate) fn resume<T>(&mut self, progress: &Progress) -> bool
    where
        G: WatermarkGenerator<T>,
    {
        (self.emitted, self.next) = (progress.emitted, progress.next);
        self.generator.resume(&progress.seen)
    }
}
