//! Core of `side-output`: outputs, operators without I/O, and the futures runtime.
//!
//! Use it through the facade, `side_output`. The macro is used here only where the library declares
//! splitters of its own; everything else is generic over the traits that it implements.

pub mod checkpoint;
pub mod error;
pub mod operator;
pub mod output;
pub mod state;
pub mod stream;
pub mod time;
pub mod window;

mod sync;
#[cfg(test)]
mod test_support;

pub use self::error::StreamError;
pub use self::time::{Mark, Timestamp};

#[doc(hidden)]
pub mod __private;
