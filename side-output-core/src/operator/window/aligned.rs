use super::{Parts, Share, WindowBody};
use crate::error::StreamError;
use crate::operator::Progress;
use crate::operator::window::Firing;
use crate::output::Collect;
use crate::time::Timestamp;
use crate::window::{Assigner, Pane, Window};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash};

/// Largest table that is kept for the next window: one that a million keys went through is not.
const RECYCLED: usize = 1 << 14;

/// How many tables wait for a window.
const POOL: usize = 8;

/// How many entries of one window are freed in one go.
const FREED: usize = 4096;

/// The windows of all keys, one table for each window.
///
/// Few windows are open at a time, so they stand in a short list in the order in which they end,
/// and a record costs about one look-up by its key. All keys of a window end together, so there
/// are no timers: what is due stands at the front of the list.
pub(super) struct Aligned<K, C, S> {
    open: Vec<Open<K, C, S>>,
    pool: Vec<Table<K, C, S>>,
    /// The window that took the last record.
    hot: usize,
}

/// A window and what is kept of each key.
struct Open<K, C, S> {
    window: Window,
    /// The watermark has passed its end: late records fire at once.
    complete: bool,
    table: Table<K, C, S>,
    /// How many keys have fired already, where firing takes several turns.
    done: usize,
}

/// What a window keeps, the keys in the order in which they first came: that is how they fire.
struct Table<K, C, S> {
    /// Where each key's entry stands. The keys stand there and not here: half of the memory that a
    /// record's look-up goes through, and no key is cloned.
    index: HashTable<u32>,
    entries: VecDeque<Entry<K, C, S>>,
    /// Late updates of each key. Not with the entries, which stay small this way.
    updates: FxHashMap<K, u32>,
}

struct Entry<K, C, S> {
    key: K,
    contents: C,
    side: S,
}

impl<K, C, S> Aligned<K, C, S> {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), pool: Vec::new(), hot: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.open.iter().map(|open| open.table.entries.len()).sum()
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Aligned<K, C, S> {
    #[inline]
    pub(super) fn on_record<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: K,
        value: T,
        at: Timestamp,
        out: &mut Out,
    ) -> Result<usize, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        if A::DISJOINT {
            // What is open is not gone yet: no need to look where the window begins and ends.
            if let Some(hot) = self.open.get(self.hot)
                && hot.window.contains(at)
            {
                return self.insert(parts, self.hot, key, Share::Owned(value), out);
            }
        }
        let mut routes = 0;
        let mut last = None;
        for window in parts.assigner.assign(at) {
            if parts.is_gone(window) {
                continue;
            }
            // All but the last of its windows borrow the record.
            if let Some(window) = last.replace(window) {
                let index = self.index(window, parts.watermark);
                let value = Share::Borrowed(&value);
                routes += self.insert_into(parts, index, key.clone(), value, out)?;
            }
        }
        let Some(window) = last else {
            return parts.late(value, at, out);
        };
        let index = self.index(window, parts.watermark);
        self.hot = index;
        Ok(routes + self.insert_into(parts, index, key, Share::Owned(value), out)?)
    }

    /// [`insert`](Self::insert) where it is not worth its size.
    #[inline(never)]
    fn insert_into<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        index: usize,
        key: K,
        value: Share<'_, T>,
        out: &mut Out,
    ) -> Result<usize, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        self.insert(parts, index, key, value, out)
    }

    /// Where the window stands; opens it if it is not there.
    #[inline]
    fn index(&mut self, window: Window, watermark: Timestamp) -> usize {
        match self.open.binary_search_by(|open| open.window.cmp(&window)) {
            Ok(index) => index,
            Err(index) => {
                let table = self.pool.pop().unwrap_or_else(Table::new);
                let complete = window.max_timestamp() <= watermark;
                self.open.insert(index, Open { window, complete, table, done: 0 });
                index
            }
        }
    }

    #[expect(clippy::inline_always, reason = "it is all that most records come to")]
    #[inline(always)]
    fn insert<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        index: usize,
        key: K,
        value: Share<'_, T>,
        out: &mut Out,
    ) -> Result<usize, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let Open { window, complete, table, .. } = &mut self.open[index];
        if *complete {
            return table.update(parts, *window, key, value, out);
        }
        let hash = hash_of(&key);
        if let Some(entry) = table.find(hash, &key) {
            parts.body.add(&mut entry.contents, value);
        } else {
            let contents = parts.body.first(value);
            table.push(hash, Entry { key, contents, side: S::default() });
        }
        Ok(0)
    }

    #[inline]
    pub(super) fn on_watermark<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        room: usize,
        out: &mut Out,
    ) -> Result<Progress, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        match self.open.first() {
            Some(first) if first.window.max_timestamp() <= parts.watermark => {
                self.advance(parts, room, out)
            }
            _ => Ok(Progress::Done),
        }
    }

    #[inline(never)]
    fn advance<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        mut room: usize,
        out: &mut Out,
    ) -> Result<Progress, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let mut gone = 0;
        let mut progress = Progress::Done;
        for open in &mut self.open {
            if open.window.max_timestamp() > parts.watermark {
                break;
            }
            let last = parts.is_gone(open.window);
            if !open.complete {
                let freed = last && !parts.finals;
                progress = open.fire(parts, Pane::OnTime, freed, &mut room, out)?;
            } else if last && !parts.finals {
                progress = open.free();
            }
            if last && parts.finals && progress == Progress::Done {
                progress = open.fire(parts, Pane::Final, true, &mut room, out)?;
            }
            if progress == Progress::More {
                break;
            }
            gone += usize::from(last);
        }
        // Windows end in the order of the list, and so do their latenesses.
        for open in self.open.drain(..gone) {
            if self.pool.len() < POOL && open.table.index.capacity() <= RECYCLED {
                self.pool.push(open.table);
            }
        }
        self.hot = 0;
        Ok(progress)
    }
}

