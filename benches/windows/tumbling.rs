//! Workload B: sums in windows of event time.

use crate::common::{Table, again, splitmix};
use futures::executor::block_on;
use futures::{StreamExt as _, join, stream};
use rustc_hash::FxHashMap;
use side_output::prelude::*;
use side_output::window::TriggerOf;
use side_output::{
    Aggregate, Assigner, Element, Late, Session, Sliding, Tumbling, Watermarks, WindowResult,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) key: u64,
    pub(crate) value: i64,
    pub(crate) time: i64,
}

/// Of windows, where nothing else is said.
pub(crate) const SIZE: i64 = 1000;
const LATENESS: i64 = 1000;
const OUT_OF_ORDER: i64 = 100;
const PER_MILLISECOND: usize = 100;
/// Between sessions.
const GAP: i64 = 100;

const RANDOM: usize = 1 << 20;

/// Readings in the order of time but for a jitter, 3 % of them late beyond any lateness.
#[derive(Clone)]
pub(crate) struct Readings {
    random: &'static [u64],
    next: usize,
    len: usize,
    keys: u64,
}

pub(crate) fn readings(len: usize, keys: u64) -> Readings {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    let random = TABLE.get_or_init(|| {
        let mut state = 7;
        (0..RANDOM).map(|_| splitmix(&mut state)).collect()
    });
    Readings { random, next: 0, len, keys }
}

impl Iterator for Readings {
    type Item = Reading;

    #[inline]
    fn next(&mut self) -> Option<Reading> {
        if self.next == self.len {
            return None;
        }
        let random = again(self.random[self.next & (RANDOM - 1)], self.next / RANDOM);
        let now = (self.next / PER_MILLISECOND) as i64;
        let is_late = now > 7000 && (random >> 40) % 100 < 3;
        let behind = if is_late {
            5000 + (random >> 20 & 511) as i64
        } else {
            (random >> 20) as i64 % OUT_OF_ORDER
        };
        self.next += 1;
        // Multiplied, so that the low bits are as random as the high ones.
        let key = ((random & 0xFFFF_FFFF) * self.keys) >> 32;
        Some(Reading { key, value: (random >> 50) as i64, time: (now - behind).max(0) })
    }
}

/// Records and sum of the results, and of what was late.
type Out = [(u64, i64); 2];

#[derive(Default)]
struct Sums(Out);

impl Sums {
    #[inline]
    fn result(&mut self, sum: i64) {
        self.0[0].0 += 1;
        self.0[0].1 = self.0[0].1.wrapping_add(black_box(sum));
    }

    #[inline]
    fn late(&mut self, reading: Reading) {
        self.0[1].0 += 1;
        self.0[1].1 = self.0[1].1.wrapping_add(black_box(reading.value));
    }
}

/// What is written by hand: an ordered map of windows, each with a hash map of sums.
struct ByHand<H> {
    windows: BTreeMap<i64, ByHandWindow<H>>,
    watermark: i64,
    size: i64,
    slide: i64,
    sums: Sums,
}

#[derive(Default)]
struct ByHandWindow<H> {
    sums: HashMap<u64, i64, H>,
    fired: bool,
}

impl<H: BuildHasher + Default> ByHand<H> {
    fn new(size: i64, slide: i64) -> Self {
        let (windows, sums) = (BTreeMap::new(), Sums::default());
        Self { windows, watermark: i64::MIN, size, slide, sums }
    }

    #[inline]
    fn on_reading(&mut self, reading: Reading) {
        let last = reading.time - reading.time.rem_euclid(self.slide);
        let mut start = last;
        let mut is_late = true;
        while start > reading.time - self.size {
            let end = start + self.size - 1;
            start -= self.slide;
            if end.saturating_add(LATENESS) <= self.watermark {
                continue;
            }
            is_late = false;
            let window = self.windows.entry(end).or_default();
            let sum = window.sums.entry(reading.key).or_insert(0);
            *sum += reading.value;
            if end <= self.watermark {
                window.fired = true;
                self.sums.result(*sum);
            }
        }
        if is_late {
            self.sums.late(reading);
        }
        let watermark = reading.time - OUT_OF_ORDER - 1;
        if watermark > self.watermark {
            self.watermark = watermark;
            self.advance();
        }
    }

    fn advance(&mut self) {
        while let Some(first) = self.windows.first_entry() {
            if first.key().saturating_add(LATENESS) > self.watermark {
                break;
            }
            let window = first.remove();
            if !window.fired {
                window.sums.into_values().for_each(|sum| self.sums.result(sum));
            }
        }
        for (_, window) in self.windows.range_mut(..=self.watermark) {
            if !window.fired {
                window.fired = true;
                window.sums.values().for_each(|sum| self.sums.result(*sum));
            }
        }
    }
}

