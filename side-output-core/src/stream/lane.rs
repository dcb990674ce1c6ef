use crate::sync::Shelter;
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::mem;

/// Records of one output in order, their timestamps if they have any, and the marks between them.
///
/// Timestamps are kept only as far as the last record that has one, so a stream without event
/// time pays nothing for them. Marks stand beside the records, each with the number of records
/// before it, so a stream without marks pays nothing for those either.
pub struct Lane<T> {
    pub(crate) values: Vec<T>,
    pub(crate) times: Vec<Timestamp>,
    pub(crate) marks: Vec<(usize, Mark)>,
    /// With how many marks they are reduced next, if that is more than [`MARKS`].
    most_marks: usize,
}

/// So many marks may wait as they are: a reader that keeps up sees each of them.
const MARKS: usize = 512;

/// What comes out of a lane.
pub(crate) enum LaneItem<T> {
    Record(T, Timestamp),
    Mark(Mark),
}

impl<T> Lane<T> {
    /// An empty lane.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: Vec::new(), times: Vec::new(), marks: Vec::new(), most_marks: 0 }
    }

    /// Appends a record; [`Timestamp::MIN`] is no timestamp.
    #[inline]
    pub fn push(&mut self, value: T, at: Timestamp) {
        if at != Timestamp::MIN {
            if self.times.len() < self.values.len() {
                self.catch_up();
            }
            self.times.push(at);
        }
        self.values.push(value);
    }

    /// Says of the records so far that they have no timestamps.
    #[cold]
    fn catch_up(&mut self) {
        self.times.resize(self.values.len(), Timestamp::MIN);
    }

    /// Appends a mark.
    #[inline]
    pub fn mark(&mut self, mark: Mark) {
        self.marks.push((self.values.len(), mark));
    }

    /// Number of records.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is neither a record nor a mark.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.marks.is_empty()
    }

    /// Number of records and marks.
    #[inline]
    pub(crate) fn load(&self) -> usize {
        self.values.len() + self.marks.len()
    }

    /// The records.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The timestamp of the record at `index`, if it has one.
    #[must_use]
    pub fn timestamp(&self, index: usize) -> Option<Timestamp> {
        self.times.get(index).copied().and_then(Timestamp::known)
    }

    /// The marks, each with the number of records before it.
    #[must_use]
    pub fn marks(&self) -> &[(usize, Mark)] {
        &self.marks
    }

    /// Removes everything and keeps the memory.
    ///
    /// # Panics
    ///
    /// If destructors do: with the panic of the first one, when all are done.
    pub fn clear(&mut self) {
        if !self.values.is_empty() {
            self.clear_values();
        }
        self.times.clear();
        self.marks.clear();
        self.most_marks = 0;
    }

    #[inline(never)]
    fn clear_values(&mut self) {
        if !mem::needs_drop::<T>() {
            return self.values.clear();
        }
        // A vector would end the program at the second destructor that panics.
        let mut shelter = Shelter::default();
        let mut values = self.values.drain(..);
        while values.len() > 0 {
            shelter.run(|| values.by_ref().for_each(drop));
        }
        drop(values);
        self.times.clear();
        self.marks.clear();
        shelter.leave();
    }

    /// Takes everything out in order, and keeps the memory of the records.
    pub(crate) fn take_all(&mut self, mut take: impl FnMut(LaneItem<T>)) {
        let mut marks = self.marks.drain(..).peekable();
        for (index, value) in self.values.drain(..).enumerate() {
            while let Some((_, mark)) = marks.next_if(|(at, _)| *at <= index) {
                take(LaneItem::Mark(mark));
            }
            let at = self.times.get(index).copied().unwrap_or(Timestamp::MIN);
            take(LaneItem::Record(value, at));
        }
        marks.for_each(|(_, mark)| take(LaneItem::Mark(mark)));
        self.times.clear();
    }

    /// Moves everything from `other` to the end of this lane. Marks beyond [`MARKS`] are reduced to
    /// what they still say, since nothing else bounds them: only records count against a capacity.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            mem::swap(self, other);
        } else {
            self.extend(other);
        }
        if self.marks.len() > self.most_marks.max(MARKS) {
            self.bound_marks();
        }
    }

    #[cold]
    fn bound_marks(&mut self) {
        self.collapse_marks();
        // Not again before there are twice as many: each mark is looked at a few times only.
        self.most_marks = 2 * self.marks.len();
    }

    fn extend(&mut self, other: &mut Self) {
        let before = self.values.len();
        if !other.times.is_empty() {
            self.times.resize(before, Timestamp::MIN);
            self.times.append(&mut other.times);
        }
        self.values.append(&mut other.values);
        self.marks.extend(other.marks.drain(..).map(|(at, mark)| (before + at, mark)));
    }

    /// Moves the `count` oldest records to `trash`. What the marks before them still say stays.
    pub(crate) fn drop_oldest(&mut self, count: usize, trash: &mut Vec<T>) {
        trash.extend(self.values.drain(..count));
        drop(self.times.drain(..count.min(self.times.len())));
        for (at, _) in &mut self.marks {
            *at = at.saturating_sub(count);
        }
        self.collapse_marks();
    }

    /// Moves the newest records to `trash` so that `count` stay.
    pub(crate) fn truncate(&mut self, count: usize, trash: &mut Vec<T>) {
        trash.extend(self.values.drain(count..));
        self.times.truncate(count);
        for (at, _) in &mut self.marks {
            *at = (*at).min(count);
        }
        self.collapse_marks();
    }

    /// Keeps what marks without a record or a barrier between them still say: the last watermark,
    /// and whether the input is idle at last. Barriers stay: they say something of what is before.
    fn collapse_marks(&mut self) {
        let (mut watermark, mut status, mut place) = (false, false, None);
        // The last one of each stays, so from the end.
        self.marks.reverse();
        self.marks.retain(|(at, mark)| {
            if place.replace(*at) != Some(*at) || matches!(mark, Mark::Barrier(_)) {
                (watermark, status) = (false, false);
            }
            match mark {
                Mark::Watermark(_) => !mem::replace(&mut watermark, true),
                Mark::Idle | Mark::Active => !mem::replace(&mut status, true),
                Mark::Barrier(_) => true,
            }
        });
        self.marks.reverse();
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Lane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("records", &self.values.len())
            .field("marks", &self.marks.len())
            .finish_non_exhaustive()
    }
}

