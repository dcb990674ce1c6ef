//! Turns of an operator: who drives, for how long, and whom it wakes.
//!
//! The operator with its input is the *seat* (see [`Hub`]). Whoever has it drives: for the length of
//! a poll the reader of an output or a [`HubDriver`], and for good the run of a wiring. Whoever
//! waits is entered on the board, with a waker and what it waits for.
//!
//! | the seat | the input | who waits for what | how it goes on |
//! | --- | --- | --- | --- |
//! | in the hub, no output is full | can go on | nobody for records | whoever is polled takes the seat |
//! | in the hub, output F is full | can go on | everybody for room in F, or in another full output | the reader of F takes its records |
//! | in the hub | has nothing, and has the board's waker | for records, or for room | whoever is polled may take the seat and ask the input again |
//! | out | is being read | for records, or for room | whoever drives puts it back: one of the rows above, or the last one |
//! | out for good, with a wiring | is read by the wiring | each [`HubDriver`], for records | the wiring ends, or is dropped |
//! | gone | has ended or failed | nobody | whoever is polled gets the rest of its lane, then the end |
//!
//! | what happens | who is woken |
//! | --- | --- |
//! | the input calls its waker | all who wait |
//! | a turn is published | those who have something to read |
//! | the seat comes back, and the input can go on | all who wait for records; the one that drove too, unless it has records in hand or has panicked |
//! | the same, and output F is full | nobody: who waits for records waits for room in F from now on |
//! | the reader of F takes its records, or the capacity of F is raised | all who wait for room in F |
//! | an output is closed | all who wait |
//! | nothing has moved for too long | those who wait for room and asked for an error |
//! | the stream ends; foreign code has panicked while the seat was out, which is an error of all | all who wait |
//!
//! A reader that is woken may not come: its task may have stopped to ask for the next record, and
//! nobody is told of that. So a wake-up goes to all whom the change lets go on, never to one of
//! them, and whoever is polled acts on what is in the hub, not on why it was woken.

use super::board::{State, Wait, Waiting};
use super::driver::drive_turn;
use super::hub::{Core, Hub, Seat, span};
use super::source::{AWAITED, CHUNK, TURNS, WAKING};
use super::{Driver, Fed};
use crate::error::StreamError;
use crate::stream::Streamed;
use crate::sync::{MutexGuard, contain};
use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a turn of the operator came to.
pub(super) struct TurnEnd {
    pub(super) fed: Fed,
    /// Records that went to the reader who drives.
    pub(super) own: u64,
    /// Those of them that nobody took, because the reader had panicked.
    pub(super) lost: u64,
    /// The reader has something in hand and wants to go on with that.
    pub(super) rest: bool,
    /// The reader's own function panicked: the others go on, and so does its panic.
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

impl TurnEnd {
    /// Whether there is no reason to stop.
    fn goes_on(&self) -> bool {
        matches!(self.fed, Fed::More) && !self.rest && self.panic.is_none()
    }
}

/// The seat, and for how many records there is room in every lane.
type SeatAndRoom<S, D> = (Box<Seat<S, D>>, usize);

impl<S: Streamed, D: Driver<S>> Hub<S, D> {
    /// Takes the seat for the reader of output `own`, or says what to do instead.
    pub(super) fn take_seat(
        &self,
        mut core: MutexGuard<'_, Core<S, D>>,
        own: usize,
        cx: &Context<'_>,
    ) -> Result<SeatAndRoom<S, D>, Poll<Result<bool, StreamError>>> {
        if let Some(end) = &core.end {
            return Err(Poll::Ready(end.clone().map(|()| false)));
        }
        let mut state = self.board.lock();
        if core.seat.is_some() && state.gives_way(own) {
            drop((state, core));
            cx.waker().wake_by_ref();
            return Err(Poll::Pending);
        }
        let wait = match state.room(own) {
            Ok(room) => match core.seat.take() {
                Some(mut seat) => {
                    state.begin();
                    // Whatever was in the way is so no more.
                    state.ports[own].stalled_by = None;
                    let asked = mem::take(&mut core.fail_on_stall);
                    drop((state, core));
                    if asked {
                        seat.driver.fail_on_stall();
                    }
                    return Ok((seat, room));
                }
                // Somebody else drives. The seat comes back under the lock that is held here, so
                // whoever brings it sees that this reader waits.
                None => Wait::Records,
            },
            Err(full) => Wait::Room(full),
        };
        if let (Wait::Room(_), Some(full)) = (wait, state.ports[own].stalled_by.take()) {
            let output = state.ports[full].spec.name;
            return Err(Poll::Ready(Err(StreamError::Stalled { output })));
        }
        let waiting = state.wait(own, cx.waker(), wait);
        drop((state, core));
        waiting.settle(&self.board);
        Err(Poll::Pending)
    }

