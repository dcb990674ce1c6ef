//! Typed side outputs: one stream in, each record leaves through exactly one typed output.
//!
//! # Declare
//!
//! An enum says which outputs there are, and what each carries:
//!
//! ```
//! use side_output::prelude::*;
//!
//! #[splitter]
//! #[derive(Debug, PartialEq)]
//! enum Orders {
//!     /// Passed validation.
//!     #[main]
//!     Valid(u32),
//!     /// Kept as received.
//!     Invalid(String),
//! }
//!
//! #[splitter(Orders)]
//! fn split_order(line: String) -> Orders {
//!     let Ok(id) = line.parse() else {
//!         return Orders::Invalid(line);
//!     };
//!     Orders::Valid(id)
//! }
//!
//! // It is an ordinary enum and an ordinary function.
//! assert_eq!(split_order("7".to_owned()), Orders::Valid(7));
//! ```
//!
//! [`#[splitter]`](macro@splitter) on the enum generates its streams, tags and wiring. On the
//! function it turns a route that is built and not returned into an error:
//!
//! ```compile_fail
//! # use side_output::prelude::*;
//! # #[splitter]
//! # enum Orders { Valid(u32), Invalid(String) }
//! #[splitter(Orders)]
//! fn split_order(line: String) -> Orders {
//!     if line.is_empty() {
//!         Orders::Invalid(line.clone()); // error: this route is built but not returned
//!     }
//!     Orders::Valid(7)
//! }
//! ```
//!
//! A function may also return an `Option`, an array, a `Vec` or a `Result` of the enum: see
//! [`Routes`]. An output marked `#[tap]` gets what [`Context::output`] emits *beside* the returned
//! route; there is no other way for a record to leave twice.
//!
//! # Split, and read
//!
//! [`split_with`](SplitExt::split_with) works on any stream. Nothing runs until an output is read;
//! whichever is read drives the input for all. Read them together, in one task or in many:
//!
//! ```
//! # use side_output::prelude::*;
//! # #[splitter]
//! # enum Orders { #[main] Valid(u32), Invalid(String) }
//! # fn split_order(line: &str) -> Orders {
//! #     line.parse().map_or_else(|_| Orders::Invalid(line.to_owned()), Orders::Valid)
//! # }
//! use futures::executor::block_on;
//! use futures::stream;
//!
//! let OrdersStreams { valid, invalid } = stream::iter(["1", "x", "2"]).split_with(split_order);
//! let (sum, invalid) = block_on(async {
//!     futures::try_join!(
//!         valid.fold(0, |sum, id| *sum += id),
//!         invalid.fold(Vec::new(), Vec::push),
//!     )
//! })?;
//! assert_eq!((sum, invalid), (3, vec!["x".to_owned()]));
//! # Ok::<(), StreamError>(())
//! ```
//!
//! The pattern names every output; one left out is a compile error. `get_side_output(tag)` takes
//! one stream at a time. A [`DataStream`] is a `futures` stream, but its own
//! [`for_each`](DataStream::for_each), [`fold`](DataStream::fold) and
//! [`forward`](DataStream::forward) are faster, and return the error that ended the stream.
//!
//! # Or wire
//!
//! A wiring gives every output a destination and drives them all at once, so that none can be
//! forgotten and nothing can wait for ever for one that nobody reads. Records go straight from the
//! function into the destinations:
//!
//! ```
//! # use side_output::prelude::*;
//! # use futures::executor::block_on;
//! # use futures::stream;
//! # #[splitter]
//! # enum Orders { #[main] Valid(u32), Invalid(String) }
//! # fn split_order(line: &str) -> Orders {
//! #     line.parse().map_or_else(|_| Orders::Invalid(line.to_owned()), Orders::Valid)
//! # }
//! let mut invalid = Vec::new();
//! let ledger = block_on(
//!     stream::iter(["1", "x", "2"])
//!         .split_with(split_order)
//!         .wire()
//!         .valid(discard()) // or a closure from the stream to a future
//!         .invalid(&mut invalid) // any sink
//!         .run(),
//! )?;
//! assert_eq!(ledger.received, 3);
//! assert_eq!((ledger["valid"].discarded, ledger["invalid"].delivered), (2, 1));
//! assert!(ledger.is_balanced());
//! # Ok::<(), StreamError>(())
//! ```
//!
//! [`guide::destinations`] has them all. The [`Ledger`] accounts for every record at any time, also while it runs, after an error, and
//! after the wiring was dropped half-way.
//!
//! # Back-pressure
//!
//! Each output buffers as much as its `capacity` says, and then does what its policy says:
//!
//! ```
//! # use side_output::prelude::*;
//! #[splitter]
//! enum Sensors {
//!     #[main]
//!     Reading(f64),
//!     /// An alert that nobody takes must not stop the readings.
//!     #[tap]
//!     #[output(capacity = 100, overflow = "drop_oldest")]
//!     Alert(String),
//! }
//! ```
//!
//! `block`, the default, stops reading until there is room; `drop_oldest` and `drop_newest` count
//! what they drop; `unbounded` buffers without a limit. [`capacity`](DataStream::capacity) and
//! [`overflow`](DataStream::overflow) set both at run time, also for outputs that the library
//! declares, such as the late records of windows. A reader that waits because *another* output
//! is full gets a warning through `tracing` with that output's name within a second, or an error if
//! it asked for it by [`fail_on_stall`](DataStream::fail_on_stall). The warning needs a subscriber of
//! `tracing` in the program; without one, `fail_on_stall` is the way to hear of it.
//!
//! # Errors
//!
//! The end of an output is the true end of the input. An error of the input, an `Err` of the
//! function and a panic in it are the same [`StreamError`] at every reader. Bad input is no error:
//! it is a record, with an output of its own.
//!
//! ```
//! # use side_output::prelude::*;
//! # use futures::executor::block_on;
//! # use futures::stream;
//! # #[splitter]
//! # enum Numbers { Even(u32), Odd(u32) }
//! let input = stream::iter([Ok(1), Ok(2), Err("connection lost")]);
//! let NumbersStreams { even, odd } = DataStream::from_try_stream(input)
//!     .split_with(|n: u32| if n % 2 == 0 { Numbers::Even(n) } else { Numbers::Odd(n) });
//! let (even, odd) = block_on(async { futures::join!(even.for_each(drop), odd.for_each(drop)) });
//! assert!(even.unwrap_err().to_string().contains("connection lost"));
//! assert!(odd.unwrap_err().to_string().contains("connection lost"));
//! ```
//!
//! [`guide::errors`] shows how a service survives what goes wrong, and [`guide::shutdown`] how it is
//! ended.
//!
//! # Compose
//!
//! An output is a [`DataStream`] like any other: [`map`](DataStream::map) it, split it again,
//! [`union`](DataStream::union) it with others, [`connect`](DataStream::connect) it. Streams carry
//! the type of what they read; [`boxed`](DataStream::boxed) makes a plain `DataStream<T>` for a
//! struct's field or a function's signature.
//!
//! # Time, state and several inputs
//!
//! - [`guide::event_time`]: timestamps, watermarks, windows, and what is late.
//! - [`KeyedProcess`]: a function with state and timers for each key; [`Process`] without keys.
//! - [`CoProcess`], [`KeyedCoProcess`]: a function on two inputs;
//!   [`reconcile`](stream::KeyedStream::reconcile) matches them by key.
//! - [`map_async`](DataStream::map_async): asynchronous work for each record; see
//!   [`guide::asynchronous`].
//! - [`BroadcastProcess`], [`KeyedBroadcastProcess`]: a function that a second stream configures.
//!
//! # Features
//!
//! - `serde` (default): `Serialize` and `Deserialize` for tags, timestamps and results.
//! - `tokio`: senders of its channels are destinations, and `write_to` writes to its files and sockets.
//! - `json`, `csv`: a [codec] for JSON lines, and one for CSV.

