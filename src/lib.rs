//! Typed side outputs: one stream in, each record leaves through exactly one typed output.

pub mod guide;
pub mod prelude;

#[doc(hidden)]
pub mod __private;

pub use side_output_core::error::StreamError;
pub use side_output_core::operator::WindowStreams;
pub use side_output_core::operator::{
    BroadcastContext, BroadcastProcess, CoProcess, Configuration, Configured, Either, KeyContext,
    KeyedBroadcastContext, KeyedBroadcastProcess, KeyedCoProcess, KeyedContext, KeyedProcess,
    Match, Process, ReconcileWithin, Reconciliation, ReconciliationStreams, TimerChange,
};
pub use side_output_core::output::{
    Collect, Context, Ledger, OutputLedger, OutputSpec, Overflow, Routes, Splitter, Tag,
    UnknownTag, WithTimestamp,
};
#[doc(hidden)]
pub use side_output_core::stream;
pub use side_output_core::stream::wiring::{
    Discarded, discard, discard_noting, each, overflow_into,
};
pub use side_output_core::stream::{DataStream, Element, LedgerHandle, SplitExt};
pub use side_output_core::time::{
    Advice, Alignment, BoundedOutOfOrderness, Clock, Mark, Marks, SystemClock, TestClock,
    Timestamp, WatermarkGenerator, Watermarks,
};
pub use side_output_core::window::{
    Aggregate, Assigner, ContinuousEventTime, Count, EventTime, EveryCount, Global, Late,
    LateWindows, Never, Pane, Purging, RouteLate, Session, Sliding, Trigger, TriggerContext,
    Tumbling, Verdict, Window, WindowContext, WindowProcess, WindowResult,
};
pub use side_output_core::{operator, output, state};
pub use side_output_macros::splitter;
