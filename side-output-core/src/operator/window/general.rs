#[cfg(feature = "job")]
mod snapshot;

use super::{Firing, Parts, Progress, Share, WindowBody};
use crate::error::StreamError;
use crate::operator::AtEnd;
use crate::output::{Collect, Collector};
use crate::state::{Changes, Map, Slab};
use crate::time::Timestamp;
use crate::window::{
    Assigner, Firings, Pane, Timers, Trigger, TriggerContext, TriggerOf, Verdict, Window,
};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Windows that merge, or have a trigger of their own: each key has its list of them.
pub(super) struct General<K, C, S, TS> {
    slots: Slab<Kept<C, S, TS>>,
    /// The slots of each key's windows.
    keys: Map<K, Vec<u32>>,
    timers: Timers,
    /// How many windows were ever opened.
    opened: u64,
    /// How many timers each window has set at the end of the input, where they may never stop.
    renewals: FxHashMap<u32, u32>,
    /// What has changed since the windows were saved, once they were: by key and age.
    changes: Option<Box<Changes<(K, u64)>>>,
}

/// One window of one key.
struct Kept<C, S, TS> {
    /// Where its key stands.
    owner: u32,
    window: Window,
    /// `None` after a purge.
    contents: Option<C>,
    side: S,
    state: TS,
    /// The trigger's timers.
    timers: Vec<Timestamp>,
    firings: Firings,
    /// Windows fire in the order in which they were opened where they are due at the same time.
    age: u64,
}

impl<K: Hash + Eq, C, S, TS> General<K, C, S, TS> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slab::new(),
            keys: Map::new(),
            timers: Timers::new(),
            opened: 0,
            renewals: FxHashMap::default(),
            changes: None,
        }
    }
}

impl<K, C, S, TS> General<K, C, S, TS> {
    /// Notes that a window is new or changes.
    #[inline]
    fn touch(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            changes.touch(slot);
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    fn kept(&mut self, slot: u32) -> &mut Kept<C, S, TS> {
        self.slots.get_mut(slot).expect("a window that is kept")
    }
}

impl<K: Hash + Eq + Clone, C, S: Default, TS: Default> General<K, C, S, TS> {
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
        Tr: TriggerOf<T, A::Merging, State = TS>,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let mut taken = false;
        let mut windows = parts.assigner.assign(at).peekable();
        while let Some(window) = windows.next() {
            let Some(slot) = self.slot(parts, &key, window) else { continue };
            // At once: the next window may merge with this one, whose slot is free then.
            if windows.peek().is_none() {
                return self.add(parts, slot, Share::Owned(value), at, out);
            }
            self.add(parts, slot, Share::Borrowed(&value), at, out)?;
            taken = true;
        }
        if taken { Ok(()) } else { parts.late(value, at, out) }
    }

