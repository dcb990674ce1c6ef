use super::{Timers, Times};
use crate::time::Timestamp;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::mem;

/// What one key has.
struct Slot<K, S> {
    /// `None` while the slot is free, or while a function holds the key.
    key: Option<K>,
    state: S,
    times: Times,
    /// Processing-time timers, which few functions set.
    alarms: Option<Box<Times>>,
    /// When the key expires if it has a time to live and nothing happens to it.
    expires: Timestamp,
    /// Tells the keys apart that lived here one after the other.
    generation: u32,
    expiring: bool,
}

/// What the watermark has made due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The timer of the key in this slot at this time; it is not set any more.
    Timer(u32, Timestamp),
    /// A key outlived its time to live, and everything of it is gone.
    Expired,
}

/// State and timers of every key: a slab of slots, and a map from the key to its slot.
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
/// let mut key = None;
/// *keys.lend(slot, &mut key) += 1;
/// keys.lend(slot, &mut key);
/// keys.set_timer(slot, Timestamp::from_millis(5));
///
/// assert_eq!(keys.pop_due(Timestamp::from_millis(4)), None);
/// let due = keys.pop_due(Timestamp::from_millis(5));
/// assert_eq!(due, Some(Due::Timer(slot, Timestamp::from_millis(5))));
/// keys.remove(slot);
/// assert!(keys.is_empty());
/// ```
pub struct Keys<K, S> {
    index: FxHashMap<K, u32>,
    slots: Vec<Slot<K, S>>,
    free: Vec<u32>,
    timers: Timers,
    alarms: Timers,
    /// One entry for each key with a time to live, at the time it had when the entry was made:
    /// touching a key costs no heap operation.
    expiries: BinaryHeap<Reverse<(Timestamp, u32, u32)>>,
}

/// Tables smaller than this keep their memory when they run empty.
const KEEP: usize = 4096;

