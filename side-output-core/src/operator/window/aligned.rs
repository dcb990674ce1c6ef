#[cfg(feature = "job")]
mod snapshot;

use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::state::{Entry, KeyHash, Pool, RECYCLED, Table, WORK};
use crate::time::Timestamp;
use crate::window::{Assigner, Pane, Window};
use std::hash::Hash;
use std::mem;

/// The windows of all keys, one table for each window.
///
/// Few windows are open at a time, so they stand in a short list in the order in which they end,
/// and a record costs about one look-up by its key. All keys of a window end together, so there
/// are no timers: what is due stands at the front of the list.
pub(super) struct Aligned<K, C, S> {
    open: Vec<Open<K, C, S>>,
    /// So many at the front are gone; they are taken out when they are more than half.
    gone: usize,
    pool: Pool<K, Kept<C, S>>,
    /// The window that took the last record, unless it is complete.
    hot: usize,
}

/// No window.
const NONE: usize = usize::MAX;

/// A window and what is kept of each key.
struct Open<K, C, S> {
    window: Window,
    /// The watermark has passed its end: late records fire at once.
    complete: bool,
    table: Table<K, Kept<C, S>>,
    /// How many keys have fired already, where firing takes several turns.
    done: usize,
    /// Late updates of each key, by its slot. Not with the entries, which stay small this way.
    updates: Updates,
}

/// What a window keeps of one key.
struct Kept<C, S> {
    contents: C,
    side: S,
}