async fn by_hand<H: BuildHasher + Default>(n: usize, keys: u64, size: i64, slide: i64) -> Out {
    let mut windows = ByHand::<H>::new(size, slide);
    let mut readings = stream::iter(readings(n, keys));
    while let Some(reading) = readings.next().await {
        windows.on_reading(reading);
    }
    windows.watermark = i64::MAX;
    windows.advance();
    windows.sums.0
}

/// `IN_ORDER` says that the order of readings matters, so that overlapping windows share nothing.
#[derive(Clone, Copy)]
struct Sum<const IN_ORDER: bool>;

impl<const IN_ORDER: bool> Aggregate for Sum<IN_ORDER> {
    type In = Reading;
    type Accumulator = i64;
    type Output = i64;

    const IN_ORDER: bool = IN_ORDER;

    #[inline]
    fn create(&mut self) -> i64 {
        0
    }

    #[inline]
    fn add(&mut self, sum: &mut i64, reading: &Reading) {
        *sum += reading.value;
    }

    #[inline]
    fn merge(&mut self, sum: &mut i64, other: i64) {
        *sum += other;
    }

    #[inline]
    fn result(&mut self, sum: &i64) -> i64 {
        *sum
    }
}

async fn windows<A: Assigner>(n: usize, keys: u64, assigner: A) -> Out
where
    A::Trigger: TriggerOf<Reading, A::Merging>,
{
    sums(n, keys, assigner, Sum::<false>).await
}

async fn sums<A: Assigner, const IN_ORDER: bool>(
    n: usize,
    keys: u64,
    assigner: A,
    aggregate: Sum<IN_ORDER>,
) -> Out
where
    A::Trigger: TriggerOf<Reading, A::Merging>,
{
    let WindowStreams { results, late } = stream::iter(readings(n, keys))
        .assign_timestamps(|reading: &Reading| Timestamp::from_millis(reading.time), watermarks())
        .key_by(|reading: &Reading| reading.key)
        .window(assigner)
        .allowed_lateness(millis(LATENESS))
        .side_output_late_data()
        .aggregate(aggregate);
    sum(results, late).await
}

async fn elements<A: Assigner>(n: usize, keys: u64, assigner: A) -> Out
where
    A::Trigger: TriggerOf<Reading, A::Merging>,
{
    let mut readings = readings(n, keys);
    let (mut watermark, mut due) = (i64::MIN, None);
    let elements = std::iter::from_fn(move || {
        if let Some(watermark) = due.take() {
            return Some(Element::watermark(Timestamp::from_millis(watermark)));
        }
        let reading = readings.next()?;
        let next = reading.time - OUT_OF_ORDER - 1;
        if next >= watermark.saturating_add(10) {
            watermark = next;
            due = Some(next);
        }
        Some(Element::record(reading, Timestamp::from_millis(reading.time)))
    });
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .key_by(|reading: &Reading| reading.key)
        .window(assigner)
        .allowed_lateness(millis(LATENESS))
        .side_output_late_data()
        .aggregate(Sum::<false>);
    sum(results, late).await
}

const ENDS: &str = "the input cannot fail";

async fn sum<Src1, Src2>(
    results: DataStream<WindowResult<u64, i64>, Src1>,
    late: DataStream<Late<Reading>, Src2>,
) -> Out
where
    Src1: side_output::stream::Source<WindowResult<u64, i64>>,
    Src2: side_output::stream::Source<Late<Reading>>,
{
    let (results, late) = join!(
        results.fold(Sums::default(), |sums, result| sums.result(result.value)),
        late.fold(Sums::default(), |sums, late| sums.late(late.value)),
    );
    [results.expect(ENDS).0[0], late.expect(ENDS).0[1]]
}

