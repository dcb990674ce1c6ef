use super::aligned::next_update;
use super::table::{Kept, Pool, Table, WORK, hash_of};
use super::{Parts, Share, WindowBody};
use crate::error::StreamError;
use crate::operator::Progress;
use crate::output::Collect;
use crate::time::Timestamp;
use crate::window::{Assigner, Pane, Window};
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;
use std::ops::Range;

/// Windows that overlap: a record is kept once, in its slice of time, for all of its windows.
///
/// No window begins or ends within a slice, so a window is some slices in a row. It is put
/// together when it fires, and forgotten after that; a slice stays until the last of its windows
/// is gone. What a window that is gone would hold stays with it, but that window never fires again.
pub(super) struct Sliced<K, C, S> {
    /// In their order in time.
    slices: VecDeque<Slice<K, C>>,
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
    assembly: Assembly<K, C, S>,
    /// Where the key of a late update stands.
    found: Vec<Place>,
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
struct Assembly<K, C, S> {
    stage: Stage,
    table: Table<K, Kept<C, S>>,
    /// The next part of each slice, the one that came first at the top. Keys then come in the
    /// order in which they came to the window, and parts of one key in that order too.
    next: BinaryHeap<Reverse<Place>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Empty,
    Begun,
    Ready,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    // The first field, by which places are compared.
    arrival: u64,
    slice: usize,
    slot: usize,
}

impl<K, C, S> Sliced<K, C, S> {
    pub(super) fn new() -> Self {
        Self {
            slices: VecDeque::new(),
            open: VecDeque::new(),
            hot: 0,
            due: Timestamp::MAX,
            arrivals: 0,
            kept: 0,
            pool: Pool::new(),
            assembly: Assembly {
                stage: Stage::Empty,
                table: Table::new(),
                next: BinaryHeap::new(),
            },
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

impl<K: Hash + Eq + Clone, C, S: Default> Sliced<K, C, S> {
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
        let Some(slice) = self.slice(parts, at) else {
            return parts.late(value, at, out);
        };
        if self.slices[slice].first_end > parts.watermark {
            self.insert(&mut parts.body, slice, key, value);
            return Ok(0);
        }
        self.insert(&mut parts.body, slice, key.clone(), value);
        self.update(parts, key, at, out)
    }

    /// Where the slice around `at` stands; opens it, and its windows, if it is not there. `None`
    /// if no window takes the record.
    #[inline]
    fn slice<A: Assigner, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        at: Timestamp,
    ) -> Option<usize> {
        // Records that are not quite in order go to and fro between neighbours.
        // Which one cannot be predicted, so it is computed.
        if let Some(Slice { stretch, .. }) = self.slices.get(self.hot) {
            let (before, after) = (at < stretch.start(), at > stretch.max_timestamp());
            let index = self.hot.wrapping_add(usize::from(after)).wrapping_sub(usize::from(before));
            if self.slices.get(index).is_some_and(|slice| slice.stretch.contains(at)) {
                self.hot = index;
                return Some(index);
            }
        }
        self.search(parts, at)
    }

    #[inline(never)]
    fn search<A: Assigner, Tr, B>(
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
        self.hot = match place {
            Ok(index) => index,
            Err(index) => self.open_slice(parts, at, index)?,
        };
        Some(self.hot)
    }

    #[cold]
    #[inline(never)]
    fn open_slice<A: Assigner, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        at: Timestamp,
        index: usize,
    ) -> Option<usize> {
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

    #[expect(clippy::inline_always, reason = "it is all that most records come to")]
    #[inline(always)]
    fn insert<T, B>(&mut self, body: &mut B, slice: usize, key: K, value: T)
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        let (table, value) = (&mut self.slices[slice].table, Share::Owned(value));
        let hash = hash_of(&key);
        if let Some(entry) = table.find(hash, &key) {
            body.add(&mut entry.value.contents, value);
        } else {
            table.push(hash, key, Part { contents: body.first(value), arrival: self.arrivals });
            self.arrivals += 1;
            self.kept += 1;
        }
    }

