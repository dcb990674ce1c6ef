use crate::time::Timestamp;
use std::fmt;

/// A stretch of event time: from its start up to, and not including, its end.
///
/// At the ends of time windows are cut off: a window that would reach beyond
/// [`Timestamp::MAX`] has that as its last instant.
///
/// # Examples
///
/// ```
/// use side_output::{Timestamp, Window};
///
/// let at = Timestamp::from_millis;
/// let window = Window::new(at(0), at(1000));
/// assert_eq!(window.max_timestamp(), at(999));
/// assert!(window.contains(at(999)) && !window.contains(at(1000)));
/// assert_eq!(window.to_string(), "[0, 1000)");
/// ```
// The order of fields is the order in which windows fire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    last: Timestamp,
    start: Timestamp,
}

impl Window {
    /// All of time.
    pub const GLOBAL: Self = Self { last: Timestamp::MAX, start: Timestamp::MIN };

    /// The window from `start` to just before `end`.
    #[must_use]
    pub const fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { last: end.saturating_sub_millis(1), start }
    }

    /// The window from `start` to `last`, both included.
    #[inline]
    #[must_use]
    pub const fn through(start: Timestamp, last: Timestamp) -> Self {
        Self { last, start }
    }

    /// The first instant.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        self.start
    }

    /// The first instant after the window; [`Timestamp::MAX`] if there is none.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> Timestamp {
        self.last.saturating_add_millis(1)
    }

    /// The last instant: the watermark at which the window fires, and the timestamp of what it
    /// says.
    #[inline]
    #[must_use]
    pub const fn max_timestamp(&self) -> Timestamp {
        self.last
    }

    /// Whether `at` is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at <= self.last
    }

    /// Whether they overlap, or one starts where the other ends.
    #[inline]
    #[must_use]
    pub fn touches(&self, other: &Self) -> bool {
        self.start <= other.end() && other.start <= self.end()
    }

    /// The window from the first instant of both to the last.
    #[inline]
    #[must_use]
    pub fn cover(&self, other: &Self) -> Self {
        Self { last: self.last.max(other.last), start: self.start.min(other.start) }
    }

    /// The watermark at which its state is freed.
    #[inline]
    pub(crate) const fn cleanup(&self, lateness: i64) -> Timestamp {
        self.last.saturating_add_millis(lateness)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}, {:?})", self.start, self.end())
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
