//! Every order of events, with crashes: what is done must be right in each of them.

use super::*;
use std::collections::{HashMap, VecDeque};

/// The coordinator, and all that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    coordinator: Coordinator,
    /// The newest checkpoint in the store.
    stored: u64,
    /// What is on its way to the store.
    storing: Option<(u64, Option<Ending>)>,
    /// What sinks have been told to commit.
    commit: u64,
    /// The last barrier, and whether it was the last of all.
    barrier: (u64, bool),
    sources: Vec<Taking>,
    operators: Vec<Taking>,
    sinks: Vec<Taking>,
    over: Option<Ending>,
    stop: bool,
    dues: usize,
    crashes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Taking {
    /// The last checkpoint it has done its part for.
    done: u64,
    /// The last one that it was asked to prepare for, as an ended sink.
    asked: u64,
    committed: u64,
    ended: bool,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Event(Event),
    /// The process dies; what was on its way to the store is there, or not.
    Crash {
        arrived: bool,
    },
}

impl World {
    fn new(participants: Participants, dues: usize, crashes: usize) -> Self {
        let Participants { sources, operators, sinks } = participants;
        let taking = |count| vec![Taking::default(); count];
        Self {
            coordinator: Coordinator::new(0, participants),
            stored: 0,
            storing: None,
            commit: 0,
            barrier: (0, false),
            sources: taking(sources),
            operators: taking(operators),
            sinks: taking(sinks),
            over: None,
            stop: false,
            dues,
            crashes,
        }
    }

    fn all_ended(&self) -> bool {
        self.sources.iter().chain(&self.operators).chain(&self.sinks).all(|part| part.ended)
    }

    /// All that can happen now.
    fn steps(&self) -> Vec<Step> {
        let mut events = Vec::new();
        let (barrier, last) = self.barrier;
        let some_source_ended = self.sources.iter().any(|source| source.ended);
        if self.over.is_none() {
            events.extend((self.dues > 0).then_some(Event::Due));
            events.extend((!self.stop).then_some(Event::Stop));
            for (source, part) in self.sources.iter().enumerate() {
                if !part.ended && part.done < barrier {
                    events.push(Event::SourceReached(source, barrier));
                }
                // After the last barrier it comes to no end.
                let is_stopped = last && part.done == barrier;
                if !part.ended && !is_stopped {
                    events.push(Event::SourceEnded(source));
                }
            }
            for (operator, part) in self.operators.iter().enumerate() {
                if !part.ended && part.done < barrier {
                    events.push(Event::OperatorSaved(operator, barrier));
                }
                if !part.ended && some_source_ended {
                    events.push(Event::OperatorEnded(operator));
                }
            }
            for (sink, part) in self.sinks.iter().enumerate() {
                let asked = if part.ended { part.asked } else { barrier };
                if part.done < asked {
                    events.push(Event::SinkPrepared(sink, asked));
                }
                if !part.ended && some_source_ended {
                    events.push(Event::SinkEnded(sink));
                }
                if part.committed < self.commit {
                    events.push(Event::SinkCommitted(sink, self.commit));
                }
            }
            events.extend(self.storing.map(|(id, _)| Event::Stored(id)));
        }
        let mut steps: Vec<_> = events.into_iter().map(Step::Event).collect();
        if self.crashes > 0 {
            steps.push(Step::Crash { arrived: false });
            steps.extend(self.storing.map(|_| Step::Crash { arrived: true }));
        }
        steps
    }

    fn after(&self, step: Step) -> Self {
        let mut next = self.clone();
        match step {
            Step::Crash { arrived } => {
                let arrived = self.storing.filter(|_| arrived).map(|(id, _)| id);
                let parts = Participants {
                    sources: self.sources.len(),
                    operators: self.operators.len(),
                    sinks: self.sinks.len(),
                };
                next = Self::new(parts, self.dues, self.crashes - 1);
                next.stored = arrived.unwrap_or(self.stored);
                (next.barrier.0, next.commit) = (next.stored, next.stored);
                next.coordinator = Coordinator::new(next.stored, parts);
                for sink in &mut next.sinks {
                    sink.committed = next.stored;
                }
                for parts in [&mut next.sources, &mut next.operators, &mut next.sinks] {
                    for part in parts {
                        (part.done, part.asked) = (next.stored, next.stored);
                    }
                }
            }
            Step::Event(event) => {
                next.note(event);
                let underway = self.coordinator.underway();
                let actions = next.coordinator.on(event);
                for action in &actions {
                    next.act(*action, underway);
                }
            }
        }
        next
    }

    /// What the event says has come to pass.
    fn note(&mut self, event: Event) {
        match event {
            Event::Due => self.dues -= 1,
            Event::Stop => self.stop = true,
            Event::SourceReached(source, id) => self.sources[source].done = id,
            Event::SourceEnded(source) => self.sources[source].ended = true,
            Event::OperatorSaved(operator, id) => self.operators[operator].done = id,
            Event::OperatorEnded(operator) => self.operators[operator].ended = true,
            Event::SinkPrepared(sink, id) => self.sinks[sink].done = id,
            Event::SinkEnded(sink) => self.sinks[sink].ended = true,
            Event::Stored(id) => self.stored = id,
            Event::SinkCommitted(sink, id) => self.sinks[sink].committed = id,
        }
    }

