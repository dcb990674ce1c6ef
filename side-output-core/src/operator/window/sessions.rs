use super::table::{RECYCLED, hash_of};
use super::wheel::{Ripe, Timer, Wheel};
use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::time::Timestamp;
use crate::window::{Assigner, Firings, Pane, Window};
use hashbrown::HashTable;
use std::hash::Hash;
use std::mem;

/// How many buckets of timers are looked at in one go: they may have nothing to say.
const TURNED: usize = 1024;

/// Dead timers that are not worth a sweep.
const SWEEP: usize = 1024;

/// No session.
const NONE: u32 = u32::MAX;

/// Windows that merge and fire at their end: each key has its list of them, the newest first.
///
/// A record costs one look-up by its key. Timers are lazy: one that is reached before its session
/// ends, because the session has grown, is set again at the end that it has now.
pub(super) struct Sessions<K, C, S> {
    /// Where the newest session of each key stands, and with it the key.
    index: HashTable<u32>,
    kept: Slab<K, C, S>,
    /// The sessions that one record touches: empty but for its memory.
    touched: Vec<u32>,
}

/// All sessions, and when something is to happen to them.
struct Slab<K, C, S> {
    slots: Vec<Option<Session<K, C, S>>>,
    free: Vec<u32>,
    wheel: Wheel,
    /// How many sessions were ever opened.
    opened: u64,
}

/// One session of one key.
struct Session<K, C, S> {
    key: K,
    window: Window,
    contents: C,
    side: S,
    firings: Firings,
    /// Sessions fire in the order in which they were opened where they are due at the same time.
    age: u64,
    /// The time of its timer, which is not after what it is due for. Any other in the wheel is
    /// dead.
    timer: Timestamp,
    /// It is to fire at its end.
    due: bool,
    newer: u32,
    older: u32,
}

impl<K, C, S> Session<K, C, S> {
    /// The time at which something is to happen to it.
    #[inline]
    fn next(&self, lateness: i64) -> Timestamp {
        if self.due { self.window.max_timestamp() } else { self.window.cleanup(lateness) }
    }
}

impl<K, C, S> Sessions<K, C, S> {
    pub(super) fn new() -> Self {
        let (slots, free, wheel) = (Vec::new(), Vec::new(), Wheel::new());
        let kept = Slab { slots, free, wheel, opened: 0 };
        Self { index: HashTable::new(), kept, touched: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.slots.len() - self.kept.free.len()
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Sessions<K, C, S> {
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
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let hash = hash_of(&key);
        let mut windows = parts.assigner.assign(at);
        let Some(mut window) = windows.next() else { return parts.late(value, at, out) };
        let mut taken = false;
        for next in windows {
            // All but the last of its windows borrow the record.
            let window = mem::replace(&mut window, next);
            if self.takes(parts, hash, &key, window) {
                taken = true;
                let value = Share::Borrowed(&value);
                self.insert(parts, hash, key.clone(), window, value, out)?;
            }
        }
        if self.takes(parts, hash, &key, window) {
            self.insert(parts, hash, key, window, Share::Owned(value), out)
        } else if taken {
            Ok(())
        } else {
            parts.late(value, at, out)
        }
    }

    /// Whether a record of `window` is not late.
    #[inline]
    fn takes<A: Assigner, Tr, B>(
        &self,
        parts: &Parts<A, Tr, B>,
        hash: u64,
        key: &K,
        window: Window,
    ) -> bool {
        // A record that touches a session that is kept is not late, however old it is.
        !parts.is_gone(window) || self.touches(hash, key, window)
    }

    #[inline(never)]
    fn touches(&self, hash: u64, key: &K, window: Window) -> bool {
        let mut slot = self.find(hash, key);
        while slot != NONE {
            let session = self.kept.get(slot);
            if session.window.touches(&window) {
                return true;
            }
            slot = session.older;
        }
        false
    }

    /// The newest session of the key.
    #[inline]
    fn find(&self, hash: u64, key: &K) -> u32 {
        let Self { index, kept, .. } = self;
        index.find(hash, |slot| kept.get(*slot).key == *key).copied().unwrap_or(NONE)
    }

    #[inline(always)]
    fn insert<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        window: Window,
        value: Share<'_, T>,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let Self { index, kept, .. } = self;
        let slot = if let Some(newest) = index.find_mut(hash, |slot| kept.get(*slot).key == key) {
            let session = kept.get_mut(*newest);
            if window.start() <= session.window.end() {
                let grown = session.window.cover(&window);
                // The others end before it starts.
                let is_alone = session.older == NONE || session.window.start() == grown.start();
                if is_alone
                    && session.due
                    && session.window.touches(&window)
                    && grown.max_timestamp() > parts.watermark
                {
                    session.window = grown;
                    parts.body.add(&mut session.contents, value);
                    return Ok(());
                }
                return self.join(parts, hash, key, window, value, out);
            }
            *newest = kept.open(parts, key, window, value, *newest);
            *newest
        } else {
            let slot = kept.open(parts, key, window, value, NONE);
            index.insert_unique(hash, slot, |slot| hash_of(&kept.get(*slot).key));
            slot
        };
        if window.max_timestamp() <= parts.watermark {
            return self.kept.update(parts, slot, out);
        }
        Ok(())
    }

    /// Adds a record to the sessions that it touches, which become one, or opens a session between
    /// those that there are.
    #[inline(never)]
    fn join<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        hash: u64,
        key: K,
        window: Window,
        value: Share<'_, T>,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        // They do not touch each other, so those that the record touches follow each other.
        let newest = self.find(hash, &key);
        let (mut newer, mut older) = (NONE, newest);
        while older != NONE && self.kept.get(older).window.start() > window.end() {
            newer = older;
            older = self.kept.get(older).older;
        }
        while older != NONE && self.kept.get(older).window.touches(&window) {
            self.touched.push(older);
            older = self.kept.get(older).older;
        }
        let slot = if self.touched.is_empty() {
            self.kept.open(parts, key, window, value, older)
        } else {
            let slot = self.kept.merge(parts, &mut self.touched, window, older);
            parts.body.add(&mut self.kept.get_mut(slot).contents, value);
            slot
        };
        self.kept.link(newer, slot);
        if newer == NONE
            && let Some(first) = self.index.find_mut(hash, |slot| *slot == newest)
        {
            *first = slot;
        }
        if self.kept.get(slot).window.max_timestamp() <= parts.watermark {
            return self.kept.update(parts, slot, out);
        }
        Ok(())
    }

