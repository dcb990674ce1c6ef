use super::{Fed, Intake};
use crate::stream::Lane;
use crate::stream::source::TURNS;
use crate::time::{Mark, Timestamp};
use std::convert;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::ControlFlow;
use std::vec;

/// Records and marks that a source has in hand: a buffer that is read from the front.
pub(super) struct Chunk<T> {
    /// The records not yet taken. An iterator over what was a vector is the cheapest to take from:
    /// the front of a ring costs a third more of all that reading costs, and the end of a vector
    /// that was reversed a fifth.
    rest: vec::IntoIter<T>,
    /// Number of records that the chunk had.
    total: usize,
    /// Timestamps and marks of the whole chunk.
    lane: Lane<T>,
    /// Marks already taken.
    marked: usize,
    /// It was lent out, and what was put in is not taken up.
    lent: bool,
}

impl<T> Chunk<T> {
    pub(super) fn new() -> Self {
        Self { rest: Vec::new().into_iter(), total: 0, lane: Lane::new(), marked: 0, lent: false }
    }

    /// Number of records not yet taken.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.rest.as_slice().is_empty() && self.marked == self.lane.marks.len()
    }

    /// Takes the next record. The marks before it are [passed over](Self::skip_marks) when the chunk
    /// is read in another way.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.rest.next()
    }

    /// Passes over the marks before the last record taken: what is left of them is of records that
    /// were [popped](Self::pop).
    fn skip_marks(&mut self) {
        let taken = self.total - self.rest.len();
        while self.lane.marks.get(self.marked).is_some_and(|(at, _)| *at < taken) {
            self.marked += 1;
        }
    }

    /// Lends the empty chunk out to be filled; [`load`](Self::load) takes up what was put in.
    pub(super) fn recycle(&mut self) -> &mut Lane<T> {
        debug_assert!(self.is_empty());
        self.lane.clear();
        if self.lane.values.capacity() == 0 {
            self.lane.values = take_rest(&mut self.rest);
        }
        self.total = 0;
        self.marked = 0;
        self.lent = true;
        &mut self.lane
    }

    /// Takes up what was put into the lane.
    pub(super) fn load(&mut self) {
        self.lent = false;
        self.total = self.lane.values.len();
        if !(self.lane.times.is_empty() && self.lane.marks.is_empty()) {
            // One for each record, also for the last ones without.
            self.lane.times.resize(self.total, Timestamp::MIN);
        }
        self.rest = mem::take(&mut self.lane.values).into_iter();
    }

    /// Moves what was not read to `into`.
    pub(super) fn unload(&mut self, into: &mut Lane<T>) {
        _ = self.feed(&mut Unloading(into));
    }

    /// Hands on what there is, from mark to mark, until `intake` asks to stop.
    #[inline(always)]
    fn feed<K: Intake<T>>(&mut self, intake: &mut K) -> ControlFlow<()> {
        if self.lane.times.is_empty() && self.lane.marks.is_empty() {
            let mut held = Held::new(&mut self.rest);
            for value in held.rest.by_ref() {
                intake.record(value, Timestamp::MIN)?;
            }
            return ControlFlow::Continue(());
        }
        self.skip_marks();
        let mut held = Held::new(&mut self.rest);
        loop {
            let taken = self.total - held.rest.len();
            let end = match self.lane.marks.get(self.marked) {
                Some(&(at, mark)) if at <= taken => {
                    self.marked += 1;
                    intake.mark(mark)?;
                    continue;
                }
                Some(&(at, _)) => at,
                None if taken == self.total => return ControlFlow::Continue(()),
                None => self.total,
            };
            for (at, value) in self.lane.times[taken..end].iter().zip(held.rest.by_ref()) {
                intake.record(value, *at)?;
            }
        }
    }

    /// Hands on what there is, and what `refill` puts into the empty chunk after that; it says
    /// [`Fed::More`] if it did. The protocol of every source that reads in chunks.
    ///
    /// An intake that may stop gets one more chunk: what it has in hand must not wait until there is
    /// more.
    #[inline(always)]
    pub(super) fn feed_from<K: Intake<T>>(
        &mut self,
        intake: &mut K,
        mut refill: impl FnMut(&mut Self, &mut K) -> Fed,
    ) -> Fed {
        if self.lent {
            // Filling it ended in a panic.
            self.load();
        }
        let mut refills = if K::STOPS { 1 } else { TURNS };
        loop {
            if !self.is_empty() {
                if let Some(flow) = self.offer(intake) {
                    if flow.is_break() {
                        return Fed::More;
                    }
                } else if self.feed(intake).is_break() {
                    return Fed::More;
                }
            }
            if refills == 0 {
                return Fed::More;
            }
            refills -= 1;
            match refill(self, intake) {
                Fed::More => {}
                fed => return fed,
            }
        }
    }

    /// Hands on the whole chunk, if nothing of it was taken and `intake` takes it.
    #[inline(always)]
    fn offer<K: Intake<T>>(&mut self, intake: &mut K) -> Option<ControlFlow<()>> {
        if !K::WHOLE || self.marked > 0 || self.rest.len() < self.total {
            return None;
        }
        self.lane.values = mem::take(&mut self.rest).collect();
        let flow = intake.lane(&mut self.lane);
        self.load();
        flow
    }
}

