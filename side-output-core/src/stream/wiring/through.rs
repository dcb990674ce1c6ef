use super::destination::{Destination, IntoDestination, Sum};
use crate::error::StreamError;
use crate::output::{Lane, OutputSpec, Overflow};
use crate::stream::chunk::Chunk;
use crate::stream::{BoxSource, DataStream, Fed, Intake, Source};
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
}

/// What stands between the wiring and a closure's stream.
struct Pipe<T> {
    lane: Lane<T>,
    delivered: u64,
    dropped: u64,
    discarded: u64,
    end: Option<Result<(), StreamError>>,
    open: bool,
    reader: Option<Waker>,
    /// The wiring waits for room.
    writer: Option<Waker>,
}

/// What a destination's future may evaluate to.
#[diagnostic::on_unimplemented(
    message = "a destination's future must evaluate to `()` or a `Result`, not `{Self}`",
    label = "this closure's future evaluates to `{Self}`"
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

impl<V, E: Into<Box<dyn Error + Send + Sync>>> Outcome for Result<V, E> {
    fn into_error(self, output: &'static str) -> Option<StreamError> {
        let error: Box<dyn Error + Send + Sync> = self.err()?.into();
        // An error that came through the stream is passed on as it was.
        Some(match error.downcast::<StreamError>() {
            Ok(error) => *error,
            Err(error) => StreamError::Destination { output, source: Arc::from(error) },
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
            open: true,
            reader: None,
            writer: None,
        }));
        let source = PipeSource { pipe: Arc::clone(&pipe), chunk: Chunk::new(), unread: 0 };
        let stream = DataStream::new(BoxSource::new(source), spec.name);
        Through {
            future: Some(Box::pin(self(stream))),
            pipe,
            staged: Lane::new(),
            output: spec.name,
        }
    }
}

impl<T, Fut> Through<T, Fut>
where
    Fut: Future,
    Fut::Output: Outcome,
{
    fn poll_future(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let Some(future) = &mut self.future else { return Poll::Ready(Ok(())) };
        let Poll::Ready(outcome) = future.as_mut().poll(cx) else { return Poll::Pending };
        self.future = None;
        match outcome.into_error(self.output) {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(())),
        }
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

    #[inline]
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

    fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
        _idle: bool,
    ) -> Poll<Result<(), StreamError>> {
        self.publish(None);
        if let Poll::Ready(Err(error)) = self.poll_future(cx) {
            return Poll::Ready(Err(error));
        }
        let mut pipe = self.pipe.lock();
        if pipe.lane.is_empty() || !pipe.open {
            Poll::Ready(Ok(()))
        } else {
            let old = pipe.writer.replace(cx.waker().clone());
            // Dropping a waker may drop a task: not under the lock.
            drop(pipe);
            drop(old);
            Poll::Pending
        }
    }

    fn poll_finish(
        &mut self,
        cx: &mut Context<'_>,
        end: &Result<(), StreamError>,
    ) -> Poll<Result<(), StreamError>> {
        self.publish(Some(end));
        match self.poll_future(cx) {
            Poll::Ready(Ok(())) => {}
            poll => return poll,
        }
        // The future is done; a stream that it gave away may not be.
        let mut pipe = self.pipe.lock();
        if pipe.open && !pipe.lane.is_empty() {
            let old = pipe.writer.replace(cx.waker().clone());
            drop(pipe);
            drop(old);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn sum(&self, _routed: u64) -> Sum {
        let pipe = self.pipe.lock();
        Sum {
            delivered: pipe.delivered,
            buffered: (pipe.lane.len() + self.staged.len()) as u64,
            dropped: pipe.dropped,
            discarded: pipe.discarded,
        }
    }
}

impl<T, Fut> Drop for Through<T, Fut> {
    fn drop(&mut self) {
        // A wiring that is dropped is no true end for a stream that left for another task.
        let reader = {
            let mut pipe = self.pipe.lock();
            pipe.end.get_or_insert(Err(StreamError::Cancelled));
            pipe.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
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
    chunk: Chunk<T>,
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

impl<T> Source<T> for PipeSource<T> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { pipe, chunk, .. } = self;
        chunk.feed_from(intake, |chunk, _| {
            let fed = Pipe::take(pipe, cx.waker(), chunk.recycle());
            chunk.load();
            fed
        })
    }

    fn resumes() -> bool {
        true
    }

    fn unread(&mut self, records: usize) {
        self.unread = records;
    }
}

impl<T> Drop for PipeSource<T> {
    fn drop(&mut self) {
        let (lane, writer) = {
            let mut pipe = self.pipe.lock();
            let lane = mem::take(&mut pipe.lane);
            pipe.open = false;
            let unread = (self.unread + self.chunk.len()) as u64;
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
