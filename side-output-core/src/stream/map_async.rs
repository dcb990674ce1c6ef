//! Asynchronous work for each record: so many calls at once, in order or not, with their time.
//!
//! Between two marks records form a *segment*; in order, each record is one. Answers leave segment by
//! segment, and the mark at the end of a segment after the last of its answers. So watermarks,
//! barriers and idleness keep their places among the records, whatever the calls do.

mod calls;
mod slots;

pub use self::calls::{Calls, Never, NoTimer, Retry, RetryPolicy, TellsTime, Timed, Timer};

use self::slots::{Slot, Woken};
use super::source::CHUNK;
use super::{Behind, DataStream, Driver, Fed, Hub, Intake, JobLink, Source, Streamed, Typed};
use crate::operator::{Answered, FailedCall};
use crate::output::{Account, Collect};
use crate::time::{Mark, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The streams of [`DataStream::map_async`].
pub type AnsweredBy<Src, T, U, E, F, Fut, Tm, R> =
    <Answered<T, U, E> as Streamed>::Streams<Typed<AsyncDrive<Src, T, U, E, F, Fut, Tm, R>>>;

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Does asynchronous work for each record, such as a look-up in a database.
    ///
    /// `call` gets a reference to the record and makes a future of its own, which evaluates to a
    /// `Result`. Each record leaves once: with its answer through `results`, with the error of the
    /// last attempt through `failures`, or through `timeouts`. Nothing is spawned: the calls run
    /// while an output is read.
    ///
    /// Timestamps stay with the records. A watermark, a barrier or idleness leaves after all answers
    /// to the records before it and before all those after it, also where the answers are
    /// [unordered](Calls::unordered); so a barrier waits for the calls before it. Records without an
    /// answer are [`held`](crate::output::Ledger::held) in the ledger and `unrouted` until they
    /// leave, never more of them than the concurrency. Where the input fails, the calls that are
    /// underway go on; the error comes after their answers.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::operator::AnsweredStreams;
    /// use side_output::prelude::*;
    /// use side_output::{Calls, FailedCall};
    ///
    /// async fn name_of(id: u32) -> Result<&'static str, String> {
    ///     if id == 7 { Ok("tea") } else { Err(format!("no product {id}")) }
    /// }
    ///
    /// let ids = DataStream::from_stream(stream::iter([7, 8]));
    /// let answers = ids.map_async(Calls::ordered(16), |id| name_of(*id));
    /// let (mut names, mut failed) = (Vec::new(), Vec::new());
    /// block_on(
    ///     answers
    ///         .wire()
    ///         .results(each(|(id, name)| names.push((id, name))))
    ///         .failures(each(|FailedCall { record, error, .. }| failed.push((record, error))))
    ///         .timeouts(discard()) // there is no time-out
    ///         .run(),
    /// )?;
    /// assert_eq!(names, [(7, "tea")]);
    /// assert_eq!(failed, [(8, "no product 8".to_owned())]);
    /// # Ok::<(), StreamError>(())
    /// ```
    pub fn map_async<U, E, F, Fut, Tm, R>(
        self,
        calls: Calls<Tm, R>,
        call: F,
    ) -> AnsweredBy<Self, T, U, E, F, Fut, Tm, R>
    where
        F: FnMut(&T) -> Fut,
        Fut: Future<Output = Result<U, E>>,
        Tm: Timer,
        R: RetryPolicy<E>,
    {
        Hub::open(AsyncDrive {
            source: self,
            flight: Flight::new(calls, call),
            end: None,
            closed: false,
        })
    }
}

/// What drives the streams of [`DataStream::map_async`].
pub struct AsyncDrive<Src, T, U, E, F, Fut, Tm: Timer, R> {
    source: Src,
    flight: Flight<T, U, E, F, Fut, Tm, R>,
    /// How the input ended.
    end: Option<Result<(), crate::error::StreamError>>,
    /// It has seen the last watermark.
    closed: bool,
}

type Place<T, U, E, Fut, Tm> = Slot<T, Answered<T, U, E>, Fut, <Tm as Timer>::Sleep>;

/// The calls that are underway, and what waits for them.
struct Flight<T, U, E, F, Fut, Tm: Timer, R> {
    call: F,
    concurrency: usize,
    ordered: bool,
    timeout: Option<Duration>,
    timer: Tm,
    retry: R,
    /// As many as were needed at once so far.
    slots: Vec<Place<T, U, E, Fut, Tm>>,
    /// The first of the free ones.
    free: Option<usize>,
    /// How many are not free.
    taken: usize,
    woken: Arc<Woken>,
    segments: VecDeque<Segment>,
    /// The number of the first segment.
    first: u64,
    account: Account,
}

/// The records between two marks.
#[derive(Default)]
struct Segment {
    /// Those that have not left.
    open: usize,
    /// The first and the last place of those that have their answers.
    done: Option<(usize, usize)>,
    /// What follows the last of them.
    mark: Option<Mark>,
}

