//! What most programs need: `use side_output::prelude::*`.

pub use crate::{
    Aggregate, Context, DataStream, Global, Late, Pane, RouteLate, Routes, Session, Sliding,
    SplitExt, StreamError, Timestamp, Tumbling, Watermarks, Window, WindowContext, WindowProcess,
    WindowResult, WindowStreams,
};
