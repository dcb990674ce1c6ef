use super::board::{Board, State};
use super::{Driver, Port, Typed};
use crate::error::StreamError;
use crate::output::{
    Collect, Lane, LanePairVisitor, LaneVisitor, Lanes as _, OutputAt, Overflow, Splitter, Tally,
};
use crate::stream::DataStream;
use crate::sync::Mutex;
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// What the readers of one operator share.
///
/// The operator with its input is a *seat*: whichever reader is polled takes it out for the length
/// of that poll, drives a turn, and puts it back. No lock is held meanwhile, so neither the input
/// nor the user's function nor a waker ever runs under one. Lock order: `core`, then `board`.
pub struct Hub<S: Splitter, D> {
    pub(super) core: Mutex<Core<S, D>>,
    pub(super) board: Arc<Board>,
}

pub(super) struct Core<S: Splitter, D> {
    /// Who drives has it; `None` also after the end.
    pub(super) seat: Option<Box<Seat<S, D>>>,
    pub(super) lanes: S::Lanes,
    /// How the stream ended.
    pub(super) end: Option<Result<(), StreamError>>,
}

/// The operator with its input, and where it puts routes until the turn is over.
pub(super) struct Seat<S: Splitter, D> {
    pub(super) driver: D,
    pub(super) staged: Staged<S>,
    /// The board's waker: the input is polled with it, not with the waker of the reader that
    /// happens to drive, so that a reader busy elsewhere never keeps the others from being woken.
    pub(super) waker: Waker,
    /// Records that the operator was at when a reader panicked.
    pub(super) reader_panics: u64,
}

impl<S: Splitter, D: Driver<S>> Seat<S, D> {
    /// Enters what the operator counted, once what it emitted is entered. `reader_panicked` says
    /// that the turn ended by a panic of whoever took a record from it.
    pub(super) fn report(&mut self, state: &mut State, reader_panicked: bool) {
        state.received = self.driver.received();
        state.held = self.driver.held();
        if reader_panicked {
            // The record that the operator was at, if it was at one, had been routed: it did not
            // fail. Nor had it the time to count what it emitted for it.
            self.reader_panics = self.driver.failed() - state.failed;
            state.count_uncounted();
        }
        state.failed = self.driver.failed() - self.reader_panics;
    }
}

/// Lanes and tally of a turn.
pub(super) struct Staged<S: Splitter> {
    pub(super) lanes: S::Lanes,
    pub(super) tally: Tally,
}

impl<S: Splitter> Staged<S> {
    /// Drops what [`Hub::publish`] left behind.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.lanes.visit(&mut ClearAll);
    }
}

struct ClearAll;

impl LaneVisitor for ClearAll {
    #[inline]
    fn lane<T>(&mut self, _index: usize, lane: &mut Lane<T>) {
        lane.clear();
    }
}

impl<S: Splitter> Collect<S> for Staged<S> {
    #[inline(always)]
    fn emit(&mut self, route: S, at: Timestamp) {
        self.lanes.push(route, at);
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) {
        self.lanes.visit(&mut MarkAll(mark));
    }

    #[inline]
    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

struct MarkAll(Mark);

impl LaneVisitor for MarkAll {
    #[inline]
    fn lane<T>(&mut self, _index: usize, lane: &mut Lane<T>) {
        lane.mark(self.0);
    }
}

impl<S: Splitter, D: Driver<S>> Hub<S, D> {
    /// The streams of all outputs of an operator.
    pub fn open(driver: D) -> S::Streams<Typed<D>> {
        S::open(&Self::new(driver))
    }

    pub(super) fn new(driver: D) -> Arc<Self> {
        let board = Board::new(S::NAME, S::SLOTS, S::OUTPUTS);
        let staged = Staged { lanes: S::Lanes::default(), tally: Tally::default() };
        let waker = Waker::from(Arc::clone(&board));
        let seat = Some(Box::new(Seat { driver, staged, waker, reader_panics: 0 }));
        let core = Core { seat, lanes: S::Lanes::default(), end: None };
        Arc::new(Self { core: Mutex::new(core), board })
    }

