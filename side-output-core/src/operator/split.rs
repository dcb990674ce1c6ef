use super::Operator;
#[cfg(feature = "job")]
use super::snapshot::watermark;
use crate::error::StreamError;
use crate::output::{Collect, Collector, Context, OwnContext, Routes, Splitter};
#[cfg(feature = "job")]
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::marker::PhantomData;

/// Marks split functions that take a [`Context`].
#[derive(Debug)]
#[non_exhaustive]
pub struct WithContext;

/// Marks split functions that take the record alone.
#[derive(Debug)]
#[non_exhaustive]
pub struct WithoutContext;

/// A function that says through which output of `S` a record leaves, with or without a
/// `&mut Context<S>`.
///
/// `M` only tells the two kinds of functions apart; it is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a split function for records of type `{T}`",
    label = "expected `fn({T}) -> R` or `fn({T}, &mut Context<S>) -> R`, where `R` is the enum with \
             `#[splitter]` or an `Option`, array, `Vec` or `Result` of it",
    note = "a closure whose last expression ends in `;` evaluates to `()`; drop the `;` or write \
            `return`",
    note = "a closure's context needs its type: `|record: T, cx: &mut Context<S>| …`"
)]
pub trait SplitFn<T, S: Splitter, M> {
    /// Whether it routes a record at most once; taps stand outside of that.
    const SINGLE: bool;

    /// Calls the function and emits what it returns.
    fn call<C: Collect<S>>(
        &mut self,
        value: T,
        at: Timestamp,
        watermark: Timestamp,
        cx: &mut OwnContext<S>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;
}

impl<T, S, R, F> SplitFn<T, S, WithContext> for F
where
    S: Splitter,
    R: Routes<S>,
    F: FnMut(T, &mut Context<S>) -> R,
{
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn call<C: Collect<S>>(
        &mut self,
        value: T,
        at: Timestamp,
        watermark: Timestamp,
        cx: &mut OwnContext<S>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        cx.set(at, watermark);
        let routes = self(value, cx);
        cx.flush(at, out);
        routes.route(at, out)
    }
}

#[diagnostic::do_not_recommend]
impl<T, S, R, F> SplitFn<T, S, WithoutContext> for F
where
    S: Splitter,
    R: Routes<S>,
    F: FnMut(T) -> R,
{
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn call<C: Collect<S>>(
        &mut self,
        value: T,
        at: Timestamp,
        _watermark: Timestamp,
        _cx: &mut OwnContext<S>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self(value).route(at, out)
    }
}

/// The operator behind `split_with`: routes each record by a function and forwards every mark.
pub struct Split<T, S, F, M> {
    function: F,
    cx: OwnContext<S>,
    watermark: Timestamp,
    types: PhantomData<fn(T) -> M>,
}

impl<T, S: Splitter, M, F: SplitFn<T, S, M>> Split<T, S, F, M> {
    /// An operator that routes by `function`.
    pub const fn new(function: F) -> Self {
        Self { function, cx: OwnContext::new(), watermark: Timestamp::MIN, types: PhantomData }
    }
}

impl<T, S: Splitter, M, F: SplitFn<T, S, M>> Operator for Split<T, S, F, M> {
    type In = T;
    type Out = S;

    const STATEFUL: bool = false;

    const EMITS_LAST: bool = F::SINGLE;

    #[inline]
    fn on_record<C: Collect<S>>(
        &mut self,
        value: T,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.function.call(value, at, self.watermark, &mut self.cx, out)
    }

    #[inline(always)]
    fn on_mark<C: Collect<S>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if let Mark::Watermark(watermark) = mark {
            // Not filtered: a regressing watermark of a directly chained source takes the time
            // back, as `process-watermark-regression-forward` records it. What groups or merges
            // streams filters.
            self.watermark = watermark;
        }
        out.mark(mark);
        Ok(())
    }
}

impl<T, S, F, M> fmt::Debug for Split<T, S, F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("watermark", &self.watermark).finish_non_exhaustive()
    }
}

#[cfg(feature = "job")]
impl<T, S, F, M> Snapshot for Split<T, S, F, M> {
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        watermark::save(self.watermark, to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        watermark::load(&mut self.watermark, from)
    }
}
