use super::{Next, Ripe, Timer, Wheel};
use crate::time::Timestamp;
use std::collections::VecDeque;
use std::fmt;

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
        self.entries().map(|(at, _)| at)
    }

    /// The times with what their order was at setting, of all timers.
    pub fn entries(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        let (one, many) = match &self.0 {
            Inner::None => (None, None),
            Inner::One(at, sequence) => (Some((*at, *sequence)), None),
            Inner::Many(times) => (None, Some(times)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
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

    /// Whether this very timer is set.
    #[must_use]
    pub fn has(&self, timer: Timer) -> bool {
        let entry = (timer.at, timer.order);
        match &self.0 {
            Inner::None => false,
            Inner::One(first, known) => (*first, *known) == entry,
            Inner::Many(all) => all.binary_search(&entry).is_ok(),
        }
    }
}

/// The timers of all keys, in the order in which they fire: by time, and those of the same time
/// in the order in which they were set.
///
/// What a key has set stands in its [`Times`], which the caller keeps beside the key's state; an
/// entry of the queue that is not there any more is dead. Dead entries are swept as soon as they are
/// two of three, so that a timer that is moved again and again does not pile up.
///
/// # Examples
///
/// ```
/// use side_output::Timestamp;
/// use side_output::state::{Next, Timers, Times};
///
/// let at = Timestamp::from_millis;
/// let (mut timers, mut times) = (Timers::new(), Times::new());
/// timers.set(0, &mut times, at(7));
/// timers.set(0, &mut times, at(3));
/// assert!(!timers.set(0, &mut times, at(3)));
/// timers.delete(&mut times, at(7));
/// let Next::Due(timer) = timers.next(at(5), &mut 1000) else { panic!("one is due") };
/// assert_eq!((timer.slot, timer.at), (0, at(3)));
/// assert!(timers.pop(timer, Some(&mut times)));
/// assert!(timers.is_empty() && times.is_empty());
/// ```
#[derive(Default)]
pub struct Timers {
    wheel: Wheel,
    sequence: u64,
    live: usize,
    /// How many are alive of what comes after all timers of its time.
    last: usize,
}

/// Set in the order of what comes after all timers of its time.
const LAST: u64 = 1 << (u64::BITS - 1);

impl Timers {
    /// No timers.
    #[must_use]
    pub const fn new() -> Self {
        Self { wheel: Wheel::new(), sequence: 0, live: 0, last: 0 }
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
        let new = self.add(slot, times, at, self.sequence);
        self.sequence += u64::from(new);
        new
    }

    /// The same, with the place in the order that the timer had when it was saved.
    pub fn restore(&mut self, slot: u32, times: &mut Times, at: Timestamp, order: u64) -> bool {
        self.sequence = self.sequence.max(order + 1);
        self.add(slot, times, at, order)
    }

    #[inline(always)]
    fn add(&mut self, slot: u32, times: &mut Times, at: Timestamp, order: u64) -> bool {
        let new = times.insert(at, order);
        if new {
            self.live += 1;
            self.wheel.push(Timer { at, order, slot });
        }
        new
    }

    /// Sets what comes after all timers at `at` and belongs to no times; the result is its name.
    pub(super) fn set_last(&mut self, slot: u32, at: Timestamp) -> u64 {
        let order = LAST | self.sequence;
        self.sequence += 1;
        self.last += 1;
        self.wheel.push(Timer { at, order, slot });
        order
    }

    /// Sets it again after it was taken out.
    pub(super) fn put_off(&mut self, timer: Timer, at: Timestamp) {
        self.wheel.push(Timer { at, ..timer });
    }

    /// What it belongs to is gone.
    pub(super) const fn delete_last(&mut self) {
        self.last -= 1;
    }

    /// Deletes a timer of the key with these times; `false` if there was none.
    #[inline]
    pub fn delete(&mut self, times: &mut Times, at: Timestamp) -> bool {
        let found = times.remove(at, None);
        self.live -= usize::from(found);
        found
    }

    /// Deletes all timers of a key.
    pub fn clear(&mut self, times: &mut Times) {
        self.live -= times.len();
        *times = Times::new();
    }

    /// The first entry at or before `until`, dead or not; see [`Wheel::next`].
    #[inline]
    pub fn next(&mut self, until: Timestamp, work: &mut usize) -> Next {
        self.wheel.next(until, work, |_| Ripe::Now)
    }

    /// Removes the first entry, which is `timer`; `own` are the times of its slot. True if the timer
    /// was set.
    ///
    /// After this the timer is not set any more: its callback may set it again.
    #[inline]
    pub fn pop(&mut self, timer: Timer, own: Option<&mut Times>) -> bool {
        self.wheel.pop();
        let live = own.is_some_and(|own| own.remove(timer.at, Some(timer.order)));
        self.live -= usize::from(live);
        live
    }

    /// Whether this is what comes after all timers of its time.
    #[inline]
    pub(super) const fn is_last(timer: Timer) -> bool {
        timer.order >= LAST
    }

    /// No entry is before this time.
    #[must_use]
    pub fn soonest(&self) -> Option<Timestamp> {
        self.wheel.soonest()
    }

    /// Forgets some of the dead entries; to be called whenever timers were deleted. `is_live` says
    /// whether an entry is not dead, by [`Times::has`].
    #[inline]
    pub fn sweep(&mut self, is_live: impl FnMut(Timer) -> bool) {
        self.wheel.sweep(self.live + self.last, is_live);
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("live", &self.live)
            .field("queued", &self.wheel.len())
            .finish_non_exhaustive()
    }
}
