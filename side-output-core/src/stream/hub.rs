use super::board::{Board, State, Wait};
use super::{Behind, Driver, JobLink, Port, Typed};
use crate::error::StreamError;
use crate::output::{Collect, OutputSpec, Overflow};
use crate::stream::DataStream;
use crate::stream::{Lane, LanePairVisitor, LaneVisitor, Lanes as _, StreamAt, Streamed};
use crate::sync::{Mutex, Shelter};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;

/// What the readers of one operator share.
///
/// The operator with its input is a *seat*: whichever reader is polled takes it out for the length
/// of that poll, drives a turn, and puts it back. No lock is held meanwhile, so neither the input
/// nor the user's function nor a waker ever runs under one. Lock order: `core`, then `board`.
pub struct Hub<S: Streamed, D> {
    pub(super) core: Mutex<Core<S, D>>,
    pub(super) board: Arc<Board>,
    /// The job that it is part of, with its place there.
    pub(super) job: Option<JobLink>,
}

pub(super) struct Core<S: Streamed, D> {
    /// Who drives has it; `None` also after the end.
    pub(super) seat: Option<Box<Seat<S, D>>>,
    pub(super) lanes: S::Lanes,
    /// Whoever drives next is to ask the input for an error where that stalls: it may be underway
    /// when a reader wants it.
    pub(super) fail_on_stall: bool,
    /// How the stream ended.
    pub(super) end: Option<Result<(), StreamError>>,
}

/// The operator with its input, and where it puts routes until the turn is over.
pub(super) struct Seat<S: Streamed, D> {
    pub(super) driver: D,
    pub(super) staged: Staged<S>,
    /// The board's waker: the input is polled with it, not with the waker of the reader that
    /// happens to drive, so that a reader busy elsewhere never keeps the others from being woken.
    pub(super) waker: Waker,
}

impl<S: Streamed, D: Driver<S>> Seat<S, D> {
    /// Drops the operator and its input, and what was staged. An error if that panicked.
    pub(super) fn let_go(mut self: Box<Self>) -> Result<(), StreamError> {
        let mut shelter = Shelter::default();
        shelter.run(|| self.staged.tidy());
        shelter.run(|| drop(self));
        shelter.panic().map_or(Ok(()), |panic| Err(StreamError::from_panic(&*panic)))
    }

    /// Enters what the operator counted.
    pub(super) fn report(&self, state: &mut State) {
        state.account = *self.driver.account();
        state.held = self.driver.held();
        state.input = self.driver.input();
    }
}

/// What a turn emitted and nobody was handed yet.
pub(super) struct Staged<S: Streamed> {
    pub(super) lanes: S::Lanes,
    /// An output whose reader went away, and to which a record came for the first time.
    pub(super) gone: Option<&'static str>,
}

impl<S: Streamed> Staged<S> {
    /// What the fullest lane holds.
    #[inline]
    pub(super) fn fullest(&mut self) -> usize {
        let mut fullest = Fullest(0);
        self.lanes.visit(&mut fullest);
        fullest.0
    }

    /// Drops what [`Hub::publish`] left behind, and says what it found; without the locks, since
    /// both run foreign code.
    #[inline]
    pub(super) fn tidy(&mut self) {
        let mut shelter = clear_all::<S>(&mut self.lanes);
        if let Some(output) = self.gone.take() {
            shelter.run(|| warn_of_dropped_reader(output));
        }
        shelter.leave();
    }
}

struct Fullest(usize);

impl LaneVisitor for Fullest {
    #[inline]
    fn lane<T>(&mut self, _index: usize, lane: &mut Lane<T>) {
        self.0 = self.0.max(lane.load());
    }
}

/// Drops what is in the lanes, also where a destructor panics.
fn clear_all<S: Streamed>(lanes: &mut S::Lanes) -> Shelter {
    let mut clear = ClearAll(Shelter::default());
    lanes.visit(&mut clear);
    clear.0
}

struct ClearAll(Shelter);

impl LaneVisitor for ClearAll {
    #[inline]
    fn lane<T>(&mut self, _index: usize, lane: &mut Lane<T>) {
        self.0.run(|| lane.clear());
    }
}

impl<S: Streamed> Collect<S> for Staged<S> {
    #[inline(always)]
    fn emit(&mut self, route: S, at: Timestamp) {
        self.lanes.push(route, at);
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) {
        self.lanes.visit(&mut MarkAll(mark));
    }
}

/// What is logged while the operator is driven, by the source, a function or a destination, is logged
/// in this span.
pub(super) fn span<S: Streamed>() -> tracing::Span {
    tracing::debug_span!("operator", name = S::NAME, outputs = ?Names(S::OUTPUTS))
}

struct Names(&'static [OutputSpec]);

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|spec| spec.name)).finish()
    }
}

struct MarkAll(Mark);

impl LaneVisitor for MarkAll {
    #[inline]
    fn lane<T>(&mut self, _index: usize, lane: &mut Lane<T>) {
        lane.mark(self.0);
    }
}

impl<S: Streamed, D: Driver<S>> Hub<S, D> {
    /// The streams of all outputs of an operator.
    #[track_caller]
    pub fn open(driver: D) -> S::Streams<Typed<D>> {
        Self::open_at(driver, Location::caller())
    }

