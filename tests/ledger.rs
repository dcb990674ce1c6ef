//! The ledger is right on every path: FAULT-01, 02, 03, 09 and 10.

mod common;

use common::assert_balanced;
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::stream::{Intake, Source};
use side_output::{
    BroadcastContext, BroadcastProcess, Configuration, Count, Element, EveryCount, KeyedContext,
    KeyedProcess, LedgerHandle, Mark, TestClock, Window,
};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Nine records of as many keys at the same time, and the watermark that makes them due.
fn nine() -> DataStream<u32> {
    let records = (0..9).map(|key| Element::record(key, at(5)));
    DataStream::from_elements(stream::iter(records.chain([Element::watermark(at(999))])))
}

/// Panics with the fifth result.
struct FailsAtTheFifth;

impl Aggregate for FailsAtTheFifth {
    type In = u32;
    type Accumulator = (u64, u32);
    type Output = u64;

    fn create(&mut self) -> (u64, u32) {
        (0, 0)
    }

    fn add(&mut self, (count, key): &mut (u64, u32), record: &u32) {
        *count += 1;
        *key = *record;
    }

    fn result(&mut self, (count, key): &(u64, u32)) -> u64 {
        assert_ne!(*key, 4, "the fifth key");
        *count
    }

    fn merge(&mut self, (count, key): &mut (u64, u32), other: (u64, u32)) {
        *count += other.0;
        *key = other.1;
    }
}

/// Reads to the end, which is an error, and returns the ledger.
#[track_caller]
fn fails<T, Src: Source<T>>(stream: DataStream<T, Src>) -> Ledger {
    let ledger: LedgerHandle = stream.ledger_handle().expect("an operator");
    block_on(stream.for_each(drop)).unwrap_err();
    let ledger = ledger.read();
    assert_balanced(&ledger);
    ledger
}

#[test]
fn fault_01_a_window_function_that_fails_amid_a_firing() {
    let keyed = || nine().key_by(|key: &u32| *key);
    let function = |key: &u32, _: Window, _: &[u32]| {
        assert_ne!(*key, 4, "the fifth key");
        *key
    };
    let tumbling = keyed().window(Tumbling::of(millis(1000))).drop_late_data();
    let ledger = fails(tumbling.aggregate(FailsAtTheFifth));
    assert_eq!((ledger.received, ledger.fired, ledger.unrouted), (9, 4, 9));
    let tumbling = keyed().window(Tumbling::of(millis(1000))).drop_late_data();
    assert_eq!(fails(tumbling.apply(function)).fired, 4);
    let sliding = keyed().window(Sliding::of(millis(1000)).every(millis(500))).drop_late_data();
    assert_eq!(fails(sliding.aggregate(FailsAtTheFifth)).fired, 4);
    let sliding = keyed()
        .window(Sliding::of(millis(1000)).every(millis(500)))
        .trigger(EveryCount::new(1))
        .drop_late_data();
    let ledger = fails(sliding.aggregate(FailsAtTheFifth));
    // Each record before it fires its two windows; the fifth has left through none.
    assert_eq!((ledger.received, ledger.extra, ledger.failed), (5, 4, 1));
    let sessions = keyed().window(Session::with_gap(millis(100))).drop_late_data();
    assert_eq!(fails(sessions.aggregate(FailsAtTheFifth)).fired, 4);
}

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Regular(u32),
    Large(u32),
}

/// Routes by a limit; the record 3 fails.
struct Limit {
    panics: bool,
}

impl BroadcastProcess for Limit {
    type In = u32;
    type Update = u32;
    type Config = u32;
    type Out = Orders;

    fn on_record(
        &mut self,
        order: u32,
        limit: &u32,
        _cx: &mut BroadcastContext<Orders>,
    ) -> impl Routes<Orders> {
        assert!(order != 3 || !self.panics, "the third order");
        match order {
            3 => Err("the third order"),
            order if order > *limit => Ok(Orders::Large(order)),
            order => Ok(Orders::Regular(order)),
        }
    }

    fn on_update(
        &mut self,
        limit: u32,
        config: &mut Configuration<u32>,
        _cx: &mut Context<Orders>,
    ) -> impl Routes<Orders> {
        config.replace(limit);
        None::<Orders>
    }

    fn on_unconfigured(&mut self, order: u32, _cx: &mut Context<Orders>) -> impl Routes<Orders> {
        if order == 3 { Err("the third order") } else { Ok(Orders::Regular(order)) }
    }

    fn hold_back(&self) -> usize {
        10
    }
}

