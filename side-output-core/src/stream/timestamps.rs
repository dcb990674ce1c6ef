use super::{
    DataFeed, DataStream, Drive, Fed, Feed, FeedSource, Hub, Intake, OperatorStreams, Source,
};
use crate::operator::AssignTimestamps;
use crate::time::{
    Clock, Emission, IdleAfter, Mark, NeverIdle, NoSkewBound, SkewBound, Timestamp,
    WatermarkGenerator, Watermarks,
};
use std::fmt;
use std::ops::ControlFlow;
use std::task::{Context, Waker};

/// The stream, or streams, of [`DataStream::assign_timestamps`].
pub type TimestampStreams<T, Src, F, G, I, S> =
    <S as StampStreams<T, IdleFeed<DataFeed<T, Src>, I>, F, G>>::Streams;

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Gives each record its timestamp, and the stream its watermarks.
    ///
    /// Watermarks from upstream are dropped, except the end of the input. The result is one
    /// stream, or, with a [bound on future timestamps](Watermarks::max_future_skew), the streams
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
        S: StampStreams<T, IdleFeed<DataFeed<T, Src>, I>, F, G>,
    {
        let Watermarks { generator, period, idleness, skew } = watermarks;
        let feed = IdleFeed::new(DataFeed(self), idleness);
        let watermarks = Watermarks { generator, period, idleness: NeverIdle, skew };
        S::open(feed, timestamp, watermarks)
    }
}

/// What comes of stamping the records that `Fd` feeds: one stream, or two.
pub trait StampStreams<T, Fd, F, G>: Sized {
    /// The stream or streams.
    type Streams;

    /// Opens them.
    fn open(feed: Fd, timestamp: F, watermarks: Watermarks<G, NeverIdle, Self>) -> Self::Streams;
}

impl<T, Fd, F, G> StampStreams<T, Fd, F, G> for NoSkewBound
where
    Fd: Feed<Item = T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
{
    type Streams = DataStream<T, FeedSource<StampFeed<Fd, F, G>>>;

    fn open(feed: Fd, timestamp: F, watermarks: Watermarks<G>) -> Self::Streams {
        let emission = Emission::new(watermarks.generator, watermarks.period);
        let feed = StampFeed { feed, timestamp, emission, due: None };
        DataStream::new(FeedSource::new(feed), "records")
    }
}

impl<T, Fd, F, G, C> StampStreams<T, Fd, F, G> for SkewBound<C>
where
    Fd: Feed<Item = T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    C: Clock,
{
    type Streams = OperatorStreams<Fd, AssignTimestamps<T, F, G, Self>>;

    fn open(feed: Fd, timestamp: F, watermarks: Watermarks<G, NeverIdle, Self>) -> Self::Streams {
        Hub::open(Drive::new(feed, AssignTimestamps::new(timestamp, watermarks)))
    }
}

/// Stamps the records that `Fd` feeds on their way: what
/// [`AssignTimestamps`] does, without a chunk in between where nothing is split.
#[derive(Debug)]
pub struct StampFeed<Fd, F, G> {
    feed: Fd,
    timestamp: F,
    emission: Emission<G>,
    /// A watermark whose record was the last that the intake took.
    due: Option<Mark>,
}

impl<T, Fd, F, G> Feed for StampFeed<Fd, F, G>
where
    Fd: Feed<Item = T>,
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
{
    type Item = T;

    fn fail_on_stall(&mut self) {
        self.feed.fail_on_stall();
    }

    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { feed, timestamp, emission, due } = self;
        if let Some(mark) = due.take()
            && intake.mark(mark).is_break()
        {
            return Fed::More;
        }
        feed.feed(cx, &mut Stamping { timestamp, emission, due, intake })
    }

    #[inline]
    fn resumes() -> bool {
        Fd::resumes()
    }
}

struct Stamping<'a, F, G, K> {
    timestamp: &'a mut F,
    emission: &'a mut Emission<G>,
    due: &'a mut Option<Mark>,
    intake: &'a mut K,
}

impl<T, F, G, K> Intake<T> for Stamping<'_, F, G, K>
where
    F: FnMut(&T) -> Timestamp,
    G: WatermarkGenerator<T>,
    K: Intake<T>,
{
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
        match mark {
            Mark::Watermark(watermark) if watermark != Timestamp::MAX => ControlFlow::Continue(()),
            mark => self.intake.mark(mark),
        }
    }
}

/// When a stream is idle.
pub trait Idleness {
    /// Whether it is so at all.
    const POSSIBLE: bool;

    /// Notes that a record came.
    fn touch(&mut self);

    /// Whether nothing came for too long; if not, wakes `waker` when that can be.
    fn is_over(&mut self, waker: &Waker) -> bool;
}

impl Idleness for NeverIdle {
    const POSSIBLE: bool = false;

    #[inline]
    fn touch(&mut self) {}

    #[inline]
    fn is_over(&mut self, _waker: &Waker) -> bool {
        false
    }
}

impl<C: Clock> Idleness for IdleAfter<C> {
    const POSSIBLE: bool = true;

    fn touch(&mut self) {
        let now = self.now();
        self.since = Some(now);
    }

    fn is_over(&mut self, waker: &Waker) -> bool {
        let now = self.now();
        let deadline = *self.since.get_or_insert(now) + self.timeout;
        if now >= deadline {
            return true;
        }
        // When it rings, the deadline may have moved on.
        self.alarm.set(&self.clock, deadline, waker);
        false
    }
}

/// Feeds a stream and declares it idle when nothing comes for too long.
pub struct IdleFeed<Fd: Feed, I> {
    feed: Fd,
    idleness: I,
    idle: bool,
    /// A record that ended the idleness when the intake had no room for both.
    held: Option<(Fd::Item, Timestamp)>,
}

impl<Fd: Feed, I> IdleFeed<Fd, I> {
    const fn new(feed: Fd, idleness: I) -> Self {
        Self { feed, idleness, idle: false, held: None }
    }
}

impl<Fd: Feed, I: Idleness> Feed for IdleFeed<Fd, I> {
    type Item = Fd::Item;

    fn fail_on_stall(&mut self) {
        self.feed.fail_on_stall();
    }

    #[inline]
    fn feed<K: Intake<Fd::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { feed, idleness, idle, held } = self;
        if !I::POSSIBLE {
            return feed.feed(cx, intake);
        }
        if let Some((value, at)) = held.take()
            && intake.record(value, at).is_break()
        {
            return Fed::More;
        }
        let mut waking = Waking { intake, idle, held, records: false };
        let fed = feed.feed(cx, &mut waking);
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
        !I::POSSIBLE && Fd::resumes()
    }
}

impl<Fd: Feed, I: fmt::Debug> fmt::Debug for IdleFeed<Fd, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleFeed")
            .field("idleness", &self.idleness)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// Ends the idleness with the next record.
struct Waking<'a, T, K> {
    intake: &'a mut K,
    idle: &'a mut bool,
    held: &'a mut Option<(T, Timestamp)>,
    records: bool,
}

#[expect(clippy::inline_always, reason = "left alone it stays a call for every record")]
impl<T, K: Intake<T>> Intake<T> for Waking<'_, T, K> {
    #[inline(always)]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.records = true;
        if std::mem::take(self.idle) && self.intake.mark(Mark::Active).is_break() {
            *self.held = Some((value, at));
            return ControlFlow::Break(());
        }
        self.intake.record(value, at)
    }

    #[inline]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.intake.mark(mark)
    }
}
