use super::destination::{Destination, DestinationVisitor, Destinations, Line};
use crate::error::StreamError;
use crate::output::{Collect, Ledger, Overflow, Splitter};
use crate::stream::board::{State, Wait};
use crate::stream::driver::drive_turn;
use crate::stream::hub::Seat;
use crate::stream::source::{CHUNK, TURNS};
use crate::stream::{Driver, Fed, Hub};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Future for the `run` method of a wiring.
///
/// It evaluates to the ledger, or to the first error of the input, the function or a destination.
/// Dropped before its end, it cancels: the input and all destinations are dropped, and the ledger
/// says what was underway.
#[must_use = "futures do nothing unless polled"]
pub struct Run<S: Splitter, D, K: Destinations<S>> {
    hub: Option<Arc<Hub<S, D>>>,
    seat: Option<Box<Seat<S, D>>>,
    destinations: K,
    end: Option<Result<(), StreamError>>,
}

// The operator and its input are never pinned; sinks and futures are boxed.
impl<S: Splitter, D, K: Destinations<S>> Unpin for Run<S, D, K> {}

impl<S: Splitter, D, K: Destinations<S>> Run<S, D, K> {
    pub(super) fn new(start: Result<Arc<Hub<S, D>>, StreamError>, destinations: K) -> Self {
        let (hub, end) = match start {
            Ok(hub) => (Some(hub), None),
            Err(error) => (None, Some(Err(error))),
        };
        Self { hub, seat: None, destinations, end }
    }

    /// Takes the seat for good, with what readers had left in the lanes before the wiring; waits
    /// where a driver of its own has it.
    fn take_seat(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Some(hub) = &self.hub else { return Poll::Ready(()) };
        let mut core = hub.core.lock();
        let mut state = hub.board.lock();
        self.seat = core.seat.take();
        self.end.clone_from(&core.end);
        if self.seat.is_none() && self.end.is_none() {
            let waiting = state.wait(S::SLOTS + 1, cx.waker(), Wait::Records);
            drop((state, core));
            waiting.settle(&hub.board);
            return Poll::Pending;
        }
        let mut lanes = mem::take(&mut core.lanes);
        self.destinations.visit(&mut Resume { state: &mut state });
        drop((state, core));
        let taken = AssertUnwindSafe(|| self.destinations.take_lanes(&mut lanes));
        if let Err(panic) = catch_unwind(taken) {
            self.end = Some(Err(StreamError::from_panic(&*panic)));
        }
        Poll::Ready(())
    }
}

impl<S: Splitter, D, K: Destinations<S>> Drop for Run<S, D, K> {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.finish(Err(StreamError::Cancelled));
        }
    }
}

impl<S: Splitter, D: Driver<S>, K: Destinations<S>> Future for Run<S, D, K> {
    type Output = Result<Ledger, StreamError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // The input has nothing; or an output is full, and it may need what others hold back.
        let (mut idle, mut held_up) = (false, false);
        if this.seat.is_none() && this.end.is_none() && this.take_seat(cx).is_pending() {
            return Poll::Pending;
        }
        for _ in 0..TURNS {
            if let Some(end) = &this.end {
                let mut finish = Finish { cx, end, pending: false, error: None };
                this.destinations.visit(&mut finish);
                let Finish { pending, error, .. } = finish;
                let error = error.or_else(|| end.clone().err());
                if error.is_none() && pending {
                    this.report();
                    return Poll::Pending;
                }
                return Poll::Ready(this.settle(error));
            }
            let idle_now = idle || held_up;
            let mut progress = Progress { cx, idle: idle_now, room: CHUNK, full: 0, error: None };
            this.destinations.visit(&mut progress);
            let Progress { room, full, error, .. } = progress;
            if let Some(error) = error {
                return Poll::Ready(this.settle(Some(error)));
            }
            if room == 0 {
                if !idle_now {
                    held_up = true;
                    continue;
                }
                this.report();
                this.wait_for(full, cx);
                return Poll::Pending;
            }
            held_up = false;
            if idle {
                this.report();
                return Poll::Pending;
            }
            let Some(seat) = &mut this.seat else {
                this.end = Some(Err(StreamError::Cancelled));
                continue;
            };
            let mut out = Wired {
                destinations: &mut this.destinations,
                is_full: false,
                splitter: PhantomData,
            };
            match drive_turn(&mut seat.driver, cx, room, &mut out) {
                Fed::More => {}
                // Once more through the destinations, with what has come.
                Fed::Pending => idle = true,
                Fed::End => this.end = Some(Ok(())),
                Fed::Failed(error) => this.end = Some(Err(error)),
            }
            this.report();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: Splitter, D: Driver<S>, K: Destinations<S>> Run<S, D, K> {
    /// Ends the run with `error` or the ledger.
    fn settle(&mut self, error: Option<StreamError>) -> Result<Ledger, StreamError> {
        self.report();
        let dropped = self.seat.take().map_or(Ok(()), Seat::let_go);
        let error = error.or_else(|| dropped.err());
        let hub = self.hub.take();
        if let Some(hub) = &hub {
            hub.finish(error.clone().map_or(Ok(()), Err));
        }
        match (error, hub) {
            (Some(error), _) => Err(error),
            (None, Some(hub)) => Ok(hub.board.lock().ledger()),
            (None, None) => Err(StreamError::Cancelled),
        }
    }
}

impl<S: Splitter, D, K: Destinations<S>> Run<S, D, K> {
    /// Lets the stall watch know which output is in the way. The waker that counts is the one that
    /// the full destination has.
    fn wait_for(&self, full: usize, cx: &Context<'_>) {
        if let Some(hub) = &self.hub {
            let waiting = hub.board.lock().wait(S::SLOTS + 1, cx.waker(), Wait::Room(full));
            waiting.settle(&hub.board);
        }
    }

    /// Brings the ledger up to date.
    fn report(&mut self)
    where
        D: Driver<S>,
    {
        let Some(hub) = &self.hub else { return };
        let mut state = hub.board.lock();
        state.moves += 1;
        let waiter = state.ports[S::SLOTS + 1].forget_waiter();
        self.destinations.visit(&mut Report { state: &mut state });
        // None where the input had ended before the wiring.
        if let Some(seat) = &self.seat {
            seat.report(&mut state);
        }
        drop(state);
        drop(waiter);
    }
}

impl<S: Splitter, D, K: Destinations<S>> fmt::Debug for Run<S, D, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("splitter", &S::NAME).finish_non_exhaustive()
    }
}

