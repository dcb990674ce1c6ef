use super::bell::Bell;
use super::{Clock, Timestamp};
use std::sync::Arc;
use std::task::Waker;

/// A clock that does not go back, with one alarm at a time.
///
/// No alarm is set for [`Timestamp::MAX`]: times saturate there, so that one for "a while after the
/// end" would ring at once, and again.
#[derive(Clone, Debug)]
pub(crate) struct Monotonic<C> {
    clock: C,
    now: Timestamp,
    /// A clock may ring and then show an earlier time than it was asked for, when it was set back
    /// in between; so the bell, and not the time alone, tells whether the alarm is gone.
    alarm: Option<(Timestamp, Arc<Bell>)>,
}

impl<C: Clock> Monotonic<C> {
    pub(crate) const fn new(clock: C) -> Self {
        Self { clock, now: Timestamp::MIN, alarm: None }
    }

    #[inline]
    pub(crate) fn now(&mut self) -> Timestamp {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    /// Lets the clock wake `waker` at `at`, or before. When it rings earlier, because of an alarm
    /// that had been set before, it has to be set again.
    pub(crate) fn wake_at(&mut self, at: Timestamp, waker: &Waker) {
        let set = self
            .alarm
            .as_ref()
            .is_some_and(|(set, bell)| *set <= at && !bell.rang() && bell.is_for(waker));
        if set || at == Timestamp::MAX {
            return;
        }
        let bell = Bell::new(waker);
        self.clock.wake_at(at, &Waker::from(Arc::clone(&bell)));
        self.alarm = Some((at, bell));
    }
}
