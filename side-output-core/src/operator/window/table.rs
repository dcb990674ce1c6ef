use super::{Firing, Parts, WindowBody};
use crate::error::StreamError;
use crate::operator::Progress;
use crate::output::Collect;
use crate::window::{Pane, Window};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash};

/// Largest table that is kept for later: one that a million keys went through is not.
const RECYCLED: usize = 1 << 14;

/// How many tables wait for a window.
const POOL: usize = 8;

/// How many entries are freed, or put together, in one go.
pub(super) const WORK: usize = 4096;

/// What is kept of each key, in the order in which they first came.
pub(super) struct Table<K, V> {
    /// Where each key's entry stands. The keys stand there and not here: half of the memory that a
    /// record's look-up goes through, and no key is cloned.
    index: HashTable<u32>,
    entries: VecDeque<Entry<K, V>>,
    /// How many keys have fired already, where firing takes several turns.
    done: usize,
}

pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// What a window keeps of one key.
pub(super) struct Kept<C, S> {
    pub(super) contents: C,
    pub(super) side: S,
}

#[inline]
pub(super) fn hash_of<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<K, V> Table<K, V> {
    pub(super) const fn new() -> Self {
        Self { index: HashTable::new(), entries: VecDeque::new(), done: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Entry<K, V>> {
        self.entries.get(slot)
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
        self.done = 0;
    }

    /// Frees entries, `work` of them at most.
    pub(super) fn free(&mut self, work: &mut usize) -> Progress {
        let freed = self.entries.len().min(*work);
        *work -= freed;
        drop(self.entries.drain(..freed));
        if self.entries.is_empty() { Progress::Done } else { Progress::More }
    }

    /// Whether it is worth to be kept for later.
    pub(super) fn is_small(&self) -> bool {
        self.index.capacity() <= RECYCLED
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

    pub(super) fn reserve(&mut self, additional: usize) {
        let Self { index, entries, .. } = self;
        index.reserve(additional, |slot| hash_of(&entries[*slot as usize].key));
        entries.reserve(additional);
    }
}

impl<K, C, S> Table<K, Kept<C, S>> {
    /// Fires for the keys in their order; with the last firing their state goes.
    pub(super) fn fire<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        window: Window,
        pane: Pane,
        last: bool,
        room: &mut usize,
        out: &mut Out,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let (watermark, entries) = (parts.watermark, &mut self.entries);
        let mut fired = 0;
        while *room > 0 {
            let routes = if last {
                let Some(Entry { key, value }) = entries.pop_front() else { break };
                let Kept { contents, side } = value;
                parts.body.fire_last(key, window, pane, watermark, contents, side, out)?
            } else {
                let Some(Entry { key, value }) = entries.get_mut(self.done) else { break };
                self.done += 1;
                let firing = Firing { key, window, pane, watermark };
                parts.body.fire(firing, &mut value.contents, &mut value.side, out)?
            };
            fired += routes;
            *room = room.saturating_sub(routes.max(1));
        }
        out.tally().fired += fired as u64;
        if self.done < entries.len() {
            return Ok(Progress::More);
        }
        self.done = 0;
        Ok(Progress::Done)
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
        if self.0.len() < POOL && table.is_small() {
            table.clear();
            self.0.push(table);
        }
    }
}
