use super::Index;
use super::segments::{Leaving, Segments};
use std::collections::VecDeque;
use std::hash::Hash;
use std::{fmt, mem};

/// How much is kept for later, in entries: no memory for more, unless a table was well filled.
pub(crate) const RECYCLED: usize = 1 << 14;

/// How many tables wait for a window.
const POOL: usize = 8;

/// Something for each key, in the order in which the keys first came. Nothing is taken out but the
/// whole.
///
/// # Examples
///
/// ```
/// use side_output::state::{KeyHash, Table};
///
/// let (hash, mut table) = (KeyHash::default(), Table::new());
/// for key in ["b", "a", "b"] {
///     match table.find(hash.of(&key), &key) {
///         Some(entry) => entry.value += 1,
///         None => _ = table.push(hash.of(&key), key, 1),
///     }
/// }
/// assert!(table.iter().map(|entry| (entry.key, entry.value)).eq([("b", 2), ("a", 1)]));
/// ```
pub struct Table<K, V> {
    /// Where each key's entry stands. The keys stand there and not here: half of the memory that a
    /// record's look-up goes through, and no key is cloned.
    index: Index,
    entries: Segments<Entry<K, V>>,
    /// The entries, once the first of them was taken out.
    leaving: Leaving<Entry<K, V>>,
}

/// A key with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<K, V> {
    /// The key.
    pub key: K,
    /// What belongs to it.
    pub value: V,
}

impl<K, V> Table<K, V> {
    /// No entries.
    #[must_use]
    pub fn new() -> Self {
        Self { index: Index::new(), entries: Segments::new(), leaving: Leaving::default() }
    }

    /// No entries, and memory for as many.
    #[must_use]
    fn with_capacity(capacity: usize) -> Self {
        Self { index: Index::with_capacity(capacity), ..Self::new() }
    }

    /// Number of entries that have not left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() + self.leaving.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries there is memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.index.capacity()
    }

    /// The entry at this place in the order.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<&Entry<K, V>> {
        self.entries.get(slot)
    }

    /// The entry at this place in the order.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Entry<K, V>> {
        self.entries.get_mut(slot)
    }

    /// Some entries from `slot` on: none only if there are none.
    #[must_use]
    pub fn run(&self, slot: usize) -> &[Entry<K, V>] {
        self.entries.run(slot)
    }

    /// Some entries from `slot` on: none only if there are none.
    #[must_use]
    pub fn run_mut(&mut self, slot: usize) -> &mut [Entry<K, V>] {
        self.entries.run_mut(slot)
    }

    /// The entries, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<K, V>> {
        self.entries.iter()
    }

    /// Takes the entries out in their order, some at a time; no key is found again after that.
    #[inline]
    pub fn leave(&mut self) -> &mut Leaving<Entry<K, V>> {
        if !self.entries.is_empty() {
            self.leaving = self.entries.leave();
        }
        &mut self.leaving
    }

    /// Forgets everything but some of the memory.
    fn clear(&mut self) {
        self.index.clear();
        if self.entries.is_empty() {
            self.entries = mem::take(&mut self.leaving).into_memory();
        } else {
            self.entries.clear();
        }
    }
}

impl<K: Hash + Eq, V> Table<K, V> {
    /// Where the entry of `key` stands.
    #[inline]
    #[must_use]
    pub fn slot(&self, hash: u64, key: &K) -> Option<usize> {
        let is_key = |slot: u32| self.entries.get(slot as usize).is_some_and(|e| e.key == *key);
        self.index.find(hash, is_key).map(|slot| slot as usize)
    }

