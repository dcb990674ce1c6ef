use super::segments::Segments;
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::{fmt, mem};

/// Bits of a time that one level tells apart.
const BITS: u32 = 7;

/// Buckets of a level.
const BUCKETS: u32 = 1 << BITS;

const LOW_BITS: u64 = (1 << BITS) - 1;

const LEVELS: u32 = u64::BITS.div_ceil(BITS);

/// Largest bucket, in timers, whose memory is kept when it is empty.
const RECYCLED: usize = 1 << 10;

/// Dead timers that are not worth a sweep.
const SWEEP: usize = 1 << 10;

/// How many timers a step of a sweep looks at.
const STEP: usize = 16;

/// So many timers are moved in one go.
const FEW: usize = 256;

/// A timer of what is kept in a slot. The order is the one in which timers are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When it is due.
    pub at: Timestamp,
    /// Which one comes first at the same time.
    pub order: u64,
    /// Where what it belongs to is kept.
    pub slot: u32,
}

/// What there is to a timer whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ripe {
    /// It is due.
    Now,
    /// It is due at another time.
    Later(Timestamp),
    /// It was deleted.
    Never,
}

/// What a [`Wheel`] has by some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one is due, and stays until it is [taken](Wheel::pop).
    Due(Timer),
    /// Nothing.
    Nothing,
    /// It has done as much as it was told to: ask again.
    Busy,
}

/// Timers in the order in which they are due.
///
/// Time has gone up to `now`, and what stands in the buckets is due after that. A timer stands in
/// the level of the highest group of bits in which its time differs from `now`, in the bucket of
/// that group: what stands in a lower level is due sooner. When the time of a bucket comes, its
/// timers move to the levels below. So a timer is moved a few times and never compared but with
/// others of the same millisecond, which a heap does at each of its levels.
///
/// Timers are not deleted: what they belong to tells which are alive, when their time comes
/// or in a [sweep](Self::sweep).
///
/// # Examples
///
/// ```
/// use side_output::Timestamp;
/// use side_output::state::{Next, Ripe, Timer, Wheel};
///
/// let mut wheel = Wheel::new();
/// for (order, millis) in [(0, 70), (1, 5), (2, 5)] {
///     wheel.push(Timer { at: Timestamp::from_millis(millis), order, slot: 0 });
/// }
/// let mut orders = Vec::new();
/// while let Next::Due(timer) =
///     wheel.next(Timestamp::from_millis(69), &mut 1000, |_| Ripe::Now)
/// {
///     wheel.pop();
///     orders.push(timer.order);
/// }
/// assert_eq!((orders, wheel.len()), (vec![1, 2], 1));
/// ```
pub struct Wheel {
    /// Those of all levels, once there is a timer.
    buckets: Vec<Segments<Timer>>,
    /// For each level, which of its buckets hold something.
    filled: [u128; LEVELS as usize],
    now: u64,
    /// The timers of the time `now`, the next one last.
    ripe: Vec<Timer>,
    /// Timers up to the time `now`: those that were set when it had come, and where they are many.
    heap: BinaryHeap<Reverse<Timer>>,
    /// What a bucket held, until all of it has moved.
    moving: Segments<Timer>,
    len: usize,
    /// What is to be swept next: a bucket, and a place in it.
    sweeping: Option<(usize, usize)>,
}

/// The time as a number without a sign.
#[inline]
const fn ticks(at: Timestamp) -> u64 {
    at.as_millis().cast_unsigned() ^ (1 << (u64::BITS - 1))
}

/// What they say.
#[inline]
const fn time(ticks: u64) -> Timestamp {
    Timestamp::from_millis((ticks ^ (1 << (u64::BITS - 1))).cast_signed())
}

/// Where a bucket stands.
#[inline]
const fn index(level: u32, bucket: u32) -> usize {
    (level * BUCKETS + bucket) as usize
}

