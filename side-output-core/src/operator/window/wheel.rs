use crate::time::Timestamp;
use std::cmp::Reverse;
use std::mem;

/// Bits of a time that one level tells apart.
const BITS: u32 = 6;

/// Buckets of a level.
const BUCKETS: u32 = 1 << BITS;

const LOW_BITS: u64 = (1 << BITS) - 1;

const LEVELS: u32 = u64::BITS.div_ceil(BITS);

/// Largest bucket, in timers, whose memory is kept when it is empty.
const RECYCLED: usize = 1 << 10;

/// A timer of the session in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) at: Timestamp,
    /// The session's, which tells apart those that were kept in a slot one after the other.
    pub(super) age: u64,
    pub(super) slot: u32,
}

/// What there is to a timer whose time has come.
pub(super) enum Ripe {
    Now,
    Later(Timestamp),
    Never,
}

/// Timers in the order in which they are due: by time, and by age where that is the same.
///
/// Time has gone up to `now`, and nothing is set before that. A timer stands in the level of the
/// highest group of bits in which its time differs from `now`, in the bucket of that group: what
/// stands in a lower level is due sooner. When the time of a bucket comes, its timers move to the
/// levels below. So a timer is moved a few times and never compared but with others of the same
/// millisecond, which a heap does at each of its levels.
pub(super) struct Wheel {
    buckets: Box<[Vec<Timer>]>,
    /// For each level, which of its buckets hold something.
    filled: [u64; LEVELS as usize],
    now: u64,
    /// The timers of the time `now`, the next one last.
    ripe: Vec<Timer>,
    len: usize,
}

/// The time as a number without a sign.
#[inline]
const fn ticks(at: Timestamp) -> u64 {
    at.as_millis().cast_unsigned() ^ (1 << (u64::BITS - 1))
}

/// Where a bucket stands.
#[inline]
const fn index(level: u32, bucket: u32) -> usize {
    (level * BUCKETS + bucket) as usize
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            buckets: vec![Vec::new(); (LEVELS * BUCKETS) as usize].into_boxed_slice(),
            filled: [0; LEVELS as usize],
            now: 0,
            ripe: Vec::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Sets a timer, later than any that was taken out.
    #[inline]
    pub(super) fn push(&mut self, timer: Timer) {
        self.len += 1;
        self.place(timer);
    }

    #[inline]
    fn place(&mut self, timer: Timer) {
        let ticks = ticks(timer.at);
        debug_assert!(ticks >= self.now, "a timer is set in the past");
        let level = (ticks ^ self.now).checked_ilog2().map_or(0, |bit| bit / BITS);
        let bucket = ((ticks >> (level * BITS)) & LOW_BITS) as u32;
        self.filled[level as usize] |= 1 << bucket;
        self.buckets[index(level, bucket)].push(timer);
    }

    /// The next of the timers that are ripe.
    #[inline]
    pub(super) fn first(&self) -> Option<Timer> {
        self.ripe.last().copied()
    }

    /// Takes out what [`first`](Self::first) said.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.len -= usize::from(self.ripe.pop().is_some());
    }

    /// Goes on to the next timers if there are any by `until`, and asks which of them are ripe.
    /// Nothing may be left of those before.
    pub(super) fn ripen(
        &mut self,
        until: Timestamp,
        mut is_ripe: impl FnMut(Timer) -> Ripe,
    ) -> bool {
        let until = ticks(until);
        let mut levels = (0..LEVELS).zip(&mut self.filled);
        let Some((level, filled)) = levels.find(|(_, filled)| **filled != 0) else {
            self.now = self.now.max(until);
            return false;
        };
        let bucket = filled.trailing_zeros();
        let shift = level * BITS;
        let above = self.now.checked_shr(shift + BITS).map_or(0, |high| high << (shift + BITS));
        let begins = above | u64::from(bucket) << shift;
        if begins > until {
            self.now = self.now.max(until);
            return false;
        }
        self.now = begins;
        *filled &= *filled - 1;
        let index = index(level, bucket);
        let mut timers = mem::take(&mut self.buckets[index]);
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
            timers.sort_unstable_by_key(|timer| Reverse(timer.age));
            mem::swap(&mut self.ripe, &mut timers);
        }
        if timers.capacity() <= RECYCLED {
            self.buckets[index] = timers;
        }
        true
    }

    /// Forgets the timers that are not `live`.
    pub(super) fn retain(&mut self, mut live: impl FnMut(&Timer) -> bool) {
        self.ripe.retain(&mut live);
        self.len = self.ripe.len();
        for (filled, buckets) in
            self.filled.iter_mut().zip(self.buckets.chunks_mut(BUCKETS as usize))
        {
            for (bucket, timers) in buckets.iter_mut().enumerate() {
                timers.retain(&mut live);
                self.len += timers.len();
                *filled &= !(u64::from(timers.is_empty()) << bucket);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All that is due by `until`, in order.
    fn take(wheel: &mut Wheel, until: i64) -> Vec<(i64, u64)> {
        let until = Timestamp::from_millis(until);
        let mut taken = Vec::new();
        while wheel.first().is_some() || wheel.ripen(until, |_| Ripe::Now) {
            taken.extend(wheel.first().map(|timer| (timer.at.as_millis(), timer.age)));
            wheel.pop();
        }
        taken
    }

    #[test]
    fn timers_come_in_the_order_of_their_times_and_ages() {
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 24
        };
        let (mut wheel, mut expected) = (Wheel::new(), BTreeSet::new());
        let mut now = i64::MIN;
        let rounds = if cfg!(miri) { 500 } else { 20_000 };
        for round in 0..rounds {
            // Any distance, near ones as often as far ones.
            let distance = ((next() << 24) | (next() % 64)).cast_signed() >> (next() % 64);
            let at = now.saturating_add(1).saturating_add(distance.saturating_abs());
            // Falling, so that they do not come in order.
            let age = rounds - round;
            wheel.push(Timer { at: Timestamp::from_millis(at), age, slot: 0 });
            expected.insert((at, age));
            if round % 1000 == 400 {
                wheel.retain(|timer| timer.age % 3 > 0);
                expected.retain(|(_, age)| *age % 3 > 0);
            }
            if next() % 8 == 0 {
                now = now.saturating_add(1 << (next() % 40));
                let later = expected.split_off(&(now, u64::MAX));
                let due: Vec<_> = mem::replace(&mut expected, later).into_iter().collect();
                assert_eq!(take(&mut wheel, now), due);
            }
            assert_eq!(wheel.len(), expected.len());
        }
        let due: Vec<_> = expected.into_iter().collect();
        assert_eq!(take(&mut wheel, i64::MAX), due);
    }
}
