use super::{Changes, Index, KeyHash, Next, Slab, Timer, Timers, Times, Unsaved};
use crate::time::Timestamp;
use std::fmt;
use std::hash::Hash;
use std::mem;

/// What one key has, with which a function is called.
pub struct Lent<K, S> {
    /// `None` while a function holds the key.
    key: Option<K>,
    state: S,
    times: Times,
    /// Processing-time timers, which few functions set.
    alarms: Option<Box<Times>>,
    /// When the key expires if it has a time to live and nothing happens to it.
    expires: Timestamp,
    /// The name of its entry among the timers, if it has a time to live. The entry stands at the
    /// time that it had when the entry was made: touching a key does not touch the timers.
    expiry: Option<u64>,
}

/// What the watermark or the clock has made due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The timer of the key in this slot at this time; it is not set any more.
    Timer(u32, Timestamp),
    /// A key outlived its time to live, and everything of it is gone.
    Expired,
    /// Nothing yet, and it has done as much as it was told to: ask again.
    Busy,
}

/// What a key has, as a walk over [`Keys`] shows it, and as they can be built from.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a, K, S> {
    /// Where it is kept.
    pub slot: u32,
    /// The key.
    pub key: &'a K,
    /// Its state.
    pub state: &'a S,
    /// Its event-time timers.
    pub times: &'a Times,
    /// Its processing-time timers.
    pub alarms: Option<&'a Times>,
    /// When it expires, if it has a time to live.
    pub expires: Option<Timestamp>,
}

/// State and timers of every key: a slab of slots, and an index from the key to its slot.
///
/// A record's key is hashed once. Everything after that, timers included, goes by the slot.
///
/// # Examples
///
/// ```
/// use side_output::Timestamp;
/// use side_output::state::{Due, Keys};
///
/// let mut keys: Keys<&str, u32> = Keys::new();
/// let slot = keys.slot("a");
/// *keys.lend(slot).state() += 1;
/// keys.set_timer(slot, Timestamp::from_millis(5));
///
/// assert_eq!(keys.pop_due(Timestamp::from_millis(4), &mut 100), None);
/// let due = keys.pop_due(Timestamp::from_millis(5), &mut 100);
/// assert_eq!(due, Some(Due::Timer(slot, Timestamp::from_millis(5))));
/// keys.remove(slot);
/// assert!(keys.is_empty());
/// ```
pub struct Keys<K, S> {
    index: Index,
    slots: Slab<Lent<K, S>>,
    timers: Timers,
    alarms: Timers,
    hash: KeyHash,
    /// What has changed since the keys were saved, once they were.
    changes: Option<Box<Changes<K>>>,
}

impl<K, S> Keys<K, S> {
    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Number of event-time timers that are set.
    #[must_use]
    pub const fn timers(&self) -> usize {
        self.timers.len()
    }

    /// Number of processing-time timers that are set.
    #[must_use]
    pub const fn alarms(&self) -> usize {
        self.alarms.len()
    }

    /// What there is of every key, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = Kept<'_, K, S>> {
        self.slots.iter().filter_map(|(number, slot)| slot.kept(number))
    }

    /// What there is of the key in `slot`.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<Kept<'_, K, S>> {
        self.slots.get(slot)?.kept(slot)
    }
}

impl<K, S> Lent<K, S> {
    /// Exchanges the key with `key`.
    #[inline]
    pub const fn swap_key(&mut self, key: &mut Option<K>) {
        mem::swap(&mut self.key, key);
    }

    /// The state of the key.
    #[inline]
    pub const fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// Whether the key has no timer.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.times.is_empty() && self.alarms.is_none()
    }

    fn kept(&self, slot: u32) -> Option<Kept<'_, K, S>> {
        let Self { key, state, times, alarms, expires, expiry } = self;
        let (alarms, expires) = (alarms.as_deref(), expiry.map(|_| *expires));
        Some(Kept { slot, key: key.as_ref()?, state, times, alarms, expires })
    }
}

