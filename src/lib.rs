//! Typed side outputs: one stream in, each record leaves through exactly one typed output.

pub mod prelude;

#[doc(hidden)]
pub mod __private;

pub use side_output_core::error::StreamError;
pub use side_output_core::output::{
    Collect, Context, Ledger, OutputLedger, OutputSpec, Overflow, Routes, Splitter, Tag, UnknownTag,
};
pub use side_output_core::stream::wiring::{discard, each};
pub use side_output_core::stream::{DataStream, Element, LedgerHandle, SplitExt};
pub use side_output_core::time::{Alignment, Mark, Marks, Timestamp};
