//! What generated code names. Not public API: it changes without notice.

pub use side_output_core::__private::*;
