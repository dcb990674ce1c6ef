use super::data_stream::open;
use super::saving::ByPlace;
use super::source::pass_on;
use super::{DataStream, Fed, Intake, JobLink, LedgerHandle, OperatorStreams, Saving, Source};
use crate::error::StreamError;
use crate::operator::AssignTimestamps;
#[cfg(feature = "job")]
use crate::operator::{load_emission, save_emission};
use crate::time::{
    Clock, Emission, IdleAfter, Mark, NeverIdle, NoSkewBound, SkewBound, Timestamp,
    WatermarkGenerator, Watermarks,
};
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::Location;
use std::task::{Context, Waker};

/// The stream, or streams, of [`DataStream::assign_timestamps`].
pub type TimestampStreams<T, Src, F, G, I, S> =
    <S as StampStreams<T, IdleSource<T, DataStream<T, Src>, I>, F, G>>::Streams;

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Gives each record its timestamp, and the stream its watermarks.
    ///
    /// Watermarks and idleness from upstream are dropped, except the end of the input. The result
    /// is one stream, or, with a [bound on future timestamps](Watermarks::max_future_skew), the streams
    /// `records` and `future_skew`.
    ///
    /// # Examples
    ///
    /// A device whose clock is a day ahead does not make the others late:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, future, stream};
    /// use side_output::operator::StampedStreams;
    /// use side_output::prelude::*;
    /// use side_output::{TestClock, Watermarks};
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let clock = TestClock::at(Timestamp::from_secs(36_000));
    /// let seconds = stream::iter([35_990, 36_000 + 86_400, 36_001]);
    /// let StampedStreams { records, future_skew } = DataStream::from_stream(seconds)
    ///     .assign_timestamps(
    ///         |second: &i64| Timestamp::from_secs(*second),
    ///         Watermarks::bounded_out_of_orderness(hour).max_future_skew(hour, clock),
    ///     );
    /// let (records, future_skew) = block_on(future::join(
    ///     records.collect::<Vec<_>>(),
    ///     future_skew.collect::<Vec<_>>(),
    /// ));
    /// assert_eq!(records, [35_990, 36_001]);
    /// assert_eq!(future_skew, [122_400]);
    /// ```
    pub fn assign_timestamps<F, G, I, S>(
        self,
        timestamp: F,
        watermarks: Watermarks<G, I, S>,
    ) -> TimestampStreams<T, Src, F, G, I, S>
    where
        F: FnMut(&T) -> Timestamp,
        G: WatermarkGenerator<T>,
        I: Idleness,
        S: StampStreams<T, IdleSource<T, DataStream<T, Src>, I>, F, G>,
    {
        let Watermarks { generator, period, idleness, skew } = watermarks;
        let source = IdleSource::new(self, idleness);
        let watermarks = Watermarks { generator, period, idleness: NeverIdle, skew };
        S::open(source, timestamp, watermarks)
    }
}

/// What comes of stamping the records of `Src`: one stream, or two.
pub trait StampStreams<T, Src, F, G>: Sized {
    /// The stream or streams.
    type Streams;

    /// Opens them.
    fn open(source: Src, timestamp: F, watermarks: Watermarks<G, NeverIdle, Self>)
    -> Self::Streams;
}

impl<T, Src, F, G> StampStreams<T, Src, F, G> for NoSkewBound
where
    Src: Source<T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
{
    type Streams = DataStream<T, StampSource<Src, F, G>>;

    fn open(source: Src, timestamp: F, watermarks: Watermarks<G>) -> Self::Streams {
        let mut emission = Emission::new(watermarks.generator, watermarks.period);
        let saving = saving(source.job(), &mut emission);
        let source = StampSource { source, timestamp, emission, due: None, saving };
        DataStream::new(source, "records")
    }
}

