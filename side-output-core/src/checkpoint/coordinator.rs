/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Ending {
    /// All inputs have ended, and everything is written.
    Finished,
    /// It was stopped: it goes on from here when it is started again.
    Stopped,
}

/// How many there are of those who take part in each checkpoint; each kind is numbered from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Participants {
    /// Sources.
    pub sources: usize,
    /// Operators with state.
    pub operators: usize,
    /// Sinks, and whatever else an output ends in.
    pub sinks: usize,
}

/// What the [`Coordinator`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A checkpoint is due, or asked for.
    Due,
    /// A source has sent the barrier of this checkpoint; what comes later is not part of it.
    SourceReached(usize, u64),
    /// A source has come to its end.
    SourceEnded(usize),
    /// An operator has been saved for this checkpoint.
    OperatorSaved(usize, u64),
    /// An operator has come to the end of its input: its state does not change any more.
    OperatorEnded(usize),
    /// A sink is prepared for this checkpoint.
    SinkPrepared(usize, u64),
    /// A sink has written everything: nothing more comes.
    SinkEnded(usize),
    /// The checkpoint is in the store.
    Stored(u64),
    /// A sink has committed this checkpoint.
    SinkCommitted(usize, u64),
    /// The job is to stop, with a checkpoint.
    Stop,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// All sources send the barrier of this checkpoint; if it is the `last`, nothing after it.
    Barrier {
        /// The checkpoint.
        id: u64,
        /// Whether the job stops with it.
        last: bool,
    },
    /// A sink whose stream has ended prepares for this checkpoint.
    Prepare(usize, u64),
    /// All parts are there: the checkpoint goes into the store.
    Store(u64, Option<Ending>),
    /// The checkpoint is in the store: all sinks commit it, and all sources are told.
    Commit(u64),
    /// The job is over.
    End(Ending),
}

/// Brings the parts of each checkpoint together: a state machine without I/O.
///
/// One checkpoint at a time: the next one begins when all sinks have committed the one before. The
/// order is always: barrier, everything saved and prepared, store, commits. What has ended takes
/// part in every later checkpoint without a barrier.
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::{Action, Coordinator, Event, Participants};
///
/// let parts = Participants { sources: 1, operators: 0, sinks: 1 };
/// let mut coordinator = Coordinator::new(7, parts);
/// assert_eq!(coordinator.on(Event::Due), [Action::Barrier { id: 8, last: false }]);
/// assert_eq!(coordinator.on(Event::SourceReached(0, 8)), []);
/// assert_eq!(coordinator.on(Event::SinkPrepared(0, 8)), [Action::Store(8, None)]);
/// assert_eq!(coordinator.on(Event::Stored(8)), [Action::Commit(8)]);
/// assert_eq!(coordinator.on(Event::SinkCommitted(0, 8)), []);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    /// The last checkpoint that was begun.
    id: u64,
    phase: Phase,
    sources: Vec<Part>,
    operators: Vec<Part>,
    sinks: Vec<Part>,
    /// A checkpoint is to follow.
    due: bool,
    /// The job is to stop with the next one.
    stop: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// No checkpoint is underway.
    Idle,
    /// Parts are missing. `last` if the job stops with this checkpoint.
    Collecting {
        last: bool,
    },
    Storing(Option<Ending>),
    Committing(Option<Ending>),
    Over,
}

/// How far one of the participants is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Part {
    /// The last checkpoint that it has done its part for.
    done: u64,
    /// The last one that it has committed; of sinks.
    committed: u64,
    ended: bool,
}

impl Coordinator {
    /// A coordinator whose first checkpoint comes after the one numbered `last`.
    #[must_use]
    pub fn new(last: u64, participants: Participants) -> Self {
        let parts = |count| vec![Part { done: last, committed: last, ended: false }; count];
        let Participants { sources, operators, sinks } = participants;
        Self {
            id: last,
            phase: Phase::Idle,
            sources: parts(sources),
            operators: parts(operators),
            sinks: parts(sinks),
            due: false,
            stop: false,
        }
    }