fn watermarks() -> Watermarks<side_output::BoundedOutOfOrderness> {
    Watermarks::bounded_out_of_orderness(millis(OUT_OF_ORDER))
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// In windows of `size` milliseconds.
pub(crate) fn tumbling(
    name: &'static str,
    about: &'static str,
    keys: u64,
    size: i64,
) -> Table<Out> {
    let mut table = Table::new(name, about);
    let assigner = move || Tumbling::of(millis(size));
    table.run("by hand, fast hash", move |n| block_on(by_hand::<Fast>(n, keys, size, size)));
    table
        .run("by hand, std's hash", move |n| block_on(by_hand::<RandomState>(n, keys, size, size)));
    table.run("windows", move |n| block_on(windows(n, keys, assigner())));
    table.run("windows, watermark every 10 ms", move |n| {
        block_on(windows_every(n, keys, assigner(), 10))
    });
    table.run("windows over timestamped input", move |n| block_on(elements(n, keys, assigner())));
    table
}

async fn windows_every(n: usize, keys: u64, assigner: Tumbling, every: i64) -> Out {
    let WindowStreams { results, late } = stream::iter(readings(n, keys))
        .assign_timestamps(
            |reading: &Reading| Timestamp::from_millis(reading.time),
            watermarks().emit_every(millis(every)),
        )
        .key_by(|reading: &Reading| reading.key)
        .window(assigner)
        .allowed_lateness(millis(LATENESS))
        .side_output_late_data()
        .aggregate(Sum::<false>);
    sum(results, late).await
}

type Fast = rustc_hash::FxBuildHasher;

pub(crate) fn sliding(name: &'static str, about: &'static str, slide: i64) -> Table<Out> {
    let mut table = Table::new(name, about);
    let assigner = move || Sliding::of(millis(SIZE)).every(millis(slide));
    table.run("by hand, fast hash", move |n| block_on(by_hand::<Fast>(n, 1000, SIZE, slide)));
    table.run("windows", move |n| block_on(windows(n, 1000, assigner())));
    table.run("windows, records in order", move |n| {
        block_on(sums(n, 1000, assigner(), Sum::<true>))
    });
    table
}

/// Sessions of each key: the open ones in a list, and when they end in an ordered map.
async fn sessions_by_hand(n: usize, keys: u64) -> Out {
    let mut sums = Sums::default();
    let mut open: FxHashMap<u64, Vec<(i64, i64, i64)>> = FxHashMap::default();
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let mut watermark = i64::MIN;
    let mut readings = stream::iter(readings(n, keys));
    while let Some(reading) = readings.next().await {
        let (mut start, mut end, mut sum) = (reading.time, reading.time + GAP, reading.value);
        let sessions = open.entry(reading.key).or_default();
        let joins = sessions.iter().any(|(from, to, _)| start <= *to && *from <= end);
        if end - 1 <= watermark && !joins {
            if sessions.is_empty() {
                open.remove(&reading.key);
            }
            sums.late(reading);
        } else {
            sessions.retain(|(from, to, other)| {
                let joins = start <= *to && *from <= end;
                if joins {
                    (start, end, sum) = (start.min(*from), end.max(*to), sum + other);
                }
                !joins
            });
            sessions.push((start, end, sum));
            ends.entry(end - 1).or_default().push(reading.key);
        }
        let next = reading.time - OUT_OF_ORDER - 1;
        if next > watermark {
            watermark = next;
            end_sessions(&mut open, &mut ends, watermark, &mut sums);
        }
    }
    end_sessions(&mut open, &mut ends, i64::MAX, &mut sums);
    sums.0
}

fn end_sessions(
    open: &mut FxHashMap<u64, Vec<(i64, i64, i64)>>,
    ends: &mut BTreeMap<i64, Vec<u64>>,
    watermark: i64,
    sums: &mut Sums,
) {
    while let Some(first) = ends.first_entry() {
        if *first.key() > watermark {
            break;
        }
        for key in first.remove() {
            let Some(sessions) = open.get_mut(&key) else { continue };
            sessions.retain(|(_, end, sum)| {
                let ended = *end - 1 <= watermark;
                if ended {
                    sums.result(*sum);
                }
                !ended
            });
            if sessions.is_empty() {
                open.remove(&key);
            }
        }
    }
}

async fn sessions(n: usize, keys: u64) -> Out {
    let WindowStreams { results, late } = stream::iter(readings(n, keys))
        .assign_timestamps(|reading: &Reading| Timestamp::from_millis(reading.time), watermarks())
        .key_by(|reading: &Reading| reading.key)
        .window(Session::with_gap(millis(GAP)))
        .side_output_late_data()
        .aggregate(Sum::<false>);
    sum(results, late).await
}

pub(crate) fn session() -> Table<Out> {
    // A reading of each key every 200 ms on the average: sessions of a few readings.
    const KEYS: u64 = 20_000;
    let mut table = Table::new("session", "20,000 keys, sessions with a gap of 100 ms");
    table.run("by hand, fast hash", |n| block_on(sessions_by_hand(n, KEYS)));
    table.run("sessions", |n| block_on(sessions(n, KEYS)));
    table
}
