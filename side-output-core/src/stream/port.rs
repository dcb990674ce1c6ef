use super::boxed::Fill;
use super::chunk::Chunk;
use super::driver::{Noting, drive_turn};
use super::hub::{Hub, Seat, Staged};
use super::turn::TurnEnd;
use super::{Driver, Fed, Intake, JobLink, LedgerHandle, Source};
use crate::error::StreamError;
use crate::output::Collect;
use crate::stream::{Lane, StreamAt, Streamed};
use crate::time::{Mark, Timestamp};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

/// One reader of a hub: what the stream of output `I` reads.
///
/// Whichever reader is polled drives the operator for all of them. Its own records never pass a
/// shared lane: they land in its chunk, or go straight to an intake that never stops.
pub struct Port<S: StreamAt<I>, D, const I: usize> {
    output: HubOutput<S, D, I>,
    chunk: Chunk<S::Payload>,
}

/// One output of a hub, closed when this is dropped. It may go to another thread wherever the hub
/// may, whatever the type of its records, since it holds none.
pub(super) struct HubOutput<S: StreamAt<I>, D, const I: usize> {
    hub: Arc<Hub<S, D>>,
    /// The hub was handed on to a wiring: nothing is to be closed.
    detached: bool,
    /// What the reader had been handed and did not use.
    unread: usize,
}

impl<S: StreamAt<I>, D: Driver<S>, const I: usize> Port<S, D, I> {
    pub(super) fn new(hub: Arc<Hub<S, D>>) -> Self {
        let output = HubOutput { hub, detached: false, unread: 0 };
        Self { output, chunk: Chunk::new() }
    }

    pub(super) const fn hub(&self) -> &Arc<Hub<S, D>> {
        &self.output.hub
    }

    /// Without the chunk, whose records go back to the front of the lane.
    pub(super) fn into_output(mut self) -> HubOutput<S, D, I> {
        let mut unread = Lane::new();
        self.chunk.unload(&mut unread);
        self.output.take_back(unread);
        self.output.detached = true;
        HubOutput { hub: Arc::clone(&self.output.hub), detached: false, unread: 0 }
    }