impl<K: Hash + Eq + Clone, S: Default> Keys<K, S> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            index: FxHashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            timers: Timers::new(),
            alarms: Timers::new(),
            expiries: BinaryHeap::new(),
        }
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
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

    /// The slot of `key`, made with the default state if there is none.
    ///
    /// # Panics
    ///
    /// With the key number 2^32.
    #[inline]
    pub fn slot(&mut self, key: K) -> u32 {
        match self.index.entry(key) {
            Entry::Occupied(slot) => *slot.get(),
            Entry::Vacant(vacant) => {
                let key = Some(vacant.key().clone());
                let slot = if let Some(slot) = self.free.pop() {
                    self.slots[slot as usize].key = key;
                    slot
                } else {
                    let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 keys");
                    self.slots.push(Slot {
                        key,
                        state: S::default(),
                        times: Times::new(),
                        alarms: None,
                        expires: Timestamp::MIN,
                        generation: 0,
                        expiring: false,
                    });
                    slot
                };
                *vacant.insert(slot)
            }
        }
    }

    /// Exchanges the key of `slot` with `key`, and lends the state.
    #[inline]
    pub fn lend(&mut self, slot: u32, key: &mut Option<K>) -> &mut S {
        let slot = &mut self.slots[slot as usize];
        mem::swap(&mut slot.key, key);
        &mut slot.state
    }

    /// Whether the key in `slot` has no timer.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, slot: u32) -> bool {
        let slot = &self.slots[slot as usize];
        slot.times.is_empty() && slot.alarms.is_none()
    }

    /// Sets an event-time timer; `false` if it was set already.
    #[inline]
    pub fn set_timer(&mut self, slot: u32, at: Timestamp) -> bool {
        self.timers.set(slot, &mut self.slots[slot as usize].times, at)
    }

    /// Deletes an event-time timer; `false` if there was none.
    #[inline]
    pub fn delete_timer(&mut self, slot: u32, at: Timestamp) -> bool {
        let found = self.timers.delete(&mut self.slots[slot as usize].times, at);
        self.sweep();
        found
    }

    /// Sets a processing-time timer; `false` if it was set already.
    pub fn set_alarm(&mut self, slot: u32, at: Timestamp) -> bool {
        let alarms = self.slots[slot as usize].alarms.get_or_insert_default();
        self.alarms.set(slot, alarms, at)
    }

    /// Deletes a processing-time timer; `false` if there was none.
    pub fn delete_alarm(&mut self, slot: u32, at: Timestamp) -> bool {
        let alarms = &mut self.slots[slot as usize].alarms;
        let Some(times) = alarms else { return false };
        let found = self.alarms.delete(times, at);
        if times.is_empty() {
            *alarms = None;
        }
        self.sweep();
        found
    }

    #[inline]
    fn sweep(&mut self) {
        if self.timers.wants_sweep() {
            self.timers.sweep(|slot| Some(&self.slots[slot as usize].times));
        }
        if self.alarms.wants_sweep() {
            self.alarms.sweep(|slot| self.slots[slot as usize].alarms.as_deref());
        }
    }

    /// Lets the key in `slot` live until `at` at least.
    #[inline]
    pub fn keep_until(&mut self, slot: u32, at: Timestamp) {
        let entry = &mut self.slots[slot as usize];
        entry.expires = entry.expires.max(at);
        if !entry.expiring {
            entry.expiring = true;
            self.expiries.push(Reverse((entry.expires, slot, entry.generation)));
        }
    }

    /// Forgets the key in `slot` with everything it has.
    pub fn remove(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let Some(key) = entry.key.take() else { return };
        self.timers.clear(&mut entry.times);
        if let Some(mut alarms) = entry.alarms.take() {
            self.alarms.clear(&mut alarms);
        }
        entry.state = S::default();
        entry.expires = Timestamp::MIN;
        entry.expiring = false;
        entry.generation = entry.generation.wrapping_add(1);
        self.index.remove(&key);
        self.free.push(slot);
        if self.index.is_empty() && self.slots.len() > KEEP {
            // What was a peak must not be what is kept.
            *self = Self::new();
        } else {
            self.sweep();
        }
    }

    /// Whether anything is due at `watermark`. Entries of deleted timers are swept on the way.
    pub fn is_due(&mut self, watermark: Timestamp) -> bool {
        while let Some((slot, _)) = self.timers.peek(watermark) {
            let times = &mut self.slots[slot as usize].times;
            if self.timers.is_first_live(times) {
                return true;
            }
            self.timers.pop(times);
        }
        self.expiries.peek().is_some_and(|Reverse((at, ..))| *at <= watermark)
    }

    /// The next thing that is due at `watermark`, in order of time; a timer comes before the
    /// expiry of its key at the same time.
    #[inline]
    pub fn pop_due(&mut self, watermark: Timestamp) -> Option<Due> {
        loop {
            let expiry = self.expiries.peek().map(|Reverse((at, ..))| *at);
            let until = expiry.map_or(watermark, |expiry| expiry.min(watermark));
            if let Some((slot, at)) = self.timers.peek(until) {
                if self.timers.pop(&mut self.slots[slot as usize].times) {
                    return Some(Due::Timer(slot, at));
                }
                continue;
            }
            if expiry? > watermark {
                return None;
            }
            let Reverse((at, slot, generation)) = self.expiries.pop()?;
            let entry = &self.slots[slot as usize];
            if entry.generation != generation || !entry.expiring {
                continue;
            }
            if entry.expires > at {
                // It was touched since the entry was made.
                self.expiries.push(Reverse((entry.expires, slot, generation)));
                continue;
            }
            self.remove(slot);
            return Some(Due::Expired);
        }
    }

    /// The next processing-time timer that is due at `now`, with its time.
    pub fn pop_alarm(&mut self, now: Timestamp) -> Option<(u32, Timestamp)> {
        while let Some((slot, at)) = self.alarms.peek(now) {
            let alarms = &mut self.slots[slot as usize].alarms;
            let live = match alarms {
                Some(times) => self.alarms.pop(times),
                None => self.alarms.pop(&mut Times::new()),
            };
            if alarms.as_ref().is_some_and(|times| times.is_empty()) {
                *alarms = None;
            }
            if live {
                return Some((slot, at));
            }
        }
        None
    }

    /// When to look for processing-time timers again.
    #[must_use]
    pub fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.first()
    }
}

impl<K: Hash + Eq + Clone, S: Default> Default for Keys<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, S> fmt::Debug for Keys<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("keys", &self.index.len())
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}