    /// The same; `at` is where the program makes the operator.
    pub(super) fn open_at(driver: D, at: &'static Location<'static>) -> S::Streams<Typed<D>> {
        let hub = Self::new(driver);
        #[cfg(feature = "job")]
        if let Some(link) = &hub.job {
            link.add_board(at, Arc::clone(&hub.board));
        }
        _ = at;
        S::open(&hub)
    }

    pub(super) fn new(driver: D) -> Arc<Self> {
        let job = driver.job().map(|link| link.at(S::NAME));
        let mut behind = Behind::default();
        driver.behind(&mut behind);
        let board = Board::new(S::NAME, S::SLOTS, S::OUTPUTS, behind);
        let staged = Staged { lanes: S::Lanes::default(), gone: None };
        let waker = Waker::from(Arc::clone(&board));
        let seat = Some(Box::new(Seat { driver, staged, waker }));
        let core = Core { seat, lanes: S::Lanes::default(), fail_on_stall: false, end: None };
        Arc::new(Self { core: Mutex::new(core), board, job })
    }

    /// The stream of output `I`; called once for each output.
    pub fn stream<const I: usize>(self: &Arc<Self>) -> DataStream<S::Payload, Port<S, D, I>>
    where
        S: StreamAt<I>,
    {
        DataStream::new(Port::new(Arc::clone(self)), S::SPEC.name)
    }
}

impl<S: Streamed, D> Hub<S, D> {
    /// The declaration of output `I`, as it was changed at run time.
    pub(super) fn spec<const I: usize>(&self) -> OutputSpec {
        self.board.lock().ports[I].spec
    }

    /// Changes it, for what is published from now on. There may be room now for those who wait.
    pub(super) fn declare<const I: usize>(&self, spec: OutputSpec) {
        let wakers = {
            let mut state = self.board.lock();
            state.ports[I].spec = spec;
            state.take_waiting(|wait| wait == Wait::Room(I))
        };
        wakers.wake();
    }

    /// Moves what a turn staged into the shared lanes. The lane of output `own` is left alone.
    ///
    /// True if something that nobody will read stays behind in `staged`: the caller drops it after
    /// the locks, since dropping a record runs foreign code.
    #[expect(clippy::unused_self, reason = "the hub's lanes, seen through its guard")]
    pub(super) fn publish(
        &self,
        core: &mut Core<S, D>,
        state: &mut State,
        staged: &mut Staged<S>,
        own: usize,
    ) -> bool {
        state.moves += 1;
        let mut publish = Publish { state, own, trash: false, gone: None };
        core.lanes.visit_pairs(&mut staged.lanes, &mut publish);
        staged.gone = staged.gone.or(publish.gone);
        publish.trash
    }
}

struct Publish<'a> {
    state: &'a mut State,
    own: usize,
    trash: bool,
    gone: Option<&'static str>,
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
                self.gone = Some(port.spec.name);
            }
            port.discarded += records;
            self.trash = true;
            return;
        }
        shared.append(staged);
        let capacity = port.spec.capacity.get();
        if shared.len() > capacity {
            self.trash = true;
            let excess = shared.len() - capacity;
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

impl<S: Streamed, D> Hub<S, D> {
    /// Closes the outputs `which` with their lanes: nobody reads them any more. `unread` is what
    /// the one reader had been handed and did not use.
    pub(super) fn close(&self, which: &[usize], unread: u64) {
        let mut lanes = S::Lanes::default();
        let (wakers, seat) = {
            let mut core = self.core.lock();
            let mut state = self.board.lock();
            core.lanes.visit_pairs(&mut lanes, &mut Close { state: &mut state, which });
            if let [only] = which {
                // It was not delivered after all.
                state.ports[*only].delivered -= unread;
                state.ports[*only].discarded += unread;
            }
            state.moves += 1;
            state.forget(which);
            let all_closed = state.ports.iter().all(|port| !port.open);
            // The last reader is gone: let go of the input too.
            let seat = if all_closed { core.seat.take() } else { None };
            if all_closed && core.end.is_none() {
                core.end = Some(Err(StreamError::Cancelled));
                state.error = Some(StreamError::Cancelled);
            }
            // Those who wait for records may have waited for this reader to go on driving.
            (state.take_waiting(|_| true), seat)
        };
        let mut shelter = Shelter::default();
        shelter.run(|| wakers.wake());
        shelter.run(|| clear_all::<S>(&mut lanes).leave());
        shelter.run(|| drop(seat));
        shelter.leave();
    }

    /// Ends the stream for all: who drove it for good is gone.
    pub(super) fn finish(&self, end: Result<(), StreamError>) {
        {
            let mut core = self.core.lock();
            self.board.lock().error = core.end.get_or_insert(end).clone().err();
        }
        let all: Vec<_> = S::OUTPUTS.iter().map(|spec| spec.index).collect();
        self.close(&all, 0);
    }
}

struct Close<'a> {
    state: &'a mut State,
    which: &'a [usize],
}

impl LanePairVisitor for Close<'_> {
    fn pair<T>(&mut self, index: usize, shared: &mut Lane<T>, gone: &mut Lane<T>) {
        if self.which.contains(&index) {
            let port = &mut self.state.ports[index];
            port.open = false;
            port.load = 0;
            // What waits here, or in a destination that goes with its wiring.
            port.discarded += std::mem::take(&mut port.buffered);
            port.accepted = 0;
            std::mem::swap(shared, gone);
        }
    }
}

impl<S: Streamed, D> fmt::Debug for Hub<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("splitter", &S::NAME).finish_non_exhaustive()
    }
}
