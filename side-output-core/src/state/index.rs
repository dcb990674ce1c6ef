use hashbrown::HashTable;
use std::{fmt, mem};

/// Tables with fewer places move in one go: about a millisecond. Less in tests, which would be
/// slow.
const SMALL: usize = if cfg!(test) { 1 << 13 } else { 1 << 17 };

/// Tables for fewer entries keep their memory when they run empty.
const KEPT: usize = 1 << 13;

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
    table: HashTable<Place>,
    /// What the table was before, until all entries have moved; those that have are left in it.
    old: HashTable<Place>,
    /// The first place of the old table whose entry has not moved.
    next: usize,
    /// How many entries come or go until the next portion moves.
    pause: u32,
    len: usize,
}

/// With the hash, an entry moves without a look at its key, which may stand anywhere in memory.
#[derive(Clone, Copy)]
struct Place {
    hash: u32,
    slot: u32,
}

impl Place {
    /// Places are chosen by the low bits of a hash and told apart by the high ones.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "a table passes its entries this way")]
    #[inline(always)]
    const fn hash(&self) -> u64 {
        (self.hash as u64) << u32::BITS | self.hash as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of a hash is enough")]
    #[inline(always)]
    const fn new(hash: u64, slot: u32) -> Self {
        Self { hash: hash as u32, slot }
    }
}

impl Index {
    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: HashTable::new(), old: HashTable::new(), next: 0, pause: 0, len: 0 }
    }

    /// No entries, and memory for as many.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { table: HashTable::with_capacity(capacity), ..Self::new() }
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
    pub fn capacity(&self) -> usize {
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
    pub(super) fn find_near(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(Place::new(hash, 0).hash(), |place| is_key(place.slot)).map(|p| p.slot)
    }

    /// Whether there are entries that are still to move.
    #[inline(always)]
    pub(super) fn is_moving(&self) -> bool {
        !self.old.is_empty()
    }

    #[cold]
    fn find_old(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.old.find(Place::new(hash, 0).hash(), |place| is_key(place.slot)).map(|p| p.slot)
    }

    /// Adds the slot of a key that has none.
    #[inline]
    pub fn insert(&mut self, hash: u64, slot: u32) {
        if self.table.len() == self.table.capacity() && self.table.num_buckets() > SMALL {
            self.begin();
        }
        let place = Place::new(hash, slot);
        self.table.insert_unique(place.hash(), place, Place::hash);
        self.len += 1;
        if self.is_moving() {
            self.go_on();
        }
    }

    /// Removes the slot of a key.
    pub fn remove(&mut self, hash: u64, slot: u32) {
        let hash = Place::new(hash, slot).hash();
        let is_it = |place: &Place| place.slot == slot;
        if let Ok(entry) = self.table.find_entry(hash, is_it) {
            entry.remove();
            self.len -= 1;
        } else if let Ok(entry) = self.old.find_entry(hash, is_it) {
            entry.remove();
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
        let hash = Place::new(hash, slot).hash();
        for table in [&mut self.table, &mut self.old] {
            if let Some(place) = table.find_mut(hash, |place| place.slot == slot) {
                place.slot = by;
                break;
            }
        }
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.table.clear();
        (self.old, self.len) = (HashTable::new(), 0);
    }

    /// Goes over to a table for twice the entries.
    #[cold]
    fn begin(&mut self) {
        self.advance(usize::MAX);
        let table = HashTable::with_capacity(2 * self.len);
        (self.old, self.next) = (mem::replace(&mut self.table, table), 0);
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
        let until = self.next.saturating_add(count).min(self.old.num_buckets());
        for index in self.next..until {
            if let Some(place) = self.old.get_bucket(index) {
                self.table.insert_unique(place.hash(), *place, Place::hash);
            }
        }
        self.next = until;
        if until == self.old.num_buckets() {
            self.old = HashTable::new();
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

    #[test]
    fn a_growing_index_moves_in_portions() {
        let many = if cfg!(miri) { 1 << 14 } else { 1 << 17 };
        let (mut index, mut moved) = (Index::new(), 0);
        for slot in 0..many {
            let before = index.table.len();
            index.insert(hash(u64::from(slot)), slot);
            if index.len() > SMALL && index.table.len() >= before {
                assert!(index.table.len() - before <= PORTION + 1, "at the slot {slot}");
                moved += index.table.len() - before - 1;
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
