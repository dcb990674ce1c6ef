use super::{DataFeed, DataStream, Fed, Feed, FeedSource, Intake, Source};
use crate::time::{Alarm, Clock, Mark, Timestamp, saturating_millis};
use std::fmt;
use std::ops::ControlFlow;
use std::task::Context;
use std::time::Duration;

/// The stream of [`DataStream::stamp_with_clock`].
pub type ClockStamped<T, Src, Ck> = DataStream<T, FeedSource<ClockFeed<DataFeed<T, Src>, Ck>>>;

/// The stream of [`DataStream::advance_when_idle`].
pub type IdleAdvanced<T, Src, Ck> = DataStream<T, FeedSource<AdvanceFeed<DataFeed<T, Src>, Ck>>>;

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Gives each record the time at which it comes, so that windows, timers and whatever else
    /// follows event time follow `clock`.
    ///
    /// The watermark goes with the clock, also while no record comes: it is just before the last
    /// multiple of `period`, and the clock wakes the reader for the next one. Windows that end at a
    /// multiple of `period` fire when the clock gets there. No record is ever late.
    ///
    /// Timestamps, watermarks and idleness from upstream are dropped, except the end of the input.
    /// A clock that goes back stands still until it has caught up.
    ///
    /// # Panics
    ///
    /// If `period` is less than a millisecond.
    ///
    /// # Examples
    ///
    /// A count for each second of the machine's time. One record comes, and nothing after it:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{FutureExt, StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{Count, TestClock};
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let clock = TestClock::at(Timestamp::from_millis(400)); // or `SystemClock`
    /// let clicks = stream::iter(["click"]).chain(stream::pending());
    /// let mut counts = DataStream::from_stream(clicks)
    ///     .stamp_with_clock(clock.clone(), second)
    ///     .window_all(Tumbling::of(second))
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// assert!(counts.next().now_or_never().is_none());
    /// clock.advance(Duration::from_millis(600));
    /// let count = block_on(counts.next()).expect("a full second");
    /// assert_eq!((count.window.end(), count.value), (Timestamp::from_secs(1), 1));
    /// ```
    #[track_caller]
    pub fn stamp_with_clock<Ck: Clock>(
        self,
        clock: Ck,
        period: Duration,
    ) -> ClockStamped<T, Src, Ck> {
        let period = at_least_a_millisecond(period, "period");
        let feed = ClockFeed {
            feed: DataFeed(self),
            clock: Monotonic::new(clock),
            period,
            emitted: Timestamp::MIN,
        };
        DataStream::new(FeedSource::new(feed), "records")
    }

    /// Lets event time go on with `clock` while nothing comes.
    ///
    /// When neither a record nor a watermark has come for `timeout`, the watermark goes up by the
    /// time that has passed since then, and again after every further `timeout`. So the last
    /// windows of a quiet stream close, at the price of a guess: a record that comes after all, and
    /// is older than that, is late. Without this, windows stay open until the next record or the
    /// end of the input, and the ledger shows them as [`held`](crate::output::Ledger::held).
    ///
    /// Nothing happens before the first watermark, which says where event time is. Idleness
    /// ([`Watermarks::with_idleness`](crate::time::Watermarks::with_idleness)) is something else:
    /// it lets *other* inputs go on, and closes nothing where there are none.
    ///
    /// # Panics
    ///
    /// If `timeout` is less than a millisecond.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{FutureExt, StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{Count, TestClock};
    /// use std::time::Duration;
    ///
    /// let clock = TestClock::at(Timestamp::EPOCH);
    /// let mut counts = DataStream::from_stream(stream::iter([1, 2]).chain(stream::pending()))
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .advance_when_idle(Duration::from_secs(5), clock.clone())
    ///     .window_all(Tumbling::of(Duration::from_secs(10)))
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// assert!(counts.next().now_or_never().is_none());
    /// clock.advance(Duration::from_secs(10));
    /// assert_eq!(block_on(counts.next()).expect("a closed window").value, 2);
    /// ```
    #[track_caller]
    pub fn advance_when_idle<Ck: Clock>(
        self,
        timeout: Duration,
        clock: Ck,
    ) -> IdleAdvanced<T, Src, Ck> {
        let timeout = at_least_a_millisecond(timeout, "timeout");
        let feed = AdvanceFeed {
            feed: DataFeed(self),
            clock: Monotonic::new(clock),
            timeout,
            quiet: Quiet { base: Timestamp::MIN, since: None, next: Timestamp::MIN },
            emitted: Timestamp::MIN,
        };
        DataStream::new(FeedSource::new(feed), "records")
    }
}

#[track_caller]
fn at_least_a_millisecond(duration: Duration, what: &str) -> i64 {
    let millis = saturating_millis(duration);
    assert!(millis > 0, "the {what} of a clock must be at least 1 ms");
    millis
}

/// A clock that does not go back.
struct Monotonic<Ck> {
    clock: Ck,
    now: Timestamp,
    alarm: Alarm,
}

impl<Ck: Clock> Monotonic<Ck> {
    fn new(clock: Ck) -> Self {
        Self { clock, now: Timestamp::MIN, alarm: Alarm::default() }
    }

