//! Core of `side-output`: outputs, operators without I/O, and the futures runtime.
//!
//! Use it through the facade, `side_output`; this crate knows no macro.

pub mod error;
pub mod operator;
pub mod output;
pub mod state;
pub mod stream;
pub mod time;

mod sync;

pub use self::error::StreamError;
pub use self::time::{Mark, Timestamp};