    /// The window that takes a record of `window`: merged with those it touches if windows do
    /// merge, opened if there is none. `None` if it is gone.
    fn slot<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: &K,
        window: Window,
    ) -> Option<u32>
    where
        A: Assigner,
        Tr: TriggerOf<T, A::Merging, State = TS>,
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        let slots = self.keys.find(key).and_then(|owner| self.keys.get(owner));
        let slots = slots.map_or(&[][..], |(_, slots)| slots);
        let window_of = |slot: u32| self.slots.get(slot).map(|kept| kept.window);
        if A::MERGES {
            let touching = |slot: &u32| window_of(*slot).is_some_and(|kept| kept.touches(&window));
            let touched: Vec<u32> = slots.iter().copied().filter(touching).collect();
            // A record that touches a session that is kept is not late, however old it is.
            if !touched.is_empty() {
                return Some(self.merge(parts, key, touched, window));
            }
        } else if let Some(slot) = slots.iter().find(|slot| window_of(**slot) == Some(window)) {
            return Some(*slot);
        }
        if parts.is_gone(window) { None } else { Some(self.open(parts, key, window)) }
    }

    fn open<A, Tr, B>(&mut self, parts: &Parts<A, Tr, B>, key: &K, window: Window) -> u32 {
        let age = self.opened;
        self.opened += 1;
        let kept = Kept {
            owner: self.keys.enter(key, Vec::new),
            window,
            contents: None,
            side: S::default(),
            state: TS::default(),
            timers: Vec::new(),
            firings: Firings::default(),
            age,
        };
        let slot = self.insert(kept);
        self.timers.insert((window.cleanup(parts.lateness), age, slot));
        slot
    }

    /// Puts a window into its key's list.
    fn insert(&mut self, kept: Kept<C, S, TS>) -> u32 {
        let owner = kept.owner;
        let slot = self.slots.insert(kept);
        self.touch(slot);
        if let Some(slots) = self.keys.value_mut(owner) {
            slots.push(slot);
        }
        slot
    }

    /// Makes one window of those in `touched` and `window`.
    fn merge<T, A, Tr, B>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        key: &K,
        mut touched: Vec<u32>,
        window: Window,
    ) -> u32
    where
        A: Assigner,
        Tr: TriggerOf<T, A::Merging, State = TS>,
        B: WindowBody<K, T, Contents = C, Side = S>,
    {
        touched.sort_by_key(|slot| self.kept(*slot).window.start());
        let slot = touched.remove(0);
        let first = self.kept(slot).window;
        if touched.is_empty() && first.cover(&window) == first {
            return slot;
        }
        let mut merged = self.remove(parts.lateness, slot);
        merged.window = merged.window.cover(&window);
        let mut states = Vec::with_capacity(touched.len());
        for slot in touched {
            let other = self.remove(parts.lateness, slot);
            merged.window = merged.window.cover(&other.window);
            merged.contents = match (merged.contents.take(), other.contents) {
                (Some(mut contents), Some(other)) => {
                    parts.body.merge(&mut contents, other);
                    Some(contents)
                }
                (one, other) => one.or(other),
            };
            parts.body.merge_side(&mut merged.side, other.side);
            merged.firings.merge(other.firings);
            merged.age = merged.age.min(other.age);
            states.push(other.state);
        }
        // The timers of what went into it are gone; the trigger says which it needs now.
        let cleanup = merged.window.cleanup(parts.lateness);
        merged.timers.clear();
        merged.owner = self.keys.enter(key, Vec::new);
        let (window, age) = (merged.window, merged.age);
        let slot = self.insert(merged);
        self.timers.insert((cleanup, age, slot));
        if states.is_empty() {
            // It has only grown.
            states.push(TS::default());
        }
        let merged = self.slots.get_mut(slot).expect("a window that is kept");
        let mut cx = TriggerContext {
            window,
            watermark: parts.watermark,
            cleanup,
            own: &mut merged.timers,
            all: &mut self.timers,
            age,
            slot,
        };
        for state in states {
            parts.trigger.merge(&mut merged.state, state, &mut cx);
        }
        slot
    }

    /// Takes a window out, with its timers and its place in the key's list.
    fn remove(&mut self, lateness: i64, slot: u32) -> Kept<C, S, TS> {
        let kept = self.slots.remove(slot).expect("a window that is kept");
        if let (Some(changes), Some((key, _))) = (&mut self.changes, self.keys.get(kept.owner)) {
            changes.remove(slot, (key.clone(), kept.age));
        }
        self.timers.remove(&(kept.window.cleanup(lateness), kept.age, slot));
        for at in &kept.timers {
            self.timers.remove(&(*at, kept.age, slot));
        }
        if let Some(slots) = self.keys.value_mut(kept.owner) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                drop(self.keys.remove(kept.owner));
            }
        }
        kept
    }

    fn add<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        slot: u32,
        value: Share<'_, T>,
        at: Timestamp,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        Tr: Trigger<T, State = TS>,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let watermark = parts.watermark;
        self.touch(slot);
        let kept = self.slots.get_mut(slot).expect("a window that is kept");
        let mut cx = TriggerContext {
            window: kept.window,
            watermark,
            cleanup: kept.window.cleanup(parts.lateness),
            own: &mut kept.timers,
            all: &mut self.timers,
            age: kept.age,
            slot,
        };
        let verdict = parts.trigger.on_record(value.get(), at, &mut kept.state, &mut cx);
        match &mut kept.contents {
            Some(contents) => parts.body.add(contents, value),
            None => kept.contents = Some(parts.body.first(value)),
        }
        let key = self.keys.get(kept.owner).map(|(key, _)| key);
        kept.obey(&mut parts.body, key, verdict, watermark, None, out)
    }

    pub(super) fn on_watermark<T, A, Tr, B, Out>(
        &mut self,
        parts: &mut Parts<A, Tr, B>,
        out: &mut Collector<'_, Out>,
    ) -> Result<Progress, StreamError>
    where
        Tr: Trigger<T, State = TS>,
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        let watermark = parts.watermark;
        while let Some(&(at, age, slot)) = self.timers.first() {
            if at > watermark {
                break;
            }
            if !out.may_fire() {
                return Ok(Progress::More);
            }
            self.timers.pop_first();
            self.touch(slot);
            let kept = self.slots.get_mut(slot).expect("a window that is kept");
            let key = self.keys.get(kept.owner).map(|(key, _)| key);
            let cleanup = kept.window.cleanup(parts.lateness);
            if let Some(index) = kept.timers.iter().position(|own| *own == at) {
                kept.timers.swap_remove(index);
                let end = kept.window.max_timestamp();
                if at > parts.horizon && at < end {
                    out.drop_timer();
                    continue;
                }
                let set = kept.timers.len();
                let mut cx = TriggerContext {
                    window: kept.window,
                    watermark,
                    cleanup,
                    own: &mut kept.timers,
                    all: &mut self.timers,
                    age,
                    slot,
                };
                let verdict = parts.trigger.on_timer(at, &mut kept.state, &mut cx);
                kept.obey(&mut parts.body, key, verdict, watermark, Some(at), out)?;
                // Those of a window that ends stop there, if they go on at all.
                if watermark == Timestamp::MAX
                    && kept.timers.len() > set
                    && (end == Timestamp::MAX || kept.timers[set] <= at)
                {
                    let renewals = self.renewals.entry(slot).or_default();
                    *renewals += 1;
                    if parts.at_end.forbids(*renewals) {
                        return Err(AtEnd::endless::<Tr, B::Out>(*renewals - 1));
                    }
                }
            }
            if at == cleanup {
                if parts.finals
                    && let (Some(contents), Some(key)) = (&mut kept.contents, key)
                    && !parts.body.is_empty(contents)
                {
                    let (window, pane) = (kept.window, Pane::Final);
                    let firing = Firing { key, window, pane, watermark };
                    parts.body.fire(firing, contents, &mut kept.side, out)?;
                }
                drop(self.remove(parts.lateness, slot));
            }
        }
        Ok(Progress::Done)
    }
}

impl<C, S, TS> Kept<C, S, TS> {
    /// Does what the trigger said; `timer` is the time of the timer that it spoke at.
    fn obey<K, T, B, Out>(
        &mut self,
        body: &mut B,
        key: Option<&K>,
        verdict: Verdict,
        watermark: Timestamp,
        timer: Option<Timestamp>,
        out: &mut Collector<'_, Out>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T, Contents = C, Side = S>,
        Out: Collect<B::Out>,
    {
        if verdict.fires()
            && let (Some(contents), Some(key)) = (&mut self.contents, key)
            && !body.is_empty(contents)
        {
            let window = self.window;
            let pane = self.firings.next(window, timer.unwrap_or(watermark), timer.is_none());
            let firing = Firing { key, window, pane, watermark };
            body.fire(firing, contents, &mut self.side, out)?;
        }
        if verdict.purges() {
            self.contents = None;
        }
        Ok(())
    }
}
