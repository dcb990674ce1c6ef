use super::source::{CHUNK, TURNS, pass_on};
use super::{DataStream, Fed, Intake, LedgerHandle, Source};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::task::Context;

/// How many records one poll may reject.
const SHARE: usize = CHUNK * TURNS;

/// Source for the [`map`](DataStream::map), [`filter`](DataStream::filter),
/// [`filter_map`](DataStream::filter_map) and [`inspect`](DataStream::inspect) methods.
pub struct FilterMap<T, Src, F> {
    source: Src,
    f: F,
    records: PhantomData<fn(T)>,
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
        DataStream::new(FilterMap { source: self, f, records: PhantomData }, name)
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
    #[inline]
    fn feed<K: Intake<U>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        self.source.feed(cx, &mut Filtering { f: &mut self.f, intake, rejected: 0 })
    }

    #[inline]
    fn pop(&mut self) -> Option<U> {
        loop {
            if let Some(value) = (self.f)(self.source.pop()?) {
                return Some(value);
            }
        }
    }

    fn resumes() -> bool {
        Src::resumes()
    }

    pass_on!(source);
}

struct Filtering<'a, F, K> {
    f: &'a mut F,
    intake: &'a mut K,
    rejected: usize,
}

impl<T, U, F: FnMut(T) -> Option<U>, K: Intake<U>> Intake<T> for Filtering<'_, F, K> {
    const STOPS: bool = K::STOPS;

    #[inline(always)]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        if let Some(value) = (self.f)(value) {
            return self.intake.record(value, at);
        }
        // It may reject everything of an input that is always ready: let others run.
        self.rejected += 1;
        if K::STOPS && self.rejected >= SHARE {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.intake.mark(mark)
    }
}

impl<T, Src: fmt::Debug, F> fmt::Debug for FilterMap<T, Src, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterMap").field("source", &self.source).finish_non_exhaustive()
    }
}
