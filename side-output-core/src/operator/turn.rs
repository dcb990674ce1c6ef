use super::Operator;
use crate::error::StreamError;
use crate::output::{Account, Collect, Collector};
use crate::time::{Mark, Timestamp};
use std::fmt;

/// One turn of an operator: calls it for records and marks, and keeps its account and its budget.
///
/// The budget is a number of steps: a record or a mark is one, and so is each route beyond the
/// first one. A turn whose budget is used up [is full](Self::is_full) and takes no more; make
/// another one then.
///
/// # Examples
///
/// See [`Operator`].
pub struct Turn<'a, C> {
    collector: Collector<'a, C>,
    /// What the turn may still spend.
    room: usize,
    /// What it had, without what was spent on no record.
    most: usize,
}

impl<'a, C> Turn<'a, C> {
    /// A turn of about `room` steps that emits into `out`.
    #[inline]
    pub const fn new(out: &'a mut C, account: &'a mut Account, room: usize) -> Self {
        Self { collector: Collector::new(out, account), room, most: room }
    }

    /// How much of the budget is left.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> usize {
        self.room
    }

    /// Whether the turn is over.
    #[inline(always)]
    #[must_use]
    pub fn is_full<S>(&self) -> bool
    where
        C: Collect<S>,
    {
        self.room == 0 || self.collector.out().is_full()
    }

    /// Takes what no record stands for off the budget.
    #[inline]
    const fn spend(&mut self, steps: usize) {
        let steps = if steps > self.room { self.room } else { steps };
        self.room -= steps;
        self.most -= steps;
    }

    /// Hands `operator` a record.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    #[inline(always)]
    pub fn record<Op>(
        &mut self,
        operator: &mut Op,
        value: Op::In,
        at: Timestamp,
    ) -> Result<(), StreamError>
    where
        Op: Operator,
        C: Collect<Op::Out>,
    {
        // A record without a route costs time as well: it uses up the turn.
        debug_assert!(self.room > 0, "a turn that is full takes no record");
        // The check of an overflow would be one more instruction for each record.
        self.room = self.room.wrapping_sub(1);
        self.collector.begin_record();
        let result = operator.on_record(value, at, &mut self.collector);
        let routes = self.collector.end_record(result.is_ok());
        if routes > 1 {
            self.spend(routes - 1);
        }
        result
    }

    /// Hands `operator` a mark; `false` if it is to be called again with the same mark, before
    /// anything else, once there is room.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    #[inline(always)]
    pub fn mark<Op>(&mut self, operator: &mut Op, mark: Mark) -> Result<bool, StreamError>
    where
        Op: Operator,
        C: Collect<Op::Out>,
    {
        let room = self.room();
        self.collector.begin_mark(room);
        operator.on_mark(mark, &mut self.collector)?;
        let (done, spent) = self.collector.end_mark();
        self.spend(spent + usize::from(done));
        Ok(done)
    }

    /// Tells `operator` that the input of this number has ended.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    pub fn input_end<Op>(&mut self, operator: &mut Op, input: usize) -> Result<(), StreamError>
    where
        Op: Operator,
        C: Collect<Op::Out>,
    {
        self.collector.begin_end();
        operator.on_input_end(input, &mut self.collector)?;
        let (_, spent) = self.collector.end_mark();
        self.spend(spent);
        Ok(())
    }

    /// Shows `operator` the clock; `false` if there is more due at `now`, and it is to be called again
    /// with the same time, before anything else, once there is room.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    pub fn clock<Op>(&mut self, operator: &mut Op, now: Timestamp) -> Result<bool, StreamError>
    where
        Op: Operator,
        C: Collect<Op::Out>,
    {
        let room = self.room();
        self.collector.begin_mark(room);
        operator.on_clock(now, &mut self.collector)?;
        let (_, spent) = self.collector.end_mark();
        self.spend(spent);
        Ok(operator.alarm().is_none_or(|alarm| alarm > now))
    }
}

// Counted in a register during the turn, and written back also when it panics.
impl<C> Drop for Turn<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        self.collector.end_turn(self.most.wrapping_sub(self.room) as u64);
    }
}

impl<C> fmt::Debug for Turn<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("room", &self.room).finish_non_exhaustive()
    }
}
