//! Keyed state: one typed value per key, with its timers.
//!
//! Pure data structures: nothing here calls a function of the user, emits a record or knows a
//! clock. Hash maps are used for look-up alone; no result depends on their iteration order.

mod keys;
mod timers;

pub use self::keys::{Due, Keys};
pub use self::timers::{Timers, Times};
