use super::Window;
use crate::time::{Timestamp, saturating_millis};
use std::time::Duration;

/// Says to which windows a record belongs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not assign windows",
    label = "expected `Tumbling`, `Sliding`, `Session`, `Global` or an `Assigner` of your own"
)]
pub trait Assigner {
    /// The windows of one record.
    type Windows: Iterator<Item = Window>;

    /// The trigger of its windows, unless another one is chosen.
    type Trigger: Default;

    /// Whether windows of one key that touch become one.
    const MERGES: bool = false;

    /// Whether windows end: if so, records need timestamps and can be late.
    const ENDS: bool = true;

    /// Whether each instant belongs to one window at most.
    const DISJOINT: bool = false;

    /// The windows of a record at `at`, the newest first.
    fn assign(&self, at: Timestamp) -> Self::Windows;
}

/// Milliseconds of a window's length.
///
/// # Panics
///
/// If there is not a single one.
#[track_caller]
pub(super) fn length(duration: Duration, what: &str) -> i64 {
    let millis = saturating_millis(duration);
    assert!(millis > 0, "the {what} of a window must be at least 1 ms");
    millis
}

/// How far `at` is behind the last start of a period; starts are at `offset` plus multiples.
#[inline]
pub(super) const fn into_period(at: Timestamp, period: i64, offset: i64) -> i64 {
    // The offset is below the period, so this stays in range up to the ends of time.
    let into = at.as_millis().rem_euclid(period) - offset;
    if into < 0 { into + period } else { into }
}
