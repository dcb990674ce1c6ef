use std::fmt;
use std::future::Pending;
use std::num::NonZeroUsize;
use std::time::Duration;

/// How [`map_async`](crate::stream::DataStream::map_async) calls: how many at once, in which order
/// the answers leave, how long one may take, and whether a failed one is tried again.
///
/// # Examples
///
/// ```
/// use side_output::{Calls, Retry};
/// use std::time::Duration;
///
/// let one_by_one = Calls::ordered(1);
/// let careful = Calls::unordered(32)
///     .timer(|_| std::future::ready(())) // in a program, `tokio::time::sleep`
///     .timeout(Duration::from_secs(5))
///     .retry(Retry::at_most(3).after(Duration::from_millis(100)).doubling());
/// ```
#[derive(Clone)]
#[must_use]
pub struct Calls<Tm = NoTimer, R = Never> {
    pub(super) concurrency: NonZeroUsize,
    pub(super) ordered: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) timer: Tm,
    pub(super) retry: R,
}

impl Calls {
    /// At most `concurrency` calls at once, whose answers leave in the order of their records.
    ///
    /// # Panics
    ///
    /// If `concurrency` is zero.
    #[track_caller]
    pub const fn ordered(concurrency: usize) -> Self {
        Self::new(concurrency, true)
    }

    /// At most `concurrency` calls at once, whose answers leave as they come, but never before or
    /// after a watermark or another mark that their records did not come before or after.
    ///
    /// # Panics
    ///
    /// If `concurrency` is zero.
    #[track_caller]
    pub const fn unordered(concurrency: usize) -> Self {
        Self::new(concurrency, false)
    }

    #[track_caller]
    const fn new(concurrency: usize, ordered: bool) -> Self {
        let concurrency =
            NonZeroUsize::new(concurrency).expect("the number of calls at once must be at least 1");
        Self { concurrency, ordered, timeout: None, timer: NoTimer, retry: Never }
    }

    /// Where time comes from: a function that makes a future which is ready after a duration, such as
    /// `tokio::time::sleep`. Time-outs and pauses before another attempt need it.
    pub fn timer<Tm, Sleep>(self, timer: Tm) -> Calls<Timed<Tm>>
    where
        Tm: FnMut(Duration) -> Sleep,
        Sleep: Future<Output = ()>,
    {
        let Self { concurrency, ordered, timeout, retry, .. } = self;
        Calls { concurrency, ordered, timeout, timer: Timed(timer), retry }
    }
}

impl<Tm, R> Calls<Tm, R> {
    /// How long a record may take, all attempts and pauses together. After that the call is dropped,
    /// and the record goes to the output `timeouts`.
    pub fn timeout(self, timeout: Duration) -> Self
    where
        Tm: TellsTime,
    {
        Self { timeout: Some(timeout), ..self }
    }

    /// Which failed calls are tried again: a [`Retry`], or a function that gets the error and the
    /// number of attempts so far, and returns how long to wait before the next one, if there is to be
    /// one.
    pub fn retry<P>(self, policy: P) -> Calls<Tm, P>
    where
        Tm: TellsTime,
    {
        let Self { concurrency, ordered, timeout, timer, .. } = self;
        Calls { concurrency, ordered, timeout, timer, retry: policy }
    }
}

impl<Tm, R> fmt::Debug for Calls<Tm, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls")
            .field("concurrency", &self.concurrency)
            .field("ordered", &self.ordered)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// How the calls tell time.
pub trait Timer {
    /// A future that is ready after a while.
    type Sleep: Future<Output = ()>;

    /// The future that is ready after `duration`.
    fn sleep(&mut self, duration: Duration) -> Self::Sleep;
}

/// A timer that is one.
#[diagnostic::on_unimplemented(
    message = "these calls have no timer",
    label = "time-outs and retries need to know when time has passed",
    note = "call `.timer(tokio::time::sleep)` first, or with any other function from a duration to a \
            future"
)]
pub trait TellsTime {}

#[diagnostic::do_not_recommend]
impl<F> TellsTime for Timed<F> {}

/// In place of a timer: no call is given up.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NoTimer;

impl Timer for NoTimer {
    type Sleep = Pending<()>;

    fn sleep(&mut self, _duration: Duration) -> Pending<()> {
        std::future::pending()
    }
}

/// A function that makes a future which is ready after a duration.
#[derive(Clone, Copy)]
pub struct Timed<F>(F);

impl<F, Sleep> Timer for Timed<F>
where
    F: FnMut(Duration) -> Sleep,
    Sleep: Future<Output = ()>,
{
    type Sleep = Sleep;

    fn sleep(&mut self, duration: Duration) -> Sleep {
        self.0(duration)
    }
}

impl<F> fmt::Debug for Timed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timed")
    }
}

/// Which failed calls are tried again.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say when a call that failed with `{E}` is tried again",
    label = "expected a `Retry`, or a function `|error: &{E}, attempts: u32| Option<Duration>`"
)]
pub trait RetryPolicy<E> {
    /// How long to wait before the next attempt after so many; none if there is to be no other.
    fn pause(&mut self, error: &E, attempts: u32) -> Option<Duration>;
}

impl<E, F: FnMut(&E, u32) -> Option<Duration>> RetryPolicy<E> for F {
    fn pause(&mut self, error: &E, attempts: u32) -> Option<Duration> {
        self(error, attempts)
    }
}

/// A failed call is not tried again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Never;

impl<E> RetryPolicy<E> for Never {
    fn pause(&mut self, _error: &E, _attempts: u32) -> Option<Duration> {
        None
    }
}

/// How often, and after which pauses, a failed call is tried again.
///
/// # Examples
///
/// ```
/// use side_output::Retry;
/// use std::time::Duration;
///
/// let seconds = Duration::from_secs;
/// let retry = Retry::at_most(5).after(seconds(1)).doubling().up_to(seconds(3));
/// let pauses: Vec<_> = (1..=5).map(|attempts| retry.pause_after(attempts)).collect();
/// assert_eq!(pauses, [Some(seconds(1)), Some(seconds(2)), Some(seconds(3)), Some(seconds(3)), None]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    attempts: u32,
    first: Duration,
    doubling: bool,
    longest: Duration,
}

impl Retry {
    /// So many attempts in all, one right after the other.
    pub const fn at_most(attempts: u32) -> Self {
        Self { attempts, first: Duration::ZERO, doubling: false, longest: Duration::MAX }
    }

    /// Waits before each attempt but the first.
    pub const fn after(self, pause: Duration) -> Self {
        Self { first: pause, ..self }
    }

    /// Doubles the pause each time.
    pub const fn doubling(self) -> Self {
        Self { doubling: true, ..self }
    }

    /// Waits no longer than this.
    pub const fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The pause after so many attempts; none if there is to be no other.
    #[must_use]
    pub fn pause_after(&self, attempts: u32) -> Option<Duration> {
        let times = if self.doubling { attempts.saturating_sub(1).min(31) } else { 0 };
        let pause = self.first.saturating_mul(1 << times).min(self.longest);
        (attempts < self.attempts).then_some(pause)
    }
}

impl<E> RetryPolicy<E> for Retry {
    fn pause(&mut self, _error: &E, attempts: u32) -> Option<Duration> {
        self.pause_after(attempts)
    }
}
