use super::{BoxSource, DataStream, Driver, Port, Source};
use crate::output::{OutputAt, Splitter};
use std::marker::PhantomData;

/// How the streams of a splitter hold what they read: with its type, or boxed.
pub trait Outlet<S: Splitter> {
    /// What the stream of output `I` reads.
    type Source<const I: usize>: Source<<S as OutputAt<I>>::Payload>
    where
        S: OutputAt<I>;
}

/// An outlet whose streams can be boxed: all there is behind them may leave for another thread.
pub trait SendOutlet<S: Splitter>: Outlet<S> {
    /// The stream with a type that names only what it carries.
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>;
}

/// Streams that know the type of their operator: records reach `for_each` without a detour.
#[derive(Debug)]
pub struct Typed<D>(PhantomData<fn() -> D>);

impl<S: Splitter, D: Driver<S>> Outlet<S> for Typed<D> {
    type Source<const I: usize>
        = Port<S, D, I>
    where
        S: OutputAt<I>;
}

impl<S, D> SendOutlet<S> for Typed<D>
where
    S: Splitter + 'static,
    S::Lanes: Send,
    D: Driver<S> + Send + 'static,
{
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>,
    {
        stream.boxed_port()
    }
}

/// Streams whose type names only what they carry.
#[derive(Debug)]
#[non_exhaustive]
pub struct Boxed;

impl<S: Splitter> Outlet<S> for Boxed {
    type Source<const I: usize>
        = BoxSource<<S as OutputAt<I>>::Payload>
    where
        S: OutputAt<I>;
}

impl<S: Splitter> SendOutlet<S> for Boxed {
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>,
    {
        stream
    }
}