    /// The stream of output `I`; called once for each output.
    pub fn stream<const I: usize>(self: &Arc<Self>) -> DataStream<S::Payload, Port<S, D, I>>
    where
        S: OutputAt<I>,
    {
        DataStream::new(Port::new(Arc::clone(self)), S::SPEC.name)
    }
}

impl<S: Splitter, D> Hub<S, D> {
    /// Moves what a turn staged into the shared lanes. The lane of output `own` is left alone.
    ///
    /// True if something that nobody will read stays behind in `staged`: the caller drops it after the locks, since
    /// dropping a record runs foreign code.
    #[expect(clippy::unused_self, reason = "the hub's lanes, seen through its guard")]
    pub(super) fn publish(
        &self,
        core: &mut Core<S, D>,
        state: &mut State,
        staged: &mut Staged<S>,
        own: usize,
    ) -> bool {
        state.tally.add(std::mem::take(&mut staged.tally));
        state.moves += 1;
        let mut publish = Publish { state, own, trash: false };
        core.lanes.visit_pairs(&mut staged.lanes, &mut publish);
        publish.trash
    }
}

struct Publish<'a> {
    state: &'a mut State,
    own: usize,
    trash: bool,
}

impl LanePairVisitor for Publish<'_> {
    #[inline]
    fn pair<T>(&mut self, index: usize, shared: &mut Lane<T>, staged: &mut Lane<T>) {
        if index == self.own || staged.is_empty() {
            return;
        }
        let port = &mut self.state.ports[index];
        let records = staged.len() as u64;
        port.routed += records;
        if !port.open {
            if port.discarded == 0 && records != 0 && !port.discarded_on_purpose {
                warn_of_dropped_reader(port.spec.name);
            }
            port.discarded += records;
            self.trash = true;
            return;
        }
        shared.append(staged);
        let capacity = port.spec.capacity.get();
        if shared.load() > capacity {
            self.trash = true;
            let excess = shared.len().saturating_sub(capacity);
            match port.spec.overflow {
                Overflow::Block | Overflow::Unbounded => {}
                Overflow::DropOldest => {
                    shared.drop_oldest(excess, &mut staged.values);
                    port.dropped += excess as u64;
                }
                Overflow::DropNewest => {
                    shared.truncate(shared.len() - excess, &mut staged.values);
                    port.dropped += excess as u64;
                }
            }
        }
        port.load = shared.load();
        port.buffered = shared.len() as u64;
    }
}

#[cold]
fn warn_of_dropped_reader(output: &'static str) {
    tracing::warn!(output, "records are routed to an output whose stream was dropped");
}

impl<S: Splitter, D> Hub<S, D> {
    /// Closes output `index` with its lane: nobody reads it any more.
    pub(super) fn close<const I: usize>(&self, unread: u64)
    where
        S: OutputAt<I>,
    {
        let (lane, waker, wakers, seat) = {
            let mut core = self.core.lock();
            let lane = std::mem::take(S::lane(&mut core.lanes));
            let mut state = self.board.lock();
            let port = &mut state.ports[I];
            port.open = false;
            port.load = 0;
            port.buffered = 0;
            // What the reader had been handed and did not use was not delivered after all.
            port.delivered -= unread;
            port.discarded += unread + lane.len() as u64;
            let waker = port.forget_waiter();
            state.moves += 1;
            let all_closed = state.ports.iter().all(|port| !port.open);
            // The last reader is gone: let go of the input too.
            let seat = if all_closed { core.seat.take() } else { None };
            if all_closed && core.end.is_none() {
                core.end = Some(Err(StreamError::Cancelled));
            }
            // Those who wait for records may have waited for this reader to go on driving.
            (lane, waker, state.take_waiting(|_| true), seat)
        };
        drop((lane, waker, seat));
        wakers.wake();
    }
}

impl<S: Splitter, D> fmt::Debug for Hub<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("splitter", &S::NAME).finish_non_exhaustive()
    }
}
