#[cfg(feature = "job")]
mod snapshot;

use super::aligned::Updates;
use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::state::{Entry, Map, Pool, RECYCLED, Segments, Table, WORK};
use crate::time::Timestamp;
use crate::window::{Assigner, Pane, Window};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;
use std::mem;
use std::ops::Range;

/// So many keys of a window are put in order in one go.
const FEW: usize = 1 << 12;

/// Windows that overlap: a record is kept once, in its slice of time, for all of its windows.
///
/// No window begins or ends within a slice, so a window is some slices in a row. It is put
/// together when it fires, and forgotten after that; a slice stays until the last of its windows
/// is gone. What a window that is gone would hold stays with it, but that window never fires again.
pub(super) struct Sliced<K, C> {
    /// In their order in time.
    slices: Vec<Slice<K, C>>,
    /// So many slices at the front are gone; they are taken out when they are more than half.
    gone: usize,
    /// Windows that have a record, in the order in which they end.
    open: VecDeque<Open>,
    /// The slice that took the last record.
    hot: usize,
    /// The watermark at which there is something to do.
    due: Timestamp,
    /// How many keys came to how many slices, from the beginning: the order in which they came.
    arrivals: u64,
    /// How many of them are kept.
    kept: usize,
    pool: Pool<K, Part<C>>,
    /// Numbers for the keys, with how many slices hold each: what slices keep of a key is put
    /// together by its number, without a look-up.
    numbers: Map<K, u32>,
    assembly: Assembly<C>,
    /// The slices that hold the key of a late update, and where.
    found: Vec<(usize, usize)>,
}

struct Slice<K, C> {
    stretch: Window,
    /// The first end of its windows, without those that were gone before its first record. Up to
    /// there records do not fire.
    first_end: Timestamp,
    /// Its last window, with which it goes.
    last: Window,
    table: Table<K, Part<C>>,
}

/// What a slice keeps of one key.
struct Part<C> {
    contents: C,
    arrival: u64,
    /// The key's.
    number: u32,
}

/// A window without what it holds, which is in the slices.
struct Open {
    window: Window,
    /// The watermark has passed its end: late records fire at once.
    complete: bool,
    updates: Updates,
}

/// The window that is firing, put together from its slices. It takes several turns if it is large.
///
/// If the next one begins where it does, only the slices are added that it has not.
struct Assembly<C> {
    /// The slices that were added.
    added: Range<usize>,
    /// So many entries of the next slice were added.
    slot: usize,
    /// By the numbers of the keys.
    sums: Segments<Option<Sum<C>>>,
    /// Keys by when they came to the window, slice by slice. One that came to an earlier slice later
    /// stands there twice; its first place is the right one.
    order: Segments<(u64, u32)>,
    /// Where the keys of each slice end in this order.
    ends: Vec<usize>,
    /// The next key to fire, once the window is put together.
    next: Option<Next>,
    /// The next one of each other slice.
    queue: BinaryHeap<Reverse<Next>>,
}

/// When a key came, its number, its place in the order, and where its slice ends there.
type Next = (u64, u32, usize, usize);

/// What a window holds of one key.
struct Sum<C> {
    contents: C,
    arrival: u64,
}

impl<K: Hash + Eq, C> Sliced<K, C> {
    pub(super) fn new() -> Self {
        Self {
            slices: Vec::new(),
            gone: 0,
            open: VecDeque::new(),
            hot: 0,
            due: Timestamp::MAX,
            arrivals: 0,
            kept: 0,
            pool: Pool::new(),
            numbers: Map::new(),
            assembly: Assembly {
                added: 0..0,
                slot: 0,
                sums: Segments::new(),
                order: Segments::new(),
                ends: Vec::new(),
                next: None,
                queue: BinaryHeap::new(),
            },
            found: Vec::new(),
        }
    }
}

impl<K, C> Sliced<K, C> {
    pub(super) const fn len(&self) -> usize {
        self.kept
    }