    /// Drives and hands the records of this output to `intake` as they are routed.
    #[inline]
    fn drive_into<K: Intake<S::Payload>>(
        output: &HubOutput<S, D, I>,
        cx: &Context<'_>,
        chunk: &mut Chunk<S::Payload>,
        intake: &mut K,
    ) -> Fed {
        let fed = output.poll_turns(cx, chunk.recycle(), |seat, room, _| {
            let Seat { driver, staged, waker } = seat;
            let (mut own, mut upset) = (0, Upset::default());
            let fed = catch_unwind(AssertUnwindSafe(|| {
                let own = Counter { now: 0, total: &mut own };
                let upset = &mut upset;
                let mut direct =
                    Direct::<_, D, _, I> { staged, intake, own, upset, driver: PhantomData };
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
            // The intake had the marks of this output already.
            S::lane(&mut staged.lanes).clear();
            TurnEnd { fed, own, lost, rest: false, panic }
        });
        chunk.load();
        fed
    }
}

impl<S: StreamAt<I>, D: Driver<S>, const I: usize> HubOutput<S, D, I> {
    /// Gives the hub to a wiring: the output stays open without this.
    pub(super) fn detach(mut self) -> Arc<Hub<S, D>> {
        self.detached = true;
        Arc::clone(&self.hub)
    }

    /// Takes back what the reader had in hand and did not use: it goes to the front of the lane.
    fn take_back(&self, mut unread: Lane<S::Payload>) {
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

    /// Takes what other readers left in this output's lane, or drives up to
    /// [`TURNS`](super::source::TURNS) turns.
    ///
    /// More when there was something.
    #[inline]
    fn poll_turns(
        &self,
        cx: &Context<'_>,
        local: &mut Lane<S::Payload>,
        mut drive: impl FnMut(&mut Seat<S, D>, usize, &mut Lane<S::Payload>) -> TurnEnd,
    ) -> Fed {
        let hub = &self.hub;
        let mut core = hub.core.lock();
        let lane = S::lane(&mut core.lanes);
        if !lane.is_empty() {
            mem::swap(local, lane);
            let wakers = hub.board.lock().taken(I, local.len());
            drop(core);
            wakers.wake();
            return Fed::More;
        }
        let polled = match hub.take_seat(core, I, cx) {
            Ok((seat, room)) => {
                hub.hold_seat(I, cx, seat, room, |seat, room| drive(seat, room, local))
            }
            Err(poll) => poll,
        };
        match polled {
            Poll::Ready(Ok(true)) => Fed::More,
            Poll::Ready(Ok(false)) => Fed::End,
            Poll::Ready(Err(error)) => Fed::Failed(error),
            Poll::Pending => Fed::Pending,
        }
    }
}

impl<S: StreamAt<I>, D: Driver<S>, const I: usize> Fill<S::Payload> for HubOutput<S, D, I> {
    fn fill(&mut self, cx: &mut Context<'_>, into: &mut Lane<S::Payload>) -> Fed {
        self.poll_turns(cx, into, |seat, room, local| {
            let Seat { driver, staged, waker } = seat;
            let fed = drive_turn(driver, &mut Context::from_waker(waker), room, staged);
            mem::swap(local, S::lane(&mut staged.lanes));
            TurnEnd { fed, own: local.len() as u64, lost: 0, rest: !local.is_empty(), panic: None }
        })
    }

    fn unread(&mut self, records: usize) {
        self.unread += records;
    }

    fn discard(&mut self) {
        self.hub.board.lock().ports[I].discarded_on_purpose = true;
    }

    fn fail_on_stall(&mut self) {
        self.hub.board.lock().ports[I].fail_on_stall = true;
        // Who waits for this output also waits for what the input of its operator waits for.
        self.hub.core.lock().fail_on_stall = true;
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        Some(LedgerHandle::new(Arc::clone(&self.hub.board)))
    }

    fn job(&self) -> Option<JobLink> {
        self.hub.job.as_ref().map(|link| link.at(S::SPEC.name))
    }
}

impl<S: StreamAt<I>, D: Driver<S>, const I: usize> Source<S::Payload> for Port<S, D, I> {
    #[inline]
    fn feed<K: Intake<S::Payload>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { output, chunk } = self;
        chunk.feed_from(intake, |chunk, intake| {
            if !K::STOPS {
                return Self::drive_into(output, cx, chunk, intake);
            }
            let fed = output.fill(cx, chunk.recycle());
            chunk.load();
            fed
        })
    }

    fn unread(&mut self, records: usize) {
        Fill::unread(&mut self.output, records);
    }

    fn discard(&mut self) {
        Fill::discard(&mut self.output);
    }

    fn fail_on_stall(&mut self) {
        Fill::fail_on_stall(&mut self.output);
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        Fill::ledger(&self.output)
    }

    fn job(&self) -> Option<JobLink> {
        Fill::job(&self.output)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<S::Payload> {
        self.chunk.pop()
    }

    fn resumes() -> bool {
        true
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

/// Hands the records of output `I` to an intake and stages the others.
struct Direct<'a, S: Streamed, D, K, const I: usize> {
    staged: &'a mut Staged<S>,
    intake: &'a mut K,
    own: Counter<'a>,
    upset: &'a mut Upset,
    driver: PhantomData<fn() -> D>,
}

impl<S, D, K, const I: usize> Direct<'_, S, D, K, I>
where
    S: StreamAt<I>,
    D: Driver<S>,
    K: Intake<S::Payload>,
{
    /// Hands a record to the intake, which never asks to stop.
    ///
    /// The reader's panic may go through an operator that has nothing left to do. Any other would be left
    /// half-way through its work, and is not this reader's alone: there each call is caught.
    #[inline(always)]
    fn hand_over(&mut self, payload: S::Payload, at: Timestamp) {
        self.own.now += 1;
        if D::resumes() && !S::SPEC.tap {
            let noting = Noting::new(&mut self.upset.through);
            _ = self.intake.record(payload, at);
            noting.disarm();
        } else if self.upset.panic.is_some() {
            self.upset.lost += 1;
            drop(payload);
        } else if let Err(panic) =
            catch_unwind(AssertUnwindSafe(|| self.intake.record(payload, at)))
        {
            self.upset.panic = Some(panic);
        }
    }
}

impl<S, D, K, const I: usize> Collect<S> for Direct<'_, S, D, K, I>
where
    S: StreamAt<I>,
    D: Driver<S>,
    K: Intake<S::Payload>,
{
    #[inline(always)]
    fn emit(&mut self, route: S, at: Timestamp) {
        match route.take() {
            Ok(payload) => self.hand_over(payload, at),
            Err(route) => self.staged.emit(route, at),
        }
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) {
        self.staged.mark(mark);
        _ = self.intake.mark(mark);
    }
}

impl<S: StreamAt<I>, D, const I: usize> Drop for HubOutput<S, D, I> {
    fn drop(&mut self) {
        if !self.detached {
            self.hub.close(&[I], self.unread as u64);
        }
    }
}

impl<S: StreamAt<I>, D, const I: usize> Drop for Port<S, D, I> {
    fn drop(&mut self) {
        self.output.unread += self.chunk.len();
    }
}

impl<S: StreamAt<I>, D, const I: usize> fmt::Debug for Port<S, D, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("output", &S::SPEC.name).finish_non_exhaustive()
    }
}
