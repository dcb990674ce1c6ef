use super::assigner::{into_period, length};
use super::{Assigner, EventTime, Separate, Window};
use crate::time::Timestamp;
use std::iter;
use std::time::Duration;

/// Windows of one length, one after the other.
///
/// # Examples
///
/// ```
/// use side_output::{Assigner, Timestamp, Tumbling, Window};
/// use std::time::Duration;
///
/// let at = Timestamp::from_millis;
/// let hours = Tumbling::of(Duration::from_millis(1000)).offset_millis(300);
/// assert!(hours.assign(at(-1)).eq([Window::new(at(-700), at(300))]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tumbling {
    size: i64,
    offset: i64,
}

impl Tumbling {
    /// Windows of length `size` that start at multiples of it, counted from 1970.
    ///
    /// # Panics
    ///
    /// If `size` is less than a millisecond.
    #[must_use]
    #[track_caller]
    pub fn of(size: Duration) -> Self {
        Self { size: length(size, "size"), offset: 0 }
    }

    /// Lets windows start `offset` milliseconds later, or earlier if it is negative: a time zone's
    /// days, for example.
    #[must_use]
    pub const fn offset_millis(mut self, offset: i64) -> Self {
        self.offset = offset.rem_euclid(self.size);
        self
    }
}

impl Assigner for Tumbling {
    type Windows = iter::Once<Window>;
    type Trigger = EventTime;
    type Merging = Separate;

    const DISJOINT: bool = true;

    #[inline]
    fn assign(&self, at: Timestamp) -> iter::Once<Window> {
        let into = into_period(at, self.size, self.offset);
        let start = at.saturating_sub_millis(into);
        iter::once(Window::through(start, at.saturating_add_millis(self.size - 1 - into)))
    }
}
