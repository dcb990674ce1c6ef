use super::{Behind, Drive, Driver, Fed, InputNow, JobLink, Source};
use crate::operator::Operator;
use crate::output::{Account, Collect};
use crate::time::{Clock, Monotonic, Timestamp};
use std::fmt;
use std::task::Context;

/// An operator with what it reads and a clock, for processing-time timers.
///
/// The clock is looked at before each turn, and it wakes the reader when the next timer is due. A
/// clock that goes back stands still until it has caught up.
pub struct Clocked<Src, Op, Ck> {
    drive: Drive<Src, Op>,
    clock: Monotonic<Ck>,
}

impl<Src, Op, Ck: Clock> Clocked<Src, Op, Ck> {
    /// Gives the operator behind `drive` a clock.
    pub fn new(drive: Drive<Src, Op>, clock: Ck) -> Self {
        Self { drive, clock: Monotonic::new(clock) }
    }
}

impl<Src, Op, Ck> Driver<Op::Out> for Clocked<Src, Op, Ck>
where
    Src: Source<Op::In>,
    Op: Operator,
    Ck: Clock,
{
    fn drive<C: Collect<Op::Out>>(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        out: &mut C,
    ) -> Fed {
        // Times saturate: at the end of time, a timer that sets itself again would be due for ever.
        // What is set for then is not due by any clock.
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
            // A timer was set for a time that is over: it fires in a turn with room of its own.
            return Fed::More;
        }
        self.clock.wake_at(alarm, cx.waker());
        fed
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

    fn job(&self) -> Option<JobLink> {
        self.drive.job()
    }

    fn behind(&self, behind: &mut Behind) {
        self.drive.behind(behind);
    }

    fn input(&self) -> Option<InputNow> {
        self.drive.input()
    }
}

impl<Src, Op: fmt::Debug, Ck> fmt::Debug for Clocked<Src, Op, Ck> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocked").field("drive", &self.drive).finish_non_exhaustive()
    }
}
