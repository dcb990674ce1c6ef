//! Core of `side-output`: outputs, operators without I/O, and the futures runtime.
//!
//! Use it through the facade, `side_output`; this crate knows no macro.

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

/// What this crate's own macros name.
#[doc(hidden)]
#[cfg(feature = "serde")]
pub mod __private {
    pub use crate::output::deserialize_tag;
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
}
