//! What most programs need: `use side_output::prelude::*`.

pub use crate::{Context, DataStream, Routes, SplitExt, StreamError, Timestamp};
