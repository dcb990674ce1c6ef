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
use std::task::{Context, Poll, ready};

/// Destination that feeds a `Sink`.
///
/// It grants room for a batch instead of asking the sink for every record.
pub struct ToSink<T, K> {
    sink: Pin<Box<K>>,
    waiting: VecDeque<T>,
    output: &'static str,
    delivered: u64,
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
            output: spec.name,
            delivered: 0,
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

    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while !self.waiting.is_empty() {
            if let Err(error) = ready!(self.sink.as_mut().poll_ready(cx)) {
                return Poll::Ready(Err(self.fail(error)));
            }
            if let Some(value) = self.waiting.pop_front() {
                if let Err(error) = self.sink.as_mut().start_send(value) {
                    self.dropped += 1;
                    return Poll::Ready(Err(self.fail(error)));
                }
                self.delivered += 1;
                self.unflushed = true;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T, K> Destination<T> for ToSink<T, K>
where
    K: Sink<T>,
    K::Error: Into<Box<dyn Error + Send + Sync>>,
{
    const WAITS: bool = true;

    #[inline]
    fn push(&mut self, value: T, _at: Timestamp) {
        self.waiting.push_back(value);
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
        ready!(self.poll_empty(cx))?;
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

    fn sum(&self, _routed: u64) -> Sum {
        Sum {
            delivered: self.delivered,
            buffered: self.waiting.len() as u64,
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