    pub(super) fn on_watermark<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let Parts { watermark, lateness, .. } = *parts;
        let mut turned = 0;
        loop {
            let Some(timer) = self.kept.wheel.first() else {
                if !self.kept.ripen(watermark, lateness) {
                    return Ok(Progress::Done);
                }
                turned += 1;
                if turned == TURNED {
                    return Ok(Progress::More);
                }
                continue;
            };
            match is_ripe(&mut self.kept.slots, timer, lateness) {
                Ripe::Now if !out.may_fire() => return Ok(Progress::More),
                Ripe::Now => {
                    self.kept.wheel.pop();
                    self.end(parts, timer, out)?;
                }
                Ripe::Later(at) => {
                    self.kept.wheel.pop();
                    self.kept.wheel.push(Timer { at, ..timer });
                }
                Ripe::Never => self.kept.wheel.pop(),
            }
        }
    }

    /// Fires a session or frees it, or both, as it is due for.
    #[inline]
    fn end<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        timer: Timer,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let Timer { at, slot, .. } = timer;
        let watermark = parts.watermark;
        let session = self.kept.get_mut(slot);
        let (window, cleanup) = (session.window, session.window.cleanup(parts.lateness));
        let mut last = parts.finals.then_some(Pane::Final);
        if mem::take(&mut session.due) {
            let pane = session.firings.next(window, at, false);
            if at == cleanup && !parts.finals {
                last = Some(pane);
            } else {
                let (key, contents, side) =
                    (&session.key, &mut session.contents, &mut session.side);
                let firing = Firing { key, window, pane, watermark };
                parts.body.fire(firing, contents, side, out)?;
            }
            if at != cleanup {
                self.kept.set(slot, cleanup);
                return Ok(());
            }
        }
        let Session { key, contents, side, .. } = self.remove(slot);
        if let Some(pane) = last {
            parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
        }
        Ok(())
    }

    /// Takes a session out of its key's list.
    #[inline]
    fn remove(&mut self, slot: u32) -> Session<K, C, S> {
        let session = self.kept.take(slot);
        self.kept.free.push(slot);
        if session.newer == NONE
            && let Ok(mut entry) =
                self.index.find_entry(hash_of(&session.key), |first| *first == slot)
        {
            if session.older == NONE {
                entry.remove();
            } else {
                *entry.get_mut() = session.older;
            }
        }
        self.kept.link(session.newer, session.older);
        self.shrink();
        session
    }

    /// Gives memory back after many sessions have gone.
    #[inline]
    fn shrink(&mut self) {
        if self.kept.slots.len() > RECYCLED && self.len() == 0 {
            let opened = self.kept.opened;
            *self = Self::new();
            self.kept.opened = opened;
        } else if self.index.capacity() > RECYCLED && self.index.len() < self.index.capacity() / 8 {
            let Self { index, kept, .. } = self;
            index.shrink_to(index.len() * 2, |slot| hash_of(&kept.get(*slot).key));
        }
    }
}

impl<K, C, S> Slab<K, C, S> {
    #[inline]
    fn get(&self, slot: u32) -> &Session<K, C, S> {
        self.slots[slot as usize].as_ref().expect("a session that is kept")
    }