    /// Checks that this may be done now, and does it. Before the event, `underway` was.
    fn act(&mut self, action: Action, underway: Option<u64>) {
        assert!(self.over.is_none(), "{action:?} after the end");
        let ended = |part: &Taking| part.ended;
        match action {
            Action::Barrier { id, last } => {
                assert!(underway.is_none_or(|before| before == self.stored), "two at once");
                assert_eq!(id, self.stored + 1);
                assert_eq!(last, self.stop);
                assert!(self.sinks.iter().all(|sink| sink.committed == self.stored));
                assert!(!self.sources.iter().all(ended), "nobody sends this barrier");
                self.barrier = (id, last);
            }
            Action::Prepare(sink, id) => {
                let sink = &mut self.sinks[sink];
                assert_eq!(id, self.stored + 1);
                assert!(sink.ended && sink.done < id && sink.asked < id, "asked twice");
                sink.asked = id;
            }
            Action::Store(id, ending) => {
                assert_eq!((self.storing, id), (None, self.stored + 1));
                let is_there = |part: &Taking| part.ended || part.done == id;
                assert!(self.sources.iter().chain(&self.operators).all(is_there));
                assert!(self.sinks.iter().all(|sink| sink.done == id));
                let stopped = (self.barrier == (id, true)).then_some(Ending::Stopped);
                let finished = self.all_ended().then_some(Ending::Finished);
                assert_eq!(ending, finished.or(stopped));
                self.storing = Some((id, ending));
            }
            Action::Commit(id) => {
                assert_eq!((id, self.storing.map(|(id, _)| id)), (self.stored, Some(id)));
                self.commit = id;
            }
            Action::End(ending) => {
                assert_eq!(self.storing, Some((self.stored, Some(ending))));
                assert!(self.sinks.iter().all(|sink| sink.committed == self.stored));
                self.over = Some(ending);
            }
        }
    }

    /// Ends what an event has brought about: a checkpoint is over when all have committed it.
    fn settle(&mut self) {
        if self.over.is_none() && self.coordinator.underway() != self.storing.map(|(id, _)| id) {
            self.storing = None;
        }
    }

    /// Events that are late, early, or come once more.
    fn strays(&self) -> Vec<Event> {
        let underway = self.coordinator.underway();
        let mut strays = Vec::new();
        for id in 0..=self.stored + 2 {
            let is_storing = self.storing.is_some_and(|(storing, _)| storing == id);
            if !(is_storing && self.stored < id) {
                strays.push(Event::Stored(id));
            }
            let is_early = underway != Some(id) && id > self.stored;
            for (source, part) in self.sources.iter().enumerate() {
                if is_early || part.done >= id {
                    strays.push(Event::SourceReached(source, id));
                }
            }
            for (operator, part) in self.operators.iter().enumerate() {
                if is_early || part.done >= id {
                    strays.push(Event::OperatorSaved(operator, id));
                }
            }
            for (sink, part) in self.sinks.iter().enumerate() {
                if is_early || part.done >= id {
                    strays.push(Event::SinkPrepared(sink, id));
                }
                if id > self.commit || part.committed >= id {
                    strays.push(Event::SinkCommitted(sink, id));
                }
            }
        }
        let ended = |parts: &[Taking], event: fn(usize) -> Event| {
            let ended = parts.iter().enumerate().filter(|(_, part)| part.ended);
            ended.map(|(at, _)| event(at)).collect::<Vec<_>>()
        };
        strays.extend(ended(&self.sources, Event::SourceEnded));
        strays.extend(ended(&self.operators, Event::OperatorEnded));
        strays.extend(ended(&self.sinks, Event::SinkEnded));
        if self.over.is_some() {
            strays.extend([Event::Due, Event::Stop]);
        }
        strays
    }
}

/// Goes through all orders, and returns how many states there are.
fn explore(participants: Participants, dues: usize, crashes: usize) -> usize {
    let start = World::new(participants, dues, crashes);
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let mut queue = VecDeque::from([start]);
    let (mut before, mut ends) = (vec![Vec::new()], Vec::new());
    while let Some(world) = queue.pop_front() {
        let from = numbers[&world];
        for stray in world.strays() {
            let mut coordinator = world.coordinator.clone();
            assert_eq!(coordinator.on(stray), [], "{stray:?} in {world:#?}");
            assert_eq!(coordinator, world.coordinator, "{stray:?} in {world:#?}");
        }
        if world.over.is_some() {
            ends.push(from);
        }
        for step in world.steps() {
            let mut next = world.after(step);
            next.settle();
            let number = *numbers.entry(next.clone()).or_insert_with(|| {
                queue.push_back(next);
                before.push(Vec::new());
                before.len() - 1
            });
            // A crash is no way out.
            if matches!(step, Step::Event(_)) {
                before[number].push(from);
            }
        }
    }
    // From everywhere, some order of events leads to the end.
    let mut reaches = vec![false; before.len()];
    while let Some(at) = ends.pop() {
        if !std::mem::replace(&mut reaches[at], true) {
            ends.extend(&before[at]);
        }
    }
    if let Some((world, _)) = numbers.iter().find(|(_, number)| !reaches[**number]) {
        panic!("no end can be reached from {world:#?}");
    }
    numbers.len()
}

#[test]
fn every_order_of_events_and_crashes_is_right() {
    for (sources, operators, sinks, dues) in
        [(1, 0, 1, 3), (1, 1, 1, 3), (2, 1, 1, 2), (1, 2, 1, 2), (1, 1, 2, 2), (2, 0, 2, 2)]
    {
        let states = explore(Participants { sources, operators, sinks }, dues, 1);
        assert!(states > 100, "{states}");
    }
}

#[test]
fn every_order_of_two_of_each_is_right() {
    let states = explore(Participants { sources: 2, operators: 2, sinks: 2 }, 1, 0);
    assert!(states > 1000, "{states}");
}
