use super::{CoProcess, KeyContext, KeyedContext, KeyedProcess};
use crate::output::{Context, Routes, Splitter};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

/// A closure as a [`KeyedProcess`] without timers.
pub struct KeyedFn<F, K, T, St, S> {
    function: F,
    types: PhantomData<fn(K, T, St) -> S>,
}

impl<F, K, T, St, S, R> KeyedFn<F, K, T, St, S>
where
    F: FnMut(T, &mut St, &mut KeyContext<K, S>) -> R,
{
    /// Wraps `function`.
    pub const fn new(function: F) -> Self {
        Self { function, types: PhantomData }
    }
}

impl<F, K, T, St, S, R> KeyedProcess for KeyedFn<F, K, T, St, S>
where
    K: Hash + Eq + Clone,
    St: Default,
    S: Splitter,
    R: Routes<S>,
    F: FnMut(T, &mut St, &mut KeyContext<K, S>) -> R,
{
    type Key = K;
    type In = T;
    type State = St;
    type Out = S;

    #[inline]
    fn on_record(
        &mut self,
        record: T,
        state: &mut St,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<S> {
        (self.function)(record, state, cx)
    }
}

impl<F: Clone, K, T, St, S> Clone for KeyedFn<F, K, T, St, S> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), types: PhantomData }
    }
}

impl<F, K, T, St, S> fmt::Debug for KeyedFn<F, K, T, St, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedFn")
    }
}

/// Two closures as a [`CoProcess`].
pub struct CoFn<L, R, T, U, S> {
    left: L,
    right: R,
    types: PhantomData<fn(T, U) -> S>,
}

impl<L, R, T, U, S, A, B> CoFn<L, R, T, U, S>
where
    L: FnMut(T, &mut Context<S>) -> A,
    R: FnMut(U, &mut Context<S>) -> B,
{
    /// Calls `left` for the records of the first stream, `right` for those of the second.
    pub const fn new(left: L, right: R) -> Self {
        Self { left, right, types: PhantomData }
    }
}

impl<L, R, T, U, S, A, B> CoProcess for CoFn<L, R, T, U, S>
where
    S: Splitter,
    A: Routes<S>,
    B: Routes<S>,
    L: FnMut(T, &mut Context<S>) -> A,
    R: FnMut(U, &mut Context<S>) -> B,
{
    type Left = T;
    type Right = U;
    type Out = S;

    #[inline]
    fn on_left(&mut self, record: T, cx: &mut Context<S>) -> impl Routes<S> {
        (self.left)(record, cx)
    }

    #[inline]
    fn on_right(&mut self, record: U, cx: &mut Context<S>) -> impl Routes<S> {
        (self.right)(record, cx)
    }
}

impl<L, R, T, U, S> fmt::Debug for CoFn<L, R, T, U, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoFn")
    }
}
