use super::options::{Every, JobError};
use crate::checkpoint::{Action, Coordinator, Cut, Ending, Event, Participants, SourceCut};
use crate::state::{SavedState, StateChanges};
use crate::stream::Board;
use crate::sync::{Mutex, wake_all};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};

/// What the parts of a running job share: the coordinator, and what each part has handed in for the
/// checkpoint that is underway.
pub(super) struct JobCore {
    /// The barrier that sources are to send; zero before the first one of this run.
    requested: AtomicU64,
    /// Sources end before their end.
    draining: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// What the job goes on from.
    cut: Cut,
    states: BTreeMap<String, SavedState>,
    /// Why the pipeline is no job.
    refusals: Vec<String>,
    sources: Vec<SourceEntry>,
    operators: Vec<OperatorEntry>,
    sinks: Vec<SinkEntry>,
    /// Operators with their places in the program, to see whether their outputs end somewhere.
    boards: Vec<(&'static Location<'static>, Arc<Board>)>,
    every: Every,
    /// How many there are that hold checkpoints back.
    holds: usize,
    /// What they hold back.
    held: Vec<Event>,
    /// Records since the last barrier.
    records: u64,
    /// Runs, once the pipeline is built, until it is over.
    coordinator: Option<Coordinator>,
    /// What has come to its end while the pipeline was built.
    gone: Vec<Event>,
    /// The requested barrier is the last one: the job stops with it.
    last: bool,
    to_store: Option<(u64, Option<Ending>)>,
    ending: Option<Ending>,
    /// Polls all tasks, and is woken whenever one of them is given something to do.
    runner: Option<Waker>,
}

struct SourceEntry {
    name: String,
    /// Records so far, over all runs.
    read: u64,
    /// Where it was, and how many records it had given: from each of these checkpoints on.
    cuts: VecDeque<(u64, (SourceCut, u64))>,
    /// The last barrier that it has sent.
    reached: u64,
    /// Told that the checkpoint is complete, and has not answered yet.
    completing: Option<Vec<u8>>,
    /// The waker of who reads it.
    reader: Option<Waker>,
}

struct OperatorEntry {
    name: String,
    at: Option<&'static Location<'static>>,
    version: u32,
    /// What it has saved, each from this checkpoint on.
    changes: VecDeque<(u64, StateChanges)>,
    /// The last checkpoint that it was saved for; zero if it was for none in this run.
    reached: u64,
}

struct SinkEntry {
    name: String,
    prepared: Vec<u8>,
    /// Records up to the last barrier.
    written: u64,
    orders: VecDeque<Order>,
}

/// What a sink is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Its stream has ended: prepare for this checkpoint.
    Prepare(u64),
    Commit(u64),
}

/// A checkpoint whose parts are all there.
pub(super) struct Complete {
    pub(super) id: u64,
    pub(super) cut: Cut,
    pub(super) changes: Vec<(String, StateChanges)>,
}

