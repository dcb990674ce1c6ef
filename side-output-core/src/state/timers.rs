use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

/// A timer in the queue. The order is the firing order: by time, ties in the order of setting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Timestamp,
    sequence: u64,
    slot: u32,
}

/// The timers that one key has set, each time once.
///
/// Most keys have at most one, which needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(Inner);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Inner {
    #[default]
    None,
    One(Timestamp, u64),
    /// Sorted by time. A deque: the earliest fires first, the latest is set last.
    Many(VecDeque<(Timestamp, u64)>),
}

impl Times {
    /// No timers.
    #[must_use]
    pub const fn new() -> Self {
        Self(Inner::None)
    }

    /// Number of timers.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::None => 0,
            Inner::One(..) => 1,
            Inner::Many(times) => times.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Inner::None)
    }

    /// The times, in order.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> {
        let (one, many) = match &self.0 {
            Inner::None => (None, None),
            Inner::One(at, _) => (Some(*at), None),
            Inner::Many(times) => (None, Some(times)),
        };
        one.into_iter().chain(many.into_iter().flatten().map(|&(at, _)| at))
    }

    /// Adds a time unless it is there.
    fn insert(&mut self, at: Timestamp, sequence: u64) -> bool {
        match &mut self.0 {
            Inner::None => self.0 = Inner::One(at, sequence),
            Inner::One(first, _) if *first == at => return false,
            Inner::One(first, known) => {
                let mut times = VecDeque::with_capacity(4);
                times.push_back((*first, *known));
                let index = usize::from(*first < at);
                times.insert(index, (at, sequence));
                self.0 = Inner::Many(times);
            }
            Inner::Many(times) => match times.back() {
                // Time goes on, so most timers are the latest ones of their key.
                Some(&(last, _)) if last < at => times.push_back((at, sequence)),
                _ => match times.binary_search_by_key(&at, |&(at, _)| at) {
                    Ok(_) => return false,
                    Err(index) => times.insert(index, (at, sequence)),
                },
            },
        }
        true
    }

    /// Removes the timer at `at`; with a `sequence`, only if it is that very one.
    #[inline]
    fn remove(&mut self, at: Timestamp, sequence: Option<u64>) -> bool {
        let is_it = |known: u64| sequence.is_none_or(|sequence| sequence == known);
        match &mut self.0 {
            Inner::None => false,
            Inner::One(first, known) => {
                let found = *first == at && is_it(*known);
                if found {
                    self.0 = Inner::None;
                }
                found
            }
            Inner::Many(times) => {
                let Ok(index) = times.binary_search_by_key(&at, |&(at, _)| at) else {
                    return false;
                };
                let found = is_it(times[index].1);
                if found {
                    times.remove(index);
                    if times.is_empty() {
                        self.0 = Inner::None;
                    }
                }
                found
            }
        }
    }

    fn contains(&self, at: Timestamp, sequence: u64) -> bool {
        match &self.0 {
            Inner::None => false,
            Inner::One(first, known) => (*first, *known) == (at, sequence),
            Inner::Many(times) => times.binary_search(&(at, sequence)).is_ok(),
        }
    }
}

/// The timers of all keys, in the order in which they fire: by time, and those of the same time
/// in the order in which they were set.
///
/// A binary heap with lazy deletion. What a key has set stands in its [`Times`], which the caller
/// keeps beside the key's state; an entry of the heap that is not there any more is dead. Dead
/// entries are swept as soon as they are two of three, so that a timer that is moved again
/// and again does not pile up.
///
/// # Examples
///
/// ```
/// use side_output::Timestamp;
/// use side_output::state::{Timers, Times};
///
/// let at = Timestamp::from_millis;
/// let (mut timers, mut times) = (Timers::new(), Times::new());
/// timers.set(0, &mut times, at(7));
/// timers.set(0, &mut times, at(3));
/// assert!(!timers.set(0, &mut times, at(3)));
/// timers.delete(&mut times, at(7));
/// assert_eq!(timers.peek(at(5)), Some((0, at(3))));
/// assert!(timers.pop(&mut times));
/// assert!(timers.is_empty() && times.is_empty());
/// ```
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    live: usize,
}

/// Dead entries that are not worth a sweep.
const SWEEP: usize = 1024;

impl Timers {
    /// No timers.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0, live: 0 }
    }

    /// Number of timers that are set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether none is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Sets a timer of the key with this slot and these times; `false` if it was set already.
    #[inline]
    pub fn set(&mut self, slot: u32, times: &mut Times, at: Timestamp) -> bool {
        let sequence = self.sequence;
        let new = times.insert(at, sequence);
        if new {
            self.sequence += 1;
            self.live += 1;
            self.heap.push(Reverse(Entry { at, sequence, slot }));
        }
        new
    }

    /// Deletes a timer of the key with these times; `false` if there was none.
    #[inline]
    pub fn delete(&mut self, times: &mut Times, at: Timestamp) -> bool {
        let found = times.remove(at, None);
        self.live -= usize::from(found);
        if self.live == 0 {
            // What is left is dead: no need to look at each.
            self.heap.clear();
        }
        found
    }

    /// Deletes all timers of a key.
    pub fn clear(&mut self, times: &mut Times) {
        self.live -= times.len();
        *times = Times::new();
        if self.live == 0 {
            self.heap.clear();
        }
    }

    /// Slot and time of the first entry at or before `until`, dead or not.
    #[inline]
    #[must_use]
    pub fn peek(&self, until: Timestamp) -> Option<(u32, Timestamp)> {
        let Reverse(entry) = self.heap.peek()?;
        (entry.at <= until).then_some((entry.slot, entry.at))
    }

    /// Time of the first entry, dead or not.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes the first entry; `times` are those of its slot. True if the timer was set.
    ///
    /// After this the timer is not set any more: its callback may set it again.
    #[inline]
    pub fn pop(&mut self, times: &mut Times) -> bool {
        let Some(Reverse(entry)) = self.heap.pop() else { return false };
        let live = times.remove(entry.at, Some(entry.sequence));
        self.live -= usize::from(live);
        live
    }

    /// Whether the first entry is a timer that is set; `times` are those of its slot.
    #[must_use]
    pub fn is_first_live(&self, times: &Times) -> bool {
        self.heap.peek().is_some_and(|Reverse(entry)| times.contains(entry.at, entry.sequence))
    }

    /// Whether it is time for a [`sweep`](Self::sweep).
    #[inline]
    #[must_use]
    pub fn wants_sweep(&self) -> bool {
        self.heap.len() > 3 * self.live + SWEEP
    }

    /// Removes the entries of deleted timers; `times` gives those of a slot.
    pub fn sweep<'a>(&mut self, mut times: impl FnMut(u32) -> Option<&'a Times>) {
        self.heap.retain(|Reverse(entry)| {
            times(entry.slot).is_some_and(|times| times.contains(entry.at, entry.sequence))
        });
        self.heap.shrink_to(2 * self.heap.len() + SWEEP);
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("live", &self.live)
            .field("queued", &self.heap.len())
            .finish_non_exhaustive()
    }
}