impl<K, C, S> Aligned<K, C, S> {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), gone: 0, pool: Pool::new(), hot: NONE }
    }

    pub(super) fn len(&self) -> usize {
        self.open.iter().map(|open| open.table.len()).sum()
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Aligned<K, C, S> {
    #[inline(always)]
    pub(super) fn on_record<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: K,
        value: T,
        at: Timestamp,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        // What most records come to. What is open is not gone yet: no need to look where the
        // window begins and ends.
        if A::DISJOINT
            && let Some(hot) = self.open.get_mut(self.hot)
            && hot.window.contains(at)
        {
            let hash = parts.hash.of(&key);
            match hot.table.find_near(hash, |other| *other == key) {
                Some(entry) => parts.body.add(&mut entry.value.contents, Share::Owned(value)),
                None => hot.enter(parts, hash, key, Share::Owned(value)),
            }
            return Ok(());
        }
        out.pass(move |out| self.elsewhere(parts, key, value, at, out))
    }

    /// A record in another window than the last one.
    #[inline]
    fn elsewhere<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: K,
        value: T,
        at: Timestamp,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let hash = parts.hash.of(&key);
        let mut last = None;
        for window in parts.assigner.assign(at) {
            if parts.is_gone(window) {
                continue;
            }
            // All but the last of its windows borrow the record.
            if let Some(window) = last.replace(window) {
                self.find(window, parts.watermark);
                let value = Share::Borrowed(&value);
                self.insert(parts, hash, key.clone(), value, out)?;
            }
        }
        let Some(window) = last else {
            return parts.late(value, at, out);
        };
        self.find(window, parts.watermark);
        self.insert(parts, hash, key, Share::Owned(value), out)
    }

    /// Makes `window` the hot one; opens it if it is not there.
    #[inline]
    fn find(&mut self, window: Window, watermark: Timestamp) {
        // Windows that overlap come one after the other, from the newest to the oldest.
        let before = self.hot.wrapping_sub(1);
        if self.open.get(before).is_some_and(|open| open.window == window) {
            self.hot = before;
            return;
        }
        self.hot = match self.open.binary_search_by(|open| open.window.cmp(&window)) {
            Ok(index) => index,
            Err(index) => {
                // As many keys as in the window before, most likely.
                let before = index.checked_sub(1).and_then(|before| self.open.get(before));
                let keys = before.map_or(0, |before| before.table.len());
                let (table, updates) = (self.pool.take(keys), Updates::default());
                let complete = window.max_timestamp() <= watermark;
                self.open.insert(index, Open { window, complete, table, done: 0, updates });
                index
            }
        };
    }

    /// Adds a record to the hot window.
    #[inline]
    fn insert<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        value: Share<'_, T>,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let open = &mut self.open[self.hot];
        if open.complete {
            self.hot = NONE;
            return open.update(parts, hash, key, value, out);
        }
        match open.table.find_near(hash, |other| *other == key) {
            Some(entry) => parts.body.add(&mut entry.value.contents, value),
            None => open.enter(parts, hash, key, value),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn on_watermark<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        match self.open.get(self.gone) {
            Some(first) if first.window.max_timestamp() <= parts.watermark => {
                self.advance(parts, out)
            }
            None if self.pool.shrink() => Ok(Progress::More),
            _ => Ok(Progress::Done),
        }
    }

    #[inline(never)]
    fn advance<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let mut work = WORK;
        let mut progress = Progress::Done;
        let mut index = self.gone;
        while let Some(open) = self.open.get_mut(index) {
            if open.window.max_timestamp() > parts.watermark {
                break;
            }
            let last = parts.is_gone(open.window);
            if !open.complete {
                let freed = last && !parts.finals;
                progress = open.fire(parts, Pane::OnTime, freed, out)?;
            } else if !last {
                // Nothing is to be done until the first that is not complete.
                index = self.open.partition_point(|open| open.complete);
                continue;
            }
            if last && parts.finals && progress == Progress::Done {
                progress = open.fire(parts, Pane::Final, true, out)?;
            }
            if last && progress == Progress::Done {
                progress = open.free(&mut work);
            }
            if progress == Progress::More {
                break;
            }
            index += 1;
            if last {
                // Windows end in the order of the list, and so do their latenesses.
                self.gone = index;
                self.pool.give(mem::take(&mut open.table));
            }
        }
        if self.gone > self.open.len() / 2 {
            self.open.drain(..mem::take(&mut self.gone));
        }
        self.hot = NONE;
        // What is kept for later is looked through once more when there is nothing else.
        if self.open.is_empty() { Ok(Progress::More) } else { Ok(progress) }
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Open<K, C, S> {
    /// The first record of a key, most likely.
    #[inline(never)]
    fn enter<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        value: Share<'_, T>,
    ) where
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        if let Some(entry) = self.table.find_far(hash, &key) {
            return parts.body.add(&mut entry.value.contents, value);
        }
        let contents = parts.body.first(value);
        self.table.push(hash, key, Kept { contents, side: S::default() });
    }

    /// Fires for the keys in their order; with the last firing their state goes.
    fn fire<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        pane: Pane,
        last: bool,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let (window, watermark) = (self.window, parts.watermark);
        let Self { table, done, .. } = self;
        if last {
            let entries = table.leave();
            while out.may_fire() {
                let Some(Entry { key, value }) = entries.next() else { break };
                let Kept { contents, side } = value;
                parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
            }
        } else {
            'full: while *done < table.len() {
                for Entry { key, value } in table.run_mut(*done) {
                    if !out.may_fire() {
                        break 'full;
                    }
                    *done += 1;
                    let firing = Firing { key, window, pane, watermark };
                    parts.body.fire(firing, &mut value.contents, &mut value.side, out)?;
                }
            }
        }
        if *done < table.len() {
            return Ok(Progress::More);
        }
        self.done = 0;
        self.complete = true;
        Ok(Progress::Done)
    }

    /// Frees the state of a window that has fired before, `work` keys of it at most.
    fn free(&mut self, work: &mut usize) -> Progress {
        if !self.updates.free(work) {
            return Progress::More;
        }
        if self.table.leave().drop_some(work) { Progress::Done } else { Progress::More }
    }

    /// A late record when the window is complete: it fires at once.
    #[inline(never)]
    fn update<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        value: Share<'_, T>,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let Self { window, table, updates, .. } = self;
        let (window, watermark) = (*window, parts.watermark);
        let slot = if let Some(slot) = table.slot(hash, &key) {
            if let Some(entry) = table.get_mut(slot) {
                parts.body.add(&mut entry.value.contents, value);
            }
            slot
        } else {
            let kept = Kept { contents: parts.body.first(value), side: S::default() };
            table.push(hash, key, kept)
        };
        let Some(Entry { key, value }) = table.get_mut(slot) else { return Ok(()) };
        let pane = updates.next(&parts.hash, u32::try_from(slot).unwrap_or(u32::MAX));
        let firing = Firing { key, window, pane, watermark };
        parts.body.fire(firing, &mut value.contents, &mut value.side, out)
    }
}

/// How many late updates keys have had, by their numbers.
#[derive(Default)]
pub(super) struct Updates(Option<Box<Table<u32, u32>>>);

impl Updates {
    /// The next one of this key.
    pub(super) fn next(&mut self, hasher: &KeyHash, number: u32) -> Pane {
        let table = self.0.get_or_insert_default();
        let hash = hasher.of(&number);
        let Some(entry) = table.find(hash, &number) else {
            table.push(hash, number, 1);
            return Pane::Late(1);
        };
        entry.value = entry.value.saturating_add(1);
        Pane::Late(entry.value)
    }

    /// Frees some; whether nothing is left.
    pub(super) fn free(&mut self, work: &mut usize) -> bool {
        let Some(table) = &mut self.0 else { return true };
        if !table.leave().drop_some(work) {
            return false;
        }
        if table.capacity() > RECYCLED {
            // That is enough for one call.
            *work = 0;
        }
        self.0 = None;
        true
    }
}
