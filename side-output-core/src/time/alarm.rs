use super::{Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// One alarm at a time of whoever waits for a clock.
///
/// It knows whether it has rung. A clock may ring and then show an earlier time than it was asked
/// for, when it was set back in between; who looked at the time alone would wait for an alarm that
/// is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarm(Option<Set>);

#[derive(Clone, Debug)]
struct Set {
    at: Timestamp,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Bell {
    rang: AtomicBool,
    waker: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}

impl Alarm {
    /// Lets `clock` wake `waker` at `at`, or before. When it rings earlier, because of an alarm
    /// that had been set before, it has to be set again.
    pub(crate) fn set<C: Clock>(&mut self, clock: &C, at: Timestamp, waker: &Waker) {
        if let Some(set) = &self.0
            && set.at <= at
            && !set.bell.rang.load(Ordering::Acquire)
            && set.bell.waker.will_wake(waker)
        {
            return;
        }
        let bell = Arc::new(Bell { rang: AtomicBool::new(false), waker: waker.clone() });
        clock.wake_at(at, &Waker::from(Arc::clone(&bell)));
        self.0 = Some(Set { at, bell });
    }
}
