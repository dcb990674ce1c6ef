use super::{DataStream, Driver, Hub, Lane, Lanes, Outlet, SendOutlet, Typed};
use crate::output::{OutputAt, Splitter, Tag};
use std::sync::Arc;

/// A splitter whose outputs are streams.
///
/// Implemented by `#[splitter]` beside [`Splitter`], which knows nothing of streams.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a splitter",
    label = "expected an enum with `#[splitter]`",
    note = "put `#[splitter]` on the enum whose variants are the outputs"
)]
pub trait Streamed: Splitter {
    /// One buffer for each output.
    type Lanes: Lanes<Self>;

    /// The struct of this splitter's streams, one field for each output.
    type Streams<H: Outlet<Self>>;

    /// Makes the streams that read from `hub`.
    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> Self::Streams<Typed<D>>;
}

/// The output number `I` of a splitter, as a stream.
pub trait StreamAt<const I: usize>: OutputAt<I> + Streamed {
    /// This output's buffer.
    fn lane(lanes: &mut Self::Lanes) -> &mut Lane<Self::Payload>;

    /// This output's stream.
    fn stream<H: Outlet<Self>>(
        streams: &mut Self::Streams<H>,
    ) -> &mut DataStream<Self::Payload, H::Source<I>>;
}

/// A tag of the splitter `S`, by which the output's stream can be taken.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tag of the splitter `{S}`",
    label = "expected a tag of `{S}`",
    note = "the tags of `{S}` are its constants: a variant `Late` would have `{S}::LATE_TAG`"
)]
pub trait StreamTagOf<S: Streamed> {
    // Not that of `TagOf`, which would be reported once more.
    /// What the output carries.
    type Payload;

    /// Takes the output's stream.
    #[doc(hidden)]
    fn take<H: SendOutlet<S>>(streams: &mut S::Streams<H>) -> DataStream<Self::Payload>;
}

impl<S: StreamAt<I>, const I: usize> StreamTagOf<S> for Tag<S, I> {
    type Payload = S::Payload;

    fn take<H: SendOutlet<S>>(streams: &mut S::Streams<H>) -> DataStream<S::Payload> {
        H::boxed(S::stream::<H>(streams).take())
    }
}