    /// The entry of `key`.
    #[inline]
    #[must_use]
    pub fn find(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K, V>> {
        let slot = self.slot(hash, key)?;
        self.entries.get_mut(slot)
    }

    /// The entry of a key if it is where most are, which is tried before [`find`](Self::find) in a
    /// loop that has to be short. With a closure of its own, each such loop gets its own copy.
    #[inline(always)]
    #[must_use]
    pub(crate) fn find_near(
        &mut self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
    ) -> Option<&mut Entry<K, V>> {
        let entries = self.entries.first_mut();
        let is_key = |slot: u32| entries.get(slot as usize).is_some_and(|e| is_key(&e.key));
        let slot = self.index.find_near(hash, is_key)?;
        entries.get_mut(slot as usize)
    }

    /// The entry of `key` if it is not [near](Self::find_near).
    #[inline(always)]
    #[must_use]
    pub(crate) fn find_far(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K, V>> {
        if self.entries.is_single() && !self.index.is_moving() {
            return None;
        }
        self.find(hash, key)
    }

    /// Adds the entry of a key that has none, and says where it stands.
    ///
    /// # Panics
    ///
    /// With the key number 2^32.
    #[inline]
    pub fn push(&mut self, hash: u64, key: K, value: V) -> usize {
        let slot = self.entries.len();
        self.index.insert(hash, u32::try_from(slot).expect("fewer than 2^32 keys in a window"));
        self.entries.push(Entry { key, value });
        slot
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Tables whose windows are gone, for the next ones: the oldest first, so that one that is larger
/// than needed is seen to be.
pub(crate) struct Pool<K, V>(VecDeque<Table<K, V>>);

impl<K, V> Pool<K, V> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// One for `keys` or so.
    pub(crate) fn take(&mut self, keys: usize) -> Table<K, V> {
        self.0.pop_front().unwrap_or_else(|| Table::with_capacity(keys))
    }

    pub(crate) fn give(&mut self, mut table: Table<K, V>) {
        let (keys, capacity) = (table.index.len(), table.index.capacity());
        if self.0.len() < POOL && (capacity <= RECYCLED || keys >= capacity / 4) {
            table.clear();
            self.0.push_back(table);
        }
    }

    /// Gives up a table that was kept for as much as there has been, now that there is nothing;
    /// whether there was one.
    pub(crate) fn shrink(&mut self) -> bool {
        let large = self.0.iter().position(|table| table.capacity() > RECYCLED);
        large.and_then(|large| self.0.remove(large)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyHash;
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "that many keys take minutes there, and nothing else is tried")]
    fn a_table_is_walked_and_built_again() {
        let hash = KeyHash::default();
        let mut table = Table::new();
        for n in 0..10_000_u32 {
            assert_eq!(table.push(hash.of(&n.to_string()), n.to_string(), n), n as usize);
        }
        let (other, mut again) = (KeyHash::default(), Table::new());
        for entry in table.iter() {
            again.push(other.of(&entry.key), &*entry.key, entry.value);
        }
        assert!(again.iter().map(|entry| entry.value).eq(0..10_000));
        for n in [0, 4095, 4096, 9999] {
            let key = n.to_string();
            assert_eq!(table.find(hash.of(&key), &key).map(|entry| entry.value), Some(n));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "that many keys take minutes there, and nothing else is tried")]
    fn the_memory_of_a_table_is_used_again_if_it_was_needed() {
        let (hash, mut pool) = (KeyHash::default(), Pool::new());
        for (keys, kept) in [(40_000, true), (30_000, true), (10, false), (10, true)] {
            let mut table: Table<u32, ()> = pool.take(0);
            (0..keys).for_each(|key| _ = table.push(hash.of(&key), key, ()));
            assert_eq!(table.leave().take(7).count(), 7);
            assert_eq!(table.len(), keys as usize - 7);
            pool.give(table);
            let kept_now = pool.0.front().is_some_and(|table| table.entries.capacity() > 0);
            assert_eq!(kept_now, kept, "after {keys} keys");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "that many keys take minutes there, and nothing else is tried")]
    fn fault_38_a_pool_of_large_tables_is_given_up() {
        let (hash, mut pool) = (KeyHash::default(), Pool::new());
        for keys in [50_000, 10] {
            let mut table: Table<u32, ()> = Table::new();
            (0..keys).for_each(|key| _ = table.push(hash.of(&key), key, ()));
            pool.give(table);
        }
        assert!(pool.shrink() && !pool.shrink());
        assert_eq!(pool.0.len(), 1);
        assert!(pool.0[0].index.capacity() <= RECYCLED);
    }
}
