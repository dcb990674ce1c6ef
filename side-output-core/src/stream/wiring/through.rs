use super::destination::{Counts, Destination, InputState, IntoDestination};
use crate::error::StreamError;
use crate::output::{OutputSpec, Overflow};
use crate::stream::Lane;
use crate::stream::boxed::Fill;
use crate::stream::{BoxSource, DataStream, Fed, LedgerHandle};
use crate::sync::Mutex;
use crate::time::{Mark, Timestamp};
use std::error::Error;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Destination that is a future made from the output's stream.
///
/// The stream may leave for another task; the future is polled with the rest of the wiring.
pub struct Through<T, Fut> {
    future: Option<Pin<Box<Fut>>>,
    pipe: Arc<Mutex<Pipe<T>>>,
    /// What came since the wiring last looked here: the pipe is locked once for all of it.
    staged: Lane<T>,
    output: &'static str,
    /// The future panicked, or returned an error.
    failed: bool,
}

/// What stands between the wiring and a closure's stream.
struct Pipe<T> {
    lane: Lane<T>,
    delivered: u64,
    dropped: u64,
    discarded: u64,
    end: Option<Result<(), StreamError>>,
    /// Nobody returns the error with which this ended.
    cancelled: bool,
    open: bool,
    reader: Option<Waker>,
    /// The wiring waits for room.
    writer: Option<Waker>,
}

