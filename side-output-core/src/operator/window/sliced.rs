use super::aligned::next_update;
use super::numbers::Numbers;
use super::table::{Entry, Pool, RECYCLED, Table, WORK, hash_of};
use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::time::Timestamp;
use crate::window::{Assigner, Pane, Window};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::hash::Hash;
use std::ops::Range;

/// Windows that overlap: a record is kept once, in its slice of time, for all of its windows.
///
/// No window begins or ends within a slice, so a window is some slices in a row. It is put
/// together when it fires, and forgotten after that; a slice stays until the last of its windows
/// is gone. What a window that is gone would hold stays with it, but that window never fires again.
pub(super) struct Sliced<K, C> {
    /// In their order in time.
    slices: Vec<Slice<K, C>>,
    /// Windows that have a record, in the order in which they end.
    open: VecDeque<Open<K>>,
    /// The slice that took the last record.
    hot: usize,
    /// The watermark at which there is something to do.
    due: Timestamp,
    /// How many keys came to how many slices, from the beginning: the order in which they came.
    arrivals: u64,
    /// How many of them are kept.
    kept: usize,
    pool: Pool<K, Part<C>>,
    numbers: Numbers<K>,
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
struct Open<K> {
    window: Window,
    /// The watermark has passed its end: late records fire at once.
    complete: bool,
    /// Late updates of each key.
    updates: FxHashMap<K, u32>,
}

/// The window that is firing, put together from its slices. It takes several turns if it is large.
struct Assembly<C> {
    stage: Stage,
    /// By the numbers of the keys.
    sums: Vec<Option<Sum<C>>>,
    /// Keys by when they came to the window. One that came to an earlier slice later stands there
    /// twice; its first place is the right one.
    order: Vec<(u64, u32)>,
}

#[derive(Clone, Copy)]
enum Stage {
    Empty,
    /// What comes next is this entry of that slice.
    Adding {
        slice: usize,
        slot: usize,
    },
    /// So many of the order have fired.
    Firing(usize),
}

/// What a window holds of one key.
struct Sum<C> {
    contents: C,
    arrival: u64,
}

impl<K, C> Sliced<K, C> {
    pub(super) fn new() -> Self {
        Self {
            slices: Vec::new(),
            open: VecDeque::new(),
            hot: 0,
            due: Timestamp::MAX,
            arrivals: 0,
            kept: 0,
            pool: Pool::new(),
            numbers: Numbers::new(),
            assembly: Assembly { stage: Stage::Empty, sums: Vec::new(), order: Vec::new() },
            found: Vec::new(),
        }
    }

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
            self.open.insert(index, Open { window, complete, updates: FxHashMap::default() });
        }
    }
}