    #[inline]
    fn now(&mut self) -> Timestamp {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    fn wake_at(&mut self, at: Timestamp, cx: &Context<'_>) {
        self.alarm.set(&self.clock, at, cx.waker());
    }
}

/// Stamps the records that `Fd` feeds with the time of a clock.
pub struct ClockFeed<Fd, Ck> {
    feed: Fd,
    clock: Monotonic<Ck>,
    /// Milliseconds.
    period: i64,
    emitted: Timestamp,
}

impl<Fd, Ck: Clock> ClockFeed<Fd, Ck> {
    /// The watermark that is due.
    fn due(&mut self) -> Option<Mark> {
        let now = self.clock.now();
        let start = now.saturating_sub_millis(now.as_millis().rem_euclid(self.period));
        let watermark = start.saturating_sub_millis(1);
        (watermark > self.emitted).then(|| {
            self.emitted = watermark;
            Mark::Watermark(watermark)
        })
    }

    /// When the next watermark will be.
    fn next(&self) -> Timestamp {
        self.emitted.saturating_add_millis(1).saturating_add_millis(self.period)
    }
}

impl<Fd: Feed, Ck: Clock> Feed for ClockFeed<Fd, Ck> {
    type Item = Fd::Item;

    fn fail_on_stall(&mut self) {
        self.feed.fail_on_stall();
    }

    #[inline]
    fn feed<K: Intake<Fd::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        loop {
            if let Some(mark) = self.due()
                && intake.mark(mark).is_break()
            {
                return Fed::More;
            }
            let fed = self.feed.feed(cx, &mut ByClock { clock: &mut self.clock, intake });
            if !matches!(fed, Fed::Pending) {
                return fed;
            }
            let next = self.next();
            if self.clock.now() < next {
                self.clock.wake_at(next, cx);
                return fed;
            }
        }
    }
}

impl<Fd, Ck> fmt::Debug for ClockFeed<Fd, Ck> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockFeed")
            .field("period", &self.period)
            .field("emitted", &self.emitted)
            .finish_non_exhaustive()
    }
}

struct ByClock<'a, Ck, K> {
    clock: &'a mut Monotonic<Ck>,
    intake: &'a mut K,
}

impl<T, Ck: Clock, K: Intake<T>> Intake<T> for ByClock<'_, Ck, K> {
    #[inline]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        let now = self.clock.now();
        self.intake.record(value, now)
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        match mark {
            // Time comes from the clock, and so it goes on where upstream is idle.
            Mark::Idle | Mark::Active => ControlFlow::Continue(()),
            Mark::Watermark(watermark) if watermark != Timestamp::MAX => ControlFlow::Continue(()),
            mark => self.intake.mark(mark),
        }
    }
}

/// Feeds a stream and lets its event time go on while nothing comes.
pub struct AdvanceFeed<Fd, Ck> {
    feed: Fd,
    clock: Monotonic<Ck>,
    /// Milliseconds.
    timeout: i64,
    quiet: Quiet,
    emitted: Timestamp,
}

/// A time in which nothing came.
struct Quiet {
    /// The watermark when it began.
    base: Timestamp,
    /// By the clock; `None` if something has come that is not accounted for.
    since: Option<Timestamp>,
    /// By the clock, when the watermark goes up next.
    next: Timestamp,
}

impl<Fd: Feed, Ck: Clock> AdvanceFeed<Fd, Ck> {
    /// Looks at the clock after the input had nothing more: the watermark that is due, if any.
    fn look(&mut self, cx: &Context<'_>) -> Option<Mark> {
        let now = self.clock.now();
        let since = if let Some(since) = self.quiet.since {
            since
        } else {
            let next = now.saturating_add_millis(self.timeout);
            self.quiet = Quiet { base: self.emitted, since: Some(now), next };
            now
        };
        // Without a watermark there is nothing to go on from; after the last one, nothing to go to.
        if self.quiet.base == Timestamp::MIN || self.emitted == Timestamp::MAX {
            return None;
        }
        let mut due = None;
        if now >= self.quiet.next {
            self.quiet.next = now.saturating_add_millis(self.timeout);
            let watermark = self.quiet.base.saturating_add_millis(now.millis_since(since));
            // The highest watermark is the end of the input, and that is not for a clock to say.
            let watermark = watermark.min(Timestamp::MAX.saturating_sub_millis(1));
            if watermark > self.emitted {
                self.emitted = watermark;
                due = Some(Mark::Watermark(watermark));
            }
        }
        self.clock.wake_at(self.quiet.next, cx);
        due
    }
}

impl<Fd: Feed, Ck: Clock> Feed for AdvanceFeed<Fd, Ck> {
    type Item = Fd::Item;

    fn fail_on_stall(&mut self) {
        self.feed.fail_on_stall();
    }

    #[inline]
    fn feed<K: Intake<Fd::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { feed, quiet, emitted, .. } = self;
        let fed = feed.feed(cx, &mut Advancing { emitted, quiet, intake });
        if matches!(fed, Fed::Pending)
            && let Some(mark) = self.look(cx)
            && intake.mark(mark).is_break()
        {
            return Fed::More;
        }
        fed
    }
}

impl<Fd, Ck> fmt::Debug for AdvanceFeed<Fd, Ck> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdvanceFeed")
            .field("timeout", &self.timeout)
            .field("emitted", &self.emitted)
            .finish_non_exhaustive()
    }
}

struct Advancing<'a, K> {
    emitted: &'a mut Timestamp,
    quiet: &'a mut Quiet,
    intake: &'a mut K,
}

impl<T, K: Intake<T>> Intake<T> for Advancing<'_, K> {
    #[inline]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.quiet.since = None;
        self.intake.record(value, at)
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        if let Mark::Watermark(watermark) = mark {
            self.quiet.since = None;
            // The clock may have been ahead of it.
            if watermark <= *self.emitted {
                return ControlFlow::Continue(());
            }
            *self.emitted = watermark;
        }
        self.intake.mark(mark)
    }
}