/// One [`Lane`] for each output of the splitter `S`.
pub trait Lanes<S>: Default {
    /// Appends the record to the lane of its output.
    fn push(&mut self, route: S, at: Timestamp);

    /// Shows every lane to `visitor`, with the index of its output.
    fn visit<V: LaneVisitor>(&mut self, visitor: &mut V);

    /// Shows every lane together with the same lane of `other`.
    fn visit_pairs<V: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V);
}

/// Something to do with each lane.
pub trait LaneVisitor {
    /// Called for the lane of each output.
    fn lane<T>(&mut self, index: usize, lane: &mut Lane<T>);
}

/// Something to do with the same lane of two sets.
pub trait LanePairVisitor {
    /// Called for the lanes of each output.
    fn pair<T>(&mut self, index: usize, lane: &mut Lane<T>, other: &mut Lane<T>);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watermark(millis: i64) -> Mark {
        Mark::Watermark(Timestamp::from_millis(millis))
    }

    #[test]
    fn a_record_without_timestamp_before_one_with_keeps_none() {
        let mut lane = Lane::new();
        lane.push('a', Timestamp::MIN);
        lane.push('b', Timestamp::from_millis(7));
        lane.push('c', Timestamp::MIN);
        assert_eq!(lane.timestamp(0), None);
        assert_eq!(lane.timestamp(1), Some(Timestamp::from_millis(7)));
        assert_eq!(lane.timestamp(2), None);
    }

    #[test]
    fn append_keeps_times_and_marks_beside_their_records() {
        let mut first = Lane::new();
        first.push(1, Timestamp::MIN);
        first.mark(watermark(1));
        let mut second = Lane::new();
        second.mark(watermark(2));
        second.push(2, Timestamp::from_millis(20));
        second.mark(watermark(3));
        first.append(&mut second);
        assert_eq!(first.values(), [1, 2]);
        assert_eq!(first.timestamp(0), None);
        assert_eq!(first.timestamp(1), Some(Timestamp::from_millis(20)));
        assert_eq!(first.marks(), [(1, watermark(1)), (1, watermark(2)), (2, watermark(3))]);
        assert!(second.is_empty());
    }

    #[test]
    fn dropping_the_oldest_keeps_the_last_watermark_before_what_stays() {
        let mut lane = Lane::new();
        for value in 0..4 {
            lane.push(value, Timestamp::from_millis(i64::from(value)));
            lane.mark(watermark(i64::from(value)));
        }
        let mut trash = Vec::new();
        lane.drop_oldest(2, &mut trash);
        assert_eq!(trash, [0, 1]);
        assert_eq!(lane.values(), [2, 3]);
        assert_eq!(lane.timestamp(0), Some(Timestamp::from_millis(2)));
        assert_eq!(lane.marks(), [(0, watermark(1)), (1, watermark(2)), (2, watermark(3))]);
    }
}