impl Wheel {
    /// No timers.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buckets: Vec::new(),
            filled: [0; LEVELS as usize],
            now: 0,
            ripe: Vec::new(),
            heap: BinaryHeap::new(),
            moving: Segments::new(),
            len: 0,
            sweeping: None,
        }
    }

    /// Number of timers, dead ones included.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a timer.
    #[inline]
    pub fn push(&mut self, timer: Timer) {
        self.len += 1;
        self.place(timer);
    }

    #[inline(always)]
    fn place(&mut self, timer: Timer) {
        let ticks = ticks(timer.at);
        if ticks <= self.now {
            self.heap.push(Reverse(timer));
            return;
        }
        let level = (ticks ^ self.now).ilog2() / BITS;
        let bucket = ((ticks >> (level * BITS)) & LOW_BITS) as u32;
        self.filled[level as usize] |= 1 << bucket;
        if let Some(bucket) = self.buckets.get_mut(index(level, bucket)) {
            bucket.push(timer);
        } else {
            self.make_buckets(index(level, bucket), timer);
        }
    }

    /// With the first timer.
    #[cold]
    fn make_buckets(&mut self, index: usize, timer: Timer) {
        self.buckets.resize_with((LEVELS * BUCKETS) as usize, Segments::new);
        self.buckets[index].push(timer);
    }

    /// The next timer that is due by `until`; takes one from `work` for each timer that it moves,
    /// and for each bucket.
    ///
    /// As a timer's time comes, `is_ripe` is asked about it, as a filter: it may change its mind
    /// before the timer is the next one.
    #[inline]
    pub fn next(
        &mut self,
        until: Timestamp,
        work: &mut usize,
        mut is_ripe: impl FnMut(Timer) -> Ripe,
    ) -> Next {
        loop {
            if !self.moving.is_empty() {
                if *work == 0 {
                    return Next::Busy;
                }
                self.advance(work, &mut is_ripe);
            } else if let Some(timer) = self.first() {
                return if timer.at <= until { Next::Due(timer) } else { Next::Nothing };
            } else if *work == 0 {
                return Next::Busy;
            } else if !self.turn(ticks(until), work, &mut is_ripe) {
                return Next::Nothing;
            }
        }
    }

    #[inline]
    fn first(&self) -> Option<Timer> {
        let ripe = self.ripe.last().copied();
        if self.heap.is_empty() {
            return ripe;
        }
        ripe.into_iter().chain(self.heap.peek().map(|Reverse(timer)| *timer)).min()
    }

    /// Takes the timer out that [`next`](Self::next) said is due.
    #[inline]
    pub fn pop(&mut self) {
        if self.heap.is_empty() {
            self.len -= usize::from(self.ripe.pop().is_some());
        } else {
            self.pop_first();
        }
    }

    #[inline(never)]
    fn pop_first(&mut self) {
        self.len -= 1;
        if self.first() == self.ripe.last().copied() {
            self.ripe.pop();
            return;
        }
        self.heap.pop();
        if self.heap.is_empty() && self.heap.capacity() > RECYCLED {
            self.heap = BinaryHeap::new();
        }
    }

    /// No timer is due before this time, and where there are few, one is due then.
    #[must_use]
    pub fn soonest(&self) -> Option<Timestamp> {
        let ripe = self.first().map(|timer| timer.at);
        if ripe.is_some() || !self.moving.is_empty() {
            return ripe.or(Some(time(self.now)));
        }
        let (level, begins) = self.first_bucket()?;
        let bucket = (begins >> (level * BITS) & LOW_BITS) as u32;
        let timers = &self.buckets[index(level, bucket)];
        let first = timers.iter().map(|timer| timer.at).take(FEW).min();
        first.filter(|_| timers.len() <= FEW).or(Some(time(begins)))
    }

    /// The level of the first bucket with timers, and when it begins.
    #[inline]
    fn first_bucket(&self) -> Option<(u32, u64)> {
        let (level, filled) = (0..LEVELS).zip(self.filled).find(|(_, filled)| *filled != 0)?;
        let shift = level * BITS;
        let above = self.now.checked_shr(shift + BITS).map_or(0, |high| high << (shift + BITS));
        Some((level, above | u64::from(filled.trailing_zeros()) << shift))
    }

    /// Goes on to the next bucket with timers if it begins by `until`.
    #[inline]
    fn turn(
        &mut self,
        until: u64,
        work: &mut usize,
        is_ripe: &mut impl FnMut(Timer) -> Ripe,
    ) -> bool {
        let first = self.first_bucket().filter(|(_, begins)| *begins <= until);
        let Some((level, begins)) = first else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = begins;
        let filled = &mut self.filled[level as usize];
        let index = index(level, filled.trailing_zeros());
        *filled &= *filled - 1;
        let bucket = &mut self.buckets[index];
        let count = bucket.len();
        if count > FEW {
            mem::swap(bucket, &mut self.moving);
            if level == 0 {
                // At once, and not some at a time with all of them moved each time.
                self.heap.reserve(count);
            }
            return true;
        }
        *work = work.saturating_sub(1 + count);
        let mut timers = bucket.take_first();
        if level > 0 {
            timers.drain(..).for_each(|timer| self.place(timer));
        } else {
            timers.retain(|timer| match is_ripe(*timer) {
                Ripe::Now => true,
                Ripe::Later(at) => {
                    self.place(Timer { at, ..*timer });
                    false
                }
                Ripe::Never => {
                    self.len -= 1;
                    false
                }
            });
            timers.sort_unstable_by_key(|timer| Reverse(timer.order));
            mem::swap(&mut self.ripe, &mut timers);
        }
        self.buckets[index].give_first(timers);
        true
    }

    /// Moves some timers.
    #[inline(never)]
    fn advance(&mut self, work: &mut usize, is_ripe: &mut impl FnMut(Timer) -> Ripe) {
        let mut moving = mem::take(&mut self.moving);
        for timer in moving.pop_run(*work) {
            *work -= 1;
            self.settle(timer, is_ripe);
        }
        if !moving.is_empty() || moving.capacity() <= RECYCLED {
            self.moving = moving;
        }
    }

    #[inline]
    fn settle(&mut self, timer: Timer, is_ripe: &mut impl FnMut(Timer) -> Ripe) {
        if ticks(timer.at) > self.now {
            self.place(timer);
            return;
        }
        match is_ripe(timer) {
            Ripe::Now => self.heap.push(Reverse(timer)),
            Ripe::Later(at) => self.place(Timer { at, ..timer }),
            Ripe::Never => self.len -= 1,
        }
    }

    /// Forgets some of the dead timers, if they are more than two of three; for each time that a
    /// timer dies. `live` is how many are not dead.
    #[inline]
    pub fn sweep(&mut self, live: usize, is_live: impl FnMut(Timer) -> bool) {
        // Those that are ripe are forgotten soon anyway.
        if self.len - self.ripe.len() - self.heap.len() > 3 * live + SWEEP
            || self.sweeping.is_some()
        {
            self.sweep_some(is_live);
        }
    }

    #[inline(never)]
    fn sweep_some(&mut self, mut is_live: impl FnMut(Timer) -> bool) {
        let (from, place) = self.sweeping.unwrap_or_default();
        let rest = (from..).zip(self.buckets.iter_mut().skip(from));
        let Some((index, bucket)) = rest.into_iter().find(|(_, bucket)| !bucket.is_empty()) else {
            self.sweeping = None;
            return;
        };
        let mut place = if index == from { place } else { 0 };
        for _ in 0..STEP {
            let Some(timer) = bucket.get(place) else { break };
            if is_live(*timer) {
                place += 1;
            } else {
                bucket.swap_remove(place);
                self.len -= 1;
            }
        }
        if bucket.is_empty() {
            self.filled[index / BUCKETS as usize] &= !(1 << (index % BUCKETS as usize));
        }
        self.sweeping = Some(if place < bucket.len() { (index, place) } else { (index + 1, 0) });
    }
}

