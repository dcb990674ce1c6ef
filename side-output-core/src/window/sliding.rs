use super::assigner::{into_period, length};
use super::{Assigner, EventTime, Separate, Window};
use crate::time::Timestamp;
use std::time::Duration;

/// Windows of one length that start every so often, and so overlap; or leave gaps.
///
/// Where a record has two windows or more, `aggregate` keeps it once for all of them: it condenses
/// slices of time of length `slide` (two of them, if it does not divide `size`), and a window is put
/// together from its slices when it fires. The more windows a record has, the more this saves.
/// `reduce`, `apply` and `process`, for which the order of records may matter, and an
/// [`Aggregate`](super::Aggregate) that says so, add a record to each of its windows.
///
/// # Examples
///
/// ```
/// use side_output::{Assigner, Sliding, Timestamp, Window};
/// use std::time::Duration;
///
/// let at = Timestamp::from_secs;
/// let minutes = Sliding::of(Duration::from_secs(60)).every(Duration::from_secs(30));
/// let windows = minutes.assign(at(70));
/// assert!(windows.eq([Window::new(at(60), at(120)), Window::new(at(30), at(90))]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliding {
    size: i64,
    slide: i64,
    offset: i64,
}

impl Sliding {
    /// Windows of length `size`; say how often with [`every`](Self::every).
    ///
    /// # Panics
    ///
    /// If `size` is less than a millisecond.
    #[must_use]
    #[track_caller]
    pub fn of(size: Duration) -> Self {
        let size = length(size, "size");
        Self { size, slide: size, offset: 0 }
    }

    /// Starts a window every `slide`: each record belongs to size / slide of them. Call it before
    /// [`offset_millis`](Self::offset_millis).
    ///
    /// # Panics
    ///
    /// If `slide` is less than a millisecond.
    #[must_use]
    #[track_caller]
    pub fn every(mut self, slide: Duration) -> Self {
        self.slide = length(slide, "slide");
        self.offset = self.offset.rem_euclid(self.slide);
        self
    }

    /// Lets windows start `offset` milliseconds later, or earlier if it is negative.
    #[must_use]
    pub const fn offset_millis(mut self, offset: i64) -> Self {
        self.offset = offset.rem_euclid(self.slide);
        self
    }
}

impl Assigner for Sliding {
    type Windows = SlidingWindows;
    type Trigger = EventTime;
    type Merging = Separate;

    #[inline]
    fn assign(&self, at: Timestamp) -> SlidingWindows {
        let ahead = self.size - 1 - into_period(at, self.slide, self.offset);
        SlidingWindows { at, ahead, size: self.size, slide: self.slide }
    }

    #[inline]
    fn has_slices(&self) -> bool {
        self.size / 2 >= self.slide
    }

    // Windows begin at multiples of the slide, and end at `size % slide` after them.
    #[inline]
    fn slice(&self, at: Timestamp) -> Window {
        let into = into_period(at, self.slide, self.offset);
        let cut = self.size % self.slide;
        let (start, end) = if into < cut { (0, cut) } else { (cut, self.slide) };
        let first = at.saturating_sub_millis(into - start);
        Window::through(first, at.saturating_add_millis(end - 1 - into))
    }
}

/// The windows of a record, from the newest to the oldest.
#[derive(Clone, Debug)]
pub struct SlidingWindows {
    at: Timestamp,
    /// From the record to the last instant of the next window; negative after the last window.
    ahead: i64,
    size: i64,
    slide: i64,
}

impl Iterator for SlidingWindows {
    type Item = Window;

    #[inline]
    fn next(&mut self) -> Option<Window> {
        if self.ahead < 0 {
            return None;
        }
        let start = self.at.saturating_sub_millis(self.size - 1 - self.ahead);
        let window = Window::through(start, self.at.saturating_add_millis(self.ahead));
        self.ahead = self.ahead.saturating_sub(self.slide);
        Some(window)
    }

    // Many windows of a record are skipped where others of them are needed.
    #[inline]
    fn nth(&mut self, skipped: usize) -> Option<Window> {
        let skipped = i64::try_from(skipped).unwrap_or(i64::MAX).saturating_mul(self.slide);
        self.ahead = self.ahead.saturating_sub(skipped);
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size, slide and offset; an instant; the first and the last one of its slice.
    const CUTS: &[([i64; 3], i64, [i64; 2])] = &[
        // One slice for each slide where it divides the size.
        ([100, 10, 0], 0, [0, 9]),
        ([100, 10, 0], 9, [0, 9]),
        ([100, 10, 0], -1, [-10, -1]),
        ([100, 10, 3], 2, [-7, 2]),
        ([100, 10, 3], 3, [3, 12]),
        // Otherwise two: a window of 10 ends one after the fourth beginning of a window.
        ([10, 3, 0], 0, [0, 0]),
        ([10, 3, 0], 1, [1, 2]),
        ([10, 3, 0], 2, [1, 2]),
        ([10, 3, 0], 3, [3, 3]),
        ([10, 3, 0], -1, [-2, -1]),
        ([11, 3, -1], 0, [-1, 0]),
        ([11, 3, -1], 1, [1, 1]),
        // Nearly coprime, and still two.
        ([100_001, 1000, 0], 1500, [1001, 1999]),
        // Windows that do not overlap.
        ([10, 10, 0], 15, [10, 19]),
        ([4, 10, 0], 12, [10, 13]),
        ([4, 10, 0], 14, [14, 19]),
        // The ends of time.
        ([i64::MAX, 10, 0], i64::MAX, [i64::MAX, i64::MAX]),
        ([100, 40, 0], i64::MAX, [i64::MAX - 7, i64::MAX]),
        ([100, 40, 0], i64::MIN, [i64::MIN, i64::MIN + 7]),
        ([100, 40, 0], i64::MIN + 8, [i64::MIN + 8, i64::MIN + 27]),
        ([i64::MAX, i64::MAX, 1], i64::MIN, [i64::MIN, i64::MIN + 1]),
    ];

    #[test]
    fn no_window_begins_or_ends_within_a_slice() {
        for &([size, slide, offset], time, [first, last]) in CUTS {
            let offset = i64::rem_euclid(offset, slide);
            let sliding = Sliding { size, slide, offset };
            let at = Timestamp::from_millis;
            let slice = sliding.slice(at(time));
            let expected = Window::through(at(first), at(last));
            assert_eq!(slice, expected, "{time} in {sliding:?}");
            let windows = |time| sliding.assign(at(time)).take(1000);
            for skipped in [0, 1, 7, 999] {
                let one_by_one = windows(time).fold((0, None), |(index, found), window| {
                    (index + 1, if index == skipped { Some(window) } else { found })
                });
                let nth = sliding.assign(at(time)).nth(skipped);
                assert_eq!(nth, one_by_one.1, "{skipped} in {sliding:?}");
            }
            for inside in [first, last] {
                assert_eq!(sliding.slice(at(inside)), slice, "{inside} in {sliding:?}");
                assert!(windows(inside).eq(windows(time)), "{inside} in {sliding:?}");
            }
            if size / slide > 1000 {
                continue;
            }
            for outside in [first.checked_sub(1), last.checked_add(1)].into_iter().flatten() {
                assert!(!windows(outside).eq(windows(time)), "{outside} in {sliding:?}");
            }
        }
    }
}
