use super::waiting::Inputs;
use super::{Behind, Fed, InputIs, Intake, Source};
use crate::error::StreamError;
use crate::time::{Alignment, Barriers, Mark, Marks, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Context;

/// Several inputs as one: what their marks come to together, and what the intake has no room for.
///
/// An input whose barrier has come is not read until those of the others have, see [`Barriers`].
pub(super) struct Merge<X> {
    alignment: Alignment,
    barriers: Barriers,
    /// What the intake had no room for.
    pending: VecDeque<Deferred<X>>,
    inputs: usize,
    /// Whose turn is next.
    turn: usize,
    /// The inputs that were stopped on request. What the others have ready comes before that.
    stopped: Vec<usize>,
    /// What the inputs are doing, for others to see.
    now: Arc<Inputs>,
}

/// What is still to be handed on.
enum Deferred<X> {
    Record(X, Timestamp),
    Mark(Mark),
    /// The end of this input.
    End(usize),
}

/// What came of reading one input.
pub(super) enum ReadStep {
    /// It has nothing, or has to wait for the others.
    Nothing,
    /// Things have changed: it is worth asking again.
    Changed,
    /// The intake asked to stop, or the input has had its share of this poll.
    Stopped,
    /// The input failed.
    Failed(StreamError),
}

impl<X> Merge<X> {
    pub(super) fn new(alignment: Alignment, inputs: usize) -> Self {
        let barriers = Barriers::new(inputs);
        Self {
            alignment,
            barriers,
            pending: VecDeque::new(),
            inputs,
            turn: 0,
            stopped: Vec::new(),
            now: Inputs::new(inputs),
        }
    }

    /// Notes the inputs, unless others stand before them.
    pub(super) fn behind(&self, behind: &mut Behind) {
        behind.inputs.get_or_insert_with(|| Arc::clone(&self.now));
    }

    /// Notes whether `input` is read at all.
    pub(super) fn set_unread(&mut self, input: usize, unread: bool) {
        self.barriers.set_unread(input, unread);
    }

    /// Reads the inputs in turns, by `read`, until the intake asks to stop or all have nothing;
    /// the end once `ended` holds.
    pub(super) fn feed<S, K: Intake<X>>(
        &mut self,
        inputs: &mut S,
        intake: &mut K,
        mut read: impl FnMut(&mut Self, &mut S, usize, &mut K) -> ReadStep,
        ended: impl Fn(&S) -> bool,
    ) -> Fed {
        let first = self.turn;
        self.turn = (first + 1) % self.inputs;
        loop {
            let mut changed = false;
            for turn in 0..self.inputs {
                if self.flush(intake).is_break() {
                    return Fed::More;
                }
                match read(self, inputs, (first + turn) % self.inputs, intake) {
                    ReadStep::Nothing => {}
                    ReadStep::Changed => changed = true,
                    ReadStep::Stopped => return Fed::More,
                    ReadStep::Failed(error) => return Fed::Failed(error),
                }
            }
            if !changed && self.pending.is_empty() {
                if !self.stopped.is_empty() {
                    return Fed::Failed(StreamError::Stopped);
                }
                return if ended(inputs) { Fed::End } else { Fed::Pending };
            }
        }
    }

    /// Reads one input, which is `None` after its end.
    pub(super) fn read<T, Src: Source<T>, K: Intake<X>>(
        &mut self,
        input: usize,
        source: &mut Option<Src>,
        wrap: impl Fn(T) -> X,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> ReadStep {
        let step = self.step(input, source, wrap, cx, intake);
        let state = match step {
            _ if source.is_none() => InputIs::Ended,
            _ if self.barriers.is_blocked(input) => InputIs::Barrier,
            ReadStep::Nothing => InputIs::Silent,
            ReadStep::Changed | ReadStep::Stopped => InputIs::Ready,
            ReadStep::Failed(_) => InputIs::Ended,
        };
        self.now.set(input, &self.alignment, state);
        step
    }

    fn step<T, Src: Source<T>, K: Intake<X>>(
        &mut self,
        input: usize,
        source: &mut Option<Src>,
        wrap: impl Fn(T) -> X,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> ReadStep {
        if self.barriers.is_blocked(input) || self.stopped.contains(&input) {
            return ReadStep::Nothing;
        }
        let Some(reading) = source else { return ReadStep::Nothing };
        let mut entrance = Entrance { input, wrap, merge: self, intake, full: false, cut: false };
        let fed = reading.feed(cx, &mut entrance);
        let Entrance { full, cut, .. } = entrance;
        match fed {
            Fed::Failed(StreamError::Stopped) => {
                self.stopped.push(input);
                ReadStep::Changed
            }
            Fed::Failed(error) => ReadStep::Failed(error),
            Fed::More if cut && !full => {
                self.pass_barriers();
                ReadStep::Changed
            }
            Fed::More => {
                self.pass_barriers();
                ReadStep::Stopped
            }
            Fed::Pending => ReadStep::Nothing,
            Fed::End => {
                *source = None;
                self.barriers.on_end(input);
                self.pending.push_back(Deferred::End(input));
                let marks = self.alignment.on_watermark(input, Timestamp::MAX);
                self.pending.extend(marks.map(Deferred::Mark));
                self.pass_barriers();
                ReadStep::Changed
            }
        }
    }

    fn pass_barriers(&mut self) {
        while let Some(id) = self.barriers.pass() {
            self.pending.push_back(Deferred::Mark(Mark::Barrier(id)));
        }
    }

    fn flush<K: Intake<X>>(&mut self, intake: &mut K) -> ControlFlow<()> {
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Deferred::Record(value, at) => intake.record(value, at)?,
                Deferred::Mark(mark) => intake.mark(mark)?,
                Deferred::End(input) => intake.input_end(input)?,
            }
        }
        ControlFlow::Continue(())
    }
}

impl<X> fmt::Debug for Merge<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").field("alignment", &self.alignment).finish_non_exhaustive()
    }
}

/// Where one of the inputs delivers to.
struct Entrance<'a, W, X, K> {
    input: usize,
    wrap: W,
    merge: &'a mut Merge<X>,
    intake: &'a mut K,
    /// It was the intake that asked to stop.
    full: bool,
    /// It was a barrier that stopped the input.
    cut: bool,
}

impl<W, X, K: Intake<X>> Entrance<'_, W, X, K> {
    /// Hands the marks on as long as there is room; the rest waits.
    fn forward(&mut self, marks: Marks) {
        for mark in marks {
            if self.full {
                self.merge.pending.push_back(Deferred::Mark(mark));
            } else {
                self.full = self.intake.mark(mark).is_break();
            }
        }
    }

    const fn flow(&self) -> ControlFlow<()> {
        if self.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<T, X, W: Fn(T) -> X, K: Intake<X>> Intake<T> for Entrance<'_, W, X, K> {
    #[inline]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        if self.merge.alignment.is_input_idle(self.input) {
            let marks = self.merge.alignment.on_active(self.input);
            self.forward(marks);
        }
        let value = (self.wrap)(value);
        if self.full {
            self.merge.pending.push_back(Deferred::Record(value, at));
        } else {
            self.full = self.intake.record(value, at).is_break();
        }
        self.flow()
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        if let Mark::Barrier(id) = mark {
            self.merge.barriers.on_barrier(self.input, id);
            if self.merge.barriers.is_blocked(self.input) {
                self.cut = true;
                return ControlFlow::Break(());
            }
        }
        let marks = self.merge.alignment.on_mark(self.input, mark);
        self.forward(marks);
        self.flow()
    }
}