impl<K: Hash + Eq, S> Keys<K, S> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        let (timers, alarms) = (Timers::new(), Timers::new());
        let (index, hash) = (Index::new(), KeyHash::default());
        Self { index, slots: Slab::new(), timers, alarms, hash, changes: None }
    }

    /// The slot of `key`, made with the default state if there is none.
    ///
    /// # Panics
    ///
    /// With the key number 2^32.
    #[inline]
    pub fn slot(&mut self, key: K) -> u32
    where
        S: Default,
    {
        let hash = self.hash.of(&key);
        match self.find_hashed(hash, &key) {
            Some(slot) => slot,
            None => self.insert(hash, key, S::default()),
        }
    }

    /// The slot of `key`, if it is here.
    #[must_use]
    pub fn find(&self, key: &K) -> Option<u32> {
        self.find_hashed(self.hash.of(key), key)
    }

    #[inline(always)]
    fn find_hashed(&self, hash: u64, key: &K) -> Option<u32> {
        let slots = &self.slots;
        let is_key = |slot: u32| {
            slots.get(slot).is_some_and(|slot| slot.key.as_ref().is_some_and(|k| k == key))
        };
        self.index.find(hash, is_key)
    }

    fn insert(&mut self, hash: u64, key: K, state: S) -> u32 {
        let slot = self.slots.insert(Lent {
            key: Some(key),
            state,
            times: Times::new(),
            alarms: None,
            expires: Timestamp::MIN,
            expiry: None,
        });
        self.index.insert(hash, slot);
        slot
    }

    /// Puts in again what [`iter`](Self::iter) has shown of a key that is not here: with its
    /// timers, whose order at the same time is what it was.
    pub fn restore(
        &mut self,
        key: K,
        state: S,
        times: impl IntoIterator<Item = (Timestamp, u64)>,
        alarms: impl IntoIterator<Item = (Timestamp, u64)>,
        expires: Option<Timestamp>,
    ) -> u32 {
        let number = self.insert(self.hash.of(&key), key, state);
        let slot = Self::entry(&mut self.slots, number);
        for (at, order) in times {
            self.timers.restore(number, &mut slot.times, at, order);
        }
        for (at, order) in alarms {
            self.alarms.restore(number, slot.alarms.get_or_insert_default(), at, order);
        }
        if let Some(at) = expires {
            self.keep_until(number, at);
        }
        number
    }

    #[inline]
    fn entry(slots: &mut Slab<Lent<K, S>>, slot: u32) -> &mut Lent<K, S> {
        slots.get_mut(slot).expect("the slot of a key")
    }

    /// Lends what the key in `slot` has.
    ///
    /// # Panics
    ///
    /// If no key is in `slot`, as with all that take one.
    #[inline]
    pub fn lend(&mut self, slot: u32) -> &mut Lent<K, S> {
        Self::entry(&mut self.slots, slot)
    }

    /// Sets an event-time timer; `false` if it was set already.
    #[inline]
    pub fn set_timer(&mut self, slot: u32, at: Timestamp) -> bool {
        self.timers.set(slot, &mut Self::entry(&mut self.slots, slot).times, at)
    }

    /// Deletes an event-time timer; `false` if there was none.
    #[inline]
    pub fn delete_timer(&mut self, slot: u32, at: Timestamp) -> bool {
        let found = self.timers.delete(&mut Self::entry(&mut self.slots, slot).times, at);
        self.sweep_timers();
        found
    }

    /// Sets a processing-time timer; `false` if it was set already.
    pub fn set_alarm(&mut self, slot: u32, at: Timestamp) -> bool {
        let alarms = &mut Self::entry(&mut self.slots, slot).alarms;
        self.alarms.set(slot, alarms.get_or_insert_default(), at)
    }

    /// Deletes a processing-time timer; `false` if there was none.
    pub fn delete_alarm(&mut self, slot: u32, at: Timestamp) -> bool {
        let alarms = &mut Self::entry(&mut self.slots, slot).alarms;
        let Some(times) = alarms else { return false };
        let found = self.alarms.delete(times, at);
        if times.is_empty() {
            *alarms = None;
        }
        self.sweep_alarms();
        found
    }

    #[inline]
    fn sweep_timers(&mut self) {
        let slots = &self.slots;
        self.timers.sweep(|timer| match slots.get(timer.slot) {
            Some(slot) if Timers::is_last(timer) => slot.expiry == Some(timer.order),
            slot => slot.is_some_and(|slot| slot.times.has(timer)),
        });
    }

    #[inline]
    fn sweep_alarms(&mut self) {
        let slots = &self.slots;
        self.alarms.sweep(|timer| {
            let alarms = slots.get(timer.slot).and_then(|slot| slot.alarms.as_deref());
            alarms.is_some_and(|times| times.has(timer))
        });
    }

    /// Lets the key in `slot` live until `at` at least.
    #[inline]
    pub fn keep_until(&mut self, slot: u32, at: Timestamp) {
        let entry = Self::entry(&mut self.slots, slot);
        entry.expires = entry.expires.max(at);
        if entry.expiry.is_none() {
            entry.expiry = Some(self.timers.set_last(slot, entry.expires));
        }
    }

    /// Forgets the key in `slot` with everything it has.
    pub fn remove(&mut self, slot: u32) {
        let Some(Lent { key: Some(key), mut times, alarms, expiry, .. }) = self.slots.remove(slot)
        else {
            return;
        };
        self.timers.clear(&mut times);
        if expiry.is_some() {
            self.timers.delete_last();
        }
        if let Some(mut alarms) = alarms {
            self.alarms.clear(&mut alarms);
        }
        self.index.remove(self.hash.of(&key), slot);
        if let Some(changes) = &mut self.changes {
            changes.remove(slot, key);
        }
        self.sweep_timers();
        self.sweep_alarms();
    }

    /// Notes that what the key in `slot` has is about to change. Of use once the keys were saved;
    /// removing a key needs no such note.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            changes.touch(slot);
        }
    }

    /// What has changed since the last call: all there is the first time, or if it is to be `all`.
    /// From now on changes are kept track of.
    pub fn unsaved(&mut self, all: bool) -> Unsaved<K> {
        Changes::unsaved(&mut self.changes, all, || self.slots.iter().map(|(slot, _)| slot))
    }

    /// The next thing that is due at `watermark`, in order of time; a timer comes before the
    /// expiry of its key at the same time. What it does meanwhile is taken from `work`.
    #[inline]
    pub fn pop_due(&mut self, watermark: Timestamp, work: &mut usize) -> Option<Due> {
        loop {
            let timer = match self.timers.next(watermark, work) {
                Next::Due(timer) => timer,
                Next::Nothing => return None,
                Next::Busy => return Some(Due::Busy),
            };
            let slot = self.slots.get_mut(timer.slot);
            if !Timers::is_last(timer) {
                if self.timers.pop(timer, slot.map(|slot| &mut slot.times)) {
                    return Some(Due::Timer(timer.slot, timer.at));
                }
            } else if self.pop_expiry(timer) {
                return Some(Due::Expired);
            }
            // It was deleted, or put off.
            if *work == 0 {
                return Some(Due::Busy);
            }
            *work -= 1;
        }
    }

    /// Whether the key of this entry expires.
    fn pop_expiry(&mut self, timer: Timer) -> bool {
        self.timers.pop(timer, None);
        let slot = self.slots.get(timer.slot).filter(|slot| slot.expiry == Some(timer.order));
        let Some(expires) = slot.map(|slot| slot.expires) else { return false };
        if expires > timer.at {
            // It was touched since the entry was made.
            self.timers.put_off(timer, expires);
            return false;
        }
        self.remove(timer.slot);
        true
    }

    /// The next processing-time timer that is due at `now`. What it does meanwhile is taken from
    /// `work`.
    pub fn pop_alarm(&mut self, now: Timestamp, work: &mut usize) -> Option<Due> {
        loop {
            let timer = match self.alarms.next(now, work) {
                Next::Due(timer) => timer,
                Next::Nothing => return None,
                Next::Busy => return Some(Due::Busy),
            };
            let mut nothing = None;
            let alarms =
                self.slots.get_mut(timer.slot).map_or(&mut nothing, |slot| &mut slot.alarms);
            let live = self.alarms.pop(timer, alarms.as_deref_mut());
            if alarms.as_ref().is_some_and(|times| times.is_empty()) {
                *alarms = None;
            }
            if live {
                return Some(Due::Timer(timer.slot, timer.at));
            }
            if *work == 0 {
                return Some(Due::Busy);
            }
            *work -= 1;
        }
    }

    /// When to look for processing-time timers again.
    #[must_use]
    pub fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.soonest()
    }
}

