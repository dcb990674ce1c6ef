use super::destination::{Destination, DestinationVisitor, Destinations, InputState, Line};
use crate::error::StreamError;
use crate::output::{Collect, Ledger};
use crate::stream::Streamed;
use crate::stream::board::{State, Wait};
use crate::stream::driver::drive_turn;
use crate::stream::hub::{Seat, span};
use crate::stream::source::{CHUNK, TURNS};
use crate::stream::{Driver, Fed, Hub, LedgerHandle};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Future for the `run` method of a wiring.
///
/// It evaluates to the ledger, or to the first error of the input, the function or a destination.
/// Either way all destinations are flushed and closed before: one that fails keeps none of the
/// others from it. Only a run that is dropped cancels: the input and all destinations are dropped,
/// and what was underway is discarded.
#[must_use = "futures do nothing unless polled"]
pub struct Run<S: Streamed, D, K: Destinations<S>> {
    hub: Option<Arc<Hub<S, D>>>,
    seat: Option<Box<Seat<S, D>>>,
    destinations: K,
    /// How the input ended, or the first error after that.
    end: Option<Result<(), StreamError>>,
}

// The operator and its input are never pinned; sinks and futures are boxed.
impl<S: Streamed, D, K: Destinations<S>> Unpin for Run<S, D, K> {}

impl<S: Streamed, D, K: Destinations<S>> Run<S, D, K> {
    pub(super) fn new(start: Result<Arc<Hub<S, D>>, StreamError>, destinations: K) -> Self {
        let (hub, end) = match start {
            Ok(hub) => (Some(hub), None),
            Err(error) => (None, Some(Err(error))),
        };
        Self { hub, seat: None, destinations, end }
    }

