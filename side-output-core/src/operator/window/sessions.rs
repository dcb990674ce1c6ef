#[cfg(feature = "job")]
mod snapshot;

use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::state::{Changes, Index, KeyHash, Next, Ripe, Slab, Timer, WORK, Wheel};
use crate::time::Timestamp;
use crate::window::{Assigner, Firings, Pane, Window};
use std::hash::Hash;
use std::mem;

/// No session.
const NONE: u32 = u32::MAX;

/// Windows that merge and fire at their end: each key has its list of them, the newest first.
///
/// A record costs one look-up by its key. Timers are lazy: one that is reached before its session
/// ends, because the session has grown, is set again at the end that it has now.
pub(super) struct Sessions<K, C, S> {
    /// Where the newest session of each key stands, and with it the key.
    index: Index,
    kept: Kept<K, C, S>,
    /// The sessions that one record touches: empty but for its memory.
    touched: Vec<u32>,
}

/// All sessions, and when something is to happen to them.
struct Kept<K, C, S> {
    slots: Slab<Session<K, C, S>>,
    wheel: Wheel,
    /// How many sessions were ever opened.
    opened: u64,
    /// What has changed since the sessions were saved, once they were: by key and age.
    changes: Option<Box<Changes<(K, u64)>>>,
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
    /// Whether this is its timer.
    #[inline]
    fn has(&self, timer: Timer) -> bool {
        self.age == timer.order && self.timer == timer.at
    }

    /// The time at which something is to happen to it.
    #[inline]
    fn next(&self, lateness: i64) -> Timestamp {
        if self.due { self.window.max_timestamp() } else { self.window.cleanup(lateness) }
    }
}

impl<K, C, S> Sessions<K, C, S> {
    pub(super) const fn new() -> Self {
        let kept = Kept { slots: Slab::new(), wheel: Wheel::new(), opened: 0, changes: None };
        Self { index: Index::new(), kept, touched: Vec::new() }
    }

    pub(super) const fn len(&self) -> usize {
        self.kept.slots.len()
    }
}

impl<K: Hash + Eq + Clone, C, S: Default> Sessions<K, C, S> {
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
        // What most records come to: the first session of a key, or the newest one grows.
        let mut windows = parts.assigner.assign(at);
        if let (Some(window), None) = (windows.next(), windows.next())
            && window.max_timestamp() > parts.watermark
        {
            let hash = parts.hash.of(&key);
            let newest = self.find(hash, &key);
            if newest == NONE {
                let slot = self.kept.open(parts, key, window, Share::Owned(value), NONE);
                self.index.insert(hash, slot);
                return Ok(());
            }
            if let Some(session) = self.kept.grow(newest, window, parts.watermark) {
                parts.body.add(&mut session.contents, Share::Owned(value));
                return Ok(());
            }
        }
        out.pass(move |out| self.elsewhere(parts, key, value, at, out))
    }

    /// Any record.
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
        self.index.find(hash, |slot| self.kept.is_of(slot, key)).unwrap_or(NONE)
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
        let newest = self.find(hash, &key);
        if newest != NONE {
            if let Some(session) = self.kept.grow(newest, window, parts.watermark) {
                parts.body.add(&mut session.contents, value);
                return Ok(());
            }
            if window.start() <= self.kept.get(newest).window.end() {
                return self.join(parts, hash, key, window, value, out);
            }
        }
        let slot = self.kept.open(parts, key, window, value, newest);
        if newest == NONE {
            self.index.insert(hash, slot);
        } else {
            self.index.replace(hash, newest, slot);
        }
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
            let slot = self.kept.merge(parts, &mut self.touched, window);
            parts.body.add(&mut self.kept.get_mut(slot).contents, value);
            slot
        };
        self.kept.link(newer, slot);
        if newer == NONE {
            self.index.replace(hash, newest, slot);
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
        // To move a timer is much less than to fire.
        let mut work = 8 * WORK;
        loop {
            let Kept { slots, wheel, changes, .. } = &mut self.kept;
            let timer = match wheel.next(watermark, &mut work, |t| is_ripe(slots, t, lateness)) {
                Next::Due(timer) => timer,
                Next::Nothing => return Ok(Progress::Done),
                Next::Busy => return Ok(Progress::More),
            };
            match is_ripe(slots, timer, lateness) {
                Ripe::Now if work == 0 || !out.may_fire() => return Ok(Progress::More),
                Ripe::Now => wheel.pop(),
                Ripe::Later(at) => {
                    wheel.pop();
                    wheel.push(Timer { at, ..timer });
                    work = work.saturating_sub(1);
                    continue;
                }
                Ripe::Never => {
                    wheel.pop();
                    work = work.saturating_sub(1);
                    continue;
                }
            }
            work -= 1;
            if let Some(changes) = changes {
                changes.touch(timer.slot);
            }
            let Some(session) = slots.get_mut(timer.slot) else { continue };
            let (window, due) = (session.window, mem::take(&mut session.due));
            let cleanup = window.cleanup(lateness);
            let mut last = parts.finals.then_some(Pane::Final);
            if due {
                let pane = session.firings.next(window, timer.at, false);
                if timer.at == cleanup && !parts.finals {
                    last = Some(pane);
                } else {
                    let Session { key, contents, side, .. } = session;
                    let firing = Firing { key, window, pane, watermark };
                    parts.body.fire(firing, contents, side, out)?;
                }
                if timer.at != cleanup {
                    session.timer = cleanup;
                    wheel.push(Timer { at: cleanup, ..timer });
                    continue;
                }
            }
            let Session { key, contents, side, age, .. } = self.remove(&parts.hash, timer.slot);
            if let Some(changes) = &mut self.kept.changes {
                changes.remove(timer.slot, (key.clone(), age));
            }
            if let Some(pane) = last {
                parts.body.fire_last(key, window, pane, watermark, contents, side, out)?;
            }
        }
    }

    /// Takes a session out of its key's list.
    #[inline]
    fn remove(&mut self, hasher: &KeyHash, slot: u32) -> Session<K, C, S> {
        let Self { index, kept, .. } = self;
        let session = kept.take(slot);
        kept.link(session.newer, session.older);
        if session.newer == NONE {
            let hash = hasher.of(&session.key);
            if session.older == NONE {
                index.remove(hash, slot);
            } else {
                index.replace(hash, slot, session.older);
            }
        }
        session
    }
}

