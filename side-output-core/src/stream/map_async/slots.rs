//! The calls that are underway: so many places, each with its futures, which are pinned there and
//! replaced in place. What a call needs is allocated with the place, not with the record.

use crate::sync::Mutex;
use crate::time::Timestamp;
use pin_project_lite::pin_project;
use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Wake, Waker};

pin_project! {
    // The futures of a call.
    pub(super) struct Futures<Fut, Sleep> {
        // The attempt that is underway.
        #[pin]
        pub(super) work: Option<Fut>,
        // What is waited for before the next attempt.
        #[pin]
        pub(super) pause: Option<Sleep>,
        // When the record is given up.
        #[pin]
        pub(super) deadline: Option<Sleep>,
    }
}

/// A place for a call.
pub(super) struct Slot<T, R, Fut, Sleep> {
    pub(super) futures: Pin<Box<Futures<Fut, Sleep>>>,
    /// With which its futures are polled.
    pub(super) waker: Waker,
    /// The record whose answer is not there yet.
    pub(super) record: Option<T>,
    /// The route that waits for its turn.
    pub(super) route: Option<R>,
    pub(super) at: Timestamp,
    pub(super) attempts: u32,
    /// The number of the segment that it belongs to.
    pub(super) segment: u64,
    /// The next one in a list of places.
    pub(super) next: Option<usize>,
}

impl<T, R, Fut, Sleep> Slot<T, R, Fut, Sleep> {
    pub(super) fn new(index: usize, woken: &Arc<Woken>) -> Self {
        let futures = Futures { work: None, pause: None, deadline: None };
        let bell = Bell { index, woken: Arc::clone(woken) };
        Self {
            futures: Box::pin(futures),
            waker: Waker::from(Arc::new(bell)),
            record: None,
            route: None,
            at: Timestamp::MIN,
            attempts: 0,
            segment: 0,
            next: None,
        }
    }

    /// Drops what is left of a call.
    pub(super) fn clear(&mut self) {
        let mut futures = self.futures.as_mut().project();
        futures.work.set(None);
        futures.pause.set(None);
        futures.deadline.set(None);
    }
}

/// The places whose futures called their waker.
pub(super) struct Woken(Mutex<State>);

struct State {
    queue: VecDeque<usize>,
    /// Whether a place is in the queue.
    queued: Vec<bool>,
    /// Whoever waits for any of them.
    parent: Option<Waker>,
}

impl Woken {
    pub(super) fn new() -> Arc<Self> {
        let state = State { queue: VecDeque::new(), queued: Vec::new(), parent: None };
        Arc::new(Self(Mutex::new(state)))
    }

    /// Whom to wake from now on.
    pub(super) fn register(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = self.0.lock().parent.replace(waker);
        // Dropping a waker may drop a task: not under the lock.
        drop(old);
    }

    /// Puts a place in whose futures are to be polled for the first time: whoever would be woken is
    /// at work.
    pub(super) fn start(&self, index: usize) {
        self.0.lock().push(index);
    }

    /// How many places there are to look at.
    pub(super) fn len(&self) -> usize {
        self.0.lock().queue.len()
    }

    pub(super) fn pop(&self) -> Option<usize> {
        let mut state = self.0.lock();
        let index = state.queue.pop_front()?;
        state.queued[index] = false;
        Some(index)
    }
}

impl State {
    fn push(&mut self, index: usize) {
        if self.queued.len() <= index {
            self.queued.resize(index + 1, false);
        }
        if !mem::replace(&mut self.queued[index], true) {
            self.queue.push_back(index);
        }
    }
}

/// The waker of one place.
struct Bell {
    index: usize,
    woken: Arc<Woken>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let parent = {
            let mut state = self.woken.0.lock();
            state.push(self.index);
            state.parent.take()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}
