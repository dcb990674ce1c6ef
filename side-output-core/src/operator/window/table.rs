use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::collections::{VecDeque, vec_deque};
use std::hash::{BuildHasher as _, Hash};
use std::ops::Range;

/// Largest table that is kept for later: one that a million keys went through is not.
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
    entries: VecDeque<Entry<K, V>>,
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
    pub(super) const fn new() -> Self {
        Self { index: HashTable::new(), entries: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Entry<K, V>> {
        self.entries.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Entry<K, V>> {
        self.entries.get_mut(slot)
    }

    pub(super) fn pop_front(&mut self) -> Option<Entry<K, V>> {
        self.entries.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
    }

    pub(super) fn range(&self, slots: Range<usize>) -> vec_deque::Iter<'_, Entry<K, V>> {
        self.entries.range(slots)
    }

    /// Takes out the first `count` entries; no key is found again after that.
    pub(super) fn drain(&mut self, count: usize) -> vec_deque::Drain<'_, Entry<K, V>> {
        self.entries.drain(..count)
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

    #[inline(never)]
    pub(super) fn push(&mut self, hash: u64, key: K, value: V) {
        let Self { index, entries, .. } = self;
        let slot = u32::try_from(entries.len()).expect("fewer than 2^32 keys in a window");
        index.insert_unique(hash, slot, |slot| hash_of(&entries[*slot as usize].key));
        entries.push_back(Entry { key, value });
    }
}

/// Tables whose windows are gone, for the next ones.
pub(super) struct Pool<K, V>(Vec<Table<K, V>>);

impl<K, V> Pool<K, V> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn take(&mut self) -> Table<K, V> {
        self.0.pop().unwrap_or_else(Table::new)
    }

    pub(super) fn give(&mut self, mut table: Table<K, V>) {
        if self.0.len() < POOL && table.index.capacity() <= RECYCLED {
            table.clear();
            self.0.push(table);
        }
    }
}
