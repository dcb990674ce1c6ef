use super::source::CHUNK;
use super::waiting::Inputs;
use super::{Behind, Fed, InputIs, Intake, JobLink, Saving, Source};
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
    /// Which inputs have ended. They are kept: records of them may be unread.
    ended: Vec<bool>,
    /// The input that failed.
    failed: Option<usize>,
    /// Whose turn is next.
    turn: usize,
    handed: Handed,
    saving: Saving<Alignment>,
    /// The inputs that were stopped on request. What the others have ready comes before that.
    stopped: Vec<usize>,
    /// What the inputs are doing, for others to see.
    now: Arc<Inputs>,
}

/// How many of the last records came from which input, in their order: those that may be unread.
struct Handed {
    /// Without the last one.
    runs: VecDeque<(usize, usize)>,
    input: usize,
    records: usize,
}

/// For how many runs it is known where they came from: a reader that hands records on in chunks has
/// not more than a few chunks in hand.
const RUNS: usize = 8 * CHUNK;

impl Handed {
    /// The next records come from `input`.
    fn begin(&mut self, input: usize) {
        if input == self.input {
            return;
        }
        if self.records > 0 {
            if self.runs.len() == RUNS {
                self.runs.pop_front();
            }
            self.runs.push_back((self.input, self.records));
        }
        (self.input, self.records) = (input, 0);
    }

    /// The last of them that are known, at most `records`, from the end.
    fn take_back(&mut self, mut records: usize, mut unread: impl FnMut(usize, usize)) {
        loop {
            let back = records.min(self.records);
            self.records -= back;
            records -= back;
            unread(self.input, back);
            if records == 0 {
                return;
            }
            let Some(run) = self.runs.pop_back() else { return };
            (self.input, self.records) = run;
        }
    }
}

/// What is still to be handed on.
enum Deferred<X> {
    /// A record of this input.
    Record(usize, X, Timestamp),
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
        Self {
            alignment,
            barriers: Barriers::new(inputs),
            pending: VecDeque::new(),
            ended: vec![false; inputs],
            failed: None,
            turn: 0,
            handed: Handed { runs: VecDeque::new(), input: 0, records: 0 },
            saving: Saving::NONE,
            stopped: Vec::new(),
            now: Inputs::new(inputs),
        }
    }

    /// Lets the times of the inputs be saved by their place, after `link`, as `step`.
    pub(super) fn tie(&mut self, link: Option<JobLink>, step: &str) {
        self.saving = Saving::of_alignment(link, step, &mut self.alignment);
    }

    pub(super) fn has_ended(&self, input: usize) -> bool {
        self.ended[input]
    }

    /// The input that failed, if one did.
    pub(super) const fn failed(&self) -> Option<usize> {
        self.failed
    }

    /// Shows to `unread` how many of the last `records` came from which input.
    pub(super) fn take_back(&mut self, records: usize, unread: impl FnMut(usize, usize)) {
        self.handed.take_back(records, unread);
    }

    /// Of which inputs records wait here that nobody will read any more.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.pending.iter().filter_map(|pending| match pending {
            Deferred::Record(input, ..) => Some(*input),
            Deferred::Mark(_) | Deferred::End(_) => None,
        })
    }

    /// Notes the inputs, unless others stand before them.
    pub(super) fn behind(&self, behind: &mut Behind) {
        behind.inputs.get_or_insert_with(|| Arc::clone(&self.now));
    }

    /// Notes whether `input` is read at all.
    pub(super) fn set_unread(&mut self, input: usize, unread: bool) {
        self.barriers.set_unread(input, unread);
    }

    /// Reads the inputs in turns, by `read`, until the intake asks to stop or all have nothing.
    pub(super) fn feed<S, K: Intake<X>>(
        &mut self,
        inputs: &mut S,
        intake: &mut K,
        mut read: impl FnMut(&mut Self, &mut S, usize, &mut K) -> ReadStep,
    ) -> Fed {
        let (first, count) = (self.turn, self.ended.len());
        self.turn = (first + 1) % count;
        loop {
            let mut changed = false;
            for turn in 0..count {
                if self.flush(intake).is_break() {
                    return Fed::More;
                }
                let input = (first + turn) % count;
                match read(self, inputs, input, intake) {
                    ReadStep::Nothing => {}
                    ReadStep::Changed => changed = true,
                    ReadStep::Stopped => return Fed::More,
                    ReadStep::Failed(error) => {
                        self.failed = Some(input);
                        return Fed::Failed(error);
                    }
                }
            }
            if !changed && self.pending.is_empty() {
                if let Some(input) = self.stopped.first() {
                    self.failed = Some(*input);
                    return Fed::Failed(StreamError::Stopped);
                }
                return if self.ended.iter().all(|ended| *ended) { Fed::End } else { Fed::Pending };
            }
        }
    }

    /// Reads one input.
    pub(super) fn read<T, Src: Source<T>, K: Intake<X>>(
        &mut self,
        input: usize,
        source: &mut Src,
        wrap: impl Fn(T) -> X,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> ReadStep {
        let step = self.step(input, source, wrap, cx, intake);
        let state = match step {
            _ if self.ended[input] => InputIs::Ended,
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
        source: &mut Src,
        wrap: impl Fn(T) -> X,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> ReadStep {
        if self.ended[input] || self.barriers.is_blocked(input) || self.stopped.contains(&input) {
            return ReadStep::Nothing;
        }
        self.handed.begin(input);
        let mut entrance = Entrance { input, wrap, merge: self, intake, full: false, cut: false };
        let fed = source.feed(cx, &mut entrance);
        let Entrance { full, cut, .. } = entrance;
        match fed {
            Fed::Failed(StreamError::Stopped) => {
                self.stopped.push(input);
                ReadStep::Changed
            }
            Fed::Failed(error) => ReadStep::Failed(error),
            Fed::More if cut && !full => self.pass_barriers(ReadStep::Changed),
            Fed::More => self.pass_barriers(ReadStep::Stopped),
            Fed::Pending => ReadStep::Nothing,
            Fed::End => {
                self.ended[input] = true;
                self.barriers.on_end(input);
                self.pending.push_back(Deferred::End(input));
                let marks = self.alignment.on_watermark(input, Timestamp::MAX);
                self.pending.extend(marks.map(Deferred::Mark));
                match self.pass_barriers(ReadStep::Changed) {
                    ReadStep::Changed if self.ended.iter().all(|ended| *ended) => {
                        let saved = self.saving.end(&mut self.alignment);
                        saved.map_or_else(ReadStep::Failed, |()| ReadStep::Changed)
                    }
                    step => step,
                }
            }
        }
    }

    /// Lets the barriers pass that all inputs have reached; `step`, or an error.
    fn pass_barriers(&mut self, step: ReadStep) -> ReadStep {
        while let Some(id) = self.barriers.pass() {
            if let Err(error) = self.saving.barrier(&mut self.alignment, id) {
                return ReadStep::Failed(error);
            }
            self.pending.push_back(Deferred::Mark(Mark::Barrier(id)));
        }
        step
    }

    fn flush<K: Intake<X>>(&mut self, intake: &mut K) -> ControlFlow<()> {
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Deferred::Record(input, value, at) => {
                    self.handed.begin(input);
                    self.handed.records += 1;
                    intake.record(value, at)?;
                }
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
            self.merge.pending.push_back(Deferred::Record(self.input, value, at));
        } else {
            self.merge.handed.records += 1;
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
