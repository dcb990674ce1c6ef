//! Workload C: timers of keys, set and fired, or set and deleted.

use crate::common::{Table, again, splitmix};
use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use rustc_hash::FxHashMap;
use side_output::output::Single;
use side_output::prelude::*;
use side_output::{Element, KeyedContext, KeyedProcess};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

const KEYS: u64 = 1_000_000;
const RANDOM: usize = 1 << 20;
/// How far ahead timers are set, in the time that this many records take.
const AHEAD: i64 = 500_000;
/// Records between watermarks.
const WATERMARK: usize = 1000;

/// A key, and the position of the record: its time.
#[derive(Clone, Copy)]
struct Ask {
    key: u64,
    time: i64,
    delete: bool,
}

/// Each ask is followed by one that deletes its timer, if `delete`.
fn asks(len: usize, delete: bool) -> impl Iterator<Item = Ask> + Send + 'static {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    let random = TABLE.get_or_init(|| {
        let mut state = 11;
        (0..RANDOM).map(|_| splitmix(&mut state)).collect()
    });
    (0..len).map(move |index| {
        // Half of the distance lies between setting and deleting.
        let set = if delete && index % 2 == 1 { index.saturating_sub(1001) & !1 } else { index };
        let random = again(random[set & (RANDOM - 1)], set / RANDOM);
        let key = ((random & 0xFFFF_FFFF) * KEYS) >> 32;
        Ask {
            key,
            time: set as i64 + AHEAD + (random >> 50) as i64,
            delete: delete && index % 2 == 1,
        }
    })
}

/// Timers fired, and the sum of their times.
type Out = (u64, i64);

#[derive(Default)]
struct ByHand {
    /// How many records each key had, and its timers.
    states: FxHashMap<u64, (u64, Vec<i64>)>,
    queue: BinaryHeap<Reverse<(i64, u64)>>,
    out: Out,
}

impl ByHand {
    #[inline]
    fn on_ask(&mut self, ask: Ask) {
        let (count, timers) = self.states.entry(ask.key).or_default();
        *count += 1;
        let set = timers.iter().position(|time| *time == ask.time);
        if ask.delete {
            // What stands in the queue is recognised as deleted when its time comes.
            if let Some(set) = set {
                timers.swap_remove(set);
            }
        } else if set.is_none() {
            timers.push(ask.time);
            self.queue.push(Reverse((ask.time, ask.key)));
        }
    }

    fn on_watermark(&mut self, watermark: i64) {
        while let Some(Reverse((time, key))) = self.queue.peek().copied()
            && time <= watermark
        {
            self.queue.pop();
            let Some((_, timers)) = self.states.get_mut(&key) else { continue };
            if let Some(set) = timers.iter().position(|other| *other == time) {
                timers.swap_remove(set);
                self.out.0 += 1;
                self.out.1 = self.out.1.wrapping_add(time);
            }
        }
    }
}

async fn by_hand(n: usize, delete: bool) -> Out {
    let mut timers = ByHand::default();
    let mut asks = stream::iter(asks(n, delete).enumerate());
    while let Some((index, ask)) = asks.next().await {
        timers.on_ask(ask);
        if index % WATERMARK == WATERMARK - 1 {
            timers.on_watermark(index as i64);
        }
    }
    timers.on_watermark(i64::MAX);
    timers.out
}

struct Timers;

impl KeyedProcess for Timers {
    type Key = u64;
    type In = Ask;
    type State = u64;
    type Out = Single<i64>;

    #[inline]
    fn on_record(
        &mut self,
        ask: Ask,
        count: &mut u64,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Single<i64>> {
        *count += 1;
        let at = Timestamp::from_millis(ask.time);
        if ask.delete {
            cx.delete_timer(at);
        } else {
            cx.set_timer(at);
        }
        None::<Single<i64>>
    }

    #[inline]
    fn on_timer(
        &mut self,
        at: Timestamp,
        _count: &mut u64,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Single<i64>> {
        Single(at.as_millis())
    }
}

async fn keyed(n: usize, delete: bool) -> Out {
    let elements = asks(n, delete).enumerate().flat_map(|(index, ask)| {
        let record = Element::Record { value: ask, at: None };
        let at = Timestamp::from_millis(index as i64);
        let mark = (index % WATERMARK == WATERMARK - 1).then(|| Element::watermark(at));
        std::iter::once(record).chain(mark)
    });
    DataStream::from_elements(stream::iter(elements))
        .key_by(|ask: &Ask| ask.key)
        .process(Timers)
        .fold((0, 0), |out: &mut Out, time| {
            out.0 += 1;
            out.1 = out.1.wrapping_add(time);
        })
        .await
        .expect("the input cannot fail")
}

pub(crate) fn fire() -> Table<Out> {
    let mut table = Table::new("timers fire", "a timer set by every record, 1,000,000 keys");
    table.run("by hand, heap and fast hash", |n| block_on(by_hand(n, false)));
    table.run("keyed process", |n| block_on(keyed(n, false)));
    table
}

pub(crate) fn delete() -> Table<Out> {
    let mut table =
        Table::new("timers deleted", "every other record deletes a timer, 1,000,000 keys");
    table.run("by hand, heap and fast hash", |n| block_on(by_hand(2 * n, true)));
    table.run("keyed process", |n| block_on(keyed(2 * n, true)));
    table
}
