use super::board::Wait;
use super::hub::{Hub, Seat, Staged};
use super::source::TURNS;
use super::{Driver, Fed, LedgerHandle, Source, stall};
use crate::error::StreamError;
use crate::output::{Collect, Lane, OutputAt, Splitter, Tally};
use crate::time::{Mark, Timestamp};
use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

/// One reader of a hub: what the stream of output `I` reads.
///
/// Whichever reader is polled drives the operator for all of them. Its own records never pass a
/// shared lane: they land in its chunk, or go straight to its `for_each`.
pub struct Port<S: OutputAt<I>, D, const I: usize> {
    hub: Arc<Hub<S, D>>,
    /// The hub was handed on to a wiring; dropping this port closes nothing.
    detached: bool,
    unread: u64,
}

/// What a turn of the operator came to.
struct Turn {
    fed: Fed,
    /// Records that went to this reader.
    own: u64,
    /// This reader's own function panicked: the others go on, and so does its panic.
    panic: Option<Box<dyn Any + Send>>,
}

impl<S: OutputAt<I>, D: Driver<S>, const I: usize> Port<S, D, I> {
    pub(super) const fn new(hub: Arc<Hub<S, D>>) -> Self {
        Self { hub, detached: false, unread: 0 }
    }

    /// Takes back what the reader had in hand and did not use: it goes to the front of the lane.
    pub(super) fn take_back(&self, mut unread: Lane<S::Payload>) {
        if unread.is_empty() {
            return;
        }
        let mut core = self.hub.core.lock();
        let mut state = self.hub.board.lock();
        let lane = S::lane(&mut core.lanes);
        let port = &mut state.ports[I];
        port.delivered -= unread.len() as u64;
        unread.append(lane);
        mem::swap(lane, &mut unread);
        port.load = lane.load();
        port.buffered = lane.len() as u64;
    }

    /// Gives the hub to a wiring: the output stays open without this port.
    pub(super) fn detach(mut self) -> Arc<Hub<S, D>> {
        self.detached = true;
        Arc::clone(&self.hub)
    }

    /// Takes what other readers left in this output's lane, or drives up to `turns` turns.
    ///
    /// Ready with `true` when `local` holds something, with `false` at the end.
    #[inline]
    fn poll_turns(
        &self,
        cx: &Context<'_>,
        local: &mut Lane<S::Payload>,
        turns: usize,
        drive: impl FnMut(&mut Seat<S, D>, usize, &mut Lane<S::Payload>) -> Turn,
    ) -> Poll<Result<bool, StreamError>> {
        match self.take_seat(cx, local) {
            Ok((seat, room)) => self.hold_seat(cx, local, seat, room, turns, drive),
            Err(poll) => poll,
        }
    }

    /// Takes the seat, or says what to do instead.
    fn take_seat(
        &self,
        cx: &Context<'_>,
        local: &mut Lane<S::Payload>,
    ) -> Result<(Box<Seat<S, D>>, usize), Poll<Result<bool, StreamError>>> {
        let board = &self.hub.board;
        let mut core = self.hub.core.lock();
        let lane = S::lane(&mut core.lanes);
        if !lane.is_empty() {
            mem::swap(local, lane);
            let wakers = {
                let mut state = board.lock();
                let port = &mut state.ports[I];
                port.load = 0;
                port.buffered = 0;
                port.delivered += local.len() as u64;
                state.moves += 1;
                state.take_waiting(|wait| wait == Wait::Room(I))
            };
            drop(core);
            wakers.wake();
            return Err(Poll::Ready(Ok(true)));
        }
        if let Some(end) = &core.end {
            return Err(Poll::Ready(end.clone().map(|()| false)));
        }
        let mut state = board.lock();
        let wait = match state.room(I) {
            Ok(room) => match core.seat.take() {
                Some(seat) => {
                    state.begin();
                    return Ok((seat, room));
                }
                // Somebody else drives. The seat comes back under the lock that is held here, so
                // whoever brings it sees that this reader waits.
                None => Wait::Records,
            },
            Err(full) => Wait::Room(full),
        };
        if let (Wait::Room(_), Some(full)) = (wait, state.ports[I].stalled_by.take()) {
            let output = state.ports[full].spec.name;
            return Err(Poll::Ready(Err(StreamError::Stalled { output })));
        }
        let watch = state.wait(I, cx.waker(), wait);
        drop((state, core));
        if watch {
            stall::watch(board);
        }
        Err(Poll::Pending)
    }

