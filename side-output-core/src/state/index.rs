use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::{fmt, mem};

/// Tables with fewer entries are moved in one go, and keep their memory when they run empty.
pub(super) const SMALL: usize = 1 << 12;

/// Where the entry of each key stands, by the key's hash. The key itself stands there and nowhere
/// else.
///
/// When the table is full, its entries move to a larger one some at a time, with the next calls:
/// no call looks at all of them. They move in the order of their slots and not in that of the
/// table, by which the keys would be read at random.
///
/// What is passed as `hash_at` gives the hash of the key in a slot; `None` if there is no key in
/// it, or not one that stands here.
///
/// # Examples
///
/// ```
/// use side_output::state::Index;
///
/// let (keys, hash) = (["a", "b"], |key: &str| u64::from(key.as_bytes()[0]) << 57);
/// let mut index = Index::new();
/// for (slot, key) in (0..).zip(keys) {
///     index.insert(hash(key), slot, 2, |slot| Some(hash(keys[slot as usize])));
/// }
/// assert_eq!(index.find(hash("b"), |slot| keys[slot as usize] == "b"), Some(1));
/// ```
#[derive(Default)]
pub struct Index {
    table: HashTable<u32>,
    /// What the table was before, until all entries have moved; those that have are left in it.
    old: HashTable<u32>,
    /// The first slot whose entry may not have moved.
    next: u32,
    /// No entry at or behind this slot has to move.
    end: u32,
    /// How many slots are looked at with each call.
    step: u32,
    len: usize,
    /// A slot that is still to move was used again, and stands in the new table already.
    reused: bool,
}

impl Index {
    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        let table = HashTable::new();
        Self { table, old: HashTable::new(), next: 0, end: 0, step: 0, len: 0, reused: false }
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
        self.find_near(hash, &mut is_key).or_else(|| self.find_old(hash, is_key))
    }

    /// The same without those that are still to move.
    #[inline(always)]
    pub(super) fn find_near(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(hash, |slot| is_key(*slot)).copied()
    }

    /// The same of those that are still to move.
    #[inline]
    pub(super) fn find_old(&self, hash: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.old.is_empty() {
            return None;
        }
        self.old.find(hash, |slot| is_key(*slot)).copied()
    }

    /// Adds the slot of a key that has none; all slots are below `end`.
    ///
    /// # Panics
    ///
    /// If `end` is not below 2^32.
    #[inline]
    pub fn insert(
        &mut self,
        hash: u64,
        slot: u32,
        end: usize,
        hash_at: impl Fn(u32) -> Option<u64>,
    ) {
        if self.table.len() == self.table.capacity() || !self.old.is_empty() {
            self.make_room(end, &hash_at);
            self.reused |= slot >= self.next && slot < self.end;
        }
        self.table.insert_unique(hash, slot, |slot| hash_at(*slot).unwrap_or_default());
        self.len += 1;
    }

    /// Removes the slot of a key, which is not there any more.
    pub fn remove(
        &mut self,
        hash: u64,
        slot: u32,
        end: usize,
        hash_at: impl Fn(u32) -> Option<u64>,
    ) {
        for table in [&mut self.table, &mut self.old] {
            if let Ok(entry) = table.find_entry(hash, |other| *other == slot) {
                entry.remove();
                self.len -= 1;
                break;
            }
        }
        if !self.old.is_empty() {
            self.advance(self.step, &hash_at);
        } else if self.table.capacity() > SMALL && self.len < self.table.capacity() / 8 {
            self.begin(end, &hash_at);
        }
    }

    /// Puts another slot of the same key in the place of `slot`.
    #[inline]
    pub fn replace(&mut self, hash: u64, slot: u32, by: u32, hash_at: impl Fn(u32) -> Option<u64>) {
        if let Some(place) = self.table.find_mut(hash, |other| *other == slot) {
            *place = by;
        } else if let Ok(entry) = self.old.find_entry(hash, |other| *other == slot) {
            // To where it will not be overlooked when its time to move has passed.
            entry.remove();
            self.reused = true;
            self.table.insert_unique(hash, by, |slot| hash_at(*slot).unwrap_or_default());
        }
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.table.clear();
        (self.old, self.len) = (HashTable::new(), 0);
    }

    #[inline(never)]
    fn make_room(&mut self, end: usize, hash_at: &impl Fn(u32) -> Option<u64>) {
        self.advance(self.step, hash_at);
        if self.table.len() == self.table.capacity() {
            self.begin(end, hash_at);
        }
    }

    /// Goes over to a table for twice the entries.
    fn begin(&mut self, end: usize, hash_at: &impl Fn(u32) -> Option<u64>) {
        self.advance(u32::MAX, hash_at);
        let table = HashTable::with_capacity(2 * self.len);
        let old = mem::replace(&mut self.table, table);
        if self.len < SMALL {
            for slot in &old {
                let hash = hash_at(*slot).unwrap_or_default();
                self.table.insert_unique(hash, *slot, |_| 0);
            }
            return;
        }
        self.old = old;
        self.reused = false;
        (self.next, self.end) = (0, u32::try_from(end).expect("fewer than 2^32 keys"));
        // All have moved when the new table is filled by a quarter more.
        self.step = 4 * (self.end / u32::try_from(self.len).unwrap_or(self.end) + 1);
    }

    fn advance(&mut self, count: u32, hash_at: &impl Fn(u32) -> Option<u64>) {
        if self.old.is_empty() {
            return;
        }
        let until = self.next.saturating_add(count).min(self.end);
        for slot in self.next..until {
            let Some(hash) = hash_at(slot) else { continue };
            let rehash = |slot: &u32| hash_at(*slot).unwrap_or_default();
            if !self.reused {
                self.table.insert_unique(hash, slot, rehash);
            } else if let Entry::Vacant(place) =
                self.table.entry(hash, |other| *other == slot, rehash)
            {
                place.insert(slot);
            }
        }
        self.next = until;
        if until == self.end {
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
    use std::cell::Cell;
    use std::collections::HashMap;

    const fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn a_growing_index_looks_at_few_slots_in_each_call() {
        let many = if cfg!(miri) { 1 << 13 } else { 1 << 17 };
        let mut index = Index::new();
        for slot in 0..many {
            let looks = Cell::new(0);
            let hash_at = |slot| {
                looks.set(looks.get() + 1);
                Some(hash(u64::from(slot)))
            };
            index.insert(hash(u64::from(slot)), slot, slot as usize, hash_at);
            assert!(looks.get() <= SMALL, "{} looks for the slot {slot}", looks.get());
        }
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
                    let hash_at = |slot: u32| slots[slot as usize].map(hash);
                    index.insert(hash(key), slot, slots.len(), hash_at);
                    expected.insert(key, slot);
                }
                Some(slot) if !stays => {
                    slots[slot as usize] = None;
                    let hash_at = |slot: u32| slots[slot as usize].map(hash);
                    index.remove(hash(key), slot, slots.len(), hash_at);
                    free.push(slot);
                    expected.remove(&key);
                }
                Some(slot) if random >> 56 == 0 => {
                    let by = u32::try_from(slots.len()).expect("few");
                    let moved = slots[slot as usize].take();
                    slots.push(moved);
                    free.push(slot);
                    index.replace(hash(key), slot, by, |slot| slots[slot as usize].map(hash));
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
