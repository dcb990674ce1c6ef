use std::{fmt, mem};

/// Tables with fewer places move in one go: about a millisecond. Less in tests, which would be
/// slow.
const SMALL: usize = if cfg!(test) { 1 << 13 } else { 1 << 17 };

/// Tables for fewer entries keep their memory when they run empty.
const KEPT: usize = 1 << 13;

/// The smallest table.
const FEWEST: usize = 8;

/// So many entries come or go between two portions of a move.
const PAUSE: u32 = 64;

/// How many places of the old table are looked at in a portion.
const PORTION: usize = 1 << 11;

/// Where the entry of each key stands, by the key's hash. The key itself stands there and nowhere
/// else.
///
/// When a large table is full, its entries move to a larger one some at a time, with the next
/// calls: no call looks at all of them.
///
/// # Examples
///
/// ```
/// use side_output::state::Index;
///
/// let (keys, hash) = (["a", "b"], |key: &str| u64::from(key.as_bytes()[0]) << 57);
/// let mut index = Index::new();
/// for (slot, key) in (0..).zip(keys) {
///     index.insert(hash(key), slot);
/// }
/// assert_eq!(index.find(hash("b"), |slot| keys[slot as usize] == "b"), Some(1));
/// ```
#[derive(Default)]
pub struct Index {
    table: Places,
    /// What the table was before, until all entries have moved; those that have are left in it.
    old: Places,
    /// The first place of the old table whose entry has not moved.
    next: usize,
    /// How many entries come or go until the next portion moves.
    pause: u32,
    /// How many entries may be added to the table before it is full.
    room: usize,
    len: usize,
}

/// Half of a hash, and a slot. With the hash, an entry moves without a look at its key, which may
/// stand anywhere in memory. Other hashes than those of entries mark the places without one.
type Place = [u32; 2];

const FREE: Place = [0, 0];

/// Where an entry of the old table was, so that those behind it are still found.
const DEAD: Place = [1, 0];

/// The half of a hash that is kept: with the highest bit, so that it is none of the above.
#[expect(clippy::cast_possible_truncation, reason = "half of a hash is enough")]
#[inline(always)]
const fn half(hash: u64) -> u32 {
    hash as u32 | 1 << (u32::BITS - 1)
}

