use std::{convert, fmt, mem, vec};

/// Bytes of a segment, at most.
const BYTES: usize = 1 << 22;

/// A vector that never moves much: it grows by segments, and when its entries are taken out the
/// segments are freed one after the other.
///
/// The first segment grows like a vector, which it is while nothing else is needed.
pub struct Segments<T> {
    first: Vec<T>,
    rest: Vec<Vec<T>>,
}

/// The entries of [`Segments`], taken out in their order.
pub struct Leaving<T> {
    /// The segment that is left.
    current: vec::IntoIter<T>,
    rest: vec::IntoIter<Vec<T>>,
}

impl<T> Segments<T> {
    /// Binary digits of an entry's place in its segment.
    const SHIFT: u32 = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let entries = BYTES / size;
        if entries < 64 { 6 } else { entries.ilog2() }
    };

    /// Entries of a segment.
    const LEN: usize = 1 << Self::SHIFT;

    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Vec::new(), rest: Vec::new() }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.rest.split_last() {
            None => self.first.len(),
            // All before the last one are full.
            Some((last, before)) => (before.len() + 1) * Self::LEN + last.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.first.len() < Self::LEN {
            self.first.push(entry);
        } else {
            self.push_behind(entry);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, entry: T) {
        match self.rest.last_mut() {
            Some(last) if last.len() < Self::LEN => last.push(entry),
            _ => {
                let mut last = Vec::with_capacity(Self::LEN);
                last.push(entry);
                self.rest.push(last);
            }
        }
    }

    /// The entry at `index`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.first.len() { self.first.get(index) } else { self.get_behind(index) }
    }

    #[cold]
    fn get_behind(&self, index: usize) -> Option<&T> {
        let segment = (index >> Self::SHIFT).checked_sub(1)?;
        self.rest.get(segment)?.get(index & (Self::LEN - 1))
    }

    /// The entry at `index`.
    #[inline(always)]
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index < self.first.len() { self.first.get_mut(index) } else { self.behind_mut(index) }
    }

    #[cold]
    fn behind_mut(&mut self, index: usize) -> Option<&mut T> {
        let segment = (index >> Self::SHIFT).checked_sub(1)?;
        self.rest.get_mut(segment)?.get_mut(index & (Self::LEN - 1))
    }

    /// Whether all entries stand in one segment.
    #[inline(always)]
    pub(super) const fn is_single(&self) -> bool {
        self.rest.is_empty()
    }

    /// All entries, if they stand in one segment.
    #[inline(always)]
    pub(crate) fn single_mut(&mut self) -> Option<&mut [T]> {
        self.is_single().then_some(&mut self.first)
    }

    /// The entries of the first segment.
    #[inline(always)]
    pub(super) fn first_mut(&mut self) -> &mut [T] {
        &mut self.first
    }

    /// The entries from `index` to the end of a segment: none only if there are none.
    #[must_use]
    pub fn run(&self, index: usize) -> &[T] {
        let segment = match (index >> Self::SHIFT).checked_sub(1) {
            None => Some(&self.first),
            Some(segment) => self.rest.get(segment),
        };
        segment.and_then(|segment| segment.get(index & (Self::LEN - 1)..)).unwrap_or_default()
    }

    /// The entries from `index` to the end of a segment: none only if there are none.
    #[must_use]
    pub fn run_mut(&mut self, index: usize) -> &mut [T] {
        let segment = match (index >> Self::SHIFT).checked_sub(1) {
            None => Some(&mut self.first),
            Some(segment) => self.rest.get_mut(segment),
        };
        let run = segment.and_then(|segment| segment.get_mut(index & (Self::LEN - 1)..));
        run.unwrap_or_default()
    }

    /// The entries, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flatten())
    }

    /// Takes an entry out, and puts the last one in its place.
    #[inline]
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        if self.rest.is_empty() {
            return (index < self.first.len()).then(|| self.first.swap_remove(index));
        }
        self.swap_remove_behind(index)
    }

    #[cold]
    fn swap_remove_behind(&mut self, index: usize) -> Option<T> {
        while self.rest.pop_if(|last| last.is_empty()).is_some() {}
        if index >= self.len() {
            return None;
        }
        let last = self.rest.last_mut().unwrap_or(&mut self.first).pop()?;
        match self.get_mut(index) {
            Some(entry) => Some(mem::replace(entry, last)),
            None => Some(last),
        }
    }

    /// Takes out the last `count` entries, or fewer, in their order.
    pub fn pop_run(&mut self, count: usize) -> vec::Drain<'_, T> {
        while self.rest.pop_if(|last| last.is_empty()).is_some() {}
        let last = self.rest.last_mut().unwrap_or(&mut self.first);
        last.drain(last.len().saturating_sub(count)..)
    }

    /// Takes the first segment out, which is all there is.
    #[inline]
    pub(super) fn take_first(&mut self) -> Vec<T> {
        debug_assert!(self.rest.is_empty(), "there are more segments");
        mem::take(&mut self.first)
    }

    /// Gives its memory back unless there is other memory already.
    #[inline]
    pub(super) fn give_first(&mut self, first: Vec<T>) {
        if self.first.capacity() == 0 {
            self.first = first;
        }
    }

    /// Takes all entries out.
    pub fn leave(&mut self) -> Leaving<T> {
        let Self { first, rest } = mem::take(self);
        Leaving { current: first.into_iter(), rest: rest.into_iter() }
    }

    /// Forgets the entries, and keeps the memory of the first segment.
    pub fn clear(&mut self) {
        self.first.clear();
        self.rest.clear();
    }

    /// Frees the last segment, with its entries.
    pub fn drop_segment(&mut self) {
        if self.rest.pop().is_none() {
            self.first = Vec::new();
        }
    }

    /// How many entries there is memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.first.capacity() + self.rest.len() * Self::LEN
    }
}