    /// The checkpoint that is underway, if there is one.
    #[must_use]
    pub const fn underway(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle | Phase::Over => None,
            Phase::Collecting { .. } | Phase::Storing(_) | Phase::Committing(_) => Some(self.id),
        }
    }

    /// Takes an event, and says what is to be done, in this order.
    ///
    /// What is told of another checkpoint than the one underway, or was told before, changes nothing.
    pub fn on(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.phase == Phase::Over {
            return actions;
        }
        let is_collecting = matches!(self.phase, Phase::Collecting { .. });
        let collected = |id| is_collecting && id == self.id;
        match event {
            Event::Due => self.due = true,
            Event::Stop => self.stop = true,
            Event::SourceReached(source, id) if collected(id) => self.sources[source].done = id,
            Event::OperatorSaved(operator, id) if collected(id) => {
                self.operators[operator].done = id;
            }
            Event::SinkPrepared(sink, id) if collected(id) => self.sinks[sink].done = id,
            Event::SourceReached(..) | Event::OperatorSaved(..) | Event::SinkPrepared(..) => {}
            Event::SourceEnded(source) => self.sources[source].ended = true,
            Event::OperatorEnded(operator) => self.operators[operator].ended = true,
            Event::SinkEnded(sink) => {
                let part = &mut self.sinks[sink];
                let had_ended = std::mem::replace(&mut part.ended, true);
                if is_collecting && !had_ended && part.done < self.id {
                    actions.push(Action::Prepare(sink, self.id));
                }
            }
            Event::Stored(id) => {
                if let Phase::Storing(ending) = self.phase
                    && id == self.id
                {
                    self.phase = Phase::Committing(ending);
                    actions.push(Action::Commit(id));
                }
            }
            Event::SinkCommitted(sink, id) => {
                if matches!(self.phase, Phase::Committing(_)) && id == self.id {
                    self.sinks[sink].committed = id;
                }
            }
        }
        self.go_on(&mut actions);
        actions
    }

    fn go_on(&mut self, actions: &mut Vec<Action>) {
        if let Phase::Committing(ending) = self.phase
            && self.sinks.iter().all(|sink| sink.committed >= self.id)
        {
            self.phase = if ending.is_some() { Phase::Over } else { Phase::Idle };
            actions.extend(ending.map(Action::End));
        }
        if self.phase == Phase::Idle && (self.due || self.stop || self.is_finished()) {
            self.begin(actions);
        }
        if let Phase::Collecting { last } = self.phase
            && self.has_all_parts()
        {
            // A job that has come to its end is finished, also where it was to stop.
            let stopped = last.then_some(Ending::Stopped);
            let ending = if self.is_finished() { Some(Ending::Finished) } else { stopped };
            self.phase = Phase::Storing(ending);
            actions.push(Action::Store(self.id, ending));
        }
    }

    fn begin(&mut self, actions: &mut Vec<Action>) {
        self.id += 1;
        self.due = false;
        self.phase = Phase::Collecting { last: self.stop };
        if self.sources.iter().any(|source| !source.ended) {
            actions.push(Action::Barrier { id: self.id, last: self.stop });
        }
        let ended = self.sinks.iter().enumerate().filter(|(_, sink)| sink.ended);
        actions.extend(ended.map(|(sink, _)| Action::Prepare(sink, self.id)));
    }

    fn is_finished(&self) -> bool {
        let mut parts = self.sources.iter().chain(&self.operators).chain(&self.sinks);
        parts.all(|part| part.ended)
    }

    fn has_all_parts(&self) -> bool {
        let reached = |part: &Part| part.ended || part.done >= self.id;
        self.sources.iter().all(reached)
            && self.operators.iter().all(reached)
            && self.sinks.iter().all(|sink| sink.done >= self.id)
    }
}

#[cfg(test)]
mod tests;