    /// Drives until there is a reason to stop, and puts the seat back.
    #[inline]
    fn hold_seat(
        &self,
        cx: &Context<'_>,
        local: &mut Lane<S::Payload>,
        mut seat: Box<Seat<S, D>>,
        mut room: usize,
        mut turns: usize,
        mut drive: impl FnMut(&mut Seat<S, D>, usize, &mut Lane<S::Payload>) -> Turn,
    ) -> Poll<Result<bool, StreamError>> {
        let board = &self.hub.board;
        loop {
            let Turn { fed, own, panic } = drive(&mut seat, room, local);
            turns -= 1;

            let mut core = self.hub.core.lock();
            let mut state = board.lock();
            state.received = seat.driver.received();
            state.failed = seat.driver.failed();
            if panic.is_some() {
                // The record had been routed; what failed is its reader.
                state.failed -= 1;
            }
            let port = &mut state.ports[I];
            port.routed += own;
            port.delivered += own;
            let trash = self.hub.publish(&mut core, &mut state, &mut seat.staged, I);
            let mut wakers = state.take_served();

            let pending = matches!(fed, Fed::Pending);
            let end = match fed {
                Fed::End => Some(Ok(())),
                Fed::Failed(error) => Some(Err(error)),
                Fed::More | Fed::Pending => None,
            };
            if let Some(end) = end {
                core.end = Some(end.clone());
                let all = state.take_waiting(|_| true);
                drop((state, core));
                wakers.wake();
                all.wake();
                // Last, since dropping the operator and its input runs foreign code.
                drop(seat);
                return Poll::Ready(if local.is_empty() { end.map(|()| false) } else { Ok(true) });
            }

            let next = state.room(I);
            let ready = !pending || state.woken();
            let rest = !local.is_empty() || panic.is_some();
            if let Ok(next) = next
                && ready
                && !rest
                && turns > 0
            {
                room = next;
                state.begin();
                drop((state, core));
                wakers.wake();
                if trash {
                    seat.staged.clear();
                }
                continue;
            }

            if trash {
                // Dropping records runs foreign code, so not under the locks; then look again.
                drop((state, core));
                seat.staged.clear();
                core = self.hub.core.lock();
                state = board.lock();
            }
            let ready = !pending || state.woken();
            core.seat = Some(seat);
            let mut watch = false;
            let mut again = false;
            if !rest {
                match state.room(I) {
                    Err(full) => watch = state.wait(I, cx.waker(), Wait::Room(full)),
                    Ok(_) if ready => again = true,
                    Ok(_) => watch = state.wait(I, cx.waker(), Wait::Records),
                }
            }
            if ready && !again {
                // The input can go on, and this reader may be busy elsewhere for long.
                state.add_successor(&mut wakers);
            }
            drop((state, core));
            wakers.wake();
            if watch {
                stall::watch(board);
            }
            if again {
                cx.waker().wake_by_ref();
            }
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
            return if rest { Poll::Ready(Ok(true)) } else { Poll::Pending };
        }
    }
}

impl<S: OutputAt<I>, D: Driver<S>, const I: usize> Source<S::Payload> for Port<S, D, I> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<S::Payload>,
    ) -> Poll<Result<bool, StreamError>> {
        self.poll_turns(cx, into, TURNS, |seat, room, local| {
            let Seat { driver, staged, waker } = seat;
            let fed = catch_unwind(AssertUnwindSafe(|| {
                driver.drive(&mut Context::from_waker(waker), room, staged)
            }))
            .unwrap_or_else(|panic| Fed::Failed(StreamError::from_panic(&*panic)));
            mem::swap(local, S::lane(&mut staged.lanes));
            Turn { fed, own: local.len() as u64, panic: None }
        })
    }

    fn poll_each<F: FnMut(S::Payload)>(
        &mut self,
        cx: &mut Context<'_>,
        local: &mut Lane<S::Payload>,
        f: &mut F,
    ) -> Poll<Result<(), StreamError>> {
        loop {
            local.values.drain(..).for_each(&mut *f);
            local.clear();
            let polled = self.poll_turns(cx, local, TURNS, |seat, room, _| {
                let Seat { driver, staged, waker } = seat;
                let mut direct = Direct::<_, _, I> { staged, f, own: 0, in_reader: false };
                let result = catch_unwind(AssertUnwindSafe(|| {
                    driver.drive(&mut Context::from_waker(waker), room, &mut direct)
                }));
                let Direct { own, in_reader, .. } = direct;
                // The marks of this output: the end of the line for them.
                S::lane(&mut staged.lanes).clear();
                match result {
                    Ok(fed) => Turn { fed, own, panic: None },
                    Err(panic) if in_reader => Turn { fed: Fed::More, own, panic: Some(panic) },
                    Err(panic) => {
                        let fed = Fed::Failed(StreamError::from_panic(&*panic));
                        Turn { fed, own, panic: None }
                    }
                }
            });
            match polled {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn unread(&mut self, records: usize) {
        self.unread = records as u64;
    }

    fn discard(&mut self) {
        self.hub.board.lock().ports[I].discarded_on_purpose = true;
    }

    fn fail_on_stall(&mut self) {
        self.hub.board.lock().ports[I].fail_on_stall = true;
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        Some(LedgerHandle::new(Arc::clone(&self.hub.board)))
    }
}

/// Hands the records of output `I` to a reader's function and stages the others.
struct Direct<'a, S: Splitter, F, const I: usize> {
    staged: &'a mut Staged<S>,
    f: &'a mut F,
    own: u64,
    in_reader: bool,
}

impl<S: OutputAt<I>, F: FnMut(S::Payload), const I: usize> Collect<S> for Direct<'_, S, F, I> {
    #[inline]
    fn emit(&mut self, route: S, at: Timestamp) {
        match route.take() {
            Ok(payload) => {
                self.own += 1;
                self.in_reader = true;
                (self.f)(payload);
                self.in_reader = false;
            }
            Err(route) => self.staged.emit(route, at),
        }
    }

    #[inline]
    fn mark(&mut self, mark: Mark) {
        self.staged.mark(mark);
    }

    #[inline]
    fn tally(&mut self) -> &mut Tally {
        self.staged.tally()
    }
}

impl<S: OutputAt<I>, D, const I: usize> Drop for Port<S, D, I> {
    fn drop(&mut self) {
        if !self.detached {
            self.hub.close::<I>(self.unread);
        }
    }
}

impl<S: OutputAt<I>, D, const I: usize> fmt::Debug for Port<S, D, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("output", &S::SPEC.name).finish_non_exhaustive()
    }
}