impl Default for Wheel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const fn timer(at: i64, order: u64) -> Timer {
        Timer { at: Timestamp::from_millis(at), order, slot: 0 }
    }

    /// All that is due by `until`, in order, in portions of `work`.
    fn take(wheel: &mut Wheel, until: i64, work: usize) -> Vec<(i64, u64)> {
        let mut taken = Vec::new();
        loop {
            let mut left = work;
            match wheel.next(Timestamp::from_millis(until), &mut left, |_| Ripe::Now) {
                Next::Due(timer) => {
                    wheel.pop();
                    taken.push((timer.at.as_millis(), timer.order));
                }
                Next::Nothing => return taken,
                Next::Busy => assert_eq!(left, 0),
            }
        }
    }

    #[test]
    fn timers_come_in_the_order_of_their_times_and_then_of_setting() {
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 24
        };
        let (mut wheel, mut expected) = (Wheel::new(), BTreeSet::new());
        let mut now = i64::MIN;
        let rounds = if cfg!(miri) { 500 } else { 20_000 };
        for round in 0..rounds {
            // Any distance, near ones as often as far ones, and some that are over already.
            let distance = ((next() << 24) | (next() % 64)).cast_signed() >> (next() % 64);
            let distance =
                if next() % 8 == 0 { -(distance & 63) } else { distance.saturating_abs() };
            let at = now.saturating_add(1).saturating_add(distance);
            // Falling, so that they do not come in order.
            let order = rounds - round;
            wheel.push(timer(at, order));
            expected.insert((at, order));
            if next() % 8 == 0 {
                now = now.saturating_add(1 << (next() % 40));
                let later = expected.split_off(&(now, u64::MAX));
                let due: Vec<_> = mem::replace(&mut expected, later).into_iter().collect();
                assert_eq!(take(&mut wheel, now, if round % 3 == 0 { 7 } else { 100 }), due);
            }
        }
        let due: Vec<_> = expected.into_iter().collect();
        assert_eq!(take(&mut wheel, i64::MAX, 1000), due);
        assert!(wheel.is_empty());
    }

    #[test]
    fn fault_36_many_timers_of_one_time_move_some_at_a_time() {
        let many = if cfg!(miri) { 1000 } else { 100_000 };
        let mut wheel = Wheel::new();
        (0..many).for_each(|order| wheel.push(timer(1 << 20, many - order)));
        let mut moves = 0;
        loop {
            let mut work = 100;
            match wheel.next(Timestamp::MAX, &mut work, |_| Ripe::Now) {
                Next::Busy => moves += 1,
                Next::Due(timer) => break assert_eq!(timer.order, 1),
                Next::Nothing => panic!("there are timers"),
            }
        }
        // Once for each level where the time has bits, up to the highest.
        assert!(moves >= many / 100 && moves <= 4 * many / 100, "{moves} moves");
    }

    #[test]
    #[cfg_attr(miri, ignore = "that many timers take minutes there, and nothing else is tried")]
    fn a_timer_that_is_moved_again_and_again_does_not_pile_up() {
        let (mut wheel, mut expected) = (Wheel::new(), Vec::new());
        for order in 0..100_000_u64 {
            let at = 1 + (order.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 30).cast_signed();
            wheel.push(timer(at, order));
            if order % 1000 == 0 {
                expected.push((at, order));
            }
            let is_live = |timer: Timer| timer.order.is_multiple_of(1000) || timer.order == order;
            wheel.sweep(expected.len() + 1, is_live);
            assert!(wheel.len() < 4 * SWEEP, "{} timers", wheel.len());
        }
        expected.sort_unstable();
        let taken = take(&mut wheel, i64::MAX, 1000);
        assert!(taken.into_iter().filter(|(_, order)| order % 1000 == 0).eq(expected));
    }
}