    /// Takes the seat for good, with what readers had left in the lanes before the wiring; waits
    /// where a driver of its own has it.
    fn take_seat(&mut self, cx: &Context<'_>) -> Poll<()>
    where
        D: Driver<S>,
    {
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
        let asked = mem::take(&mut core.fail_on_stall);
        self.destinations.visit(&mut Resume { state: &mut state });
        // Each output waits for all of them now.
        state.ports[S::SLOTS + 1].fail_on_stall = state.ports.iter().any(|port| port.fail_on_stall);
        drop((state, core));
        if let Some(seat) = &mut self.seat
            && asked
        {
            seat.driver.fail_on_stall();
        }
        let mut take = || {
            let taken = AssertUnwindSafe(|| self.destinations.take_lanes(&mut lanes));
            catch_unwind(taken).err()
        };
        // The one that panics has emptied its lane: the others get theirs with the next call.
        let panics = (0..=S::SLOTS).map_while(|_| take());
        if let Some(panic) = panics.reduce(|first, _| first) {
            let error = blame(&mut self.destinations, StreamError::from_panic(&*panic));
            self.fail(error);
        }
        Poll::Ready(())
    }
}

impl<S: Streamed, D, K: Destinations<S>> Run<S, D, K> {
    /// Reads the ledger: before it is polled, while it runs, and afterwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// #[splitter]
    /// enum Numbers {
    ///     #[main]
    ///     Any(u32),
    /// }
    ///
    /// let run = stream::iter([1, 2]).split_with(Numbers::Any).wire().any(discard()).run();
    /// let ledger = run.ledger_handle();
    /// assert_eq!(ledger.read().received, 0);
    /// block_on(run)?;
    /// assert_eq!(ledger.read().received, 2);
    /// # Ok::<(), StreamError>(())
    /// ```
    #[must_use]
    pub fn ledger_handle(&self) -> LedgerHandle {
        let board = self.hub.as_ref().map(|hub| Arc::clone(&hub.board));
        board.map_or_else(LedgerHandle::empty, LedgerHandle::new)
    }
}

impl<S: Streamed, D, K: Destinations<S>> Drop for Run<S, D, K> {
    fn drop(&mut self) {
        if self.hub.is_some() {
            self.destinations.visit(&mut Cancel { error: &StreamError::Cancelled });
            // Not before it has taken up the counters of the readers before it.
            let reports = self.seat.is_some() || self.end.is_some();
            if let Some(hub) = self.hub.as_ref().filter(|_| reports) {
                let waiter = Self::enter(&mut self.destinations, &mut hub.board.lock());
                drop(waiter);
            }
        }
        if let Some(hub) = self.hub.take() {
            hub.finish(Err(StreamError::Cancelled));
        }
    }
}

impl<S: Streamed, D: Driver<S>, K: Destinations<S>> Future for Run<S, D, K> {
    type Output = Result<Ledger, StreamError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let _span = span::<S>().entered();
        // The input has nothing; or an output is full, and it may need what others hold back.
        let (mut idle, mut held_up) = (false, false);
        if this.seat.is_none() && this.end.is_none() && this.take_seat(cx).is_pending() {
            return Poll::Pending;
        }
        for _ in 0..TURNS {
            if this.end.is_some()
                && let Some(seat) = this.seat.take()
                // Nobody reads the input any more: what is behind it may go on without.
                && let Err(error) = seat.let_go()
            {
                this.fail(error);
            }
            if let Some(end) = &this.end {
                let mut finish = Finish { cx, end, waits: None, error: None };
                this.destinations.visit(&mut finish);
                let Finish { waits, error, .. } = finish;
                this.report();
                if let Some(error) = error {
                    // The others go on, and so does the one that failed.
                    this.fail(error);
                } else if let Some(output) = waits {
                    let Some(error) = this.waits_too_long_for(output, cx) else {
                        return Poll::Pending;
                    };
                    this.fail(error);
                    this.give_up();
                } else {
                    return Poll::Ready(this.settle());
                }
                continue;
            }
            let input = if idle || held_up { InputState::Pending } else { InputState::Ready };
            let mut progress = PollAll { cx, input, room: CHUNK, full: 0, error: None };
            this.destinations.visit(&mut progress);
            let PollAll { room, full, error, .. } = progress;
            if let Some(error) = error {
                this.fail(error);
                continue;
            }
            if room == 0 {
                if matches!(input, InputState::Ready) {
                    held_up = true;
                    continue;
                }
                this.report();
                match this.waits_too_long_for(full, cx) {
                    None => return Poll::Pending,
                    Some(error) => this.fail(error),
                }
                continue;
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
                Fed::Failed(error) => {
                    this.end = Some(Err(blame(&mut this.destinations, error)));
                }
            }
            this.report();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: Streamed, D: Driver<S>, K: Destinations<S>> Run<S, D, K> {
    /// Gives up the destinations that are not done, which nothing moves any more.
    fn give_up(&mut self) {
        if let Some(Err(error)) = &self.end {
            self.destinations.visit(&mut Cancel { error });
        }
    }

    /// Ends the run with its error or the ledger; all destinations are done.
    fn settle(&mut self) -> Result<Ledger, StreamError> {
        self.report();
        self.seat = None;
        let hub = self.hub.take().ok_or(StreamError::Cancelled);
        let end = self.end.clone().unwrap_or(Err(StreamError::Cancelled));
        if let Ok(hub) = &hub {
            hub.finish(end.clone());
        }
        end?;
        Ok(hub?.board.lock().ledger())
    }

    /// Waits for the destination of an output; or the error, if the stall watch has given up and
    /// one was asked for. The waker that counts is the one that the destination has.
    fn waits_too_long_for(&self, output: usize, cx: &Context<'_>) -> Option<StreamError> {
        let hub = self.hub.as_ref()?;
        let mut state = hub.board.lock();
        if let Some(stalled_by) = state.ports[S::SLOTS + 1].stalled_by.take() {
            return Some(StreamError::Stalled { output: state.ports[stalled_by].spec.name });
        }
        let waiting = state.wait(S::SLOTS + 1, cx.waker(), Wait::Destination(output));
        drop(state);
        waiting.settle(&hub.board);
        None
    }

    /// Brings the ledger up to date.
    fn report(&mut self) {
        let Some(hub) = &self.hub else { return };
        let mut state = hub.board.lock();
        let waiter = Self::enter(&mut self.destinations, &mut state);
        // None where the input had ended before the wiring.
        if let Some(seat) = &self.seat {
            seat.report(&mut state);
        }
        drop(state);
        drop(waiter);
    }
}

impl<S: Streamed, D, K: Destinations<S>> Run<S, D, K> {
    /// Ends the run, if it has not failed before: all that is left is to finish the destinations.
    fn fail(&mut self, error: StreamError) {
        if !matches!(self.end, Some(Err(_))) {
            self.end = Some(Err(error));
        }
    }

    /// Enters what became of the records; a waker that is not needed any more, to be dropped without
    /// the lock.
    fn enter(destinations: &mut K, state: &mut State) -> Option<Waker> {
        let mut report = Report { state, moved: false };
        destinations.visit(&mut report);
        let Report { state, moved } = report;
        let wiring = &mut state.ports[S::SLOTS + 1];
        if moved {
            wiring.stalled_by = None;
            state.moves += 1;
        }
        wiring.forget_waiter()
    }
}

impl<S: Streamed, D, K: Destinations<S>> fmt::Debug for Run<S, D, K> {
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

impl<S: Streamed, K: Destinations<S>> Collect<S> for Wired<'_, S, K> {
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
        line.mark(self.0);
    }
}

/// Moves on what waits, and finds out how much room there is.
struct PollAll<'a, 'b> {
    cx: &'a mut Context<'b>,
    input: InputState<'static>,
    room: usize,
    /// The output with the least room.
    full: usize,
    error: Option<StreamError>,
}

impl DestinationVisitor for PollAll<'_, '_> {
    #[inline]
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        if !K::WAITS {
            return;
        }
        if let Poll::Ready(Err(error)) = line.poll(self.cx, self.input) {
            self.error.get_or_insert(error);
        }
        let room = line.room();
        if room < self.room {
            self.room = room;
            self.full = line.spec.index;
        }
    }
}

struct Finish<'a, 'b> {
    cx: &'a mut Context<'b>,
    end: &'a Result<(), StreamError>,
    /// An output that is not done.
    waits: Option<usize>,
    error: Option<StreamError>,
}

impl DestinationVisitor for Finish<'_, '_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        match line.poll(self.cx, InputState::Ended(self.end)) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => _ = self.error.get_or_insert(error),
            Poll::Pending => _ = self.waits.get_or_insert(line.spec.index),
        }
    }
}

struct Cancel<'a> {
    error: &'a StreamError,
}

impl DestinationVisitor for Cancel<'_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        line.cancel(self.error);
    }
}

/// The error of a turn, which may have been the panic of a destination.
fn blame<S: Streamed, K: Destinations<S>>(destinations: &mut K, error: StreamError) -> StreamError {
    let mut blame = Blame(error);
    destinations.visit(&mut blame);
    blame.0
}

struct Blame(StreamError);

impl DestinationVisitor for Blame {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        if line.is_unwound() {
            self.0 = self.0.clone().in_destination(line.spec.name);
        }
    }
}

/// Takes up the counters where the readers before the wiring left them.
struct Resume<'a> {
    state: &'a mut State,
}

impl DestinationVisitor for Resume<'_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        line.resume(&mut self.state.ports[line.spec.index]);
    }
}

struct Report<'a> {
    state: &'a mut State,
    moved: bool,
}

impl DestinationVisitor for Report<'_> {
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>) {
        self.moved |= line.report(&mut self.state.ports[line.spec.index]);
    }
}
