use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash};
use std::ops::Range;
use std::{convert, mem, vec};

/// How much is kept for later, in entries: no memory for more, unless a table was well filled.
pub(super) const RECYCLED: usize = 1 << 14;

/// How many tables wait for a window.
const POOL: usize = 8;

/// How many entries are put together, or freed, in one go.
pub(super) const WORK: usize = 4096;

/// What is kept of each key, in the order in which they first came.
pub(super) struct Table<K, V> {
    /// Where each key's entry stands. The keys stand there and not here: half of the memory that a
    /// record's look-up goes through, and no key is cloned.
    index: HashTable<u32>,
    entries: Vec<Entry<K, V>>,
    /// The entries, once the first of them was taken out.
    leaving: vec::IntoIter<Entry<K, V>>,
}

pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

#[inline]
pub(super) fn hash_of<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<K, V> Table<K, V> {
    pub(super) fn new() -> Self {
        Self { index: HashTable::new(), entries: Vec::new(), leaving: Vec::new().into_iter() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.leaving.len()
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Entry<K, V>> {
        self.entries.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Entry<K, V>> {
        self.entries.get_mut(slot)
    }

    pub(super) fn range(&self, slots: Range<usize>) -> &[Entry<K, V>] {
        &self.entries[slots]
    }

    /// Takes the entries out in their order, some at a time; no key is found again after that.
    #[inline]
    pub(super) fn leave(&mut self) -> &mut impl Iterator<Item = Entry<K, V>> {
        if !self.entries.is_empty() {
            self.leaving = mem::take(&mut self.entries).into_iter();
        }
        &mut self.leaving
    }

    /// Forgets everything but the memory.
    #[expect(clippy::map_identity, reason = "without it the memory is not reused")]
    fn clear(&mut self) {
        self.index.clear();
        if self.entries.is_empty() {
            self.entries = mem::take(&mut self.leaving).map(convert::identity).collect();
        }
        self.entries.clear();
    }
}

impl<K: Hash + Eq, V> Table<K, V> {
    /// Where the entry of `key` stands.
    #[inline]
    pub(super) fn slot(&self, hash: u64, key: &K) -> Option<usize> {
        let Self { index, entries, .. } = self;
        index.find(hash, |slot| entries[*slot as usize].key == *key).map(|slot| *slot as usize)
    }

    #[inline]
    pub(super) fn find(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K, V>> {
        let slot = self.slot(hash, key)?;
        Some(&mut self.entries[slot])
    }

    #[inline]
    pub(super) fn push(&mut self, hash: u64, key: K, value: V) {
        let Self { index, entries, .. } = self;
        let slot = u32::try_from(entries.len()).expect("fewer than 2^32 keys in a window");
        if index.len() == index.capacity() {
            // In the order of the entries, and not in its own, by which they would be read at
            // random.
            *index = HashTable::with_capacity(2 * entries.len());
            for (slot, entry) in (0..).zip(entries.iter()) {
                index.insert_unique(hash_of(&entry.key), slot, |_| 0);
            }
        }
        index.insert_unique(hash, slot, |slot| hash_of(&entries[*slot as usize].key));
        entries.push(Entry { key, value });
    }
}

/// Tables whose windows are gone, for the next ones: the oldest first, so that one that is larger
/// than needed is seen to be.
pub(super) struct Pool<K, V>(VecDeque<Table<K, V>>);

impl<K, V> Pool<K, V> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn take(&mut self) -> Table<K, V> {
        self.0.pop_front().unwrap_or_else(Table::new)
    }

    pub(super) fn give(&mut self, mut table: Table<K, V>) {
        let (keys, capacity) = (table.index.len(), table.index.capacity());
        if self.0.len() < POOL && (capacity <= RECYCLED || keys >= capacity / 4) {
            table.clear();
            self.0.push_back(table);
        }
    }
}
