use super::driver::{Noting, drive_turn};
use super::hub::{Hub, Seat, Staged};
use super::turn::Turn;
use super::{Driver, Fed, LedgerHandle, Source};
use crate::error::StreamError;
use crate::output::{Collect, Lane, OutputAt, Splitter};
use crate::time::{Mark, Timestamp};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

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

impl<S: OutputAt<I>, D: Driver<S>, const I: usize> Port<S, D, I> {
    pub(super) const fn new(hub: Arc<Hub<S, D>>) -> Self {
        Self { hub, detached: false, unread: 0 }
    }

    pub(super) const fn hub(&self) -> &Arc<Hub<S, D>> {
        &self.hub
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

    /// Takes what other readers left in this output's lane, or drives up to [`TURNS`] turns.
    ///
    /// Ready with `true` when there was something, with `false` at the end.
    #[inline]
    fn poll_turns(
        &self,
        cx: &Context<'_>,
        local: &mut Lane<S::Payload>,
        mut drive: impl FnMut(&mut Seat<S, D>, usize, &mut Lane<S::Payload>) -> Turn,
    ) -> Poll<Result<bool, StreamError>> {
        let mut core = self.hub.core.lock();
        let lane = S::lane(&mut core.lanes);
        if !lane.is_empty() {
            mem::swap(local, lane);
            let wakers = self.hub.board.lock().taken(I, local.len());
            drop(core);
            wakers.wake();
            return Poll::Ready(Ok(true));
        }
        match self.hub.take_seat(core, I, cx) {
            Ok((seat, room)) => {
                self.hub.hold_seat(I, cx, seat, room, |seat, room| drive(seat, room, local))
            }
            Err(poll) => poll,
        }
    }
}

impl<S: OutputAt<I>, D: Driver<S>, const I: usize> Source<S::Payload> for Port<S, D, I> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<S::Payload>,
    ) -> Poll<Result<bool, StreamError>> {
        self.poll_turns(cx, into, |seat, room, local| {
            let Seat { driver, staged, waker } = seat;
            let fed = drive_turn(driver, &mut Context::from_waker(waker), room, staged);
            mem::swap(local, S::lane(&mut staged.lanes));
            Turn { fed, own: local.len() as u64, lost: 0, rest: !local.is_empty(), panic: None }
        })
    }

    fn poll_each<F: FnMut(S::Payload)>(
        &mut self,
        cx: &mut Context<'_>,
        local: &mut Lane<S::Payload>,
        f: &mut F,
    ) -> Poll<Result<(), StreamError>> {
        loop {
            let mut rest = Unread { rest: local.values.drain(..), count: &mut self.unread };
            rest.rest.by_ref().for_each(&mut *f);
            drop(rest);
            local.clear();
            let polled = self.poll_turns(cx, local, |seat, room, _| {
                let Seat { driver, staged, waker } = seat;
                let (mut own, mut upset) = (0, Upset::default());
                let fed = catch_unwind(AssertUnwindSafe(|| {
                    let own = Counter { now: 0, total: &mut own };
                    let upset = &mut upset;
                    let mut direct =
                        Direct::<_, D, _, I> { staged, f, own, upset, driver: PhantomData };
                    driver.drive(&mut Context::from_waker(waker), room, &mut direct)
                }));
                let Upset { through, lost, mut panic } = upset;
                let fed = fed.unwrap_or_else(|payload| {
                    if !through {
                        return Fed::Failed(StreamError::from_panic(&*payload));
                    }
                    // It went through the operator, which had nothing left to do.
                    panic = Some(payload);
                    Fed::More
                });
                // The marks of this output: the end of the line for them.
                S::lane(&mut staged.lanes).clear();
                Turn { fed, own, lost, rest: false, panic }
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
        // Who waits for this output also waits for what the input of its operator waits for.
        if let Some(seat) = &mut self.hub.core.lock().seat {
            seat.driver.fail_on_stall();
        }
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        Some(LedgerHandle::new(Arc::clone(&self.hub.board)))
    }

    fn resumes() -> bool {
        true
    }
}

/// Records that a reader takes one by one: if it panics, it has not read the others.
struct Unread<'a, T> {
    rest: vec::Drain<'a, T>,
    count: &'a mut u64,
}

impl<T> Drop for Unread<'_, T> {
    #[inline]
    fn drop(&mut self) {
        *self.count = self.rest.len() as u64;
    }
}

/// Counts in a register during a turn, and writes back also when it panics.
struct Counter<'a> {
    now: u64,
    total: &'a mut u64,
}

impl Drop for Counter<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.total = self.now;
    }
}

/// What a panic of the reader's function left behind.
#[derive(Default)]
struct Upset {
    /// It is on its way through the operator.
    through: bool,
    /// It was caught before it reached the operator.
    panic: Option<Box<dyn Any + Send>>,
    /// Records that came for it afterwards.
    lost: u64,
}

/// Hands the records of output `I` to a reader's function and stages the others.
struct Direct<'a, S: Splitter, D, F, const I: usize> {
    staged: &'a mut Staged<S>,
    f: &'a mut F,
    own: Counter<'a>,
    upset: &'a mut Upset,
    driver: PhantomData<fn() -> D>,
}

impl<S, D, F, const I: usize> Direct<'_, S, D, F, I>
where
    S: OutputAt<I>,
    D: Driver<S>,
    F: FnMut(S::Payload),
{
    /// Calls the reader's function.
    ///
    /// Its panic may go through an operator that has nothing left to do. Any other would be left
    /// half-way through its work, and is not this reader's alone: there each call is caught.
    #[inline(always)]
    fn hand_over(&mut self, payload: S::Payload) {
        self.own.now += 1;
        if D::resumes() && !S::SPEC.tap {
            let noting = Noting::new(&mut self.upset.through);
            (self.f)(payload);
            noting.disarm();
        } else if self.upset.panic.is_some() {
            self.upset.lost += 1;
            drop(payload);
        } else if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.f)(payload))) {
            self.upset.panic = Some(panic);
        }
    }
}

impl<S, D, F, const I: usize> Collect<S> for Direct<'_, S, D, F, I>
where
    S: OutputAt<I>,
    D: Driver<S>,
    F: FnMut(S::Payload),
{
    #[inline(always)]
    fn emit(&mut self, route: S, at: Timestamp) {
        match route.take() {
            Ok(payload) => self.hand_over(payload),
            Err(route) => self.staged.emit(route, at),
        }
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) {
        self.staged.mark(mark);
    }
}

impl<S: OutputAt<I>, D, const I: usize> Drop for Port<S, D, I> {
    fn drop(&mut self) {
        if !self.detached {
            self.hub.close(&[I], self.unread);
        }
    }
}

impl<S: OutputAt<I>, D, const I: usize> fmt::Debug for Port<S, D, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("output", &S::SPEC.name).finish_non_exhaustive()
    }
}