/// An entry stands in the place that its hash points to, or in the next one that was free. They are
/// zero at first, which large memory is already: nothing is written before it is needed.
#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    /// Free places for so many entries.
    fn for_entries(entries: usize) -> Self {
        let places = (8 * entries).div_ceil(5).next_power_of_two().max(FEWEST);
        Self(vec![FREE; places])
    }

    /// How many entries there are places for. Three of eight are free, so that a search ends soon.
    const fn capacity(&self) -> usize {
        self.0.len() / 8 * 5
    }

    #[inline(always)]
    const fn mask(&self) -> usize {
        self.0.len().wrapping_sub(1)
    }

    /// The place and the slot of the entry with this hash for whose slot `is_it` holds.
    #[inline(always)]
    fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.mask();
        let mut at = hash as usize & mask;
        loop {
            // There is no place at all, if not this one.
            let [other, slot] = *self.0.get(at)?;
            if other == hash && is_it(slot) {
                return Some((at, slot));
            }
            if other == FREE[0] {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts an entry where there is room for one.
    #[inline(always)]
    fn put(&mut self, place: Place) {
        let mask = self.mask();
        let mut at = place[0] as usize & mask;
        while let Some(other) = self.0.get_mut(at) {
            if other[0] == FREE[0] {
                *other = place;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Frees a place. Entries behind it that could not have it before take it.
    fn take(&mut self, mut free: usize) {
        let mask = self.mask();
        let mut at = free;
        loop {
            at = (at + 1) & mask;
            let place = self.0[at];
            if place[0] == FREE[0] {
                break;
            }
            let distance = at.wrapping_sub(place[0] as usize) & mask;
            if distance >= at.wrapping_sub(free) & mask {
                self.0[free] = place;
                free = at;
            }
        }
        self.0[free] = FREE;
    }
}

impl Index {
    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: Places = Places(Vec::new());
        Self { table: NONE, old: NONE, next: 0, pause: 0, room: 0, len: 0 }
    }

    /// No entries, and memory for as many.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        if capacity == 0 {
            return Self::new();
        }
        let table = Places::for_entries(capacity);
        Self { room: table.capacity(), table, ..Self::new() }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many entries there is memory for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.table.capacity() + self.old.capacity()
    }

    /// The slot with this hash that holds the key. It is asked of slots that hold another one, or
    /// none any more.
    #[inline]
    pub fn find(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        let near = self.find_near(hash, &mut is_key);
        if near.is_none() && self.is_moving() { self.find_old(hash, is_key) } else { near }
    }

    /// The same without those that are still to move.
    #[inline(always)]
    pub(super) fn find_near(&self, hash: u64, is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(half(hash), is_key).map(|(_, slot)| slot)
    }

    /// Whether there are entries that are still to move.
    #[inline(always)]
    pub(super) const fn is_moving(&self) -> bool {
        !self.old.0.is_empty()
    }

    #[cold]
    fn find_old(&self, hash: u64, is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.old.find(half(hash), is_key).map(|(_, slot)| slot)
    }

    /// Adds the slot of a key that has none.
    #[inline]
    pub fn insert(&mut self, hash: u64, slot: u32) {
        if self.room == 0 {
            self.grow();
        }
        self.table.put([half(hash), slot]);
        self.room -= 1;
        self.len += 1;
        if self.is_moving() {
            self.go_on();
        }
    }

    /// Removes the slot of a key.
    pub fn remove(&mut self, hash: u64, slot: u32) {
        let hash = half(hash);
        if let Some((place, _)) = self.table.find(hash, |other| other == slot) {
            self.table.take(place);
            self.room += 1;
            self.len -= 1;
        } else if let Some((place, _)) = self.old.find(hash, |other| other == slot) {
            // Those behind it stay where they are, since some of them have moved.
            self.old.0[place] = DEAD;
            self.len -= 1;
        }
        if self.is_moving() {
            self.go_on();
        } else if self.table.capacity() > KEPT && self.len < self.table.capacity() / 8 {
            self.begin();
        }
    }

    /// Puts another slot of the same key in the place of `slot`.
    #[inline]
    pub fn replace(&mut self, hash: u64, slot: u32, by: u32) {
        for table in [&mut self.table, &mut self.old] {
            if let Some((place, _)) = table.find(half(hash), |other| other == slot) {
                table.0[place][1] = by;
                break;
            }
        }
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        let places = self.table.0.len();
        if places <= SMALL {
            self.table.0.fill(FREE);
        } else {
            self.table.0 = vec![FREE; places];
        }
        (self.old, self.len, self.room) = (Places::default(), 0, self.table.capacity());
    }

    #[cold]
    fn grow(&mut self) {
        self.begin();
        if self.old.0.len() <= SMALL {
            self.advance(usize::MAX);
        }
    }

    /// Goes over to a table for twice the entries. It is not so much smaller than the one before
    /// that it could be full before the move ends.
    #[cold]
    fn begin(&mut self) {
        let table = Places::for_entries((2 * self.len).max(self.table.capacity() / 4));
        self.room = table.capacity();
        let before = mem::replace(&mut self.table, table);
        self.advance(usize::MAX);
        (self.old, self.next) = (before, 0);
    }

    /// An entry has come or gone.
    #[inline(never)]
    fn go_on(&mut self) {
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        self.pause = PAUSE;
        self.advance(PORTION);
    }

    fn advance(&mut self, count: usize) {
        let until = self.next.saturating_add(count).min(self.old.0.len());
        for place in &self.old.0[self.next..until] {
            if place[0] > DEAD[0] {
                self.table.put(*place);
                self.room -= 1;
            }
        }
        self.next = until;
        if until == self.old.0.len() {
            (self.old, self.next) = (Places::default(), 0);
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    const fn in_table(index: &Index) -> usize {
        index.table.capacity() - index.room
    }

    #[test]
    fn a_growing_index_moves_in_portions() {
        let many = if cfg!(miri) { 1 << 14 } else { 1 << 17 };
        let (mut index, mut moved) = (Index::new(), 0);
        for slot in 0..many {
            let before = in_table(&index);
            index.insert(hash(u64::from(slot)), slot);
            if index.len() > SMALL && in_table(&index) >= before {
                assert!(in_table(&index) - before <= PORTION + 1, "at the slot {slot}");
                moved += in_table(&index) - before - 1;
            }
        }
        assert!(moved > SMALL);
        assert!((0..many).all(|slot| index.find(hash(slot.into()), |s| s == slot) == Some(slot)));
        assert_eq!(
            (index.len(), index.find(hash(many.into()), |s| s == many)),
            (many as usize, None)
        );
    }

    /// Keys that come and go, with their slots used again, against a map.
    #[test]
    fn keys_are_found_at_any_step_of_a_move() {
        let rounds = if cfg!(miri) { 20_000 } else { 400_000 };
        let (mut index, mut slots, mut free) = (Index::new(), Vec::new(), Vec::new());
        let mut expected: HashMap<u64, u32> = HashMap::new();
        let mut random = 1_u64;
        for round in 0..rounds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Many come, then many go.
            let grows = round % (rounds / 2) < rounds / 3;
            let key = (random >> 33) % 20_000;
            let find = |index: &Index, slots: &[Option<u64>]| {
                index.find(hash(key), |slot| slots[slot as usize] == Some(key))
            };
            let found = find(&index, &slots);
            assert_eq!(found, expected.get(&key).copied(), "key {key} in round {round}");
            let stays = (random >> 60) < if grows { 12 } else { 2 };
            match found {
                None if stays => {
                    let slot = free.pop().unwrap_or(u32::try_from(slots.len()).expect("few"));
                    slots.resize(slots.len().max(slot as usize + 1), None);
                    slots[slot as usize] = Some(key);
                    index.insert(hash(key), slot);
                    expected.insert(key, slot);
                }
                Some(slot) if !stays => {
                    slots[slot as usize] = None;
                    index.remove(hash(key), slot);
                    free.push(slot);
                    expected.remove(&key);
                }
                Some(slot) if random >> 56 == 0 => {
                    let by = u32::try_from(slots.len()).expect("few");
                    let moved = slots[slot as usize].take();
                    slots.push(moved);
                    free.push(slot);
                    index.replace(hash(key), slot, by);
                    expected.insert(key, by);
                }
                _ => {}
            }
            assert_eq!(index.len(), expected.len());
        }
        for (key, slot) in expected {
            assert_eq!(index.find(hash(key), |slot| slots[slot as usize] == Some(key)), Some(slot));
        }
    }
}