pub mod guide;
pub mod prelude;

#[doc(hidden)]
pub mod __private;

#[cfg(feature = "job")]
pub use side_output_connect as connect;
pub use side_output_core::error::StreamError;
pub use side_output_core::operator::WindowStreams;
pub use side_output_core::operator::{
    Answered, AtEnd, BroadcastContext, BroadcastProcess, CoProcess, Configuration, Configured,
    Either, FailedCall, KeyContext, KeyedBroadcastContext, KeyedBroadcastProcess, KeyedCoProcess,
    KeyedContext, KeyedProcess, Match, Process, ReconcileWithin, Reconciliation,
    ReconciliationStreams, TimerChange,
};
pub use side_output_core::output::{
    Collect, Context, Ledger, OutputLedger, OutputSpec, Overflow, Routes, Splitter, Tag,
    UnknownTag, WithTimestamp,
};
#[doc(hidden)]
pub use side_output_core::stream;
pub use side_output_core::stream::codec;
#[cfg(feature = "job")]
pub use side_output_core::stream::job;
pub use side_output_core::stream::wiring::{
    Discarded, discard, discard_noting, each, overflow_into, try_each,
};
#[cfg(feature = "tokio")]
pub use side_output_core::stream::write_to;
pub use side_output_core::stream::{
    Calls, DataStream, Element, LedgerHandle, Retry, Shutdown, SplitExt, Streamed,
};
pub use side_output_core::time::{
    Advice, Alignment, Barriers, BoundedOutOfOrderness, Clock, Mark, Marks, SystemClock, TestClock,
    Timestamp, WatermarkGenerator, Watermarks,
};
pub use side_output_core::window::{
    Aggregate, Assigner, Calendar, ContinuousEventTime, Count, EventTime, EveryCount, Global, Late,
    LateWindows, MergingTrigger, Never, Pane, Purging, RouteLate, Session, Sliding, Trigger,
    TriggerContext, Tumbling, Verdict, Window, WindowContext, WindowProcess, WindowResult,
};
pub use side_output_core::{checkpoint, operator, output, state, window};
pub use side_output_macros::splitter;

/// The examples of the README are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
