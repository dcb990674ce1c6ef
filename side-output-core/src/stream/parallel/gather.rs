use super::PartitionTask;
use crate::error::StreamError;
use crate::output::{Account, Collect};
use crate::stream::Streamed;
use crate::stream::{Driver, Fed};
use crate::sync::{Mutex, Shelter, contain, wake_all};
use crate::time::{Alignment, Barriers, Mark, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What a partition emits.
pub(super) enum Item<S> {
    Route(S, Timestamp),
    Mark(Mark),
    /// What the operator counted for the items since the last one of these.
    Account(Account),
}

/// Between the task of a partition and the reader of all.
pub(super) struct PartitionQueue<S> {
    pub(super) items: VecDeque<Item<S>>,
    /// What the function of this partition keeps.
    pub(super) held: u64,
    /// How the task ended.
    pub(super) end: Option<Result<(), StreamError>>,
    /// Nobody reads any more.
    pub(super) closed: bool,
    /// The task is to ask its input for an error where that stalls.
    pub(super) fail_on_stall: bool,
    pub(super) task: Option<Waker>,
}

impl<S> PartitionQueue<S> {
    fn new() -> Self {
        Self {
            items: VecDeque::new(),
            held: 0,
            end: None,
            closed: false,
            fail_on_stall: false,
            task: None,
        }
    }
}

/// What the tasks and the reader share.
pub(super) struct PartitionQueues<S> {
    pub(super) pipes: Vec<Mutex<PartitionQueue<S>>>,
    pub(super) reader: Mutex<Option<Waker>>,
}

impl<S> PartitionQueues<S> {
    pub(super) fn wake_reader(&self) {
        let waker = self.reader.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Drives the outputs of a parallel function: emits what its tasks have emitted.
pub struct Gather<S, Tk> {
    pipes: Arc<PartitionQueues<S>>,
    /// Tasks that nobody else runs.
    tasks: Vec<Option<Tk>>,
    alignment: Alignment,
    barriers: Barriers,
    next: usize,
    /// Items taken from each pipe and not emitted yet.
    taken: Vec<VecDeque<Item<S>>>,
    account: Account,
    /// Of each partition, routes that were emitted and whose account has not come yet: they count
    /// as extra routes until then.
    ahead: Vec<u64>,
    /// Of each partition.
    held: Vec<u64>,
}

impl<S, Tk> Gather<S, Tk> {
    pub(super) fn new(partitions: usize) -> Self {
        let pipes = (0..partitions).map(|_| Mutex::new(PartitionQueue::new())).collect();
        Self {
            pipes: Arc::new(PartitionQueues { pipes, reader: Mutex::new(None) }),
            tasks: Vec::new(),
            alignment: Alignment::union(partitions),
            barriers: Barriers::new(partitions),
            next: 0,
            taken: (0..partitions).map(|_| VecDeque::new()).collect(),
            account: Account::new(),
            ahead: vec![0; partitions],
            held: vec![0; partitions],
        }
    }

    pub(super) fn task<D>(&self, partition: usize, driver: D) -> PartitionTask<S, D> {
        PartitionTask::new(Arc::clone(&self.pipes), partition, driver)
    }

    pub(super) fn with_tasks(mut self, tasks: Vec<Tk>) -> Self {
        self.tasks = tasks.into_iter().map(Some).collect();
        self
    }

    /// Takes what partition `index` has; true if it has come to its end, with all of it taken.
    fn take(&mut self, index: usize) -> Result<bool, StreamError> {
        let mut pipe = self.pipes.pipes[index].lock();
        let end = pipe.end.clone();
        self.held[index] = pipe.held;
        // Not before the last ones are emitted: what waits in the pipe bounds how far its task is
        // ahead.
        if !pipe.items.is_empty() && self.taken[index].is_empty() {
            mem::swap(&mut pipe.items, &mut self.taken[index]);
            let waker = pipe.task.take();
            drop(pipe);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        match end {
            None => Ok(false),
            // Nothing was taken, so nothing is left in the pipe either.
            Some(Ok(())) => Ok(self.taken[index].is_empty()),
            Some(Err(error)) => Err(error),
        }
    }

    fn emit<C: Collect<S>>(&mut self, index: usize, room: &mut usize, out: &mut C) {
        while *room > 0 && !self.barriers.is_blocked(index) {
            let Some(item) = self.taken[index].pop_front() else { return };
            match item {
                Item::Route(route, at) => {
                    // An idle partition that emits has come back.
                    self.alignment.on_active(index).for_each(|mark| out.mark(mark));
                    self.emit_ahead(index, route, at, out);
                }
                Item::Account(account) => {
                    self.enter(index, &account);
                    continue;
                }
                Item::Mark(Mark::Barrier(id)) => {
                    self.barriers.on_barrier(index, id);
                }
                Item::Mark(mark) => {
                    self.alignment.on_mark(index, mark).for_each(|mark| out.mark(mark));
                }
            }
            *room -= 1;
        }
    }
}

impl<S, Tk> Gather<S, Tk> {
    /// Emits a route before the partition's account of it has come.
    fn emit_ahead<C: Collect<S>>(&mut self, index: usize, route: S, at: Timestamp, out: &mut C) {
        self.ahead[index] += 1;
        self.account.extra += 1;
        out.emit(route, at);
    }

    /// Enters what a partition counted for the routes that it has emitted.
    fn enter(&mut self, index: usize, account: &Account) {
        self.account.extra -= mem::take(&mut self.ahead[index]);
        self.account.add(account);
    }
}

impl<S, Tk> Gather<S, Tk> {
    /// Emits all that the partitions have counted, so that the ledger is right after an error too.
    fn drain<C: Collect<S>>(&mut self, out: &mut C) {
        // Twice: what waits in the pipe is taken once what was taken before is gone.
        for index in (0..self.taken.len()).chain(0..self.taken.len()) {
            // The error that is reported is the one that was found.
            drop(self.take(index));
            while let Some(item) = self.taken[index].pop_front() {
                match item {
                    Item::Route(route, at) => self.emit_ahead(index, route, at, out),
                    Item::Account(account) => self.enter(index, &account),
                    Item::Mark(_) => {}
                }
            }
        }
    }
}

impl<S: Streamed, Tk: Future<Output = ()> + Unpin> Driver<S> for Gather<S, Tk> {
    fn drive<C: Collect<S>>(&mut self, cx: &mut Context<'_>, room: usize, out: &mut C) -> Fed {
        let mut room = room.max(1);
        let partitions = self.taken.len();
        // Dropping a waker may drop a task: not under the lock.
        let old = self.pipes.reader.lock().replace(cx.waker().clone());
        drop(old);
        loop {
            for task in &mut self.tasks {
                if let Some(running) = task
                    && Pin::new(running).poll(cx) == Poll::Ready(())
                {
                    *task = None;
                }
            }
            let before = room;
            let mut ended = 0;
            for turn in 0..partitions {
                let index = (self.next + turn) % partitions;
                match self.take(index) {
                    Ok(false) => self.emit(index, &mut room, out),
                    Ok(true) => {
                        self.barriers.on_end(index);
                        ended += 1;
                    }
                    Err(error) => {
                        self.drain(out);
                        self.close();
                        return Fed::Failed(error);
                    }
                }
            }
            self.next = (self.next + 1) % partitions;
            if let Some(id) = self.barriers.pass() {
                out.mark(Mark::Barrier(id));
                continue;
            }
            if ended == partitions {
                return Fed::End;
            }
            if room == 0 {
                return Fed::More;
            }
            if room == before {
                return Fed::Pending;
            }
        }
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn held(&self) -> u64 {
        self.held.iter().sum()
    }

    fn fail_on_stall(&mut self) {
        let ask = |pipe: &Mutex<PartitionQueue<S>>| {
            let mut pipe = pipe.lock();
            pipe.fail_on_stall = true;
            pipe.task.take()
        };
        let tasks: Vec<_> = self.pipes.pipes.iter().filter_map(ask).collect();
        // Not to lose the operator by the panic of a waker.
        contain(|| wake_all(tasks));
    }
}

impl<S, Tk> Gather<S, Tk> {
    /// Tells the tasks that nobody reads any more.
    fn close(&self) {
        let mut shelter = Shelter::default();
        for pipe in &self.pipes.pipes {
            let (waker, items) = {
                let mut pipe = pipe.lock();
                pipe.closed = true;
                (pipe.task.take(), mem::take(&mut pipe.items))
            };
            shelter.run(|| waker.into_iter().for_each(Waker::wake));
            for item in items {
                shelter.run(|| drop(item));
            }
        }
        shelter.leave();
    }
}

impl<S, Tk> Drop for Gather<S, Tk> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<S, Tk> fmt::Debug for Gather<S, Tk> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("partitions", &self.taken.len()).finish_non_exhaustive()
    }
}