impl<K: Hash + Eq, S> Default for Keys<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, S> fmt::Debug for Lent<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("times", &self.times).finish_non_exhaustive()
    }
}

impl<K, S> fmt::Debug for Keys<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("keys", &self.len())
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// All that is due, with keys where they are known.
    fn due(keys: &mut Keys<String, u32>, watermark: Timestamp) -> Vec<(Option<String>, Timestamp)> {
        let mut all = Vec::new();
        while let Some(due) = keys.pop_due(watermark, &mut 10) {
            match due {
                Due::Timer(slot, at) => {
                    all.push((keys.get(slot).map(|kept| kept.key.clone()), at));
                }
                Due::Expired => all.push((None, watermark)),
                Due::Busy => {}
            }
        }
        all
    }

    #[test]
    fn what_a_walk_shows_is_what_the_keys_can_be_built_from() {
        let mut keys = Keys::new();
        for n in (0..2000_i64).rev() {
            let slot = keys.slot(n.to_string());
            keys.set_timer(slot, at(n % 10));
            keys.set_timer(slot, at(5000 + n));
            keys.set_alarm(slot, at(n));
            if n % 2 == 0 {
                keys.keep_until(slot, at(7000));
            }
        }
        let mut again = Keys::new();
        // In another order than that of setting.
        let mut kept: Vec<_> = keys.iter().collect();
        kept.sort_by_key(|kept| kept.key);
        for Kept { key, state, times, alarms, expires, .. } in kept {
            let alarms = alarms.into_iter().flat_map(Times::entries);
            again.restore(key.clone(), *state, times.entries(), alarms, expires);
        }
        assert_eq!((again.len(), again.timers()), (2000, 4000));
        for until in [at(4), at(5500), at(6999), at(7000)] {
            assert_eq!(due(&mut again, until), due(&mut keys, until));
        }
        assert_eq!((keys.len(), keys.next_alarm()), (1000, again.next_alarm()));
    }

    #[test]
    fn timers_of_one_time_fire_in_the_order_of_setting_also_in_the_past() {
        let mut keys = Keys::new();
        let slots = ["a", "b", "c"].map(|key| keys.slot(key.to_owned()));
        assert_eq!(due(&mut keys, at(100)), []);
        for (slot, millis) in [(2, 50), (0, 50), (1, 20), (1, 200), (2, 200)] {
            assert!(keys.set_timer(slots[slot], at(millis)));
        }
        let fired = due(&mut keys, at(100));
        let fired = fired.iter().map(|(key, at)| (key.as_deref(), at.as_millis()));
        assert!(fired.eq([(Some("b"), 20), (Some("c"), 50), (Some("a"), 50)]));
        keys.delete_timer(slots[1], at(200));
        assert_eq!(due(&mut keys, at(200)), [(Some("c".to_owned()), at(200))]);
    }

    #[test]
    fn a_key_that_is_touched_lives_on() {
        let mut keys = Keys::new();
        let slot = keys.slot("a".to_owned());
        keys.keep_until(slot, at(10));
        keys.keep_until(slot, at(30));
        keys.set_timer(slot, at(30));
        assert_eq!(due(&mut keys, at(29)), []);
        assert_eq!(keys.len(), 1);
        // Its timer comes first.
        assert_eq!(due(&mut keys, at(30)), [(Some("a".to_owned()), at(30)), (None, at(30))]);
        assert!(keys.is_empty());
    }

    #[test]
    fn fault_38_after_many_keys_memory_is_given_back() {
        let mut keys: Keys<u32, [u64; 8]> = Keys::new();
        let many = if cfg!(miri) { 5000 } else { 100_000 };
        (0..many).for_each(|key| _ = keys.slot(key));
        assert!((0..many).all(|key| keys.slot(key) == key));
        (0..many).for_each(|slot| keys.remove(slot));
        assert!(keys.is_empty() && keys.index.capacity() <= 1 << 13, "{}", keys.index.capacity());
    }
}