    /// Drives for the reader of output `own` until there is a reason to stop, and puts the seat
    /// back.
    ///
    /// Between the turns foreign code runs too: wakers, destructors of records, the log. Where it
    /// panics, the seat would be lost, and whoever waits for it would wait for ever: so that is an
    /// error at every reader.
    #[inline]
    pub(super) fn hold_seat(
        &self,
        own: usize,
        cx: &Context<'_>,
        seat: Box<Seat<S, D>>,
        room: usize,
        drive: impl FnMut(&mut Seat<S, D>, usize) -> TurnEnd,
    ) -> Poll<Result<bool, StreamError>> {
        let (mut held, mut in_hand) = (Some(seat), false);
        let turns = || {
            let _span = span::<S>().entered();
            self.turns(own, cx, &mut held, room, &mut in_hand, drive)
        };
        let panic = match catch_unwind(AssertUnwindSafe(turns)) {
            Ok(poll) => return poll,
            Err(panic) => panic,
        };
        // It is back, or not needed any more: the panic is this reader's alone.
        let Some(seat) = held else { resume_unwind(panic) };
        let end = self.end(seat, Err(StreamError::from_panic(&*panic)));
        Poll::Ready(if in_hand { Ok(true) } else { end.map(|()| false) })
    }

    /// Ends the stream for all readers.
    ///
    /// The operator and its input go first: it is an error of all readers too if that panics.
    fn end(&self, seat: Box<Seat<S, D>>, end: Result<(), StreamError>) -> Result<(), StreamError> {
        let dropped = seat.let_go();
        let (end, all) = {
            let mut core = self.core.lock();
            let end = core.end.get_or_insert(end.and(dropped)).clone();
            let mut state = self.board.lock();
            state.error = end.clone().err();
            (end, state.take_waiting(|_| true))
        };
        // Not to keep the end from this reader.
        contain(|| all.wake());
        end
    }