impl<T, Src, F, G, C> StampStreams<T, Src, F, G> for SkewBound<C>
where
    Src: Source<T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    C: Clock,
{
    type Streams = OperatorStreams<Src, AssignTimestamps<T, F, G, Self>>;

    fn open(
        source: Src,
        timestamp: F,
        watermarks: Watermarks<G, NeverIdle, Self>,
    ) -> Self::Streams {
        let operator = AssignTimestamps::new(timestamp, watermarks).forwarding_idleness();
        open(source, operator, ByPlace, Location::caller())
    }
}

/// Stamps the records of `Src` on their way: what
/// [`AssignTimestamps`] does, without a chunk in between where nothing is split.
#[derive(Debug)]
pub struct StampSource<Src, F, G> {
    source: Src,
    timestamp: F,
    emission: Emission<G>,
    /// A watermark whose record was the last that the intake took.
    due: Option<Mark>,
    saving: Saving<Emission<G>>,
}

/// What the watermarks come from is saved by its place.
#[cfg(feature = "job")]
fn saving<T, G: WatermarkGenerator<T>>(
    link: Option<JobLink>,
    emission: &mut Emission<G>,
) -> Saving<Emission<G>> {
    Saving::by_place(link, "timestamps", emission, save_emission::<T, G>, load_emission::<T, G>)
}

#[cfg(not(feature = "job"))]
fn saving<T, G: WatermarkGenerator<T>>(
    _: Option<JobLink>,
    _: &mut Emission<G>,
) -> Saving<Emission<G>> {
    Saving::NONE
}

impl<T, Src, F, G> Source<T> for StampSource<Src, F, G>
where
    Src: Source<T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
{
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { source, timestamp, emission, due, saving } = self;
        if let Some(mark) = due.take()
            && intake.mark(mark).is_break()
        {
            return Fed::More;
        }
        let mut error = None;
        let mut stamping = Stamping { timestamp, emission, due, saving, error: &mut error, intake };
        let fed = source.feed(cx, &mut stamping);
        if matches!(fed, Fed::End)
            && let Err(error) = saving.end(emission)
        {
            return Fed::Failed(error);
        }
        error.map_or(fed, Fed::Failed)
    }

    #[inline]
    fn resumes() -> bool {
        Src::resumes()
    }

    pass_on!(source);
}

struct Stamping<'a, F, G, K> {
    timestamp: &'a mut F,
    emission: &'a mut Emission<G>,
    due: &'a mut Option<Mark>,
    saving: &'a mut Saving<Emission<G>>,
    error: &'a mut Option<StreamError>,
    intake: &'a mut K,
}

impl<T, F, G, K> Intake<T> for Stamping<'_, F, G, K>
where
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    K: Intake<T>,
{
    const STOPS: bool = K::STOPS;

    #[inline(always)]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        let at = (self.timestamp)(&value);
        let Some(watermark) = self.emission.after(&value, at) else {
            return self.intake.record(value, at);
        };
        let mark = Mark::Watermark(watermark);
        // It is due also if the intake panics.
        *self.due = Some(mark);
        self.intake.record(value, at)?;
        *self.due = None;
        self.intake.mark(mark)
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        if let Mark::Barrier(checkpoint) = mark
            && let Err(error) = self.saving.barrier(self.emission, checkpoint)
        {
            *self.error = Some(error);
            return ControlFlow::Break(());
        }
        if self.emission.passes(mark) { self.intake.mark(mark) } else { ControlFlow::Continue(()) }
    }
}

/// When a stream is idle.
pub trait Idleness {
    /// Whether it is so at all.
    const POSSIBLE: bool;

    /// The waker to ask the stream with.
    fn waker(&mut self, waker: &Waker) -> Waker;

    /// Notes that a record came.
    fn touch(&mut self);

    /// Whether nothing came for too long, also now; if not, wakes `waker` when that can be.
    fn is_over(&mut self, waker: &Waker) -> bool;
}

impl Idleness for NeverIdle {
    const POSSIBLE: bool = false;

    #[inline]
    fn waker(&mut self, waker: &Waker) -> Waker {
        waker.clone()
    }

