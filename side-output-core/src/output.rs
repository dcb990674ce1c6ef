//! What a splitter is: the traits that `#[splitter]` implements and that can be written by hand.
//!
//! Nothing here polls, buffers for a reader or knows a clock.

mod account;
mod collector;
mod context;
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
pub use self::ledger::{Ledger, OutputLedger};
pub use self::routes::Routes;
pub use self::single::Single;
pub use self::spec::{OutputSpec, Overflow};
#[cfg(feature = "serde")]
pub use self::tag::deserialize_tag;
pub use self::tag::{AnyTag, PayloadOfAll, Tag, TagOf, TapTagOf, UnknownTag};
pub use self::with_timestamp::WithTimestamp;

/// An enum of outputs: each value is one record on its way through exactly one of them.
///
/// Implemented by `#[splitter]`. By hand it takes this trait and one [`OutputAt`] for each output:
/// with them, operators run. That the outputs are streams takes
/// [`Streamed`](crate::stream::Streamed) beside it; `tests/by_hand.rs` shows a whole splitter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a splitter",
    label = "expected an enum with `#[splitter]`",
    note = "put `#[splitter]` on the enum whose variants are the outputs"
)]
pub trait Splitter: Sized {
    /// The enum's name.
    const NAME: &'static str;

    /// The outputs, in the order of declaration.
    const OUTPUTS: &'static [OutputSpec];

    /// Number of output indexes; more than `OUTPUTS.len()` where a `cfg` removed a variant.
    const SLOTS: usize;

    /// Index of the output that this route takes.
    fn index(&self) -> usize;
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
}

/// An output marked `#[tap]`: it receives records beside the returned route.
#[diagnostic::on_unimplemented(
    message = "this output of `{Self}` is exclusive; return its route instead of emitting it",
    label = "not a tap of `{Self}`",
    note = "only an output marked `#[tap]` can be emitted beside the returned route"
)]
pub trait TapAt<const I: usize>: OutputAt<I> {}