#[test]
fn fault_02_a_held_back_record_that_fails_when_it_is_released() {
    for panics in [false, true] {
        for limits in [vec![2], vec![]] {
            let orders = DataStream::from_stream(stream::iter([1, 2, 3, 4]));
            let configured = !limits.is_empty();
            // The orders come first, so that they are held back.
            let limits = stream::once(async {
                futures::pending!();
                stream::iter(limits)
            });
            let limits = DataStream::from_stream(limits.flatten());
            let streams = orders.connect_broadcast(limits).process(Limit { panics });
            let OrdersStreams { regular, large } = streams;
            large.discard();
            let ledger = fails(regular);
            assert_eq!((ledger.received, ledger.updates), (4, u64::from(configured)));
            assert_eq!((ledger.unrouted, ledger.fired), (4, 2), "all were held back");
        }
    }
}

#[test]
fn fault_03_a_record_has_one_exit_though_an_error_follows_its_route() {
    /// The route is returned, and what comes after it fails.
    struct Late;
    impl KeyedProcess for Late {
        type Key = u32;
        type In = u32;
        type State = u32;
        type Out = Orders;
        fn on_record(
            &mut self,
            order: u32,
            state: &mut u32,
            _cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Orders> {
            *state = order;
            Orders::Regular(order)
        }
        fn is_empty(state: &u32) -> bool {
            assert_ne!(*state, 5, "the state is asked after the route was emitted");
            false
        }
    }
    /// A timer of a clock that is not there.
    struct Clockless;
    impl KeyedProcess for Clockless {
        type Key = u32;
        type In = u32;
        type State = ();
        type Out = Orders;
        fn on_record(
            &mut self,
            order: u32,
            (): &mut (),
            cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Orders> {
            if order == 5 {
                cx.set_processing_timer(at(0));
            }
            Orders::Regular(order)
        }
    }
    let orders = || DataStream::from_stream(stream::iter(0..9)).key_by(|order: &u32| *order);
    let OrdersStreams { regular, large } = orders().process(Late);
    large.discard();
    let ledger = fails(regular);
    assert_eq!((ledger.received, ledger["regular"].routed, ledger.failed), (6, 6, 0));
    let OrdersStreams { regular, large } = orders().process(Clockless);
    large.discard();
    let ledger = fails(regular);
    assert_eq!(ledger.received, 6);
    assert_eq!(ledger["regular"].routed + ledger.failed, 6);
    // With a clock there is nothing to fail.
    let clock = TestClock::at(at(0));
    let OrdersStreams { regular, large } = orders().process_with_clock(Clockless, clock);
    large.discard();
    block_on(regular.for_each(drop)).expect("no error");
}

#[test]
fn fault_03_several_routes_of_which_one_is_an_error() {
    let route = |n: u32| [Ok(Orders::Regular(n)), Err("no"), Ok(Orders::Large(n))];
    let OrdersStreams { regular, large } = stream::iter([7]).split_with(route);
    large.discard();
    let ledger = fails(regular);
    assert_eq!((ledger.received, ledger.failed, ledger.extra), (1, 0, 0));
    assert_eq!(ledger["regular"].routed, 1);
}

#[test]
fn fault_09_updates_of_a_configuration_are_no_records() {
    let orders = DataStream::from_stream(stream::iter([1, 2, 4]));
    let limits = DataStream::from_stream(stream::iter([9, 3]));
    let ledger = block_on(
        orders
            .connect_broadcast(limits)
            .config_first()
            .process(Limit { panics: false })
            .wire()
            .regular(discard())
            .large(discard())
            .run(),
    )
    .expect("no error");
    assert_balanced(&ledger);
    assert_eq!((ledger.received, ledger.updates, ledger.unrouted), (3, 2, 0));
    assert_eq!((ledger["regular"].routed, ledger["large"].routed), (2, 1));
}

#[test]
fn fault_10_partitions_stay_a_few_capacities_ahead() {
    struct Pass;
    impl KeyedProcess for Pass {
        type Key = u32;
        type In = u32;
        type State = ();
        type Out = Orders;
        fn on_record(
            &mut self,
            order: u32,
            (): &mut (),
            _cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Orders> {
            match order % 3 {
                0 => vec![],
                1 => vec![Orders::Regular(order)],
                _ => vec![Orders::Regular(order), Orders::Large(order)],
            }
        }
    }
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let input = stream::iter(0..).inspect(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let streams = DataStream::from_stream(input)
        .key_by(|order: &u32| order % 64)
        .parallel(4)
        .process(|| Pass);
    let ledger = streams.ledger_handle();
    let OrdersStreams { mut regular, large } = streams;
    large.discard();
    let mut read = 0;
    while read < 100_000 {
        read += u32::from(block_on(regular.next()).is_some());
        if read % 1000 == 0 {
            assert_balanced(&ledger.read());
        }
    }
    let pulled = count.load(Ordering::Relaxed);
    assert!(pulled < 200_000, "{pulled} pulled from the input");
    drop(regular);
    assert_balanced(&ledger.read());
}

#[test]
fn fault_01_a_reader_that_panics_amid_a_firing() {
    let counts = nine()
        .key_by(|key: &u32| *key)
        .window(Tumbling::of(millis(1000)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = counts.ledger_handle().expect("an operator");
    let reading = counts.for_each(|count| assert_ne!(count.key, 4, "the fifth key"));
    catch_unwind(AssertUnwindSafe(|| block_on(reading))).unwrap_err();
    assert_balanced(&ledger.read());
}

/// A stream of 200 numbers behind an operator, and the ledger of that.
fn numbers() -> (DataStream<u32>, LedgerHandle) {
    let OrdersStreams { regular, large } = stream::iter(0..200).split_with(Orders::Regular);
    large.discard();
    let ledger = regular.ledger_handle().expect("an operator");
    (regular.boxed(), ledger)
}

#[test]
fn fault_06_what_was_not_read_is_not_delivered() {
    type Wrap = fn(DataStream<u32>) -> DataStream<u32>;
    let wraps: [(&str, Wrap); 8] = [
        ("plain", |numbers| numbers),
        ("map", |numbers| numbers.map(|n| n).boxed()),
        ("filter", |numbers| numbers.filter(|_| true).boxed()),
        ("inspect", |numbers| numbers.inspect(|_: &u32| {}).boxed()),
        ("union", |numbers| numbers.union(DataStream::from_stream(stream::empty()))),
        ("assign_timestamps", |numbers| {
            let stamped = numbers.assign_timestamps(
                |n| at(i64::from(*n)),
                Watermarks::monotonous().with_idleness(millis(5), TestClock::at(at(0))),
            );
            stamped.boxed()
        }),
        ("stamp_with_clock", |numbers| {
            numbers.stamp_with_clock(TestClock::at(at(0)), millis(5)).boxed()
        }),
        ("map, union, map", |numbers| {
            let other = DataStream::from_stream(stream::empty());
            numbers.map(|n| n).boxed().union([other]).map(|n| n).boxed()
        }),
    ];
    for (name, wrap) in wraps {
        let (numbers, ledger) = numbers();
        let mut stream = wrap(numbers);
        assert_eq!(block_on(stream.next()), Some(0), "{name}");
        drop(stream);
        let ledger = ledger.read();
        assert_balanced(&ledger);
        let regular = &ledger["regular"];
        assert_eq!((regular.delivered, regular.discarded), (1, regular.routed - 1), "{name}");
        assert!(regular.routed > 1, "{name}: the rest is there");
    }
}

#[test]
fn fault_06_a_map_that_panics_once_loses_one_record() {
    for boxed in [false, true] {
        let (numbers, _) = numbers();
        let mut mapped = numbers.map(|n| {
            assert_ne!(n, 7, "the eighth");
            n
        });
        let mut read = Vec::new();
        let mut read_all = |stream: &mut (dyn futures::Stream<Item = u32> + Unpin)| loop {
            let next = catch_unwind(AssertUnwindSafe(|| block_on(stream.next())));
            match next {
                Ok(Some(n)) => read.push(n),
                Ok(None) => break,
                Err(_) => {}
            }
        };
        if boxed {
            read_all(&mut mapped.boxed());
        } else {
            read_all(&mut mapped);
        }
        assert!(read.iter().copied().eq((0..200).filter(|n| *n != 7)), "{boxed}: {read:?}");
    }
}

#[test]
fn a_run_that_was_never_polled_leaves_the_ledger_as_it_was() {
    let mut streams = stream::iter(0..200).split_with(Orders::Regular);
    let ledger = streams.ledger_handle();
    assert_eq!(block_on(streams.regular.next()), Some(0));
    drop(streams.wire().regular(discard()).large(discard()).run());
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger.received, ledger["regular"].routed), (200, 200));
    assert_eq!((ledger["regular"].delivered, ledger["regular"].discarded), (1, 199));
}

#[test]
fn fault_06_what_waited_before_a_wiring_is_counted_once() {
    let mut streams = stream::iter(0..200).split_with(|n: u32| {
        if n.is_multiple_of(10) { Orders::Large(n) } else { Orders::Regular(n) }
    });
    let ledger = streams.ledger_handle();
    assert_eq!(block_on(streams.regular.next()), Some(1));
    let (mut regular, mut large) = (0, Vec::new());
    block_on(streams.wire().regular(each(|_| regular += 1)).large(&mut large).run()).unwrap();
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((regular, large.len(), ledger.received), (179, 20, 200));
    assert_eq!((ledger["regular"].routed, ledger["regular"].delivered), (180, 180));
    assert_eq!((ledger["large"].routed, ledger["large"].delivered), (20, 20));
}

#[test]
fn fault_06_unread_counts_of_several_chunks_add_up() {
    // The first reader drives, so that all of the second one's records wait in its lane.
    let streams = stream::iter(0..900)
        .split_with(|n: u32| if n < 800 { Orders::Large(n) } else { Orders::Regular(n) });
    let ledger = streams.ledger_handle();
    let OrdersStreams { mut regular, large } = streams;
    assert_eq!(block_on(regular.next()), Some(800));
    let mut mapped = large.boxed().map(|n| n).boxed();
    assert_eq!(block_on(mapped.next()), Some(0));
    drop(mapped);
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["large"].delivered, ledger["large"].discarded), (1, 799));
}

/// So many numbers behind an operator, then an idle input, and some more; and the ledger.
fn with_a_pause(records: u32) -> (DataStream<u32>, LedgerHandle) {
    let record = |n: u32| Element::record(n, at(i64::from(n)));
    let pause = Element::Mark(Mark::Idle);
    let elements =
        (0..records).map(record).chain([pause]).chain((records..records + 5).map(record));
    let OrdersStreams { regular, large } =
        DataStream::from_elements(stream::iter(elements)).split_with(Orders::Regular);
    large.discard();
    let ledger = regular.ledger_handle().expect("an operator");
    (regular.boxed(), ledger)
}

#[test]
fn fault_06_a_record_that_a_merge_had_no_room_for_is_not_delivered() {
    // The chunk or turn of 512 is full between the end of the pause and the record that ended it.
    for records in 505..515 {
        let (numbers, ledger) = with_a_pause(records);
        let mut union = numbers.union(DataStream::from_stream(stream::empty()));
        assert_eq!(block_on(union.next()), Some(0));
        drop(union);
        let ledger = ledger.read();
        assert_balanced(&ledger);
        assert_eq!(ledger["regular"].delivered, 1, "union, {records}");

        for side in [true, false] {
            let (numbers, upper) = with_a_pause(records);
            let other = DataStream::from_stream(stream::empty());
            let route = |n: u32, _: &mut Context<Orders>| Orders::Regular(n);
            let (left, right) = if side { (numbers, other) } else { (other, numbers) };
            let OrdersStreams { mut regular, large } =
                left.connect(right).process_with(route, route);
            large.discard();
            let lower = regular.ledger_handle().unwrap();
            assert_eq!(block_on(regular.next()), Some(0));
            drop(regular);
            assert_balanced(&upper.read());
            assert_balanced(&lower.read());
            let delivered = upper.read()["regular"].delivered;
            assert_eq!(delivered, lower.read().received, "connect, {side}, {records}");
        }
    }
}

#[test]
fn fault_06_a_record_that_ends_a_pause_is_not_delivered_before_it_is_read() {
    let clock = TestClock::at(at(0));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let OrdersStreams { regular, large } =
        DataStream::from_stream(receiver).split_with(Orders::Regular);
    large.discard();
    let ledger = regular.ledger_handle().expect("an operator");
    let mut elements = regular
        .assign_timestamps(
            |n| at(i64::from(*n)),
            Watermarks::monotonous().with_idleness(millis(5), clock.clone()),
        )
        .elements();
    assert!(elements.next().now_or_never().is_none());
    clock.set(at(100));
    assert_eq!(block_on(elements.next()).unwrap().unwrap(), Element::Mark(Mark::Idle));
    sender.unbounded_send(7).unwrap();
    assert_eq!(block_on(elements.next()).unwrap().unwrap(), Element::Mark(Mark::Active));
    drop(elements);
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["regular"].delivered, ledger["regular"].discarded), (0, 1));
}