/// What a destination's future may evaluate to.
#[diagnostic::on_unimplemented(
    message = "a destination's future must evaluate to `()` or a `Result`, not `{Self}`",
    label = "this closure's future evaluates to `{Self}`",
    note = "the error of the `Result` must be one: `E: Into<Box<dyn Error + Send + Sync>>`"
)]
pub trait Outcome {
    /// The error, if there is one.
    fn into_error(self, output: &'static str) -> Option<StreamError>;
}

impl Outcome for () {
    fn into_error(self, _output: &'static str) -> Option<StreamError> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<V, E: Into<Box<dyn Error + Send + Sync>>> Outcome for Result<V, E> {
    fn into_error(self, output: &'static str) -> Option<StreamError> {
        let error: Box<dyn Error + Send + Sync> = self.err()?.into();
        // An error that came through the stream is passed on as it was.
        Some(match error.downcast::<StreamError>() {
            Ok(error) => *error,
            Err(error) => StreamError::destination(output, error),
        })
    }
}

/// Marks closures from a stream to a future.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntoThrough;

#[diagnostic::do_not_recommend]
impl<T, F, Fut> IntoDestination<T, (IntoThrough, Fut)> for F
where
    T: Send + 'static,
    F: FnOnce(DataStream<T>) -> Fut,
    Fut: Future,
    Fut::Output: Outcome,
{
    type Destination = Through<T, Fut>;

    fn into_destination(self, spec: OutputSpec) -> Through<T, Fut> {
        let pipe = Arc::new(Mutex::new(Pipe {
            lane: Lane::new(),
            delivered: 0,
            dropped: 0,
            discarded: 0,
            end: None,
            cancelled: false,
            open: true,
            reader: None,
            writer: None,
        }));
        let source = PipeSource { pipe: Arc::clone(&pipe), unread: 0 };
        let stream = DataStream::new(BoxSource::from_fill(source), spec.name);
        Through {
            future: Some(Box::pin(self(stream))),
            pipe,
            staged: Lane::new(),
            output: spec.name,
            failed: false,
        }
    }
}

impl<T, Fut> Through<T, Fut>
where
    Fut: Future,
    Fut::Output: Outcome,
{
    fn poll_future(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let Some(mut future) = self.future.take() else { return Poll::Ready(Ok(())) };
        // Until it is known how it went: a panic leaves it so.
        self.failed = true;
        let Poll::Ready(outcome) = future.as_mut().poll(cx) else {
            self.future = Some(future);
            self.failed = false;
            return Poll::Pending;
        };
        if let Some(error) = outcome.into_error(self.output) {
            return Poll::Ready(Err(error));
        }
        self.failed = false;
        Poll::Ready(Ok(()))
    }

    /// Moves what came into the pipe, and tells a reader in another task that there is something
    /// to read.
    fn publish(&mut self, end: Option<&Result<(), StreamError>>) {
        let reader = {
            let mut pipe = self.pipe.lock();
            if pipe.open {
                pipe.lane.append(&mut self.staged);
            } else {
                pipe.discarded += self.staged.len() as u64;
            }
            if let Some(end) = end {
                pipe.end.get_or_insert_with(|| end.clone());
            }
            let something = !pipe.lane.is_empty() || pipe.end.is_some();
            if something { pipe.reader.take() } else { None }
        };
        // Empty, unless nobody reads it any more.
        self.staged.clear();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl<T, Fut> Destination<T> for Through<T, Fut>
where
    Fut: Future,
    Fut::Output: Outcome,
{
    const WAITS: bool = true;

    #[inline(always)]
    fn push(&mut self, value: T, at: Timestamp) -> bool {
        self.staged.push(value, at);
        false
    }

    fn mark(&mut self, mark: Mark) {
        self.staged.mark(mark);
    }

    fn load(&self) -> usize {
        self.staged.len() + self.pipe.lock().lane.len()
    }

    fn trim(&mut self, capacity: usize, overflow: Overflow) {
        let mut trash = Vec::new();
        let mut pipe = self.pipe.lock();
        if pipe.open {
            pipe.lane.append(&mut self.staged);
        }
        let len = pipe.lane.len();
        let excess = len.saturating_sub(capacity);
        match overflow {
            Overflow::Block | Overflow::Unbounded => return,
            Overflow::DropOldest => pipe.lane.drop_oldest(excess, &mut trash),
            Overflow::DropNewest => pipe.lane.truncate(len - excess, &mut trash),
        }
        pipe.dropped += trash.len() as u64;
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        let end = if let InputState::Ended(end) = input { Some(end) } else { None };
        if self.failed {
            if let Some(Err(error)) = end {
                self.give_up(error);
            }
            return Poll::Ready(Ok(()));
        }
        self.publish(end);
        let done = self.poll_future(cx)?.is_ready();
        // A stream that it gave away may have more to read.
        let mut pipe = self.pipe.lock();
        if pipe.open && !pipe.lane.is_empty() {
            let old = pipe.writer.replace(cx.waker().clone());
            // Dropping a waker may drop a task: not under the lock.
            drop(pipe);
            drop(old);
            return Poll::Pending;
        }
        if done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn cancel(&mut self, error: &StreamError) {
        self.future = None;
        self.give_up(error);
    }

    fn sum(&self, _routed: u64) -> Counts {
        let pipe = self.pipe.lock();
        Counts {
            delivered: pipe.delivered,
            buffered: (pipe.lane.len() + self.staged.len()) as u64,
            accepted: 0,
            dropped: pipe.dropped,
            discarded: pipe.discarded,
        }
    }
}

impl<T, Fut> Through<T, Fut> {
    /// Ends the stream with `error`, for a reader in another task too. What it has not read is
    /// discarded.
    fn give_up(&mut self, error: &StreamError) {
        let staged = mem::take(&mut self.staged);
        let (lane, reader) = {
            let mut pipe = self.pipe.lock();
            let lane = mem::take(&mut pipe.lane);
            pipe.discarded += (lane.len() + staged.len()) as u64;
            pipe.open = false;
            pipe.cancelled = matches!(error, StreamError::Cancelled);
            pipe.end = Some(Err(error.clone()));
            (lane, pipe.reader.take())
        };
        if let Some(reader) = reader {
            reader.wake();
        }
        // Last, since dropping records runs foreign code.
        drop((lane, staged));
    }
}

impl<T, Fut> Drop for Through<T, Fut> {
    fn drop(&mut self) {
        // A wiring that is dropped is no true end for a stream that left for another task.
        let ended = self.pipe.lock().end.is_some();
        if !ended {
            self.give_up(&StreamError::Cancelled);
        }
    }
}

impl<T, Fut> fmt::Debug for Through<T, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through").field("output", &self.output).finish_non_exhaustive()
    }
}

struct PipeSource<T> {
    pipe: Arc<Mutex<Pipe<T>>>,
    unread: usize,
}

impl<T> Pipe<T> {
    /// Moves what waits into an empty lane, or lets `waker` wait.
    fn take(pipe: &Mutex<Self>, waker: &Waker, into: &mut Lane<T>) -> Fed {
        let mut pipe = pipe.lock();
        if !pipe.lane.is_empty() {
            mem::swap(&mut pipe.lane, into);
            pipe.delivered += into.len() as u64;
            let writer = pipe.writer.take();
            drop(pipe);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Fed::More;
        }
        if let Some(end) = &pipe.end {
            return Fed::from(end.clone());
        }
        let old = pipe.reader.replace(waker.clone());
        drop(pipe);
        drop(old);
        Fed::Pending
    }
}

impl<T> Fill<T> for PipeSource<T> {
    fn fill(&mut self, cx: &mut Context<'_>, into: &mut Lane<T>) -> Fed {
        Pipe::take(&self.pipe, cx.waker(), into)
    }

    fn unread(&mut self, records: usize) {
        self.unread += records;
    }

    fn discard(&mut self) {}

    fn fail_on_stall(&mut self) {}

    fn is_reported(&self) -> bool {
        !self.pipe.lock().cancelled
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        None
    }
}

impl<T> Drop for PipeSource<T> {
    fn drop(&mut self) {
        let (lane, writer) = {
            let mut pipe = self.pipe.lock();
            let lane = mem::take(&mut pipe.lane);
            pipe.open = false;
            let unread = self.unread as u64;
            pipe.delivered -= unread;
            pipe.discarded += unread + lane.len() as u64;
            (lane, pipe.writer.take())
        };
        drop(lane);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}
