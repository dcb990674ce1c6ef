use super::{Drive, Driver, Fed, Feed};
use crate::operator::Operator;
use crate::output::{Account, Collect};
use crate::time::{Clock, Monotonic, Timestamp};
use std::fmt;
use std::task::Context;

/// An operator with its feed and a clock, for processing-time timers.
///
/// The clock is looked at before each turn, and it wakes the reader when the next timer is due. A
/// clock that goes back stands still until it has caught up.
pub struct Clocked<Fd, Op, Ck> {
    drive: Drive<Fd, Op>,
    clock: Monotonic<Ck>,
}

impl<Fd, Op, Ck: Clock> Clocked<Fd, Op, Ck> {
    /// Gives the operator behind `drive` a clock.
    pub fn new(drive: Drive<Fd, Op>, clock: Ck) -> Self {
        Self { drive, clock: Monotonic::new(clock) }
    }
}

impl<Fd, Op, Ck> Driver<Op::Out> for Clocked<Fd, Op, Ck>
where
    Fd: Feed<Item = Op::In>,
    Op: Operator,
    Ck: Clock,
{
    fn drive<C: Collect<Op::Out>>(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        out: &mut C,
    ) -> Fed {
        loop {
            // Times saturate: at the end of time, a timer that sets itself again would be due for
            // ever. What is set for then is not due by any clock.
            let now = self.clock.now().min(Timestamp::MAX.saturating_sub_millis(1));
            let room = match self.drive.clock(now, room, out) {
                Ok(0) => return Fed::More,
                Ok(room) => room,
                Err(error) => return Fed::Failed(error),
            };
            let fed = self.drive.drive(cx, room, out);
            if !matches!(fed, Fed::Pending) {
                return fed;
            }
            let Some(alarm) = self.drive.alarm() else { return fed };
            if alarm <= now {
                // A timer was set for a time that is over.
                continue;
            }
            self.clock.wake_at(alarm, cx.waker());
            return fed;
        }
    }

    fn account(&self) -> &Account {
        self.drive.account()
    }

    fn held(&self) -> u64 {
        self.drive.held()
    }
}

impl<Fd, Op: fmt::Debug, Ck> fmt::Debug for Clocked<Fd, Op, Ck> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocked").field("drive", &self.drive).finish_non_exhaustive()
    }
}
