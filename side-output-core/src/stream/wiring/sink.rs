use super::destination::{Destination, IntoDestination, Sum};
use crate::error::StreamError;
use crate::output::{OutputSpec, Overflow};
use crate::time::Timestamp;
use futures_sink::Sink;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// Destination that feeds a `Sink`.
///
/// A record goes straight into the sink as long as that is ready; only what comes while it is not
/// waits here.
pub struct ToSink<T, K> {
    sink: Pin<Box<K>>,
    waiting: VecDeque<T>,
    /// With which the sink is asked when a record comes.
    waker: Waker,
    /// A record that comes may go straight into the sink: nothing waits, and nothing failed.
    open: bool,
    /// The error of a record that came.
    error: Option<StreamError>,
    output: &'static str,
    dropped: u64,
    unflushed: bool,
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
            dropped: 0,
            unflushed: false,
        }
    }
}

impl<T, K> ToSink<T, K>
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn fail(&self, error: K::Error) -> StreamError {
        StreamError::Destination { output: self.output, source: Arc::from(error.into()) }
    }

    /// Moves what waits into the sink.
    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        while !self.waiting.is_empty() {
            if let Err(error) = ready!(self.sink.as_mut().poll_ready(cx)) {
                return Poll::Ready(Err(self.fail(error)));
            }
            if let Some(value) = self.waiting.pop_front() {
                self.send(value);
                if let Some(error) = self.error.take() {
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands a record to the sink, which is ready.
    #[inline]
    fn send(&mut self, value: T) {
        self.unflushed = true;
        if let Err(error) = self.sink.as_mut().start_send(value) {
            self.dropped += 1;
            self.break_off(error);
        }
    }

    #[cold]
    #[inline(never)]
    fn break_off(&mut self, error: K::Error) {
        self.error = Some(self.fail(error));
        self.open = false;
    }
}

impl<T, K> Destination<T> for ToSink<T, K>
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    const WAITS: bool = true;

    #[inline]
    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        let was_open = self.open;
        if was_open {
            match self.sink.as_mut().poll_ready(&mut Context::from_waker(&self.waker)) {
                Poll::Ready(Ok(())) => {
                    self.send(value);
                    return !self.open;
                }
                Poll::Ready(Err(error)) => self.break_off(error),
                Poll::Pending => self.open = false,
            }
        }
        self.waiting.push_back(value);
        // A sink that may only want a moment's rest is asked again before more is put aside.
        was_open
    }

    #[inline]
    fn load(&self) -> usize {
        self.waiting.len()
    }

    fn trim(&mut self, capacity: usize, overflow: Overflow) {
        let excess = self.waiting.len().saturating_sub(capacity);
        match overflow {
            Overflow::Block | Overflow::Unbounded => return,
            Overflow::DropOldest => drop(self.waiting.drain(..excess)),
            Overflow::DropNewest => self.waiting.truncate(capacity),
        }
        self.dropped += excess as u64;
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, idle: bool) -> Poll<Result<(), StreamError>> {
        self.waker.clone_from(cx.waker());
        ready!(self.poll_empty(cx))?;
        self.open = true;
        if idle && self.unflushed {
            if let Err(error) = ready!(self.sink.as_mut().poll_flush(cx)) {
                return Poll::Ready(Err(self.fail(error)));
            }
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(
        &mut self,
        cx: &mut Context<'_>,
        _end: &Result<(), StreamError>,
    ) -> Poll<Result<(), StreamError>> {
        ready!(self.poll_empty(cx))?;
        match ready!(self.sink.as_mut().poll_close(cx)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(self.fail(error))),
        }
    }

    fn sum(&self, routed: u64) -> Sum {
        let buffered = self.waiting.len() as u64;
        Sum {
            delivered: routed - buffered - self.dropped,
            buffered,
            dropped: self.dropped,
            discarded: 0,
        }
    }
}

impl<T, K> fmt::Debug for ToSink<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToSink").field("output", &self.output).finish_non_exhaustive()
    }
}