impl<T> Leaving<T> {
    /// How many are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.current.len() + self.rest.as_slice().iter().map(Vec::len).sum::<usize>()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops some, and takes one from `work` for each; whether none is left.
    pub fn drop_some(&mut self, work: &mut usize) -> bool {
        while *work > 0 {
            if self.current.len() == 0 && !self.next_segment() {
                return true;
            }
            let count = self.current.len().min(*work);
            self.current.by_ref().take(count).for_each(drop);
            *work -= count;
        }
        self.is_empty()
    }

    /// No entries, and the memory of the segment that was taken out last.
    #[expect(clippy::map_identity, reason = "without it the memory is not reused")]
    #[must_use]
    pub fn into_memory(self) -> Segments<T> {
        let mut first: Vec<T> = self.current.map(convert::identity).collect();
        first.clear();
        Segments { first, rest: Vec::new() }
    }

    /// Goes over to the next segment if there is one: none is empty.
    fn next_segment(&mut self) -> bool {
        let next = self.rest.next();
        let there_is = next.is_some();
        if let Some(next) = next {
            self.current = next.into_iter();
        }
        there_is
    }

    #[cold]
    fn next_behind(&mut self) -> Option<T> {
        if self.next_segment() { self.current.next() } else { None }
    }
}

impl<T> Iterator for Leaving<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let next = self.current.next();
        if next.is_none() { self.next_behind() } else { next }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Default for Leaving<T> {
    fn default() -> Self {
        Segments::new().leave()
    }
}

impl<T> fmt::Debug for Segments<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Leaving<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaving").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 to a segment.
    type Large = [u64; 1 << 13];

    #[expect(clippy::large_stack_arrays, reason = "few of them make a segment")]
    const fn large(n: u64) -> Large {
        [n; 1 << 13]
    }

    #[test]
    fn entries_are_found_in_every_segment() {
        let mut segments = Segments::new();
        assert!(segments.is_empty() && segments.get(0).is_none() && segments.run(0).is_empty());
        for n in 0..200 {
            assert_eq!(segments.len(), usize::try_from(n).expect("a small number"));
            segments.push(large(n));
        }
        assert_eq!(Segments::<Large>::LEN, 64);
        for index in [0, 63, 64, 127, 128, 199] {
            assert_eq!(segments.get(index).map(|entry| entry[0]), Some(index as u64));
            assert_eq!(segments.get_mut(index).map(|entry| entry[0]), Some(index as u64));
        }
        assert!(segments.get(200).is_none() && segments.get_mut(200).is_none());
        let runs = [0, 60, 64, 130, 199, 200].map(|from| segments.run(from).len());
        assert_eq!(runs, [64, 4, 64, 62, 1, 0]);
        assert!(segments.iter().map(|entry| entry[0]).eq(0..200));
    }

    #[test]
    fn segments_are_freed_while_their_entries_leave() {
        let mut segments = Segments::new();
        (0..200).for_each(|n| segments.push(large(n)));
        let mut leaving = segments.leave();
        assert!(segments.is_empty());
        assert!(leaving.by_ref().take(150).map(|entry| entry[0]).eq(0..150));
        assert_eq!((leaving.len(), leaving.rest.len()), (50, 1));
        assert!(leaving.by_ref().map(|entry| entry[0]).eq(150..200));
        let segments = leaving.into_memory();
        assert_eq!((segments.len(), segments.capacity()), (0, 64));
    }

    #[test]
    fn the_last_entries_come_out_first() {
        let mut segments = Segments::new();
        (0..70).for_each(|n| segments.push(large(n)));
        let mut runs = Vec::new();
        while !segments.is_empty() {
            runs.push(segments.pop_run(40).map(|entry| entry[0]).collect::<Vec<_>>());
        }
        let expected: [Vec<u64>; 3] = [(64..70).collect(), (24..64).collect(), (0..24).collect()];
        assert_eq!(runs, expected);
    }

    #[test]
    fn the_last_entry_takes_the_place_of_one_that_is_taken_out() {
        let mut segments = Segments::new();
        (0..66).for_each(|n| segments.push(large(n)));
        for (index, taken) in [(1, 1), (64, 64), (1, 65), (62, 62)] {
            assert_eq!(segments.swap_remove(index).map(|entry| entry[0]), Some(taken));
        }
        assert!(segments.iter().map(|entry| entry[0]).eq([0, 63].into_iter().chain(2..62)));
        assert!(segments.swap_remove(62).is_none());
    }
}
