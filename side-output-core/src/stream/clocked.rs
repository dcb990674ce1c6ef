use super::{Drive, Driver, Fed, Feed};
use crate::operator::Operator;
use crate::output::{Account, Collect};
use crate::time::{Alarm, Clock, Timestamp};
use std::fmt;
use std::task::Context;

/// An operator with its feed and a clock, for processing-time timers.
///
/// The clock is looked at before each turn, and it wakes the reader when the next timer is due. A
/// clock that goes back stands still until it has caught up.
pub struct Clocked<Fd, Op, Ck> {
    drive: Drive<Fd, Op>,
    clock: Ck,
    now: Timestamp,
    alarm: Alarm,
}

impl<Fd, Op, Ck> Clocked<Fd, Op, Ck> {
    /// Gives the operator behind `drive` a clock.
    pub fn new(drive: Drive<Fd, Op>, clock: Ck) -> Self {
        Self { drive, clock, now: Timestamp::MIN, alarm: Alarm::default() }
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
            self.now = self.now.max(self.clock.now());
            let room = match self.drive.clock(self.now, room, out) {
                Ok(0) => return Fed::More,
                Ok(room) => room,
                Err(error) => return Fed::Failed(error),
            };
            let fed = self.drive.drive(cx, room, out);
            if !matches!(fed, Fed::Pending) {
                return fed;
            }
            let Some(alarm) = self.drive.alarm() else { return fed };
            if alarm <= self.now {
                // A timer was set for a time that is over.
                continue;
            }
            self.alarm.set(&self.clock, alarm, cx.waker());
            return fed;
        }
    }

    fn account(&self) -> &Account {
        self.drive.account()
    }

    fn held(&self) -> u64 {
        self.drive.held()
    }

    fn fail_on_stall(&mut self) {
        self.drive.fail_on_stall();
    }
}

impl<Fd, Op: fmt::Debug, Ck> fmt::Debug for Clocked<Fd, Op, Ck> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocked")
            .field("drive", &self.drive)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