/// The records of a chunk during a turn, in registers; they are put back at its end, also when that
/// is a panic.
struct Held<'a, T> {
    /// Without drop glue, which would force it into memory. What is left here at the end is empty.
    rest: ManuallyDrop<vec::IntoIter<T>>,
    chunk: &'a mut vec::IntoIter<T>,
}

impl<'a, T> Held<'a, T> {
    #[inline(always)]
    fn new(chunk: &'a mut vec::IntoIter<T>) -> Self {
        Self { rest: ManuallyDrop::new(mem::take(chunk)), chunk }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        mem::swap(&mut *self.rest, self.chunk);
    }
}

/// The records not yet taken, as a vector again.
#[expect(clippy::map_identity, reason = "without it the memory is not reused")]
fn take_rest<T>(rest: &mut vec::IntoIter<T>) -> Vec<T> {
    let mut values: Vec<T> = mem::take(rest).map(convert::identity).collect();
    values.clear();
    values
}

struct Unloading<'a, T>(&'a mut Lane<T>);

impl<T> Intake<T> for Unloading<'_, T> {
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.0.push(value, at);
        ControlFlow::Continue(())
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.0.mark(mark);
        ControlFlow::Continue(())
    }
}

/// Fills a lane with so many records and marks.
pub(super) struct Filling<'a, T> {
    lane: &'a mut Lane<T>,
    room: usize,
}

impl<'a, T> Filling<'a, T> {
    pub(super) const fn new(lane: &'a mut Lane<T>, room: usize) -> Self {
        Self { lane, room }
    }

    #[inline(always)]
    const fn go_on(&mut self) -> ControlFlow<()> {
        self.room -= 1;
        if self.room == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<T> Intake<T> for Filling<'_, T> {
    const WHOLE: bool = true;

    #[inline(always)]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.lane.push(value, at);
        self.go_on()
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.lane.mark(mark);
        self.go_on()
    }

    fn lane(&mut self, lane: &mut Lane<T>) -> Option<ControlFlow<()>> {
        if !self.lane.is_empty() {
            return None;
        }
        mem::swap(self.lane, lane);
        self.room = self.room.saturating_sub(self.lane.load());
        Some(if self.room == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl<T> fmt::Debug for Chunk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("records", &self.rest.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Takes everything, and panics at one record.
    struct Taking {
        records: Vec<u32>,
        marks: usize,
        panics_at: u32,
    }

    impl Taking {
        const fn new(panics_at: u32) -> Self {
            Self { records: Vec::new(), marks: 0, panics_at }
        }
    }

    impl Intake<u32> for Taking {
        fn record(&mut self, value: u32, _at: Timestamp) -> ControlFlow<()> {
            assert_ne!(value, self.panics_at);
            self.records.push(value);
            ControlFlow::Continue(())
        }

        fn mark(&mut self, _mark: Mark) -> ControlFlow<()> {
            self.marks += 1;
            ControlFlow::Continue(())
        }
    }

    /// Five records, with or without a mark before each.
    fn chunk(marks: bool) -> Chunk<u32> {
        let mut chunk = Chunk::new();
        let lane = chunk.recycle();
        for value in 0..5 {
            if marks {
                lane.mark(Mark::Watermark(Timestamp::from_millis(i64::from(value))));
            }
            lane.push(value, Timestamp::MIN);
        }
        chunk.load();
        chunk
    }

    #[test]
    fn marks_before_records_that_were_popped_are_passed_over() {
        let mut chunk = chunk(true);
        assert_eq!((chunk.pop(), chunk.pop()), (Some(0), Some(1)));
        let mut taking = Taking::new(u32::MAX);
        _ = chunk.feed(&mut taking);
        assert_eq!((taking.records.as_slice(), taking.marks), ([2, 3, 4].as_slice(), 3));
    }

    #[test]
    fn after_a_panic_of_the_intake_the_other_records_are_still_there() {
        for marks in [false, true] {
            let mut chunk = chunk(marks);
            let mut taking = Taking::new(1);
            let fed = catch_unwind(AssertUnwindSafe(|| chunk.feed(&mut taking)));
            assert!(fed.is_err());
            assert_eq!((taking.records.as_slice(), chunk.len()), ([0].as_slice(), 3));
            _ = chunk.feed(&mut taking);
            assert_eq!(taking.records, [0, 2, 3, 4]);
        }
    }

    #[test]
    fn a_chunk_that_fills_another_one_is_not_copied_unless_it_was_read_in_part() {
        for (popped, copied) in [(0, false), (1, true)] {
            let mut chunk = chunk(true);
            let records = chunk.rest.as_slice().as_ptr();
            for _ in 0..popped {
                chunk.pop();
            }
            let mut lane = Lane::new();
            let fed = chunk.feed_from(&mut Filling::new(&mut lane, 512), |_, _| Fed::Pending);
            assert!(matches!(fed, Fed::Pending));
            assert_eq!((lane.len(), lane.marks().len()), (5 - popped, 5 - popped));
            assert_eq!(lane.values().as_ptr() != records, copied);
            assert_eq!(chunk.len(), 0);
        }
    }
}