impl<K: Hash + Eq + Clone, C, S> Open<K, C, S> {
    /// Fires for the keys in their order; with the last firing their state goes.
    fn fire<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        pane: Pane,
        last: bool,
        room: &mut usize,
        out: &mut Out,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let (window, watermark) = (self.window, parts.watermark);
        let entries = &mut self.table.entries;
        let mut fired = 0;
        while *room > 0 {
            let routes = if last {
                let Some(Entry { key, contents, side }) = entries.pop_front() else { break };
                parts.body.fire_last(key, window, pane, watermark, contents, side, out)?
            } else {
                let Some(Entry { key, contents, side }) = entries.get_mut(self.done) else { break };
                self.done += 1;
                let firing = Firing { key, window, pane, watermark };
                parts.body.fire(firing, contents, side, out)?
            };
            fired += routes;
            *room = room.saturating_sub(routes.max(1));
        }
        out.tally().fired += fired as u64;
        if self.done < entries.len() {
            return Ok(Progress::More);
        }
        self.done = 0;
        self.complete = true;
        if last {
            self.table.clear();
        }
        Ok(Progress::Done)
    }

    /// Frees the state of a window that has fired before.
    fn free(&mut self) -> Progress {
        let entries = &mut self.table.entries;
        drop(entries.drain(..FREED.min(entries.len())));
        if !entries.is_empty() {
            return Progress::More;
        }
        self.table.clear();
        Progress::Done
    }
}

#[inline]
fn hash_of<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<K: Hash + Eq, C, S> Table<K, C, S> {
    #[inline]
    fn find(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K, C, S>> {
        let Self { index, entries, .. } = self;
        let slot = *index.find(hash, |slot| entries[*slot as usize].key == *key)?;
        Some(&mut entries[slot as usize])
    }

    #[inline(never)]
    fn push(&mut self, hash: u64, entry: Entry<K, C, S>) {
        let Self { index, entries, .. } = self;
        let slot = u32::try_from(entries.len()).expect("fewer than 2^32 keys in a window");
        index.insert_unique(hash, slot, |slot| hash_of(&entries[*slot as usize].key));
        entries.push_back(entry);
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Table<K, C, S> {
    fn new() -> Self {
        Self { index: HashTable::new(), entries: VecDeque::new(), updates: FxHashMap::default() }
    }

    /// A late record in a window that is complete: it fires at once.
    #[inline(never)]
    fn update<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        window: Window,
        key: K,
        value: Share<'_, T>,
        out: &mut Out,
    ) -> Result<usize, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let updates = self.updates.entry(key.clone()).or_default();
        *updates = updates.saturating_add(1);
        let (pane, watermark) = (Pane::Late(*updates), parts.watermark);
        let hash = hash_of(&key);
        if let Some(Entry { key, contents, side }) = self.find(hash, &key) {
            parts.body.add(contents, value);
            let firing = Firing { key, window, pane, watermark };
            return parts.body.fire(firing, contents, side, out);
        }
        let (mut contents, mut side) = (parts.body.first(value), S::default());
        let firing = Firing { key: &key, window, pane, watermark };
        let routes = parts.body.fire(firing, &mut contents, &mut side, out)?;
        self.push(hash, Entry { key, contents, side });
        Ok(routes)
    }
}

impl<K, C, S> Table<K, C, S> {
    fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
        self.updates.clear();
    }
}