    /// Takes the seat out of `held` when it is back, or the stream has ended.
    #[inline]
    fn turns(
        &self,
        own: usize,
        cx: &Context<'_>,
        held: &mut Option<Box<Seat<S, D>>>,
        mut room: usize,
        in_hand: &mut bool,
        mut drive: impl FnMut(&mut Seat<S, D>, usize) -> TurnEnd,
    ) -> Poll<Result<bool, StreamError>> {
        let mut turns = TURNS;
        // Of the turns so far: what is not entered yet, and the most in one lane.
        let (mut handed, mut staged) = (0, 0);
        loop {
            let seat = held.as_mut().expect("taken out below, and not gone on with");
            let mut turn = drive(seat, CHUNK.min(room - staged));
            *in_hand = turn.rest;
            turns -= 1;
            handed += turn.own;
            let due = turns == TURNS - 1 || turns.is_multiple_of(WAKING);
            if turn.goes_on() && !due {
                // Nobody needs the locks as long as little is staged.
                staged = seat.staged.fullest();
                if staged < AWAITED && room.saturating_sub(staged) >= AWAITED {
                    continue;
                }
            }
            turn.own = mem::take(&mut handed);
            staged = 0;

            let mut core = self.core.lock();
            let mut state = self.board.lock();
            let trash = self.settle(&mut core, &mut state, seat, own, &turn);

            let TurnEnd { fed, rest, panic, .. } = turn;
            let pending = matches!(fed, Fed::Pending);
            let end = match fed {
                Fed::End => Some(Ok(())),
                Fed::Failed(error) => Some(Err(error)),
                // All readers went away during the turn of a driver that is none.
                Fed::More | Fed::Pending => core.end.clone(),
            };
            if let Some(end) = end {
                drop((state, core));
                let seat = held.take().expect("it was driven");
                let end = self.end(seat, end);
                if let Some(panic) = panic {
                    resume_unwind(panic);
                }
                return Poll::Ready(if rest { Ok(true) } else { end.map(|()| false) });
            }

            let stop = rest || panic.is_some() || turns == 0 || (pending && !state.woken());
            if !stop && let Ok(next) = state.room(own) {
                room = next;
                state.begin();
                let wakers = state.take_served(if due { 1 } else { AWAITED });
                drop((state, core));
                wakers.wake();
                if trash {
                    seat.staged.tidy();
                }
                continue;
            }

            if trash {
                // Dropping records runs foreign code, so not under the locks; then look again.
                drop((state, core));
                seat.staged.tidy();
                core = self.core.lock();
                state = self.board.lock();
            }
            // Nothing may change between here and the release of the locks: the seat is back, and
            // whoever waits is known to whoever changes something later.
            core.seat = held.take();
            let mut wakers = state.take_served(1);
            let ready = !pending || state.woken();
            let (mut waiting, mut again) = (Waiting::default(), false);
            let room = state.room(own);
            if !rest && panic.is_none() {
                match room {
                    Err(full) => waiting = state.wait(own, cx.waker(), Wait::Room(full)),
                    Ok(_) if ready => {
                        state.prefer(own);
                        again = true;
                    }
                    Ok(_) => waiting = state.wait(own, cx.waker(), Wait::Records),
                }
            }
            if ready {
                // This reader may be busy elsewhere for long, also one that is woken to come again.
                match room {
                    Ok(_) => state.hand_on(&mut wakers),
                    Err(full) => state.hold_up(full, &mut waiting),
                }
            }
            drop((state, core));
            wakers.wake();
            waiting.settle(&self.board);
            if again {
                cx.waker().wake_by_ref();
            }
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
            return if rest { Poll::Ready(Ok(true)) } else { Poll::Pending };
        }
    }

    /// Enters a turn into the ledger and publishes what it staged.
    #[inline]
    fn settle(
        &self,
        core: &mut Core<S, D>,
        state: &mut State,
        seat: &mut Seat<S, D>,
        own: usize,
        turn: &TurnEnd,
    ) -> bool {
        let port = &mut state.ports[own];
        port.routed += turn.own;
        port.delivered += turn.own - turn.lost;
        port.discarded += turn.lost;
        let trash = self.publish(core, state, &mut seat.staged, own);
        seat.report(state);
        trash
    }
}

/// Drives an operator without reading any of its outputs.
///
/// Made by [`DataStream::driver`](crate::stream::DataStream::driver). Readers drive as well, so a
/// driver is needed only where the input must go on while all of them are busy, until buffers are
/// full.
#[must_use = "futures do nothing unless polled"]
pub struct HubDriver<S: Streamed, D> {
    hub: Arc<Hub<S, D>>,
    /// Where it waits.
    place: usize,
}

impl<S: Streamed, D> HubDriver<S, D> {
    pub(super) fn new(hub: Arc<Hub<S, D>>) -> Self {
        let place = hub.board.lock().take_place();
        Self { hub, place }
    }
}

impl<S: Streamed, D> Drop for HubDriver<S, D> {
    fn drop(&mut self) {
        // Whoever waits was woken when this one was.
        let waiter = self.hub.board.lock().leave_place(self.place);
        drop(waiter);
    }
}

impl<S: Streamed, D: Driver<S>> Future for HubDriver<S, D> {
    type Output = Result<(), StreamError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { hub, place } = &*self;
        let polled = match hub.take_seat(hub.core.lock(), *place, cx) {
            Ok((seat, room)) => hub.hold_seat(*place, cx, seat, room, |seat, room| {
                let Seat { driver, staged, waker } = seat;
                let fed = drive_turn(driver, &mut Context::from_waker(waker), room, staged);
                TurnEnd { fed, own: 0, lost: 0, rest: false, panic: None }
            }),
            Err(poll) => poll,
        };
        polled.map(|ended| ended.map(drop))
    }
}

impl<S: Streamed, D> fmt::Debug for HubDriver<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubDriver").field("splitter", &S::NAME).finish_non_exhaustive()
    }
}