    /// Fires what a late record has changed: its windows that are complete, the newest first.
    #[inline(never)]
    fn update<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: K,
        at: Timestamp,
        out: &mut Out,
    ) -> Result<usize, StreamError>
    where
        A: Assigner,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let (watermark, lateness) = (parts.watermark, parts.lateness);
        let fires = |window: &Window| {
            window.max_timestamp() <= watermark && watermark < window.cleanup(lateness)
        };
        let windows = parts.assigner.assign(at);
        let Some(all) = windows.filter(fires).reduce(|all, other| all.cover(&other)) else {
            return Ok(0);
        };
        let hash = hash_of(&key);
        let mut found = std::mem::take(&mut self.found);
        for slice in self.slices_of(all) {
            let table = &self.slices[slice].table;
            if let Some(slot) = table.slot(hash, &key)
                && let Some(entry) = table.get(slot)
            {
                found.push(Place { arrival: entry.value.arrival, slice, slot });
            }
        }
        found.sort_unstable();
        let mut routes = 0;
        for window in parts.assigner.assign(at).filter(fires) {
            let Ok(index) = self.open.binary_search_by(|open| open.window.cmp(&window)) else {
                continue;
            };
            let slices = self.slices_of(window);
            let mut contents = None;
            for place in found.iter().filter(|place| slices.contains(&place.slice)) {
                if let Some(entry) = self.slices[place.slice].table.get(place.slot) {
                    add::<K, T, B>(&mut parts.body, &mut contents, &entry.value.contents);
                }
            }
            let Some(contents) = contents else { continue };
            let pane = next_update(&mut self.open[index].updates, &key);
            let (key, side) = (key.clone(), S::default());
            routes += parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
        }
        found.clear();
        self.found = found;
        Ok(routes)
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
        if self.due > parts.watermark {
            return Ok(Progress::Done);
        }
        self.advance(parts, room, out)
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
                progress = self.fire(parts, fired, &mut work, &mut room, out)?;
                self.open[index].complete = progress == Progress::Done;
            }
            if is_final && progress == Progress::Done {
                let fired = (window, Pane::Final, true);
                progress = self.fire(parts, fired, &mut work, &mut room, out)?;
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
        room: &mut usize,
        out: &mut Out,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        if self.assembly.stage == Stage::Empty {
            let slices = self.slices_of(window);
            self.assembly.begin(&self.slices, slices);
        }
        if self.assembly.stage == Stage::Begun {
            let progress = self.assembly.go_on(&mut parts.body, &self.slices, work);
            if progress == Progress::More {
                return Ok(progress);
            }
        }
        let progress = self.assembly.table.fire(parts, window, pane, last, room, out)?;
        if last && progress == Progress::Done {
            self.assembly.end();
        }
        Ok(progress)
    }

    /// Frees the slices whose windows are all gone.
    fn free<A: Assigner, Tr, B>(&mut self, parts: &Parts<A, Tr, B>, work: &mut usize) -> Progress {
        while let Some(slice) = self.slices.front_mut()
            && parts.is_gone(slice.last)
        {
            let before = slice.table.len();
            let progress = slice.table.free(work);
            self.kept -= before - slice.table.len();
            if progress == Progress::More {
                return progress;
            }
            if let Some(slice) = self.slices.pop_front() {
                self.pool.give(slice.table);
            }
            self.hot = self.hot.saturating_sub(1);
        }
        Progress::Done
    }

    fn next_due(&self, lateness: i64) -> Timestamp {
        // Windows that are complete stand before the others.
        let incomplete = self.open.partition_point(|open| open.complete);
        let end = self.open.get(incomplete).map(|open| open.window.max_timestamp());
        let cleanup = self.open.front().map(|open| open.window.cleanup(lateness));
        end.into_iter().chain(cleanup).min().unwrap_or(Timestamp::MAX)
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Assembly<K, C, S> {
    fn begin(&mut self, all: &VecDeque<Slice<K, C>>, slices: Range<usize>) {
        let tables = all.range(slices.clone()).map(|slice| &slice.table);
        self.table.reserve(tables.clone().map(Table::len).max().unwrap_or(0));
        let first = |(slice, table): (usize, &Table<K, Part<C>>)| {
            let arrival = table.get(0)?.value.arrival;
            Some(Reverse(Place { arrival, slice, slot: 0 }))
        };
        self.next.extend(slices.zip(tables).filter_map(first));
        self.stage = Stage::Begun;
    }

    /// Adds the parts to the window, `work` of them at most.
    fn go_on<T, B>(
        &mut self,
        body: &mut B,
        slices: &VecDeque<Slice<K, C>>,
        work: &mut usize,
    ) -> Progress
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        while let Some(Reverse(Place { slice, mut slot, .. })) = self.next.pop() {
            // Slices hardly overlap in the order in which their keys came: one stays at the top
            // for many of its parts.
            let limit = self.next.peek().map_or(u64::MAX, |Reverse(place)| place.arrival);
            while let Some(entry) = slices[slice].table.get(slot) {
                let arrival = entry.value.arrival;
                if arrival > limit || *work == 0 {
                    self.next.push(Reverse(Place { arrival, slice, slot }));
                    break;
                }
                self.add(body, &entry.key, &entry.value.contents);
                *work -= 1;
                slot += 1;
            }
            if *work == 0 && !self.next.is_empty() {
                return Progress::More;
            }
        }
        self.stage = Stage::Ready;
        Progress::Done
    }

    #[inline]
    fn add<T, B>(&mut self, body: &mut B, key: &K, part: &C)
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        let Some(copy) = body.copy(part) else { return };
        let hash = hash_of(key);
        if let Some(entry) = self.table.find(hash, key) {
            body.merge(&mut entry.value.contents, copy);
        } else {
            self.table.push(hash, key.clone(), Kept { contents: copy, side: S::default() });
        }
    }

    fn end(&mut self) {
        self.stage = Stage::Empty;
        if self.table.is_small() {
            self.table.clear();
        } else {
            self.table = Table::new();
        }
    }
}

/// Adds a part to what a window holds of one key.
fn add<K, T, B: WindowBody<K, T>>(
    body: &mut B,
    contents: &mut Option<B::Contents>,
    part: &B::Contents,
) {
    let Some(copy) = body.copy(part) else { return };
    match contents {
        Some(contents) => body.merge(contents, copy),
        None => *contents = Some(copy),
    }
}
