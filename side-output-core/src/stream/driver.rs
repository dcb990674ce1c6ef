use super::{Behind, Fed, InputIs, InputNow, Intake, JobLink, Saving, Source};
use crate::error::StreamError;
use crate::operator::{Operator, Turn};
use crate::output::{Account, Collect, Splitter};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context;

/// An operator together with its input.
pub trait Driver<S: Splitter> {
    /// Takes what is ready from the input until about `room` routes were emitted to `out`.
    fn drive<C: Collect<S>>(&mut self, cx: &mut Context<'_>, room: usize, out: &mut C) -> Fed;

    /// What the operator did so far.
    fn account(&self) -> &Account;

    /// What the operator keeps in its state at this moment; see [`Operator::held`].
    fn held(&self) -> u64;

    /// Asks its input for an error instead of waiting for ever, where an output above is full that
    /// nobody reads.
    fn fail_on_stall(&mut self) {}

    /// The job that it is part of, with its place there.
    fn job(&self) -> Option<JobLink> {
        None
    }

    /// Notes what is behind its input.
    #[doc(hidden)]
    fn behind(&self, behind: &mut Behind) {
        _ = behind;
    }

    /// Its input at this moment, where it has one.
    #[doc(hidden)]
    fn input(&self) -> Option<InputNow> {
        None
    }

    /// Whether it can go on after a panic of the receiver of a route, taps excepted.
    #[must_use]
    fn resumes() -> bool {
        false
    }
}

/// Drives a turn; a panic of the operator or the input is an error.
#[inline]
pub(super) fn drive_turn<S, D, C>(
    driver: &mut D,
    cx: &mut Context<'_>,
    room: usize,
    out: &mut C,
) -> Fed
where
    S: Splitter,
    D: Driver<S>,
    C: Collect<S>,
{
    catch_unwind(AssertUnwindSafe(|| driver.drive(cx, room, out)))
        .unwrap_or_else(|panic| Fed::Failed(StreamError::from_panic(&*panic)))
}

/// Sets a flag if a panic goes by.
pub(super) struct Noting<'a>(Option<&'a mut bool>);

impl<'a> Noting<'a> {
    #[inline]
    pub(super) const fn new(flag: &'a mut bool) -> Self {
        Self(Some(flag))
    }

    /// Nothing went by.
    #[inline]
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Noting<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(flag) = self.0.take() {
            *flag = true;
        }
    }
}

/// An operator and what it reads.
pub struct Drive<Src, Op> {
    source: Src,
    op: Op,
    account: Account,
    /// A mark the operator is not done with.
    due: Option<Mark>,
    /// The highest that the operator has seen.
    watermark: Timestamp,
    asked: InputIs,
    ended: bool,
    saving: Saving<Op>,
}

impl<Src, Op> Drive<Src, Op> {
    /// Lets `op` read `source`.
    pub const fn new(source: Src, op: Op) -> Self {
        Self {
            source,
            op,
            account: Account::new(),
            due: None,
            watermark: Timestamp::MIN,
            asked: InputIs::NotAsked,
            ended: false,
            saving: Saving::NONE,
        }
    }

    /// Lets `op` read `source`, with its state saved by a job.
    pub(super) fn saved(source: Src, op: Op, saving: Saving<Op>) -> Self {
        Self { saving, ..Self::new(source, op) }
    }
}

impl<Src, Op: Operator> Drive<Src, Op> {
    /// Shows the operator the clock; how much room is left after what was due, none if more is.
    pub(super) fn clock<C: Collect<Op::Out>>(
        &mut self,
        now: Timestamp,
        room: usize,
        out: &mut C,
    ) -> Result<usize, StreamError> {
        let mut turn = Turn::new(out, &mut self.account, room);
        let done = turn.clock(&mut self.op, now)?;
        Ok(if turn.is_full() || !done { 0 } else { turn.room() })
    }

    pub(super) fn alarm(&self) -> Option<Timestamp> {
        self.op.alarm()
    }
}

