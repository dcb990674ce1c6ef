use super::destination::{Counts, Destination, InputState, IntoDestination};
use crate::error::StreamError;
use crate::output::{OutputSpec, Overflow};
use crate::stream::driver::Noting;
use crate::time::Timestamp;
use futures_sink::Sink;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

/// Destination that feeds a `Sink`.
///
/// A record goes straight into the sink as long as that is ready; only what comes while it is not
/// waits here. It is delivered once it is flushed.
pub struct ToSink<T, K> {
    sink: Pin<Box<K>>,
    waiting: VecDeque<T>,
    /// With which the sink is polled when a record comes.
    waker: Waker,
    /// A record that comes may go straight into the sink: nothing waits, and nothing failed.
    open: bool,
    /// The error of a record that came.
    error: Option<StreamError>,
    output: &'static str,
    accepted: u64,
    /// Of those accepted.
    flushed: u64,
    dropped: u64,
    /// The sink was closed, failed or panicked: it is not touched again.
    over: bool,
}

/// Marks sinks.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntoSink;

impl<T, K> IntoDestination<T, IntoSink> for K
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Destination = ToSink<T, K>;

    fn into_destination(self, spec: OutputSpec) -> ToSink<T, K> {
        ToSink {
            sink: Box::pin(self),
            waiting: VecDeque::new(),
            waker: Waker::noop().clone(),
            open: false,
            error: None,
            output: spec.name,
            accepted: 0,
            flushed: 0,
            dropped: 0,
            over: false,
        }
    }
}

impl<T, K> ToSink<T, K>
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Moves what waits into the sink.
    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), K::Error>> {
        while !self.waiting.is_empty() {
            ready!(self.sink.as_mut().poll_ready(cx))?;
            if let Some(value) = self.waiting.pop_front() {
                self.sink.as_mut().start_send(value)?;
                self.accepted += 1;
            }
        }
        self.open = true;
        Poll::Ready(Ok(()))
    }

    fn poll_sink(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), K::Error>> {
        let emptied = self.poll_empty(cx)?;
        match input {
            InputState::Ready => return emptied.map(Ok),
            InputState::Ended(_) if emptied.is_ready() => {
                ready!(self.sink.as_mut().poll_close(cx))?;
            }
            // Nothing moves for now: what was accepted need not wait for what was not.
            InputState::Pending | InputState::Ended(_) => {
                if self.flushed < self.accepted {
                    ready!(self.sink.as_mut().poll_flush(cx))?;
                }
            }
        }
        self.flushed = self.accepted;
        emptied.map(Ok)
    }

    #[cold]
    #[inline(never)]
    fn break_off(&mut self, error: K::Error) {
        self.error = Some(StreamError::destination(self.output, error));
        self.open = false;
        self.over = true;
    }
}

impl<T, K> Destination<T> for ToSink<T, K>
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    const WAITS: bool = true;

    #[inline(always)]
    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        if self.open {
            let Self { sink, waker, over, .. } = self;
            let noting = Noting::new(over);
            let sent = match sink.as_mut().poll_ready(&mut Context::from_waker(waker)) {
                Poll::Ready(Ok(())) => sink.as_mut().start_send(value),
                Poll::Ready(Err(error)) => Err(error),
                Poll::Pending => {
                    noting.disarm();
                    self.open = false;
                    self.waiting.push_back(value);
                    // One that may only want a moment's rest is polled before more is put aside.
                    return true;
                }
            };
            noting.disarm();
            let Err(error) = sent else {
                self.accepted += 1;
                return false;
            };
            self.break_off(error);
            return true;
        }
        self.waiting.push_back(value);
        false
    }

    #[inline]
    fn load(&self) -> usize {
        self.waiting.len()
    }

    fn trim(&mut self, capacity: usize, overflow: Overflow) {
        let excess = self.waiting.len().saturating_sub(capacity);
        if matches!(overflow, Overflow::Block | Overflow::Unbounded) {
            return;
        }
        // Before they are dropped, which may panic.
        self.dropped += excess as u64;
        if matches!(overflow, Overflow::DropOldest) {
            self.waiting.drain(..excess);
        } else {
            self.waiting.truncate(capacity);
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        self.waker.clone_from(cx.waker());
        // Until it is known how it went: a panic leaves it over.
        if mem::replace(&mut self.over, true) {
            return Poll::Ready(Ok(()));
        }
        let polled = self.poll_sink(cx, input);
        if let Poll::Ready(Err(error)) = polled {
            self.open = false;
            return Poll::Ready(Err(StreamError::destination(self.output, error)));
        }
        self.over = polled.is_ready() && matches!(input, InputState::Ended(_));
        polled.map(|_| Ok(()))
    }

    fn cancel(&mut self, _error: &StreamError) {
        self.over = true;
    }

    fn sum(&self, routed: u64) -> Counts {
        let Self { flushed, dropped, .. } = *self;
        // What is not flushed when all is over never will be.
        let accepted = if self.over { 0 } else { self.accepted - flushed };
        let waiting = if self.over { 0 } else { self.waiting.len() as u64 };
        let buffered = waiting + accepted;
        // Also a record at which the sink failed.
        let discarded = routed - flushed - buffered - dropped;
        Counts { delivered: flushed, buffered, accepted, dropped, discarded }
    }
}

impl<T, K> fmt::Debug for ToSink<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToSink").field("output", &self.output).finish_non_exhaustive()
    }
}
