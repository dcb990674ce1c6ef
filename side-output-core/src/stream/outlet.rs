use super::{BoxSource, DataStream, Driver, Port, Source};
use crate::stream::{StreamAt, Streamed};
use std::marker::PhantomData;

/// How the streams of a splitter hold what they read: with its type, or boxed.
pub trait Outlet<S: Streamed> {
    /// What the stream of output `I` reads.
    type Source<const I: usize>: Source<S::Payload>
    where
        S: StreamAt<I>;
}

/// An outlet whose streams can be boxed: all there is behind them may leave for another thread.
pub trait SendOutlet<S: Streamed>: Outlet<S> {
    /// The stream with a type that names only what it carries.
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: StreamAt<I>;
}

/// Streams that know the type of their operator: records reach `for_each` without a detour.
#[derive(Debug)]
pub struct Typed<D>(PhantomData<fn() -> D>);

impl<S: Streamed, D: Driver<S>> Outlet<S> for Typed<D> {
    type Source<const I: usize>
        = Port<S, D, I>
    where
        S: StreamAt<I>;
}

impl<S, D> SendOutlet<S> for Typed<D>
where
    S: Streamed + 'static,
    S::Lanes: Send,
    D: Driver<S> + Send + 'static,
{
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: StreamAt<I>,
    {
        stream.boxed_port()
    }
}

/// Streams whose type names only what they carry.
#[derive(Debug)]
#[non_exhaustive]
pub struct Boxed;

impl<S: Streamed> Outlet<S> for Boxed {
    type Source<const I: usize>
        = BoxSource<S::Payload>
    where
        S: StreamAt<I>;
}

impl<S: Streamed> SendOutlet<S> for Boxed {
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: StreamAt<I>,
    {
        stream
    }
}