    #[inline]
    fn get_mut(&mut self, slot: u32) -> &mut Session<K, C, S> {
        self.slots[slot as usize].as_mut().expect("a session that is kept")
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Session<K, C, S> {
        self.slots[slot as usize].take().expect("a session that is kept")
    }

    /// Makes two sessions neighbours in their key's list.
    #[inline]
    fn link(&mut self, newer: u32, older: u32) {
        if newer != NONE {
            self.get_mut(newer).older = older;
        }
        if older != NONE {
            self.get_mut(older).newer = newer;
        }
    }

    /// Opens a session of one record, as the next newer one of `older`.
    #[inline]
    fn open<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: K,
        window: Window,
        value: Share<'_, T>,
        older: u32,
    ) -> u32
    where
        S: Default,
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        let contents = parts.body.first(value);
        let due = window.max_timestamp() > parts.watermark;
        let session = Session {
            key,
            window,
            contents,
            side: S::default(),
            firings: Firings::default(),
            age: self.opened,
            timer: Timestamp::MAX,
            due,
            newer: NONE,
            older,
        };
        let next = session.next(parts.lateness);
        self.opened += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            let slot = u32::try_from(self.slots.len() - 1).ok().filter(|slot| *slot != NONE);
            slot.expect("fewer than 2^32 sessions at a time")
        });
        self.slots[slot as usize] = Some(session);
        if older != NONE {
            self.get_mut(older).newer = slot;
        }
        self.set(slot, next);
        slot
    }

    /// Makes one session of those in `touched`, which it empties, and `window`. It is the next
    /// newer one of `older`.
    fn merge<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        touched: &mut Vec<u32>,
        window: Window,
        older: u32,
    ) -> u32
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        // The last one is the oldest.
        let mut slot = touched.pop().expect("a session that is touched");
        let before = self.get(slot).window;
        let has_changed = !touched.is_empty() || before.cover(&window) != before;
        if !touched.is_empty() {
            let mut merged = self.take(slot);
            while let Some(other) = touched.pop() {
                let session = self.take(other);
                merged.window = merged.window.cover(&session.window);
                parts.body.merge(&mut merged.contents, session.contents);
                parts.body.merge_side(&mut merged.side, session.side);
                merged.firings.merge(session.firings);
                if session.age < merged.age {
                    // Its timer is the one that stays: timers go by the age.
                    (merged.age, merged.timer) = (session.age, session.timer);
                    self.free.push(mem::replace(&mut slot, other));
                } else {
                    self.free.push(other);
                }
            }
            self.slots[slot as usize] = Some(merged);
            self.link(slot, older);
        }
        let session = self.get_mut(slot);
        session.window = session.window.cover(&window);
        let is_due = session.window.max_timestamp() > parts.watermark;
        session.due = is_due || (session.due && !has_changed);
        let next = session.next(parts.lateness);
        if next < session.timer {
            // It had fired and waited to be freed; now it is to fire again.
            self.set(slot, next);
        }
        self.sweep();
        slot
    }

    /// What a late record makes a session say.
    #[inline(never)]
    fn update<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        slot: u32,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let watermark = parts.watermark;
        let Session { key, window, contents, side, firings, .. } = self.get_mut(slot);
        let pane = firings.next(*window, watermark, true);
        let firing = Firing { key, window: *window, pane, watermark };
        parts.body.fire(firing, contents, side, out)
    }

    /// Sets the timer of a session.
    #[inline]
    fn set(&mut self, slot: u32, at: Timestamp) {
        let session = self.get_mut(slot);
        session.timer = at;
        let age = session.age;
        self.wheel.push(Timer { at, age, slot });
    }

    /// Lets the wheel go on; false if there is nothing by the watermark.
    fn ripen(&mut self, watermark: Timestamp, lateness: i64) -> bool {
        let Self { slots, wheel, .. } = self;
        wheel.ripen(watermark, |timer| is_ripe(slots, timer, lateness))
    }

    /// Forgets dead timers as soon as they are two of three.
    fn sweep(&mut self) {
        let Self { slots, free, wheel, .. } = self;
        if wheel.len() > 3 * (slots.len() - free.len()) + SWEEP {
            wheel.retain(|timer| {
                let session = slots[timer.slot as usize].as_ref();
                session.is_some_and(|kept| kept.age == timer.age && kept.timer == timer.at)
            });
        }
    }
}

/// Whether the session is due at the time of its timer. If it has grown, it waits for its end.
#[inline]
fn is_ripe<K, C, S>(slots: &mut [Option<Session<K, C, S>>], timer: Timer, lateness: i64) -> Ripe {
    match &mut slots[timer.slot as usize] {
        Some(session) if session.age == timer.age && session.timer == timer.at => {
            session.timer = session.next(lateness);
            if session.timer == timer.at { Ripe::Now } else { Ripe::Later(session.timer) }
        }
        _ => Ripe::Never,
    }
}
