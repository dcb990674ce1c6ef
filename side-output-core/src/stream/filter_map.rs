use super::source::TURNS;
use super::{DataStream, LedgerHandle, Source};
use crate::error::StreamError;
use crate::output::{Lane, Taken};
use std::fmt;
use std::task::{Context, Poll, ready};

/// Source for the [`map`](DataStream::map), [`filter`](DataStream::filter),
/// [`filter_map`](DataStream::filter_map) and [`inspect`](DataStream::inspect) methods.
pub struct FilterMap<T, Src, F> {
    source: Src,
    f: F,
    chunk: Lane<T>,
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Turns each record into another; timestamps and marks stay.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::StreamExt;
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// let lengths = DataStream::from_stream(stream::iter(["to", "be"])).map(str::len);
    /// assert_eq!(block_on(lengths.collect::<Vec<_>>()), [2, 2]);
    /// ```
    pub fn map<U, F: FnMut(T) -> U>(
        self,
        mut f: F,
    ) -> DataStream<U, FilterMap<T, Self, impl FnMut(T) -> Option<U>>> {
        self.filter_map(move |value| Some(f(value)))
    }

    /// Keeps the records for which `keep` holds; timestamps and marks stay.
    ///
    /// What it rejects is gone; a splitter with two outputs hands it out instead.
    pub fn filter<F: FnMut(&T) -> bool>(
        self,
        mut keep: F,
    ) -> DataStream<T, FilterMap<T, Self, impl FnMut(T) -> Option<T>>> {
        self.filter_map(move |value| keep(&value).then_some(value))
    }

    /// Turns each record into another or drops it; timestamps and marks stay.
    pub fn filter_map<U, F: FnMut(T) -> Option<U>>(
        self,
        f: F,
    ) -> DataStream<U, FilterMap<T, Self, F>> {
        let name = self.name();
        DataStream::new(FilterMap { source: self, f, chunk: Lane::new() }, name)
    }

    /// Shows each record to `f` on its way.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// let mut seen = Vec::new();
    /// let numbers = DataStream::from_stream(stream::iter(0..3)).inspect(|n| seen.push(*n));
    /// block_on(numbers.for_each(drop))?;
    /// assert_eq!(seen, [0, 1, 2]);
    /// # Ok::<(), StreamError>(())
    /// ```
    pub fn inspect<F: FnMut(&T)>(
        self,
        mut f: F,
    ) -> DataStream<T, FilterMap<T, Self, impl FnMut(T) -> Option<T>>> {
        self.filter_map(move |value| {
            f(&value);
            Some(value)
        })
    }
}

impl<T, U, Src, F> Source<U> for FilterMap<T, Src, F>
where
    Src: Source<T>,
    F: FnMut(T) -> Option<U>,
{
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<U>,
    ) -> Poll<Result<bool, StreamError>> {
        for _ in 0..TURNS {
            if !into.is_empty() {
                return Poll::Ready(Ok(true));
            }
            self.chunk.clear();
            match ready!(self.source.poll_chunk(cx, &mut self.chunk)) {
                Ok(true) => {}
                end => return Poll::Ready(end),
            }
            let f = &mut self.f;
            self.chunk.take_all(|taken| match taken {
                Taken::Record(value, at) => {
                    if let Some(value) = f(value) {
                        into.push(value, at);
                    }
                }
                Taken::Mark(mark) => into.mark(mark),
            });
        }
        if !into.is_empty() {
            return Poll::Ready(Ok(true));
        }
        // It may reject everything of an input that is always ready: let others run.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_each<G: FnMut(U)>(
        &mut self,
        cx: &mut Context<'_>,
        local: &mut Lane<U>,
        g: &mut G,
    ) -> Poll<Result<(), StreamError>> {
        local.values.drain(..).for_each(&mut *g);
        let f = &mut self.f;
        self.source.poll_each(cx, &mut self.chunk, &mut |value| {
            if let Some(value) = f(value) {
                g(value);
            }
        })
    }

    fn discard(&mut self) {
        self.source.discard();
    }

    fn fail_on_stall(&mut self) {
        self.source.fail_on_stall();
    }

    fn is_reported(&self) -> bool {
        self.source.is_reported()
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.source.ledger()
    }
}

impl<T, Src: fmt::Debug, F> fmt::Debug for FilterMap<T, Src, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterMap").field("source", &self.source).finish_non_exhaustive()
    }
}