    #[inline]
    fn touch(&mut self) {}

    #[inline]
    fn is_over(&mut self, _waker: &Waker) -> bool {
        false
    }
}

impl<C: Clock> Idleness for IdleAfter<C> {
    const POSSIBLE: bool = true;

    fn waker(&mut self, waker: &Waker) -> Waker {
        self.quiet.waker(waker)
    }

    fn touch(&mut self) {
        self.quiet.end();
    }

    fn is_over(&mut self, waker: &Waker) -> bool {
        let now = self.clock.now();
        let left = self.timeout - self.quiet.wait(now, self.timeout);
        if left > 0 {
            // When it rings, there may be more left.
            self.clock.wake_at(now.saturating_add_millis(left), waker);
        }
        left <= 0
    }
}

/// Reads a stream and declares it idle when nothing comes for too long. The stream's own idleness
/// is dropped: its watermarks are, and nobody would wait for what made it idle.
pub struct IdleSource<T, Src: Source<T>, I> {
    source: Src,
    idleness: I,
    idle: bool,
    /// A record that ended the idleness when the intake had no room for both.
    held: Option<(T, Timestamp)>,
}

impl<T, Src: Source<T>, I> IdleSource<T, Src, I> {
    const fn new(source: Src, idleness: I) -> Self {
        Self { source, idleness, idle: false, held: None }
    }
}

impl<T, Src: Source<T>, I: Idleness> Source<T> for IdleSource<T, Src, I> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { source, idleness, idle, held } = self;
        if !I::POSSIBLE {
            let mut waking =
                Waking::<_, _, I> { intake, idle, held, records: false, of: PhantomData };
            return source.feed(cx, &mut waking);
        }
        if let Some((value, at)) = held.take()
            && intake.record(value, at).is_break()
        {
            return Fed::More;
        }
        let waker = idleness.waker(cx.waker());
        let mut waking = Waking::<_, _, I> { intake, idle, held, records: false, of: PhantomData };
        let fed = source.feed(&mut Context::from_waker(&waker), &mut waking);
        if waking.records {
            idleness.touch();
        }
        if matches!(fed, Fed::Pending) && !*idle && idleness.is_over(cx.waker()) {
            *idle = true;
            if intake.mark(Mark::Idle).is_break() {
                return Fed::More;
            }
        }
        fed
    }

    #[inline]
    fn resumes() -> bool {
        // A panic of the intake would pass over `touch`.
        !I::POSSIBLE && Src::resumes()
    }

    pass_on!(source);
}

impl<T, Src: Source<T>, I> Drop for IdleSource<T, Src, I> {
    fn drop(&mut self) {
        if self.held.is_some() {
            self.source.unread(1);
        }
    }
}

impl<T, Src: Source<T>, I: fmt::Debug> fmt::Debug for IdleSource<T, Src, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleSource")
            .field("idleness", &self.idleness)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// Ends the idleness with the next record.
struct Waking<'a, T, K, I> {
    intake: &'a mut K,
    idle: &'a mut bool,
    held: &'a mut Option<(T, Timestamp)>,
    records: bool,
    of: PhantomData<I>,
}

#[expect(clippy::inline_always, reason = "left alone it stays a call for every record")]
impl<T, K: Intake<T>, I: Idleness> Intake<T> for Waking<'_, T, K, I> {
    // An `Active` may leave no room for its record.
    const STOPS: bool = K::STOPS;

    #[inline(always)]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        if !I::POSSIBLE {
            return self.intake.record(value, at);
        }
        self.records = true;
        if std::mem::take(self.idle) && self.intake.mark(Mark::Active).is_break() {
            *self.held = Some((value, at));
            return ControlFlow::Break(());
        }
        self.intake.record(value, at)
    }

    #[inline]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        match mark {
            Mark::Idle | Mark::Active => ControlFlow::Continue(()),
            mark => self.intake.mark(mark),
        }
    }
}