    /// The slices of `window`.
    fn slices_of(&self, window: Window) -> Range<usize> {
        let start = self.slices.partition_point(|slice| slice.stretch.start() < window.start());
        let end =
            self.slices.partition_point(|slice| slice.stretch.start() <= window.max_timestamp());
        start..end
    }

    fn open(&mut self, window: Window, complete: bool) {
        let place = self.open.binary_search_by(|open| open.window.cmp(&window));
        if let Err(index) = place {
            self.open.insert(index, Open { window, complete, updates: Updates::default() });
        }
    }
}

impl<K: Hash + Eq + Clone, C> Sliced<K, C> {
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
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        // Records that are not quite in order go to and fro between neighbours. Which one it is
        // cannot be predicted, so it is computed.
        if let Some(Slice { stretch, .. }) = self.slices.get(self.hot) {
            let (before, after) = (at < stretch.start(), at > stretch.max_timestamp());
            let index = self.hot.wrapping_add(usize::from(after)).wrapping_sub(usize::from(before));
            if let Some(slice) = self.slices.get(index)
                && slice.stretch.contains(at)
                && slice.first_end > parts.watermark
            {
                self.hot = index;
                self.add(parts, parts.hash.of(&key), key, value);
                return Ok(());
            }
        }
        out.pass(move |out| self.elsewhere(parts, key, value, at, out))
    }

    /// A record in no slice near the last one, or one that is late.
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
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        let Some(index) = self.slice(parts, at) else {
            return parts.late(value, at, out);
        };
        self.hot = index;
        let hash = parts.hash.of(&key);
        let late = (self.slices[index].first_end <= parts.watermark).then(|| key.clone());
        self.add(parts, hash, key, value);
        match late {
            Some(key) => self.update(parts, hash, key, at, out),
            None => Ok(()),
        }
    }

    /// Adds a record to the hot slice.
    #[inline(always)]
    fn add<T, A, Tr, B>(&mut self, parts: &mut Parts<A, Tr, B>, hash: u64, key: K, value: T)
    where
        B: WindowBody<K, T, Contents = C>,
    {
        match self.slices[self.hot].table.find_near(hash, |other| *other == key) {
            Some(entry) => parts.body.add(&mut entry.value.contents, Share::Owned(value)),
            None => self.enter(parts, hash, key, value),
        }
    }

    /// The first record of a key in the hot slice, most likely.
    #[inline(never)]
    fn enter<T, A, Tr, B>(&mut self, parts: &mut Parts<A, Tr, B>, hash: u64, key: K, value: T)
    where
        B: WindowBody<K, T, Contents = C>,
    {
        let (value, table) = (Share::Owned(value), &mut self.slices[self.hot].table);
        if let Some(entry) = table.find_far(hash, &key) {
            return parts.body.add(&mut entry.value.contents, value);
        }
        let (arrival, number) = (self.arrivals, self.numbers.enter(&key, || 0));
        if let Some(slices) = self.numbers.value_mut(number) {
            *slices += 1;
        }
        let part = Part { contents: parts.body.first(value), arrival, number };
        table.push(hash, key, part);
        self.arrivals += 1;
        self.kept += 1;
    }

    /// Where the slice around `at` stands; opens it, and its windows, if it is not there. `None`
    /// if no window takes the record.
    fn slice<A: Assigner, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        at: Timestamp,
    ) -> Option<usize> {
        let place = self.slices[self.gone..].binary_search_by(|slice| {
            if slice.stretch.max_timestamp() < at {
                Ordering::Less
            } else if at < slice.stretch.start() {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        });
        let index = match place {
            Ok(index) => return Some(self.gone + index),
            Err(index) => self.gone + index,
        };
        let last = parts.assigner.assign(at).next().filter(|last| !parts.is_gone(*last))?;
        // Windows that hold a neighbour are open already: the first ones if it is the neighbour
        // after, and all that follow if it is the one before. So a slice costs what it changes, and
        // not what it belongs to.
        let held = self.slices.get(index).map_or(0, |after| {
            let end = after.stretch.max_timestamp();
            let from = self.open.partition_point(|open| open.window.max_timestamp() < end);
            let to = self.open.partition_point(|open| open.window.start() <= at);
            to.saturating_sub(from)
        });
        let before = index.checked_sub(1).filter(|before| *before >= self.gone);
        let before = before.map(|before| self.slices[before].stretch.start());
        for window in parts.assigner.assign(at).skip(held) {
            if parts.is_gone(window) || before.is_some_and(|start| window.start() <= start) {
                break;
            }
            let end = window.max_timestamp();
            let complete = end <= parts.watermark;
            let due = if complete { window.cleanup(parts.lateness) } else { end };
            self.due = self.due.min(due);
            self.open(window, complete);
        }
        let keys = self.slices.get(self.hot).map_or(0, |slice| slice.table.len());
        let (stretch, table) = (parts.assigner.slice(at), self.pool.take(keys));
        let first = self.open.partition_point(|open| open.window.max_timestamp() < at);
        let mut holds = self.open.range(first..).map(|open| open.window);
        let first_end = holds.find(|window| window.contains(at))?.max_timestamp();
        self.slices.insert(index, Slice { stretch, first_end, last, table });
        Some(index)
    }

    /// Fires what a late record has changed: its windows that are complete, the newest first.
    #[inline(never)]
    fn update<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        at: Timestamp,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        let (watermark, lateness) = (parts.watermark, parts.lateness);
        let fires = |window: &Window| {
            window.max_timestamp() <= watermark && watermark < window.cleanup(lateness)
        };
        let windows = parts.assigner.assign(at);
        let Some(all) = windows.filter(fires).reduce(|all, other| all.cover(&other)) else {
            return Ok(());
        };
        let mut found = mem::take(&mut self.found);
        for slice in self.slices_of(all) {
            found.extend(self.slices[slice].table.slot(hash, &key).map(|slot| (slice, slot)));
        }
        for window in parts.assigner.assign(at).filter(fires) {
            let Ok(index) = self.open.binary_search_by(|open| open.window.cmp(&window)) else {
                continue;
            };
            let slices = self.slices_of(window);
            let mut sum = None;
            for (slice, slot) in found.iter().filter(|(slice, _)| slices.contains(slice)) {
                if let Some(entry) = self.slices[*slice].table.get(*slot) {
                    add::<K, T, B>(&mut parts.body, &mut sum, &entry.value);
                }
            }
            let Some(Sum { contents, .. }) = sum else { continue };
            let Some(number) = self.numbers.find(&key) else { continue };
            let pane = self.open[index].updates.next(&parts.hash, number);
            let (key, side) = (key.clone(), B::Side::default());
            parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
        }
        found.clear();
        self.found = found;
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
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        if self.due > parts.watermark {
            return Ok(Progress::Done);
        }
        self.advance(parts, out)
    }

    #[inline(never)]
    fn advance<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        let (mut index, mut gone, mut work) = (0, 0, WORK);
        while let Some(Open { window, complete, .. }) = self.open.get(index) {
            let (window, complete) = (*window, *complete);
            if window.max_timestamp() > parts.watermark {
                break;
            }
            let last = parts.is_gone(window);
            if complete && !last {
                // Nothing is to be done until the first that is not complete.
                index = self.open.partition_point(|open| open.complete);
                continue;
            }
            let mut done = true;
            if !complete {
                done = self.fire(parts, window, Pane::OnTime, &mut work, out)?;
                self.open[index].complete = done;
            }
            if done && last {
                done = self.open[index].updates.free(&mut work);
            }
            if done && last && parts.finals {
                done = self.fire(parts, window, Pane::Final, &mut work, out)?;
            }
            if !done {
                self.open.drain(..gone);
                return Ok(Progress::More);
            }
            index += 1;
            // Windows end in the order of the list, and so do their latenesses.
            gone += usize::from(last);
        }
        self.open.drain(..gone);
        if !self.assembly.clear(&mut work) || !self.free(parts, &mut work) {
            return Ok(Progress::More);
        }
        let sums = &mut self.assembly.sums;
        if sums.len() > RECYCLED && self.numbers.len() < sums.len() / 8 {
            sums.drop_segment();
            return Ok(Progress::More);
        }
        self.due = self.next_due(parts.lateness);
        Ok(Progress::Done)
    }

    /// Fires for the keys of a window; whether it has for all of them.
    fn fire<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        window: Window,
        pane: Pane,
        work: &mut usize,
        out: &mut Collector<'_, Out>,
    ) -> Result<bool, StreamError>
    where
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        if !self.assemble(&mut parts.body, window, work) {
            return Ok(false);
        }
        let Self { assembly: Assembly { sums, order, next, queue, .. }, numbers, .. } = self;
        let watermark = parts.watermark;
        let mut fire = |arrival: u64, number: u32, out: &mut Collector<'_, Out>| {
            let sum = sums.get_mut(number as usize).and_then(Option::as_mut);
            // Not if this is a place that the key had before an earlier one was found.
            let sum = sum.filter(|sum| sum.arrival == arrival);
            let (Some(sum), Some((key, _))) = (sum, numbers.get(number)) else { return Ok(()) };
            let (firing, mut side) = (Firing { key, window, pane, watermark }, B::Side::default());
            parts.body.fire(firing, &mut sum.contents, &mut side, out)
        };
        while let Some((arrival, number, mut place, end)) = *next {
            if queue.is_empty() {
                // No other slice is left, so the keys come as they stand there.
                let mut full = false;
                for (arrival, number) in order.run(place).iter().take(end - place) {
                    full = !out.may_fire();
                    if full {
                        break;
                    }
                    place += 1;
                    fire(*arrival, *number, out)?;
                }
                *next = at(order, place, end);
                if full {
                    return Ok(false);
                }
                continue;
            }
            if !out.may_fire() {
                return Ok(false);
            }
            *next = match at(order, place + 1, end) {
                None => queue.pop().map(|Reverse(first)| first),
                Some(after) => match queue.peek_mut() {
                    Some(mut first) if first.0.0 < after.0 => {
                        Some(mem::replace(&mut *first, Reverse(after)).0)
                    }
                    _ => Some(after),
                },
            };
            fire(arrival, number, out)?;
        }
        Ok(true)
    }

    /// Puts the window together, by `work` parts at most; whether it is.
    fn assemble<T, B>(&mut self, body: &mut B, window: Window, work: &mut usize) -> bool
    where
        B: WindowBody<K, T, Contents = C>,
    {
        if self.assembly.next.is_some() {
            return true;
        }
        let slices = self.slices_of(window);
        let begins = self.assembly.added.start == slices.start;
        if !(begins && self.assembly.added.end <= slices.end) {
            if !self.assembly.clear(work) {
                return false;
            }
            self.assembly.added = slices.start..slices.start;
        }
        let Assembly { added, slot, sums, order, ends, .. } = &mut self.assembly;
        while sums.len() < self.numbers.end() {
            if *work == 0 {
                return false;
            }
            *work -= 1;
            // A cache line or so: much less than a part.
            (0..8).for_each(|_| sums.push(None));
        }
        while added.end < slices.end {
            let entries = self.slices[added.end].table.run(*slot);
            if entries.is_empty() {
                (added.end, *slot) = (added.end + 1, 0);
                if order.len() > ends.last().copied().unwrap_or(0) {
                    ends.push(order.len());
                }
                continue;
            }
            let count = entries.len().min(*work);
            if count == 0 {
                return false;
            }
            for Entry { value, .. } in &entries[..count] {
                if let Some(sum) = sums.get_mut(value.number as usize)
                    && add::<K, T, B>(body, sum, value)
                {
                    order.push((value.arrival, value.number));
                }
            }
            *work -= count;
            *slot += count;
        }
        self.assembly.begin();
        true
    }

    /// Frees the slices whose windows are all gone; whether all of them are.
    fn free<A: Assigner, Tr, B>(&mut self, parts: &Parts<A, Tr, B>, work: &mut usize) -> bool {
        while let Some(slice) = self.slices.get_mut(self.gone)
            && parts.is_gone(slice.last)
        {
            let freed = slice.table.len().min(*work);
            *work -= freed;
            self.kept -= freed;
            for Entry { value, .. } in slice.table.leave().take(freed) {
                if let Some(slices) = self.numbers.value_mut(value.number) {
                    *slices -= 1;
                    if *slices == 0 {
                        drop(self.numbers.remove(value.number));
                    }
                }
            }
            if !slice.table.is_empty() {
                return false;
            }
            self.pool.give(mem::take(&mut slice.table));
            self.gone += 1;
        }
        if self.gone > self.slices.len() / 2 {
            self.hot = self.hot.saturating_sub(self.gone);
            self.slices.drain(..mem::take(&mut self.gone));
        }
        !(self.slices.is_empty() && self.pool.shrink())
    }

    fn next_due(&self, lateness: i64) -> Timestamp {
        // Windows that are complete stand before the others.
        let incomplete = self.open.partition_point(|open| open.complete);
        let end = self.open.get(incomplete).map(|open| open.window.max_timestamp());
        let cleanup = self.open.front().map(|open| open.window.cleanup(lateness));
        end.into_iter().chain(cleanup).min().unwrap_or(Timestamp::MAX)
    }
}