#[test]
fn fault_06_what_no_partition_took_is_not_delivered() {
    struct Taking(Arc<AtomicU32>);
    impl KeyedProcess for Taking {
        type Key = u32;
        type In = u32;
        type State = ();
        type Out = Orders;
        fn on_record(
            &mut self,
            order: u32,
            (): &mut (),
            _cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Orders> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Orders::Regular(order)
        }
    }
    // Which tasks are polled, and which is dropped first.
    for (polled, first) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for count in [200, 20_000] {
            let OrdersStreams { regular, large } =
                stream::iter(0..count).split_with(Orders::Regular);
            large.discard();
            let ledger = regular.ledger_handle().expect("an operator");
            let (taken, mut tasks) = (Arc::new(AtomicU32::new(0)), Vec::new());
            let streams = regular
                .key_by(|order: &u32| order % 64)
                .parallel(2)
                .process_on(|task| tasks.push(task), || Taking(Arc::clone(&taken)));
            for _ in 0..3 {
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                _ = tasks[polled].poll_unpin(&mut cx);
            }
            drop(tasks.remove(first));
            drop((tasks, streams));
            let ledger = ledger.read();
            assert_balanced(&ledger);
            let taken = u64::from(taken.load(Ordering::Relaxed));
            assert!(taken > 0);
            assert_eq!(ledger["regular"].delivered, taken, "{polled}, {first}, {count}");
        }
    }
}

