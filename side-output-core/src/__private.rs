//! What generated code names. Not public API: it changes without notice.

pub use crate::__impl_tag_serde as impl_tag_serde;
pub use crate::output::*;
pub use crate::stream::wiring::*;
pub use crate::stream::{
    Boxed, DataStream, Driver, Hub, Lane, LanePairVisitor, LaneVisitor, Lanes, LedgerHandle,
    Outlet, Port, SendOutlet, StreamAt, StreamTagOf, Streamed, Typed,
};
pub use crate::time::Timestamp;
#[cfg(feature = "serde")]
pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use side_output_macros::splitter;
pub use std::sync::Arc;