impl<Src, Op> Driver<Op::Out> for Drive<Src, Op>
where
    Src: Source<Op::In>,
    Op: Operator,
{
    #[inline]
    fn drive<C: Collect<Op::Out>>(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        out: &mut C,
    ) -> Fed {
        let Self { source, op, account, due, watermark, asked, ended, saving } = self;
        let mut error = None;
        let turn = Turn::new(out, account, room);
        let mut stage = Stage { op, turn, due, watermark, saving, error: &mut error };
        if let Some(mark) = stage.due.take()
            && stage.mark(mark).is_break()
        {
            return stage.finish(Fed::More);
        }
        if !*ended {
            let fed = source.feed(cx, &mut stage);
            *asked = match fed {
                Fed::More => InputIs::Ready,
                Fed::Pending => InputIs::Silent,
                Fed::End | Fed::Failed(_) => InputIs::Ended,
            };
            match fed {
                Fed::End => *ended = true,
                fed => return stage.finish(fed),
            }
            // The end of the input is the end of time: what waits for a watermark comes now.
            if *stage.watermark != Timestamp::MAX {
                _ = stage.mark(Mark::Watermark(Timestamp::MAX));
            }
        }
        if stage.due.is_some() {
            return stage.finish(Fed::More);
        }
        if let Err(error) = stage.saving.end(stage.op) {
            return Fed::Failed(error);
        }
        stage.finish(Fed::End)
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn held(&self) -> u64 {
        self.op.held()
    }

    fn fail_on_stall(&mut self) {
        self.source.fail_on_stall();
    }

    fn job(&self) -> Option<JobLink> {
        self.source.job()
    }

    fn behind(&self, behind: &mut Behind) {
        self.source.behind(behind);
    }

    fn input(&self) -> Option<InputNow> {
        Some(InputNow { watermark: self.watermark, state: self.asked })
    }

    #[inline]
    fn resumes() -> bool {
        Src::resumes() && Op::EMITS_LAST
    }
}

impl<Src, Op: fmt::Debug> fmt::Debug for Drive<Src, Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive")
            .field("op", &self.op)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The operator as an intake, within a turn.
struct Stage<'a, Op, C> {
    op: &'a mut Op,
    turn: Turn<'a, C>,
    due: &'a mut Option<Mark>,
    watermark: &'a mut Timestamp,
    saving: &'a mut Saving<Op>,
    /// Behind a reference: drop glue here would force the struct out of registers.
    error: &'a mut Option<StreamError>,
}

impl<Op, C> Stage<'_, Op, C> {
    fn finish(self, fed: Fed) -> Fed {
        self.error.take().map_or(fed, Fed::Failed)
    }
}

impl<Op: Operator, C: Collect<Op::Out>> Stage<'_, Op, C> {
    #[inline(always)]
    fn go_on(&self) -> ControlFlow<()> {
        if self.turn.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    #[inline(always)]
    fn fail(&mut self, error: StreamError) -> ControlFlow<()> {
        *self.error = Some(error);
        ControlFlow::Break(())
    }
}

impl<Op: Operator, C: Collect<Op::Out>> Intake<Op::In> for Stage<'_, Op, C> {
    #[inline(always)]
    fn record(&mut self, value: Op::In, at: Timestamp) -> ControlFlow<()> {
        match self.turn.record(self.op, value, at) {
            Ok(()) => self.go_on(),
            Err(error) => self.fail(error),
        }
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        if let Mark::Barrier(checkpoint) = mark
            && let Err(error) = self.saving.barrier(self.op, checkpoint)
        {
            return self.fail(error);
        }
        match self.turn.mark(self.op, mark) {
            Ok(true) => {
                if let Mark::Watermark(watermark) = mark {
                    *self.watermark = watermark.max(*self.watermark);
                }
                self.go_on()
            }
            Ok(false) => {
                *self.due = Some(mark);
                ControlFlow::Break(())
            }
            Err(error) => self.fail(error),
        }
    }

    fn input_end(&mut self, input: usize) -> ControlFlow<()> {
        match self.turn.input_end(self.op, input) {
            Ok(()) => self.go_on(),
            Err(error) => self.fail(error),
        }
    }
}
