//! What most programs need: `use side_output::prelude::*;`.

pub use crate::{
    Aggregate, Context, DataStream, Global, Late, Ledger, Pane, RouteLate, Routes, Session,
    Sliding, SplitExt, Splitter, StreamError, Timestamp, Tumbling, Watermarks, Window,
    WindowContext, WindowProcess, WindowResult, WindowStreams, discard, each, splitter,
};
