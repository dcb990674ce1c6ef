use super::Timestamp;
use super::bell::Bell;
use std::sync::Arc;
use std::task::Waker;

/// How long an input was asked and had nothing.
///
/// Time in which nobody asks does not count: the reader may be busy with the last record while the
/// next one is there. The input is asked from one poll to the next, unless it wakes its reader in
/// between: then it has to be asked again, and what passes until that happens is the reader's time.
/// How much that was is unknown here: the clock cannot be read where a waker is called. So such a
/// time counts if it is shorter than the timeout, as it is with a reader that comes at once, and not
/// at all if it is longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quiet {
    bell: Option<Arc<Bell>>,
    /// Since when the input is asked; `None` after a record.
    asked: Option<Timestamp>,
    /// The input has called its waker since it was asked.
    woken: bool,
    /// Milliseconds, up to `asked`.
    waited: i64,
}

impl Quiet {
    /// The waker to ask the input with.
    pub(crate) fn waker(&mut self, waker: &Waker) -> Waker {
        self.woken = self.bell.as_ref().is_some_and(|bell| bell.take());
        let bell = match self.bell.take() {
            Some(bell) if bell.is_for(waker) => bell,
            _ => Bell::new(waker),
        };
        Waker::from(Arc::clone(self.bell.insert(bell)))
    }

    /// Notes that something came.
    #[inline]
    pub(crate) const fn end(&mut self) {
        self.asked = None;
        self.waited = 0;
    }

    /// Notes that the input had nothing when it was asked at `now`; for how many milliseconds that
    /// is so, where `timeout` is of interest.
    pub(crate) fn wait(&mut self, now: Timestamp, timeout: i64) -> i64 {
        if let Some(asked) = self.asked.replace(now) {
            let passed = now.millis_since(asked);
            if !self.woken || passed < timeout {
                self.waited = self.waited.saturating_add(passed);
            }
        }
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(quiet: &mut Quiet, seconds: i64) -> i64 {
        quiet.wait(Timestamp::from_secs(seconds), 10_000) / 1000
    }

    #[test]
    fn fault_28_only_the_time_in_which_the_input_was_asked_counts() {
        let noop = futures::task::noop_waker_ref();
        let mut quiet = Quiet::default();
        let waker = quiet.waker(noop);
        assert_eq!(wait(&mut quiet, 100), 0);
        let same = quiet.waker(noop);
        assert!(same.will_wake(&waker));
        assert_eq!(wait(&mut quiet, 108), 8);
        quiet.end();
        drop(quiet.waker(noop));
        assert_eq!(wait(&mut quiet, 200), 0);
        // It wanted to be asked, and nobody came for a minute.
        waker.wake_by_ref();
        drop(quiet.waker(noop));
        assert_eq!(wait(&mut quiet, 260), 0);
        // It had nothing after all, whoever else woke the reader.
        drop(quiet.waker(noop));
        assert_eq!(wait(&mut quiet, 320), 60);
        quiet.end();
        // One that wakes its reader all the time, as behind a filter, is idle nevertheless.
        for second in (400..=410).step_by(5) {
            waker.wake_by_ref();
            drop(quiet.waker(noop));
            assert_eq!(wait(&mut quiet, second), second - 400);
        }
    }
}
