use super::{DataFeed, DataStream, Drive, Fed, Feed, Hub, Intake, Source, Typed};
use crate::operator::{AssignTimestamps, FutureSkew};
use crate::output::Splitter;
use crate::time::{Clock, IdleAfter, Mark, NeverIdle, Timestamp, WatermarkGenerator, Watermarks};
use std::ops::ControlFlow;
use std::task::{Context, Waker};

/// The streams of [`DataStream::assign_timestamps`].
pub type TimestampStreams<T, Src, F, G, I, S> = <<S as FutureSkew>::Out<T> as Splitter>::Streams<
    Typed<Drive<IdleFeed<DataFeed<T, Src>, I>, AssignTimestamps<T, F, G, S>>>,
>;

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
        S: FutureSkew,
    {
        let Watermarks { generator, period, idleness, skew } = watermarks;
        let feed = IdleFeed::new(DataFeed(self), idleness);
        let watermarks = Watermarks { generator, period, idleness: NeverIdle, skew };
        Hub::open(Drive::new(feed, AssignTimestamps::new(timestamp, watermarks)))
    }
}

/// When a stream is idle.
pub trait Idleness {
    /// Notes that a record came.
    fn touch(&mut self);

    /// Whether nothing came for too long; if not, wakes `waker` when that can be.
    fn is_over(&mut self, waker: &Waker) -> bool;
}

impl Idleness for NeverIdle {
    #[inline]
    fn touch(&mut self) {}

    #[inline]
    fn is_over(&mut self, _waker: &Waker) -> bool {
        false
    }
}

impl<C: Clock> Idleness for IdleAfter<C> {
    fn touch(&mut self) {
        let now = self.now();
        self.since = Some(now);
    }

    fn is_over(&mut self, waker: &Waker) -> bool {
        let now = self.now();
        let deadline = *self.since.get_or_insert(now) + self.timeout;
        if now >= deadline {
            self.alarm = None;
            return true;
        }
        // One alarm at a time: when it rings, the deadline may have moved on.
        let set = self.alarm.as_ref().is_some_and(|(at, set)| *at > now && set.will_wake(waker));
        if !set {
            self.clock.wake_at(deadline, waker);
            self.alarm = Some((deadline, waker.clone()));
        }
        false
    }
}

/// Feeds a stream and declares it idle when nothing comes for too long.
#[derive(Debug)]
pub struct IdleFeed<Fd, I> {
    feed: Fd,
    idleness: I,
    idle: bool,
}

impl<Fd, I> IdleFeed<Fd, I> {
    const fn new(feed: Fd, idleness: I) -> Self {
        Self { feed, idleness, idle: false }
    }
}

impl<Fd: Feed, I: Idleness> Feed for IdleFeed<Fd, I> {
    type Item = Fd::Item;

    #[inline]
    fn feed<K: Intake<Fd::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { feed, idleness, idle } = self;
        let mut waking = Waking { intake, idle, records: false };
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
}

/// Ends the idleness with the next record.
struct Waking<'a, K> {
    intake: &'a mut K,
    idle: &'a mut bool,
    records: bool,
}

impl<T, K: Intake<T>> Intake<T> for Waking<'_, K> {
    #[inline]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.records = true;
        if std::mem::take(self.idle) {
            // The operator behind only forwards this mark, so the record may follow it at once.
            _ = self.intake.mark(Mark::Active);
        }
        self.intake.record(value, at)
    }

    #[inline]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.intake.mark(mark)
    }
}
