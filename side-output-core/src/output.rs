//! What a splitter is: the traits that `#[splitter]` implements and that can be written by hand.
//!
//! Nothing here polls, buffers for a reader or knows a clock.

mod account;
mod collector;
mod context;
mod lane;
mod ledger;
mod routes;
mod single;
mod spec;
mod tag;
mod with_timestamp;

pub use self::account::Account;
pub use self::collector::{Collect, Collector};
pub use self::context::Context;
pub(crate) use self::context::OwnContext;
pub(crate) use self::lane::Taken;
pub use self::lane::{Lane, LanePairVisitor, LaneVisitor, Lanes};
pub use self::ledger::{Ledger, OutputLedger};
pub use self::routes::Routes;
pub use self::single::{Single, SingleLanes};
pub use self::spec::{OutputSpec, Overflow};
#[cfg(feature = "serde")]
pub use self::tag::deserialize_tag;
pub use self::tag::{AnyTag, PayloadOfAll, Tag, TagOf, TapTagOf, UnknownTag};
pub use self::with_timestamp::WithTimestamp;

use crate::stream::{DataStream, Driver, Hub, Outlet, Typed};
use std::sync::Arc;

/// An enum of outputs: each value is one record on its way through exactly one of them.
///
/// Implemented by `#[splitter]`. By hand it takes this trait, one [`OutputAt`] for each output
/// and a [`Lanes`]; `tests/by_hand.rs` shows one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a splitter",
    label = "expected an enum with `#[splitter]`",
    note = "put `#[splitter]` on the enum whose variants are the outputs"
)]
pub trait Splitter: Sized {
    /// One buffer for each output.
    type Lanes: Lanes<Self>;

    /// The struct of this splitter's streams, one field for each output.
    type Streams<H: Outlet<Self>>;

    /// The enum's name.
    const NAME: &'static str;

    /// The outputs, in the order of declaration.
    const OUTPUTS: &'static [OutputSpec];

    /// Number of output indexes; more than `OUTPUTS.len()` where a `cfg` removed a variant.
    const SLOTS: usize;

    /// Index of the output that this route takes.
    fn index(&self) -> usize;

    /// Makes the streams that read from `hub`.
    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> Self::Streams<Typed<D>>;
}

/// The output number `I` of a splitter.
pub trait OutputAt<const I: usize>: Splitter {
    /// What this output carries.
    type Payload;

    /// Name, back-pressure policy and kind of this output.
    const SPEC: OutputSpec;

    /// The route of `payload` through this output.
    fn wrap(payload: Self::Payload) -> Self;

    /// The payload if this route takes this output, else the route again.
    fn take(self) -> Result<Self::Payload, Self>;

    /// This output's buffer.
    fn lane(lanes: &mut Self::Lanes) -> &mut Lane<Self::Payload>;

    /// This output's stream.
    fn stream<H: Outlet<Self>>(
        streams: &mut Self::Streams<H>,
    ) -> &mut DataStream<Self::Payload, H::Source<I>>;
}

/// An output marked `#[tap]`: it receives records beside the returned route.
#[diagnostic::on_unimplemented(
    message = "this output of `{Self}` is exclusive; return its route instead of emitting it",
    label = "not a tap of `{Self}`",
    note = "only an output marked `#[tap]` can be emitted beside the returned route"
)]
pub trait TapAt<const I: usize>: OutputAt<I> {}
