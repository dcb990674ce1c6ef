//! What most programs need: `use side_output::prelude::*;`.

pub use crate::{
    Aggregate, BroadcastContext, BroadcastProcess, CoProcess, Configuration, Context, DataStream,
    Global, KeyedCoProcess, KeyedContext, KeyedProcess, Late, Ledger, Pane, Process, RouteLate,
    Routes, Session, Sliding, SplitExt, Splitter, StreamError, Timestamp, Tumbling, Watermarks,
    Window, WindowContext, WindowProcess, WindowResult, WindowStreams, discard, each, splitter,
    try_each,
};
