//! What most programs need: `use side_output::prelude::*;`.

pub use crate::{
    Context, DataStream, Ledger, Routes, SplitExt, Splitter, StreamError, Timestamp, discard, each,
};
