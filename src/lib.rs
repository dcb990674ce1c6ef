//! Typed side outputs: one stream in, each record leaves through exactly one typed output.

pub use side_output_core::error::StreamError;
pub use side_output_core::output::{
    Collect, Context, Ledger, OutputLedger, OutputSpec, Overflow, Routes, Splitter, Tag, UnknownTag,
};
pub use side_output_core::stream::{DataStream, Element, LedgerHandle, SplitExt};
pub use side_output_core::time::{Alignment, Mark, Marks, Timestamp};