/// Routes go straight into the destinations.
struct Wired<'a, S, K> {
    destinations: &'a mut K,
    /// A destination must be polled before it accepts more.
    is_full: bool,
    splitter: PhantomData<fn() -> S>,
}

impl<S: Splitter, K: Destinations<S>> Collect<S> for Wired<'_, S, K> {
    #[inline]
    fn emit(&mut self, route: S, at: Timestamp) {
        // A panic may go through the operator: the run ends.
        if self.destinations.push(route, at) {
            self.is_full = true;
        }
    }

    #[inline]
    fn mark(&mut self, mark: Mark) {
        self.destinations.visit(&mut MarkAll(mark));
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.is_full
    }
}

struct MarkAll(Mark);

impl DestinationVisitor for MarkAll {
    #[inline]
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        line.destination.mark(self.0);
    }
}

/// Moves on what waits, and finds out how much room there is.
struct Progress<'a, 'b> {
    cx: &'a mut Context<'b>,
    idle: bool,
    room: usize,
    /// The output with the least room.
    full: usize,
    error: Option<StreamError>,
}

impl DestinationVisitor for Progress<'_, '_> {
    #[inline]
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        if !K::WAITS {
            return;
        }
        line.trim();
        if let Poll::Ready(Err(error)) = line.destination.poll_progress(self.cx, self.idle) {
            self.error.get_or_insert(error);
        }
        if matches!(line.spec.overflow, Overflow::Block) {
            let room = line.spec.capacity.get().saturating_sub(line.destination.load());
            if room < self.room {
                self.room = room;
                self.full = line.spec.index;
            }
        }
    }
}

struct Finish<'a, 'b> {
    cx: &'a mut Context<'b>,
    end: &'a Result<(), StreamError>,
    pending: bool,
    error: Option<StreamError>,
}

impl DestinationVisitor for Finish<'_, '_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        if line.finished {
            return;
        }
        match line.destination.poll_finish(self.cx, self.end) {
            Poll::Ready(result) => {
                line.finished = true;
                if let Err(error) = result {
                    self.error.get_or_insert(error);
                }
            }
            Poll::Pending => {
                line.trim();
                self.pending = true;
            }
        }
    }
}

/// Takes up the counters where the readers before the wiring left them.
struct Resume<'a> {
    state: &'a mut State,
}

impl DestinationVisitor for Resume<'_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        let port = &mut self.state.ports[line.spec.index];
        port.load = 0;
        line.before = port.delivered;
        line.routed = port.routed - port.delivered - port.dropped - port.discarded;
        line.lost = (port.dropped, port.discarded);
    }
}

struct Report<'a> {
    state: &'a mut State,
}

impl DestinationVisitor for Report<'_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        let port = &mut self.state.ports[line.spec.index];
        let sum = line.destination.sum(line.routed);
        port.routed = line.before + line.lost.0 + line.lost.1 + line.routed;
        port.delivered = line.before + sum.delivered;
        port.buffered = sum.buffered;
        port.dropped = line.lost.0 + sum.dropped;
        port.discarded = line.lost.1 + sum.discarded;
    }
}