/// How many times one call is looked at in a row: what is ready at once must not keep the others
/// from their turns.
const LOOKS: usize = 8;

impl<T, U, E, F, Fut, Tm, R> Flight<T, U, E, F, Fut, Tm, R>
where
    F: FnMut(&T) -> Fut,
    Fut: Future<Output = Result<U, E>>,
    Tm: Timer,
    R: RetryPolicy<E>,
{
    fn new(calls: Calls<Tm, R>, call: F) -> Self {
        let Calls { concurrency, ordered, timeout, timer, retry } = calls;
        Self {
            call,
            concurrency: concurrency.get(),
            ordered,
            timeout,
            timer,
            retry,
            slots: Vec::new(),
            free: None,
            taken: 0,
            woken: Woken::new(),
            segments: VecDeque::new(),
            first: 0,
            account: Account::new(),
        }
    }

    /// Whether it takes another record or mark. Marks are bounded too, though they need no place.
    fn has_room(&self) -> bool {
        self.taken < self.concurrency && self.segments.len() < self.concurrency + CHUNK
    }

    fn take_slot(&mut self) -> usize {
        self.taken += 1;
        let Some(index) = self.free else {
            self.slots.push(Slot::new(self.slots.len(), &self.woken));
            return self.slots.len() - 1;
        };
        self.free = self.slots[index].next.take();
        index
    }

    /// Begins the call for a record.
    fn start(&mut self, value: T, at: Timestamp) {
        // Should the function panic, the record has failed.
        self.account.taken += 1;
        self.account.failed += 1;
        let work = (self.call)(&value);
        let deadline = self.timeout.map(|timeout| self.timer.sleep(timeout));
        self.account.failed -= 1;
        self.account.unrouted += 1;

        let last_is_open = self.segments.back().is_some_and(|last| last.mark.is_none());
        if self.ordered || !last_is_open {
            self.segments.push_back(Segment::default());
        }
        let segment = self.segments.len() - 1;
        self.segments[segment].open += 1;
        let index = self.take_slot();
        let slot = &mut self.slots[index];
        slot.segment = self.first + segment as u64;
        slot.record = Some(value);
        (slot.at, slot.attempts) = (at, 1);
        let mut futures = slot.futures.as_mut().project();
        futures.work.set(Some(work));
        futures.deadline.set(deadline);
        self.woken.start(index);
    }

    fn mark(&mut self, mark: Mark) {
        match self.segments.back_mut() {
            Some(last) if last.mark.is_none() => last.mark = Some(mark),
            _ => self.segments.push_back(Segment { mark: Some(mark), ..Segment::default() }),
        }
    }

    /// Looks at the calls that were woken.
    fn poll_woken(&mut self) {
        // What is woken meanwhile has its turn later: whoever polls this is woken, too.
        for _ in 0..self.woken.len() {
            let Some(index) = self.woken.pop() else { return };
            if let Some(record) = self.slots[index].record.take() {
                // Should its future panic, the record has failed.
                self.account.unrouted -= 1;
                self.account.failed += 1;
                self.poll_call(index, record);
                self.account.failed -= 1;
                self.account.unrouted += 1;
            }
        }
    }

    fn poll_call(&mut self, index: usize, record: T) {
        let Self { slots, timer, retry, call, .. } = self;
        let slot = &mut slots[index];
        let cx = &mut Context::from_waker(&slot.waker);
        let mut futures = slot.futures.as_mut().project();
        for _ in 0..LOOKS {
            if let Some(work) = futures.work.as_mut().as_pin_mut() {
                match work.poll(cx) {
                    Poll::Ready(Ok(answer)) => {
                        return self.finish(index, Answered::Result((record, answer)));
                    }
                    Poll::Ready(Err(error)) => {
                        let attempts = slot.attempts;
                        let Some(pause) = retry.pause(&error, attempts) else {
                            let failed = FailedCall { record, error, attempts };
                            return self.finish(index, Answered::Failure(failed));
                        };
                        futures.work.set(None);
                        futures.pause.set(Some(timer.sleep(pause)));
                        continue;
                    }
                    Poll::Pending => {}
                }
            } else if let Some(pause) = futures.pause.as_mut().as_pin_mut()
                && pause.poll(cx).is_ready()
            {
                futures.pause.set(None);
                slot.attempts += 1;
                futures.work.set(Some(call(&record)));
                continue;
            }
            // An answer that came in the last moment has come.
            if let Some(deadline) = futures.deadline.as_mut().as_pin_mut()
                && deadline.poll(cx).is_ready()
            {
                return self.finish(index, Answered::Timeout(record));
            }
            slot.record = Some(record);
            return;
        }
        slot.record = Some(record);
        slot.waker.wake_by_ref();
    }

    /// Puts the route of a record where it waits for its turn.
    fn finish(&mut self, index: usize, route: Answered<T, U, E>) {
        let slot = &mut self.slots[index];
        slot.route = Some(route);
        slot.next = None;
        let segment = usize::try_from(slot.segment - self.first).expect("as many as there are");
        let done = &mut self.segments[segment].done;
        let first = done.map_or(index, |(first, _)| first);
        if let Some((_, last)) = done.replace((first, index)) {
            self.slots[last].next = Some(index);
        }
        // Last, since it runs foreign code.
        self.slots[index].clear();
    }

    /// Emits what may leave, for as long as there is room; how much is left of it.
    fn emit<C: Collect<Answered<T, U, E>>>(&mut self, mut room: usize, out: &mut C) -> usize {
        while room > 0 && !out.is_full() {
            let Some(segment) = self.segments.front_mut() else { break };
            if let Some((index, last)) = segment.done {
                let slot = &mut self.slots[index];
                segment.done = slot.next.map(|next| (next, last));
                segment.open -= 1;
                slot.next = self.free.replace(index);
                self.taken -= 1;
                if let Some(route) = slot.route.take() {
                    let at = slot.at;
                    // First: the receiver may panic, and the record has left by then.
                    self.account.unrouted -= 1;
                    out.emit(route, at);
                    room -= 1;
                }
            } else if segment.open == 0 {
                let mark = segment.mark;
                self.segments.pop_front();
                self.first += 1;
                if let Some(mark) = mark {
                    out.mark(mark);
                    room -= 1;
                }
            } else {
                break;
            }
        }
        room
    }
}

