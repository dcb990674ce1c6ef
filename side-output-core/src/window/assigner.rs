use super::Window;
use crate::time::{Timestamp, saturating_millis};
use std::time::Duration;

/// Says to which windows a record belongs.
///
/// # Examples
///
/// Working days, from Monday to Friday; a record of the weekend belongs to no window:
///
/// ```
/// use side_output::window::Separate;
/// use side_output::{Assigner, EventTime, Timestamp, Window};
///
/// const DAY: i64 = 86_400;
///
/// struct WorkingDays;
///
/// impl Assigner for WorkingDays {
///     type Windows = std::option::IntoIter<Window>;
///     type Trigger = EventTime;
///     type Merging = Separate;
///
///     const DISJOINT: bool = true;
///
///     fn assign(&self, at: Timestamp) -> Self::Windows {
///         let day = at.as_millis().div_euclid(DAY * 1000);
///         // 1970-01-01 was a Thursday.
///         let working = (day + 3).rem_euclid(7) < 5;
///         let start = Timestamp::from_secs(day * DAY);
///         let end = Timestamp::from_secs((day + 1) * DAY);
///         working.then(|| Window::new(start, end)).into_iter()
///     }
/// }
///
/// assert_eq!(WorkingDays.assign(Timestamp::from_secs(DAY)).count(), 1);
/// assert_eq!(WorkingDays.assign(Timestamp::from_secs(2 * DAY)).count(), 0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not assign windows",
    label = "expected `Tumbling`, `Sliding`, `Session`, `Global` or an `Assigner` of your own"
)]
pub trait Assigner {
    /// The windows of one record.
    type Windows: Iterator<Item = Window>;

    /// The trigger of its windows, unless another one is chosen.
    type Trigger: Default;

    /// Whether windows of one key that touch become one: [`Merged`] or [`Separate`]. Windows that
    /// do take only triggers that [say how they merge](super::MergingTrigger).
    type Merging: Merging;

    #[doc(hidden)]
    const MERGES: bool = <Self::Merging as Merging>::MERGES;

    /// Whether windows end: if so, records need timestamps and can be late.
    const ENDS: bool = true;

    /// Whether each instant belongs to one window at most.
    const DISJOINT: bool = false;

    /// The windows of a record at `at`, the newest first.
    fn assign(&self, at: Timestamp) -> Self::Windows;

    /// Whether records are kept once for all of their windows, in the slices of time that
    /// [`slice`](Self::slice) gives. Worth it where a record has two windows or more.
    ///
    /// Only windows with the trigger [`EventTime`](super::EventTime) share, and only those that
    /// [`aggregate`](crate::operator::Windows::aggregate) records in any order. Of two windows of a
    /// record the newer one then begins later, and ends later.
    fn has_slices(&self) -> bool {
        false
    }

    /// The slice of time around `at`, the same for each instant in it: no window begins or ends
    /// within it. The longer slices are, the less there is to do.
    ///
    /// # Examples
    ///
    /// Two hours every hour, and a slice for each hour:
    ///
    /// ```
    /// use side_output::window::Separate;
    /// use side_output::{Assigner, EventTime, Sliding, Timestamp, Window};
    /// use std::time::Duration;
    ///
    /// const HOUR: i64 = 3_600_000;
    ///
    /// struct TwoHours;
    ///
    /// impl Assigner for TwoHours {
    ///     type Windows = <Sliding as Assigner>::Windows;
    ///     type Trigger = EventTime;
    ///     type Merging = Separate;
    ///
    ///     fn assign(&self, at: Timestamp) -> Self::Windows {
    ///         let hour = Duration::from_millis(HOUR.unsigned_abs());
    ///         Sliding::of(2 * hour).every(hour).assign(at)
    ///     }
    ///
    ///     fn has_slices(&self) -> bool {
    ///         true
    ///     }
    ///
    ///     fn slice(&self, at: Timestamp) -> Window {
    ///         let start = at.saturating_sub_millis(at.as_millis().rem_euclid(HOUR));
    ///         Window::through(start, start.saturating_add_millis(HOUR - 1))
    ///     }
    /// }
    ///
    /// let slice = TwoHours.slice(Timestamp::from_millis(HOUR + 1));
    /// assert!(TwoHours.assign(slice.start()).eq(TwoHours.assign(slice.max_timestamp())));
    /// ```
    fn slice(&self, at: Timestamp) -> Window {
        Window::through(at, at)
    }
}

/// Whether windows of one key that touch become one.
pub trait Merging {
    /// Whether they do.
    const MERGES: bool;
}

/// Windows stay as they were assigned.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Separate;

/// Windows of one key that touch become one.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Merged;

impl Merging for Separate {
    const MERGES: bool = false;
}

impl Merging for Merged {
    const MERGES: bool = true;
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
