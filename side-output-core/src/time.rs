//! Event time: instants, the marks that travel between records, and where they come from.
//!
//! Everything here is a value or a pure function, but for the clocks, which have to be handed to
//! what looks at them.

mod advice;
mod alignment;
mod barriers;
mod bell;
mod clock;
mod generator;
mod mark;
mod monotonic;
mod quiet;
mod rfc3339;
mod timestamp;
mod watermarks;

pub use self::advice::Advice;
pub use self::alignment::{Alignment, Marks};
pub use self::barriers::Barriers;
pub use self::clock::{Clock, SystemClock, TestClock};
pub use self::generator::{BoundedOutOfOrderness, Punctuated, WatermarkGenerator};
pub use self::mark::Mark;
pub use self::timestamp::Timestamp;
pub use self::watermarks::{IdleAfter, NeverIdle, NoSkewBound, SkewBound, Watermarks};

pub(crate) use self::monotonic::Monotonic;
pub(crate) use self::quiet::Quiet;
pub(crate) use self::timestamp::saturating_millis;
pub(crate) use self::watermarks::Emission;
#[cfg(feature = "job")]
pub(crate) use self::watermarks::Progress;
