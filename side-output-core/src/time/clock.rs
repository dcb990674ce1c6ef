use super::Timestamp;
use crate::sync::{contain, wake_all};
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

/// The time of the world, where something depends on it: idleness, and how far in the future a
/// timestamp may be. Nothing looks at a clock that was not handed to it.
///
/// A clock may jump. What uses it never goes back.
///
/// # Examples
///
/// A clock that runs at a speed of its own, for replays:
///
/// ```
/// use side_output::{Clock, SystemClock, Timestamp};
/// use std::task::Waker;
///
/// struct Replay {
///     started: Timestamp,
///     from: Timestamp,
///     speed: i64,
/// }
///
/// impl Clock for Replay {
///     fn now(&self) -> Timestamp {
///         let passed = SystemClock.now().millis_since(self.started);
///         self.from.saturating_add_millis(passed * self.speed)
///     }
///
///     fn wake_at(&self, at: Timestamp, waker: &Waker) {
///         let left = at.millis_since(self.from) / self.speed + 1;
///         SystemClock.wake_at(self.started.saturating_add_millis(left), waker);
///     }
/// }
///
/// let clock = Replay { started: SystemClock.now(), from: Timestamp::EPOCH, speed: 60 };
/// assert!(clock.now() >= Timestamp::EPOCH);
/// ```
pub trait Clock {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Wakes `waker` once the time is `at`, or a little later.
    fn wake_at(&self, at: Timestamp, waker: &Waker);
}

/// A clock that a test moves.
///
/// # Examples
///
/// ```
/// use side_output::{Clock, TestClock, Timestamp};
/// use std::time::Duration;
///
/// let clock = TestClock::at(Timestamp::EPOCH);
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now(), Timestamp::from_secs(5));
/// ```
#[derive(Clone, Debug)]
pub struct TestClock(Arc<Mutex<TestTime>>);

#[derive(Debug)]
struct TestTime {
    now: Timestamp,
    sleepers: Vec<(Timestamp, Waker)>,
}

impl TestClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(TestTime { now, sleepers: Vec::new() })))
    }

    /// Moves the clock forward and wakes what is due.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }

    /// Sets the clock, backwards too, and wakes what is due.
    pub fn set(&self, now: Timestamp) {
        let due: Vec<Waker> = {
            let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            time.now = now;
            time.sleepers.extract_if(.., |(at, _)| *at <= now).map(|(_, waker)| waker).collect()
        };
        wake_all(due);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn wake_at(&self, at: Timestamp, waker: &Waker) {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if at <= time.now {
            drop(time);
            waker.wake_by_ref();
        } else {
            time.sleepers.push((at, waker.clone()));
        }
    }
}

/// The machine's clock. It wakes from a thread of its own, which it starts when first asked to.
///
/// # Examples
///
/// ```
/// use side_output::{Clock, SystemClock, Timestamp};
///
/// assert!(SystemClock.now() > Timestamp::EPOCH);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Timestamp::EPOCH + since,
            Err(before) => Timestamp::EPOCH - before.duration(),
        }
    }

    fn wake_at(&self, at: Timestamp, waker: &Waker) {
        let millis = u64::try_from(at.millis_since(self.now())).unwrap_or(0);
        Alarms::get().set(Instant::now() + Duration::from_millis(millis), waker.clone());
    }
}

/// What the thread of [`SystemClock`] waits for.
#[derive(Default)]
struct Alarms {
    heap: Mutex<BinaryHeap<WakeUp>>,
    earlier: Condvar,
}

struct WakeUp {
    at: Instant,
    waker: Waker,
}

impl Alarms {
    fn get() -> &'static Self {
        static ALARMS: OnceLock<Alarms> = OnceLock::new();
        ALARMS.get_or_init(|| {
            let name = "side-output-clock".to_owned();
            // Without threads nothing wakes by time; everything else works.
            drop(std::thread::Builder::new().name(name).spawn(|| Self::get().ring()));
            Self::default()
        })
    }

    fn set(&self, at: Instant, waker: Waker) {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).push(WakeUp { at, waker });
        self.earlier.notify_one();
    }

    fn ring(&self) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            heap = match heap.peek() {
                None => self.earlier.wait(heap).unwrap_or_else(PoisonError::into_inner),
                Some(alarm) if alarm.at > now => {
                    let wait = alarm.at - now;
                    self.earlier.wait_timeout(heap, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let alarm = heap.pop();
                    drop(heap);
                    contain(|| alarm.into_iter().for_each(|alarm| alarm.waker.wake()));
                    self.heap.lock().unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

// The heap keeps the highest on top: the earliest alarm is the highest.
impl Ord for WakeUp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.at.cmp(&self.at)
    }
}

impl PartialOrd for WakeUp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WakeUp {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for WakeUp {}

impl fmt::Debug for WakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeUp").field("at", &self.at).finish_non_exhaustive()
    }
}