#[test]
fn fault_06_what_a_union_did_not_hand_on_goes_back_to_the_input_it_came_from() {
    // Three readers above each other have a chunk in hand each; the first input ends meanwhile.
    for (left, right, rests) in [(100, 3000, 7), (600, 700, 2), (1, 1, 5), (2000, 10, 100)] {
        for read in [1, 2, 150, 700] {
            let input = |count: u32| {
                // A chunk is what comes until the input rests.
                let mut numbers = 0..count;
                let mut rested = false;
                let numbers = stream::poll_fn(move |cx| {
                    if numbers.start % rests == 1 && !std::mem::replace(&mut rested, true) {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    rested = false;
                    Poll::Ready(numbers.next())
                });
                let OrdersStreams { regular, large } = numbers.split_with(Orders::Regular);
                large.discard();
                let ledger = regular.ledger_handle().expect("an operator");
                (regular.boxed(), ledger)
            };
            let ((a, first), (b, second)) = (input(left), input(right));
            let mut used = [0, 0];
            let pair = a.map(|n| (0, n)).union(b.map(|n| (1, n)));
            let mut nested = pair.map(|n| n).boxed().map(|n| n).boxed().map(|n| n).boxed();
            for _ in 0..read.min(left + right) {
                let (input, _): (usize, u32) = block_on(nested.next()).unwrap();
                used[input] += 1;
            }
            drop(nested);
            let (first, second) = (first.read(), second.read());
            assert_balanced(&first);
            assert_balanced(&second);
            let delivered = [first["regular"].delivered, second["regular"].delivered];
            assert_eq!(delivered, used, "{left}, {right}, {read}");
        }
    }
}

/// Takes so many records.
struct Taking(Vec<u32>, usize);

impl Intake<u32> for Taking {
    fn record(&mut self, value: u32, _at: Timestamp) -> ControlFlow<()> {
        self.0.push(value);
        if self.0.len() < self.1 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn mark(&mut self, _mark: Mark) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn fault_06_a_union_may_be_handed_back_more_than_it_handed_on_last() {
    // Its first input has odd numbers, the second one even ones; it may have ended by then.
    let cases =
        [(1000, 1000, 900, 899), (10, 3000, 2000, 1999), (3000, 10, 2000, 700), (3, 4, 7, 6)];
    for (odd, even, take, back) in cases {
        let input = |numbers: std::ops::Range<u32>| {
            let OrdersStreams { regular, large } =
                stream::iter(numbers).split_with(Orders::Regular);
            large.discard();
            let ledger = regular.ledger_handle().expect("an operator");
            (regular.boxed(), ledger)
        };
        let ((first, odds), (second, evens)) = (input(0..odd), input(0..even));
        let mut union = first.map(|n| 2 * n + 1).union(second.map(|n| 2 * n));
        let mut taking = Taking(Vec::new(), take);
        while taking.0.len() < take {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            drop(union.feed(&mut cx, &mut taking));
        }
        // In two steps: what is left of a run goes back with the next one.
        union.unread(back / 2);
        union.unread(back - back / 2);
        drop(union);
        for (ledger, rest) in [(odds, 1), (evens, 0)] {
            let ledger = ledger.read();
            assert_balanced(&ledger);
            let used = taking.0[..take - back].iter().filter(|n| *n % 2 == rest).count();
            assert_eq!(ledger["regular"].delivered, used as u64, "{odd}, {even}, {take}, {back}");
        }
    }
}
