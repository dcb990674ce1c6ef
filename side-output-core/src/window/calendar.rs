use super::{Assigner, EventTime, Separate, Window};
use crate::time::Timestamp;
use std::fmt;
use std::iter;

/// Windows that a function gives, one after the other: the days, weeks or months of a calendar.
///
/// A day of a time zone has 23 or 25 hours where the clocks are changed, so no
/// [`Tumbling`](super::Tumbling) window is one. A library that knows the zone says where the day of
/// an instant begins and ends.
///
/// The function must give the same window for every instant of that window, and that instant must
/// be in it. It is not asked again for each record: windows that are open are looked at first. For
/// windows with gaps in between or overlaps, write an [`Assigner`].
///
/// # Examples
///
/// Days of New York, by the crate `jiff`:
///
/// ```
/// use jiff::ToSpan;
/// use jiff::tz::TimeZone;
/// use side_output::{Assigner, Calendar, Timestamp, Window};
///
/// let zone = TimeZone::get("America/New_York")?;
/// let days = Calendar::new(move |at| {
///     let instant = jiff::Timestamp::from_millisecond(at.as_millis()).expect("a year we know");
///     let day = instant.to_zoned_datetime(zone.clone()).date();
///     let midnight = |date: jiff::civil::Date| {
///         let start = date.to_zoned_datetime(zone.clone()).expect("a year we know");
///         Timestamp::from_millis(start.timestamp().as_millisecond())
///     };
///     Window::new(midnight(day), midnight(day.saturating_add(1.day())))
/// });
///
/// let noon: jiff::Timestamp = "2013-03-10T12:00:00-04:00".parse()?;
/// let day = days.assign(Timestamp::from_millis(noon.as_millisecond())).next().expect("a day");
/// // The clocks went forward.
/// assert_eq!(day.end().millis_since(day.start()), 23 * 3_600_000);
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Calendar<F>(F);

impl<F: Fn(Timestamp) -> Window> Calendar<F> {
    /// The windows that `window` gives.
    pub const fn new(window: F) -> Self {
        Self(window)
    }
}

impl<F: Fn(Timestamp) -> Window> Assigner for Calendar<F> {
    type Windows = iter::Once<Window>;
    type Trigger = EventTime;
    type Merging = Separate;

    const DISJOINT: bool = true;

    #[inline]
    fn assign(&self, at: Timestamp) -> iter::Once<Window> {
        iter::once((self.0)(at))
    }
}

impl<F> fmt::Debug for Calendar<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar").finish_non_exhaustive()
    }
}