impl<Src, T, U, E, F, Fut, Tm, R> Driver<Answered<T, U, E>>
    for AsyncDrive<Src, T, U, E, F, Fut, Tm, R>
where
    Src: Source<T>,
    F: FnMut(&T) -> Fut,
    Fut: Future<Output = Result<U, E>>,
    Tm: Timer,
    R: RetryPolicy<E>,
{
    fn drive<C: Collect<Answered<T, U, E>>>(
        &mut self,
        cx: &mut Context<'_>,
        mut room: usize,
        out: &mut C,
    ) -> Fed {
        let Self { source, flight, end, closed } = self;
        flight.woken.register(cx.waker());
        loop {
            flight.poll_woken();
            room = flight.emit(room, out);
            if room == 0 || out.is_full() {
                return Fed::More;
            }
            if let Some(end) = end {
                return if flight.segments.is_empty() {
                    Fed::from(end.clone())
                } else {
                    Fed::Pending
                };
            }
            if !flight.has_room() {
                return Fed::Pending;
            }
            let mut taking = Taking { flight, closed, moved: false };
            let fed = source.feed(cx, &mut taking);
            let moved = taking.moved;
            match fed {
                Fed::End => {
                    // The end of the input is the end of time.
                    if !*closed {
                        flight.mark(Mark::Watermark(Timestamp::MAX));
                    }
                    *end = Some(Ok(()));
                }
                Fed::Failed(error) => *end = Some(Err(error)),
                Fed::More | Fed::Pending if moved => {}
                fed => return fed,
            }
        }
    }

    fn job(&self) -> Option<JobLink> {
        self.source.job()
    }

    fn account(&self) -> &Account {
        &self.flight.account
    }

    fn held(&self) -> u64 {
        self.flight.taken as u64
    }

    fn fail_on_stall(&mut self) {
        self.source.fail_on_stall();
    }

    fn behind(&self, behind: &mut Behind) {
        self.source.behind(behind);
    }
}

/// Takes records as long as there are places for their calls.
struct Taking<'a, T, U, E, F, Fut, Tm: Timer, R> {
    flight: &'a mut Flight<T, U, E, F, Fut, Tm, R>,
    closed: &'a mut bool,
    /// Something has come.
    moved: bool,
}

impl<T, U, E, F, Fut, Tm, R> Taking<'_, T, U, E, F, Fut, Tm, R>
where
    F: FnMut(&T) -> Fut,
    Fut: Future<Output = Result<U, E>>,
    Tm: Timer,
    R: RetryPolicy<E>,
{
    fn go_on(&mut self) -> ControlFlow<()> {
        self.moved = true;
        if self.flight.has_room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl<T, U, E, F, Fut, Tm, R> Intake<T> for Taking<'_, T, U, E, F, Fut, Tm, R>
where
    F: FnMut(&T) -> Fut,
    Fut: Future<Output = Result<U, E>>,
    Tm: Timer,
    R: RetryPolicy<E>,
{
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.flight.start(value, at);
        self.go_on()
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        *self.closed |= mark == Mark::Watermark(Timestamp::MAX);
        self.flight.mark(mark);
        self.go_on()
    }
}

impl<Src, T, U, E, F, Fut, Tm: Timer, R> fmt::Debug for AsyncDrive<Src, T, U, E, F, Fut, Tm, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncDrive").field("held", &self.flight.taken).finish_non_exhaustive()
    }
}
