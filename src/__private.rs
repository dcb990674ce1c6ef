//! What generated code names. Not public API: it changes without notice.

pub use side_output_core::__impl_tag_serde as impl_tag_serde;
pub use side_output_core::output::*;
pub use side_output_core::stream::wiring::*;
pub use side_output_core::stream::{
    Boxed, DataStream, Driver, Hub, LedgerHandle, Outlet, Port, SendOutlet, Typed,
};
pub use side_output_core::time::Timestamp;
pub use std::sync::Arc;