impl<K: Hash + Eq, C, S> Kept<K, C, S> {
    /// Whether this is a session of the key.
    #[inline]
    fn is_of(&self, slot: u32, key: &K) -> bool {
        self.slots.get(slot).is_some_and(|session| session.key == *key)
    }
}

impl<K, C, S> Kept<K, C, S> {
    #[inline]
    fn get(&self, slot: u32) -> &Session<K, C, S> {
        self.slots.get(slot).expect("a session that is kept")
    }

    #[inline]
    fn get_mut(&mut self, slot: u32) -> &mut Session<K, C, S> {
        self.slots.get_mut(slot).expect("a session that is kept")
    }

    /// Notes that a session is new or changes.
    #[inline]
    fn touch(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            changes.touch(slot);
        }
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Session<K, C, S> {
        self.slots.remove(slot).expect("a session that is kept")
    }

    /// The newest session of a key once `window` belongs to it, if nothing else changes with that.
    #[inline]
    fn grow(
        &mut self,
        newest: u32,
        window: Window,
        watermark: Timestamp,
    ) -> Option<&mut Session<K, C, S>> {
        let Self { slots, changes, .. } = self;
        let session = slots.get_mut(newest).expect("a session that is kept");
        let grown = session.window.cover(&window);
        // The others end before it starts.
        let is_alone = session.older == NONE || session.window.start() == grown.start();
        let is_all = is_alone
            && session.due
            && session.window.touches(&window)
            && grown.max_timestamp() > watermark;
        if is_all {
            session.window = grown;
            if let Some(changes) = changes {
                changes.touch(newest);
            }
        }
        is_all.then_some(session)
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
        let mut session = Session {
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
        session.timer = session.next(parts.lateness);
        let mut timer = Timer { at: session.timer, order: session.age, slot: NONE };
        self.opened += 1;
        let slot = self.slots.insert(session);
        self.touch(slot);
        if older != NONE {
            self.get_mut(older).newer = slot;
        }
        timer.slot = slot;
        self.wheel.push(timer);
        slot
    }

    /// Makes one session of those in `touched`, which it empties, and `window`.
    fn merge<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        touched: &mut Vec<u32>,
        window: Window,
    ) -> u32
    where
        K: Clone,
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        // The last one is the oldest.
        let slot = touched.pop().expect("a session that is touched");
        self.touch(slot);
        let mut session = self.slots.get_mut(slot).expect("a session that is kept");
        let (before, age) = (session.window, session.age);
        while let Some(other_slot) = touched.pop() {
            let other = self.take(other_slot);
            session = self.slots.get_mut(slot).expect("a session that is kept");
            session.window = session.window.cover(&other.window);
            parts.body.merge(&mut session.contents, other.contents);
            parts.body.merge_side(&mut session.side, other.side);
            session.firings.merge(other.firings);
            if let Some(changes) = &mut self.changes {
                if other.age < session.age {
                    // It is saved under another age from now on.
                    changes.remove(slot, (session.key.clone(), session.age));
                    changes.touch(slot);
                }
                changes.remove(other_slot, (other.key, other.age));
            }
            session.age = session.age.min(other.age);
        }
        session.window = session.window.cover(&window);
        let is_due = session.window.max_timestamp() > parts.watermark;
        session.due = is_due || (session.due && session.window == before);
        let next = session.next(parts.lateness);
        // Timers go by the age. One that had fired and waited to be freed may have to fire again.
        if session.age != age || next < session.timer {
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
        self.touch(slot);
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
        let order = session.age;
        self.wheel.push(Timer { at, order, slot });
    }

    /// Forgets dead timers, of which a merge leaves some.
    fn sweep(&mut self) {
        let Self { slots, wheel, .. } = self;
        wheel.sweep(slots.len(), |timer| {
            let session = slots.get(timer.slot);
            session.is_some_and(|session| session.has(timer))
        });
    }
}

/// Whether the session is due at the time of its timer. If it has grown, it waits for its end.
#[inline]
fn is_ripe<K, C, S>(slots: &mut Slab<Session<K, C, S>>, timer: Timer, lateness: i64) -> Ripe {
    match slots.get_mut(timer.slot) {
        Some(session) if session.has(timer) => {
            session.timer = session.next(lateness);
            if session.timer == timer.at { Ripe::Now } else { Ripe::Later(session.timer) }
        }
        _ => Ripe::Never,
    }
}