impl<K: Hash + Eq + Clone, C> Sliced<K, C> {
    #[inline]
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
                self.add(parts, hash_of(&key), key, value);
                return Ok(());
            }
        }
        self.elsewhere(parts, key, value, at, out)
    }

    /// A record in no slice near the last one, or one that is late.
    #[inline(never)]
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
        let hash = hash_of(&key);
        if self.slices[index].first_end > parts.watermark {
            self.add(parts, hash, key, value);
            return Ok(());
        }
        self.add(parts, hash, key.clone(), value);
        self.update(parts, hash, key, at, out)
    }

    /// Adds a record to the hot slice.
    #[inline(always)]
    fn add<T, A, Tr, B>(&mut self, parts: &mut Parts<A, Tr, B>, hash: u64, key: K, value: T)
    where
        B: WindowBody<K, T, Contents = C>,
    {
        let value = Share::Owned(value);
        if let Some(entry) = self.slices[self.hot].table.find(hash, &key) {
            parts.body.add(&mut entry.value.contents, value);
        } else {
            let contents = parts.body.first(value);
            self.push(hash, key, contents);
        }
    }

    /// The first record of a key in the hot slice.
    #[inline(never)]
    fn push(&mut self, hash: u64, key: K, contents: C) {
        let (arrival, number) = (self.arrivals, self.numbers.enter(hash, &key));
        self.slices[self.hot].table.push(hash, key, Part { contents, arrival, number });
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
        let place = self.slices.binary_search_by(|slice| {
            if slice.stretch.max_timestamp() < at {
                Ordering::Less
            } else if at < slice.stretch.start() {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        });
        let Err(index) = place else { return place.ok() };
        let mut windows = parts.assigner.assign(at).filter(|window| !parts.is_gone(*window));
        let last = windows.next()?;
        let mut first_end = last.max_timestamp();
        for window in std::iter::once(last).chain(windows) {
            first_end = window.max_timestamp();
            let complete = first_end <= parts.watermark;
            let due = if complete { window.cleanup(parts.lateness) } else { first_end };
            self.due = self.due.min(due);
            self.open(window, complete);
        }
        let (stretch, table) = (parts.assigner.slice(at), self.pool.take());
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
        let mut found = std::mem::take(&mut self.found);
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
            let pane = next_update(&mut self.open[index].updates, &key);
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
        let (mut gone, mut work) = (0, WORK);
        let mut progress = Progress::Done;
        for index in 0..self.open.len() {
            let Open { window, complete, .. } = self.open[index];
            if window.max_timestamp() > parts.watermark {
                break;
            }
            let last = parts.is_gone(window);
            let is_final = last && parts.finals;
            if !complete {
                let fired = (window, Pane::OnTime, !is_final);
                progress = self.fire(parts, fired, &mut work, out)?;
                self.open[index].complete = progress == Progress::Done;
            }
            if is_final && progress == Progress::Done {
                let fired = (window, Pane::Final, true);
                progress = self.fire(parts, fired, &mut work, out)?;
            }
            if progress == Progress::More {
                break;
            }
            gone += usize::from(last);
        }
        // Windows end in the order of the list, and so do their latenesses.
        self.open.drain(..gone);
        if progress == Progress::Done {
            progress = self.free(parts, &mut work);
        }
        if progress == Progress::Done {
            self.due = self.next_due(parts.lateness);
        }
        Ok(progress)
    }

    /// Fires for the keys of a window; what was put together goes with the last of its firings.
    fn fire<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        (window, pane, last): (Window, Pane, bool),
        work: &mut usize,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C>,
        Out: Collect<B::Out>,
    {
        let Some(mut done) = self.assemble(&mut parts.body, window, work) else {
            return Ok(Progress::More);
        };
        let Self { assembly: Assembly { stage, sums, order }, numbers, .. } = self;
        let watermark = parts.watermark;
        while out.may_fire() {
            let Some((arrival, number)) = order.get(done) else { break };
            done += 1;
            let (place, key) = (&mut sums[*number as usize], numbers.key(*number));
            // Not if this is a place that the key had before an earlier one was found.
            let sum = place.take_if(|sum| sum.arrival == *arrival);
            let (Some(mut sum), Some(key)) = (sum, key) else { continue };
            let mut side = B::Side::default();
            if last {
                let (key, contents) = (key.clone(), sum.contents);
                parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
            } else {
                let firing = Firing { key, window, pane, watermark };
                parts.body.fire(firing, &mut sum.contents, &mut side, out)?;
                *place = Some(sum);
            }
        }
        if done < order.len() {
            *stage = Stage::Firing(done);
            return Ok(Progress::More);
        }
        if last {
            self.assembly.end();
        } else {
            *stage = Stage::Firing(0);
        }
        Ok(Progress::Done)
    }

    /// Puts the window together, by `work` parts at most. How many of its keys have fired if it is
    /// ready.
    fn assemble<T, B>(&mut self, body: &mut B, window: Window, work: &mut usize) -> Option<usize>
    where
        B: WindowBody<K, T, Contents = C>,
    {
        let slices = self.slices_of(window);
        let Assembly { stage, sums, order } = &mut self.assembly;
        let (start, mut from) = match *stage {
            Stage::Firing(done) => return Some(done),
            Stage::Adding { slice, slot } => (slice, slot),
            Stage::Empty => {
                sums.resize_with(self.numbers.end(), || None);
                (slices.start, 0)
            }
        };
        for slice in start..slices.end {
            let table = &self.slices[slice].table;
            let to = table.len().min(from + *work);
            for Entry { value, .. } in table.range(from..to) {
                if add::<K, T, B>(body, &mut sums[value.number as usize], value) {
                    order.push((value.arrival, value.number));
                }
            }
            *work -= to - from;
            if to < table.len() {
                *stage = Stage::Adding { slice, slot: to };
                return None;
            }
            from = 0;
        }
        // Sorted already but for a few, or made of a few runs.
        order.sort_by_key(|(arrival, _)| *arrival);
        *stage = Stage::Firing(0);
        Some(0)
    }

    /// Frees the slices whose windows are all gone.
    fn free<A: Assigner, Tr, B>(&mut self, parts: &Parts<A, Tr, B>, work: &mut usize) -> Progress {
        let (mut gone, mut progress) = (0, Progress::Done);
        for slice in &mut self.slices {
            if !parts.is_gone(slice.last) {
                break;
            }
            let freed = slice.table.len().min(*work);
            *work -= freed;
            self.kept -= freed;
            let entries = slice.table.leave().take(freed);
            entries.for_each(|entry| self.numbers.leave(entry.value.number));
            if slice.table.len() > 0 {
                progress = Progress::More;
                break;
            }
            gone += 1;
        }
        self.slices.drain(..gone).for_each(|slice| self.pool.give(slice.table));
        self.hot = self.hot.saturating_sub(gone);
        progress
    }

    fn next_due(&self, lateness: i64) -> Timestamp {
        // Windows that are complete stand before the others.
        let incomplete = self.open.partition_point(|open| open.complete);
        let end = self.open.get(incomplete).map(|open| open.window.max_timestamp());
        let cleanup = self.open.front().map(|open| open.window.cleanup(lateness));
        end.into_iter().chain(cleanup).min().unwrap_or(Timestamp::MAX)
    }
}

impl<C> Assembly<C> {
    fn end(&mut self) {
        self.stage = Stage::Empty;
        self.order.clear();
        if self.order.capacity() > RECYCLED {
            (self.sums, self.order) = (Vec::new(), Vec::new());
        }
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
