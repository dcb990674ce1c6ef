//! Event time: instants and the marks that travel between records.
//!
//! Everything here is a value or a pure function; nothing reads a clock.

mod alignment;
mod clock;
mod mark;
mod timestamp;

pub use self::alignment::{Alignment, Marks};
pub use self::clock::{Clock, SystemClock, TestClock};
pub use self::mark::Mark;
pub use self::timestamp::Timestamp;
pub(crate) use self::timestamp::saturating_millis;
