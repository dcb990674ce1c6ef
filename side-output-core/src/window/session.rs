use super::assigner::length;
use super::{Assigner, EventTime, Merged, Window};
use crate::time::Timestamp;
use std::iter;
use std::time::Duration;

/// Windows that last as long as records keep coming: a gap ends them.
///
/// Each record opens a window of the length of the gap, and windows of one key that overlap or
/// touch become one. A late record within the allowed lateness can extend a session that has
/// fired, or bridge two: the session then fires again, as a late update whose window covers those
/// that it replaces. A record is late only if it does not touch a session that is still kept.
///
/// # Examples
///
/// ```
/// use side_output::{Assigner, Session, Timestamp, Window};
/// use std::time::Duration;
///
/// let at = Timestamp::from_secs;
/// let visits = Session::with_gap(Duration::from_secs(1800));
/// assert!(visits.assign(at(10)).eq([Window::new(at(10), at(1810))]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    gap: i64,
}

impl Session {
    /// Sessions that end after `gap` without a record.
    ///
    /// # Panics
    ///
    /// If `gap` is less than a millisecond.
    #[must_use]
    #[track_caller]
    pub fn with_gap(gap: Duration) -> Self {
        Self { gap: length(gap, "gap") }
    }
}

impl Assigner for Session {
    type Windows = iter::Once<Window>;
    type Trigger = EventTime;
    type Merging = Merged;

    #[inline]
    fn assign(&self, at: Timestamp) -> iter::Once<Window> {
        iter::once(Window::through(at, at.saturating_add_millis(self.gap - 1)))
    }
}