/// The key at a place in the order, if its slice does not end there.
#[inline]
fn at(order: &Segments<(u64, u32)>, place: usize, end: usize) -> Option<Next> {
    let (arrival, number) = order.get(place).filter(|_| place < end)?;
    Some((*arrival, *number, place, end))
}

impl<C> Assembly<C> {
    /// Lines the keys up to fire.
    fn begin(&mut self) {
        let Self { order, ends, next, queue, .. } = self;
        if let Some(few) = order.single_mut().filter(|few| few.len() <= FEW) {
            // Sorted already but for a few, or made of a few runs.
            few.sort_by_key(|(arrival, _)| *arrival);
            ends.clear();
            ends.push(few.len());
        }
        let mut from = 0;
        for end in ends {
            if let Some((arrival, number)) = order.get(from) {
                queue.push(Reverse((*arrival, *number, from, *end)));
            }
            from = *end;
        }
        *next = queue.pop().map(|Reverse(first)| first);
    }

    /// Forgets the window, by `work` keys at most; whether it is forgotten.
    fn clear(&mut self, work: &mut usize) -> bool {
        let Self { added, slot, sums, order, ends, .. } = self;
        while !order.is_empty() {
            if *work == 0 {
                return false;
            }
            for (_, number) in order.pop_run(*work) {
                *work -= 1;
                if let Some(sum) = sums.get_mut(number as usize) {
                    *sum = None;
                }
            }
        }
        if order.capacity() > RECYCLED {
            *order = Segments::new();
        }
        (*added, *slot) = (0..0, 0);
        ends.clear();
        true
    }
}

/// Adds a part to what a window holds of one key. Whether the key came with this part first, of
/// all parts so far: they come in the order of time, not in that of their first records.
#[inline]
fn add<K, T, B: WindowBody<K, T>>(
    body: &mut B,
    sum: &mut Option<Sum<B::Contents>>,
    part: &Part<B::Contents>,
) -> bool {
    let Some(copy) = body.copy(&part.contents) else { return false };
    let arrival = part.arrival;
    let Some(sum) = sum else {
        *sum = Some(Sum { contents: copy, arrival });
        return true;
    };
    body.merge(&mut sum.contents, copy);
    let is_first = arrival < sum.arrival;
    sum.arrival = sum.arrival.min(arrival);
    is_first
}