impl JobCore {
    /// The parts of a job that goes on from `cut` and `states`.
    pub(super) fn new(cut: Cut, states: BTreeMap<String, SavedState>, every: Every) -> Arc<Self> {
        let state = State {
            cut,
            states,
            refusals: Vec::new(),
            sources: Vec::new(),
            operators: Vec::new(),
            sinks: Vec::new(),
            boards: Vec::new(),
            every,
            holds: 0,
            held: Vec::new(),
            records: 0,
            coordinator: None,
            gone: Vec::new(),
            last: false,
            to_store: None,
            ending: None,
            runner: None,
        };
        Arc::new(Self {
            requested: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    pub(super) fn refuse(&self, reason: String) {
        self.state.lock().refusals.push(reason);
    }

    /// Adds a source; where it goes on, if the job does.
    pub(super) fn add_source(&self, name: &str, at: &Location<'_>) -> (usize, Option<SourceCut>) {
        let mut state = self.state.lock();
        if state.sources.iter().any(|source| source.name == name) {
            state.refusals.push(format!("{at}: there are two sources named `{name}`"));
        }
        state.refuse_late(at);
        let cut = state.cut.sources.remove(name);
        let read = state.cut.read.get(name).copied().unwrap_or(0);
        state.sources.push(SourceEntry {
            name: name.to_owned(),
            read,
            cuts: cut.iter().map(|cut| (0, (cut.clone(), read))).collect(),
            reached: 0,
            completing: None,
            reader: None,
        });
        (state.sources.len() - 1, cut)
    }

    /// Adds an operator; its number, and what was saved of it.
    pub(super) fn add_operator(
        &self,
        name: &str,
        version: u32,
        at: Option<&'static Location<'static>>,
    ) -> Option<(usize, Option<SavedState>)> {
        let mut state = self.state.lock();
        if let Some(other) = state.operators.iter().find(|other| other.name == name) {
            let place =
                |at: Option<&Location<'_>>| at.map_or(String::new(), |at| format!("{at}: "));
            let also = other.at.map_or(String::new(), |at| format!(", also at {at}"));
            let refusal = format!("{}there are two uids `{name}`{also}", place(at));
            state.refusals.push(refusal);
            return None;
        }
        if let Some(at) = at {
            state.refuse_late(at);
        }
        let saved_version = state.cut.versions.remove(name).unwrap_or(1);
        let saved = state.states.remove(name);
        if saved.is_some() && saved_version != version {
            state.refusals.push(format!(
                "the state of `{name}` has version {saved_version}, expected {version}"
            ));
        }
        let name = name.to_owned();
        let changes = VecDeque::new();
        let entry = OperatorEntry { name, at, version, changes, reached: 0 };
        state.operators.push(entry);
        Some((state.operators.len() - 1, saved))
    }

    /// The name of a place that no other step has: its path, numbered from the second on.
    pub(super) fn free_place(&self, path: &str) -> String {
        let state = self.state.lock();
        let is_free = |name: &str| !state.operators.iter().any(|other| other.name == name);
        if is_free(path) {
            return path.to_owned();
        }
        let mut numbers = 2_u64..;
        numbers
            .find_map(|number| Some(format!("{path}#{number}")).filter(|name| is_free(name)))
            .unwrap_or_default()
    }

    /// Adds a sink; its number, and what it had prepared.
    pub(super) fn add_sink(&self, name: &str, at: &Location<'_>) -> (usize, Option<Vec<u8>>) {
        let mut state = self.state.lock();
        if state.sinks.iter().any(|sink| sink.name == name) {
            state.refusals.push(format!("{at}: there are two sinks named `{name}`"));
        }
        state.refuse_late(at);
        let prepared = state.cut.sinks.remove(name);
        let written = state.cut.written.get(name).copied().unwrap_or(0);
        state.sinks.push(SinkEntry {
            name: name.to_owned(),
            prepared: prepared.clone().unwrap_or_default(),
            written,
            orders: VecDeque::new(),
        });
        (state.sinks.len() - 1, prepared)
    }

    /// Notes an operator, whose outputs must all end somewhere.
    pub(super) fn add_board(&self, at: &'static Location<'static>, board: Arc<Board>) {
        self.state.lock().boards.push((at, board));
    }

    /// Refuses a pipeline that is no job.
    pub(super) fn check(&self) -> Result<(), JobError> {
        let mut state = self.state.lock();
        state.check();
        if state.refusals.is_empty() {
            return Ok(());
        }
        Err(JobError::Refused(mem::take(&mut state.refusals)))
    }

    /// The pipeline is built: starts the checkpoints after the one numbered `last`.
    pub(super) fn start(&self, last: u64) {
        let mut state = self.state.lock();
        let participants = Participants {
            sources: state.sources.len(),
            operators: state.operators.len(),
            sinks: state.sinks.len(),
        };
        state.coordinator = Some(Coordinator::new(last, participants));
        // What nobody reads is gone before the first record.
        let gone = mem::take(&mut state.gone);
        drop(state);
        for event in gone {
            self.on(event);
        }
    }

    /// The job is over, or has failed: what its parts say does not matter any more.
    pub(super) fn close(&self) {
        self.state.lock().coordinator = None;
    }

    /// Holds back checkpoints, or lets them be made again.
    pub(super) fn hold(&self, held: bool) {
        let wakers = {
            let mut state = self.state.lock();
            if held {
                state.holds += 1;
                return;
            }
            state.holds -= 1;
            let events = if state.holds == 0 { mem::take(&mut state.held) } else { Vec::new() };
            let on = |event| state.on(event, &self.requested);
            events.into_iter().flat_map(on).collect::<Vec<_>>()
        };
        wake_all(wakers);
    }

    pub(super) fn on(&self, event: Event) {
        let wakers = self.state.lock().on(event, &self.requested);
        wake_all(wakers);
    }

    /// The barrier that a source which has sent `sent` is to send now.
    #[inline]
    pub(super) fn barrier_after(&self, sent: u64) -> Option<u64> {
        let requested = self.requested.load(Ordering::Acquire);
        (requested > sent).then_some(requested)
    }

    /// Lets every source end after what it has in hand.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let mut state = self.state.lock();
        let wakers: Vec<_> = state.sources.iter_mut().filter_map(|s| s.reader.take()).collect();
        drop(state);
        wake_all(wakers);
    }

    #[inline]
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// A source has sent a barrier; whether it was the last one. Without a position it is where it
    /// was when the job began.
    pub(super) fn source_reached(&self, source: usize, id: u64, position: Option<Vec<u8>>) -> bool {
        let (wakers, last) = {
            let mut state = self.state.lock();
            let entry = &mut state.sources[source];
            entry.reached = id;
            if let Some(position) = position {
                let cut = SourceCut { position, ended: false };
                entry.cuts.push_back((id, (cut, entry.read)));
            }
            (state.on(Event::SourceReached(source, id), &self.requested), state.last)
        };
        wake_all(wakers);
        last
    }

    pub(super) fn source_ended(&self, source: usize, position: Vec<u8>) {
        let wakers = {
            let mut state = self.state.lock();
            let entry = &mut state.sources[source];
            // Not that of a barrier before, whose checkpoint may be underway.
            let next = entry.reached + 1;
            entry.cuts.push_back((next, (SourceCut { position, ended: true }, entry.read)));
            state.on(Event::SourceEnded(source), &self.requested)
        };
        wake_all(wakers);
    }

    /// Counts records of a source: a checkpoint may be due.
    pub(super) fn count(&self, source: usize, records: usize) {
        let wakers = {
            let mut state = self.state.lock();
            state.sources[source].read += records as u64;
            state.records += records as u64;
            if state.every.records.is_none_or(|every| state.records < every) {
                return;
            }
            state.on(Event::Due, &self.requested)
        };
        wake_all(wakers);
    }

    /// Lets `waker` be woken when a source is to send a barrier.
    pub(super) fn wait_for_barrier(&self, source: usize, waker: &Waker) {
        let old = {
            let mut state = self.state.lock();
            let reader = &mut state.sources[source].reader;
            if reader.as_ref().is_some_and(|reader| reader.will_wake(waker)) {
                return;
            }
            reader.replace(waker.clone())
        };
        drop(old);
    }

    /// The position that a source is to be told is complete.
    pub(super) fn completing(&self, source: usize) -> Option<Vec<u8>> {
        self.state.lock().sources[source].completing.clone()
    }

    /// A source was told this position; there may be a later one meanwhile.
    pub(super) fn completed(&self, source: usize, told: &[u8]) {
        let waker = {
            let mut state = self.state.lock();
            state.sources[source].completing.take_if(|position| position == told);
            state.runner.clone()
        };
        wake_all(waker);
    }

    /// Whether an operator is to save everything, and not only what has changed: for the first time
    /// in this run.
    pub(super) fn wants_all(&self, operator: usize) -> bool {
        self.state.lock().operators[operator].reached == 0
    }

    pub(super) fn saved(&self, operator: usize, id: u64, changes: StateChanges) {
        let wakers = {
            let mut state = self.state.lock();
            let entry = &mut state.operators[operator];
            entry.changes.push_back((id, changes));
            entry.reached = id;
            state.on(Event::OperatorSaved(operator, id), &self.requested)
        };
        wake_all(wakers);
    }

    pub(super) fn operator_ended(&self, operator: usize, changes: Option<StateChanges>) {
        let wakers = {
            let mut state = self.state.lock();
            let entry = &mut state.operators[operator];
            // Not of the last barrier before, whose checkpoint may be underway.
            let next = entry.reached + 1;
            entry.changes.extend(changes.map(|changes| (next, changes)));
            state.on(Event::OperatorEnded(operator), &self.requested)
        };
        wake_all(wakers);
    }

    pub(super) fn prepared(&self, sink: usize, id: u64, prepared: Vec<u8>, written: u64) {
        let wakers = {
            let mut state = self.state.lock();
            let entry = &mut state.sinks[sink];
            entry.prepared = prepared;
            entry.written += written;
            state.on(Event::SinkPrepared(sink, id), &self.requested)
        };
        wake_all(wakers);
    }

    pub(super) fn order(&self, sink: usize) -> Option<Order> {
        self.state.lock().sinks[sink].orders.pop_front()
    }

    pub(super) fn sink_name(&self, sink: usize) -> String {
        self.state.lock().sinks[sink].name.clone()
    }

    pub(super) fn source_name(&self, source: usize) -> String {
        self.state.lock().sources[source].name.clone()
    }

    /// Lets `waker` be woken when tasks are given something to do; before they are polled.
    pub(super) fn wake_tasks_by(&self, waker: &Waker) {
        let old = {
            let mut state = self.state.lock();
            if state.runner.as_ref().is_some_and(|runner| runner.will_wake(waker)) {
                return;
            }
            state.runner.replace(waker.clone())
        };
        drop(old);
    }

    /// The next checkpoint to be stored, or how the job has ended.
    pub(super) fn poll_next(&self) -> Poll<Result<Complete, Ending>> {
        let mut state = self.state.lock();
        if let Some((id, ending)) = state.to_store.take() {
            return Poll::Ready(Ok(state.take_complete(id, ending)));
        }
        match state.ending {
            // The sources are told as well before it is over.
            Some(ending) if state.sources.iter().all(|source| source.completing.is_none()) => {
                Poll::Ready(Err(ending))
            }
            _ => Poll::Pending,
        }
    }
}

impl State {
    fn on(&mut self, event: Event, requested: &AtomicU64) -> Vec<Waker> {
        let Some(coordinator) = &mut self.coordinator else {
            self.gone.push(event);
            return Vec::new();
        };
        if self.holds > 0 && matches!(event, Event::Due | Event::Stop) {
            if !self.held.contains(&event) {
                self.held.push(event);
            }
            return Vec::new();
        }
        let actions = coordinator.on(event);
        // Tasks may have been polled just before they are given something to do.
        let runner = self.runner.as_ref().filter(|_| !actions.is_empty());
        let mut wakers: Vec<_> = runner.cloned().into_iter().collect();
        for action in actions {
            match action {
                Action::Barrier { id, last } => {
                    (self.records, self.last) = (0, last);
                    requested.store(id, Ordering::Release);
                    wakers.extend(self.sources.iter_mut().filter_map(|s| s.reader.take()));
                }
                Action::Prepare(sink, id) => self.sinks[sink].orders.push_back(Order::Prepare(id)),
                Action::Store(id, ending) => self.to_store = Some((id, ending)),
                Action::Commit(id) => {
                    for sink in &mut self.sinks {
                        sink.orders.push_back(Order::Commit(id));
                    }
                    for source in &mut self.sources {
                        source.completing = source.cut(id).map(|(cut, _)| cut.position.clone());
                    }
                }
                Action::End(ending) => self.ending = Some(ending),
            }
        }
        wakers
    }

    /// Refuses what is added when the job runs already.
    fn refuse_late(&mut self, at: &Location<'_>) {
        if self.coordinator.is_some() {
            self.refusals.push(format!("{at}: the job runs already"));
        }
    }

    /// Looks for what must not be before the first record is read.
    fn check(&mut self) {
        for (at, board) in &self.boards {
            for output in board.lost_outputs() {
                self.refusals.push(format!(
                    "{at}: the output `{output}` of `{}` ends nowhere: give it to a sink, or \
                     discard it",
                    board.name()
                ));
            }
        }
        let mut list = |kind: &str, stored: Vec<&String>, known: Vec<&String>, hint: &str| {
            if !stored.is_empty() {
                self.refusals.push(format!(
                    "the store has {kind} that nothing in the program has the name of: {}; \
                     the program has: {}{hint}",
                    names(stored),
                    names(known)
                ));
            }
        };
        list(
            "state",
            self.states.keys().collect(),
            self.operators.iter().map(|operator| &operator.name).collect(),
            "; to give it up, call `forget` with its name",
        );
        list(
            "the position of sources",
            self.cut.sources.keys().collect(),
            self.sources.iter().map(|source| &source.name).collect(),
            "",
        );
        list(
            "prepared records of sinks",
            self.cut.sinks.keys().collect(),
            self.sinks.iter().map(|sink| &sink.name).collect(),
            "",
        );
        if self.sources.is_empty() {
            self.refusals.push("it has no source".to_owned());
        }
    }

    fn take_complete(&mut self, id: u64, ending: Option<Ending>) -> Complete {
        let mut cut = self.cut.clone();
        cut.ending = ending;
        cut.checkpoints += 1;
        self.cut.checkpoints = cut.checkpoints;
        for source in &mut self.sources {
            if let Some((at, read)) = source.cut(id).cloned() {
                cut.sources.insert(source.name.clone(), at);
                cut.read.insert(source.name.clone(), read);
            }
        }
        for sink in &self.sinks {
            cut.sinks.insert(sink.name.clone(), sink.prepared.clone());
            cut.written.insert(sink.name.clone(), sink.written);
        }
        let versioned = self.operators.iter().filter(|operator| operator.version != 1);
        cut.versions = versioned.map(|op| (op.name.clone(), op.version)).collect();
        let mut changes = Vec::new();
        for operator in &mut self.operators {
            while let Some((_, saved)) = operator.changes.pop_front_if(|(from, _)| *from <= id) {
                changes.push((operator.name.clone(), saved));
            }
        }
        Complete { id, cut, changes }
    }
}

impl SourceEntry {
    /// Where it was at this checkpoint, with the number of records; forgets what was before.
    fn cut(&mut self, id: u64) -> Option<&(SourceCut, u64)> {
        while self.cuts.get(1).is_some_and(|(from, _)| *from <= id) {
            self.cuts.pop_front();
        }
        self.cuts.front().filter(|(from, _)| *from <= id).map(|(_, cut)| cut)
    }
}

fn names(names: Vec<&String>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
