//! Timestamps, watermarks, idleness, clocks.

use futures::executor::block_on;
use futures::task::Context as TaskContext;
use futures::{FutureExt as _, Stream, StreamExt as _, future, stream};
use side_output::operator::{StampedStreams, Turn};
use side_output::output::{Account, Single};
use side_output::prelude::*;
use side_output::{
    Alignment, Clock as _, Collect, Count, Element, Mark, ReconciliationStreams, SystemClock,
    TestClock, WatermarkGenerator,
};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A stream of seconds with a watermark after each.
fn seconds<I>(seconds: I, bound: Duration) -> DataStream<i64>
where
    I: IntoIterator<Item = i64>,
    I::IntoIter: Send + 'static,
{
    DataStream::from_stream(stream::iter(seconds))
        .assign_timestamps(
            |second| Timestamp::from_secs(*second),
            Watermarks::bounded_out_of_orderness(bound),
        )
        .boxed()
}

fn elements<T>(stream: DataStream<T>) -> Vec<Element<T>> {
    block_on(stream.elements().map(Result::unwrap).collect())
}

/// Everything that is ready now.
fn ready<St: Stream + Unpin>(stream: &mut St) -> Vec<St::Item> {
    std::iter::from_fn(|| stream.next().now_or_never().flatten()).collect()
}

/// A source that a test feeds by hand.
fn hand<T: Send + 'static>() -> (futures::channel::mpsc::UnboundedSender<T>, DataStream<T>) {
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    (sender, DataStream::from_stream(receiver))
}

#[test]
fn time_01_a_fast_clock_does_not_make_honest_records_late() {
    let minute = |minute: i64| Timestamp::from_secs(36_000 + minute * 60);
    let minutes: Vec<i64> = [-1, 24 * 60].into_iter().chain(1..=10).collect();
    let clock = TestClock::at(minute(0));
    let StampedStreams { records, future_skew } =
        DataStream::from_stream(stream::iter(minutes.clone())).assign_timestamps(
            move |m| minute(*m),
            Watermarks::monotonous().max_future_skew(secs(3600), clock),
        );
    let WindowStreams { results, late } =
        records.window_all(Tumbling::of(secs(60))).side_output_late_data().aggregate(Count::new());
    let (results, late, ahead) = block_on(future::join3(
        results.collect::<Vec<_>>(),
        late.collect::<Vec<_>>(),
        future_skew.collect::<Vec<_>>(),
    ));
    assert_eq!(results.len(), 11);
    assert!(late.is_empty());
    assert_eq!(ahead, [24 * 60]);

    // Without the bound: ten late ones, none lost.
    let WindowStreams { results, late } = DataStream::from_stream(stream::iter(minutes))
        .assign_timestamps(move |m| minute(*m), Watermarks::monotonous())
        .window_all(Tumbling::of(secs(60)))
        .side_output_late_data()
        .aggregate(Count::new());
    let (results, late) =
        block_on(future::join(results.collect::<Vec<_>>(), late.collect::<Vec<_>>()));
    assert_eq!((results.len(), late.len()), (2, 10));
}

#[test]
fn time_02_a_record_of_a_closed_window_does_not_reach_the_aggregate() {
    let elements = [
        Element::record(1, at(50)),
        Element::watermark(at(200)),
        Element::record(999, at(60)),
        Element::watermark(at(250)),
    ];
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .window_all(Tumbling::of(millis(100)))
        .side_output_late_data()
        .reduce(|sum: &mut i32, next| *sum += next);
    let (results, late) =
        block_on(future::join(results.collect::<Vec<_>>(), late.collect::<Vec<_>>()));
    assert_eq!(results.iter().map(|result| result.value).collect::<Vec<_>>(), [1]);
    assert_eq!(
        late.iter().map(|late| (late.timestamp, late.value)).collect::<Vec<_>>(),
        [(at(60), 999)]
    );
}

#[test]
fn time_03_old_data_gives_results_whatever_the_time_is() {
    let start = 1_577_836_800; // 2020-01-01
    for now in [0, 1_767_225_600, 4_102_444_800] {
        let clock = TestClock::at(Timestamp::from_secs(now));
        let counts = DataStream::from_stream(stream::iter(start..start + 600))
            .assign_timestamps(
                |second| Timestamp::from_secs(*second),
                Watermarks::monotonous().with_idleness(secs(60), clock),
            )
            .window_all(Tumbling::of(secs(60)))
            .drop_late_data()
            .aggregate(Count::new());
        let ledger = counts.ledger_handle().unwrap();
        let counts: Vec<u64> = block_on(counts.map(|result| result.value).collect());
        assert_eq!(counts, [60; 10]);
        assert_eq!(ledger.read().late, 0);
    }
}

#[test]
fn time_04_late_record_says_why() {
    let elements = [Element::watermark(at(1000)), Element::record('x', at(40))];
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .window_all(Tumbling::of(millis(100)))
        .side_output_late_data()
        .aggregate(Count::new());
    results.discard();
    let late: Vec<Late<char>> = block_on(late.collect());
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].timestamp, at(40));
    assert_eq!(late[0].watermark, at(1000));
    assert_eq!(late[0].windows[..], [Window::new(at(0), at(100))]);
    assert_eq!(late[0].behind(), millis(960));
    assert_eq!(late[0].since_end(), Some(millis(901)));
    assert_eq!(
        late[0].to_string(),
        "at 40 (1970-01-01T00:00:00.040Z), 960 ms behind the watermark 1000 (1970-01-01T00:00:01Z); \
         window [0, 100) (1970-01-01T00:00:00Z to 1970-01-01T00:00:00.100Z) \
         had been complete for 901 ms"
    );
}

#[test]
fn time_05_the_watermark_advances_on_records_that_are_filtered_later() {
    let (all_filtered, filtered) = hand::<i64>();
    let (lively, other) = hand::<i64>();
    let stamped = |stream: DataStream<i64>| {
        stream.assign_timestamps(|s| Timestamp::from_secs(*s), Watermarks::monotonous())
    };
    let filtered = stamped(filtered).split_with(|_: i64| None::<Single<i64>>);
    let mut results = stamped(other)
        .union(filtered)
        .window_all(Tumbling::of(secs(10)))
        .drop_late_data()
        .aggregate(Count::new());
    for second in 1..=1000 {
        all_filtered.unbounded_send(second).unwrap();
        lively.unbounded_send(second).unwrap();
    }
    let fired = ready(&mut results);
    assert_eq!(fired.len(), 99 + 1);
    assert_eq!(fired[98].window.end(), Timestamp::from_secs(990));
}

#[test]
fn time_06_an_idle_input_does_not_stall_windows() {
    let clock = TestClock::at(at(0));
    let (b, silent) = hand::<i64>();
    let (a, lively) = hand::<i64>();
    let strategy =
        || Watermarks::monotonous().emit_every(millis(1)).with_idleness(secs(5), clock.clone());
    let second = |second: &i64| Timestamp::from_secs(*second);
    let lively = lively.assign_timestamps(second, Watermarks::monotonous()).boxed();
    let silent = silent.assign_timestamps(second, strategy()).boxed();
    let WindowStreams { results, late } = lively
        .union(silent)
        .window_all(Tumbling::of(secs(10)))
        .side_output_late_data()
        .aggregate(Count::new());
    let (mut results, mut late) = (results, late);
    (1..=100).for_each(|second| a.unbounded_send(second).unwrap());
    assert!(ready(&mut results).is_empty());
    clock.advance(millis(4_999));
    assert!(ready(&mut results).is_empty());
    clock.advance(millis(1));
    let fired = ready(&mut results);
    assert_eq!(fired[0].window, Window::new(at(0), at(10_000)));
    assert_eq!(fired.len(), 10);
    b.unbounded_send(50).unwrap();
    assert!(ready(&mut results).is_empty());
    let late = ready(&mut late);
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].watermark, at(99_999));
}

#[test]
fn time_07_an_output_with_rare_records_gets_every_watermark() {
    let (sender, source) = hand::<i64>();
    let rare = |second: i64| (second % 10_000 == 5).then_some(Single(second));
    let mut results = source
        .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
        .split_with(rare)
        .window_all(Tumbling::of(secs(10)))
        .drop_late_data()
        .aggregate(Count::new());
    (0..=1000).for_each(|second| sender.unbounded_send(second).unwrap());
    let fired = ready(&mut results);
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].window, Window::new(at(0), at(10_000)));
}

#[test]
fn time_08_a_record_ahead_of_the_watermark_is_never_late() {
    let elements =
        [Element::watermark(at(1_674_124_707_321)), Element::record((), at(1_674_124_707_598))];
    let results = DataStream::from_elements(stream::iter(elements))
        .window_all(Tumbling::of(secs(1)))
        .drop_late_data()
        .aggregate(Count::new());
    assert_eq!(block_on(results.count()), 1);
}

#[test]
fn time_09_a_record_at_the_watermark_is_late_where_its_window_ended() {
    let elements = [
        Element::watermark(at(999)),
        Element::record(999, at(999)),
        Element::record(1000, at(1000)),
    ];
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .window_all(Tumbling::of(millis(1000)))
        .side_output_late_data()
        .aggregate(Count::new());
    let (results, late) =
        block_on(future::join(results.collect::<Vec<_>>(), late.collect::<Vec<_>>()));
    assert_eq!(results.len(), 1);
    assert_eq!(late[0].value, 999);
}

#[test]
fn time_10_results_of_windows_are_on_time_for_the_next_windows() {
    let minutes = seconds(0..6 * 3600, Duration::ZERO)
        .window_all(Tumbling::of(secs(60)))
        .drop_late_data()
        .aggregate(Count::new())
        .split_with(|result: WindowResult<(), u64>| Single(result.value));
    let hours = minutes
        .window_all(Tumbling::of(secs(3600)))
        .drop_late_data()
        .reduce(|sum: &mut u64, next| *sum += next);
    let ledger = hours.ledger_handle().unwrap();
    let hours: Vec<u64> = block_on(hours.map(|result| result.value).collect());
    assert_eq!(hours, [3600; 6]);
    assert_eq!(ledger.read().late, 0);
}

/// What a joined pair, or a record without a partner, comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    key: i64,
    pair: bool,
}

/// A sequence of numbers that look random, the same in every run.
fn numbers(mut seed: u64) -> impl FnMut(i64) -> i64 {
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        i64::try_from(seed >> 1).unwrap() % below
    }
}

/// Counts of pairs and of single records.
type Counts = (u64, u64);

/// Key, window and counts.
type Counted = (i64, Window, Counts);

fn add(counts: &mut Counts, more: Counts) {
    counts.0 += more.0;
    counts.1 += more.1;
}

#[test]
fn time_12_chained_stateful_steps_lose_nothing_to_each_other() {
    const KEYS: i64 = 40;
    const BOUND: i64 = 5_000;
    const WITHIN: i64 = 2_000;
    const GAP: i64 = 15_000;
    let mut random = numbers(12);
    // 10k records in all, each at most the bound behind those that came before it.
    let mut side = || {
        let mut records: Vec<(i64, i64, i64)> = (0..5_000)
            .map(|_| {
                let (time, key) = (random(10_000_000), random(KEYS));
                (time + random(BOUND), key, time)
            })
            .collect();
        records.sort_unstable();
        records.into_iter().map(|(_, key, time)| (key, time)).collect::<Vec<_>>()
    };
    let (left, right) = (side(), side());
    assert!(left.windows(2).filter(|pair| pair[0].1 > pair[1].1).count() > 1000);

    let stamped = |records: &[(i64, i64)]| {
        DataStream::from_stream(stream::iter(records.to_vec()))
            .assign_timestamps(
                |record| at(record.1),
                Watermarks::bounded_out_of_orderness(millis(BOUND.unsigned_abs())),
            )
            .key_by(|record: &(i64, i64)| record.0)
    };
    let joined = stamped(&left).reconcile(stamped(&right), millis(WITHIN.unsigned_abs()));
    let ReconciliationStreams { matched, unmatched_left, unmatched_right, late_left, late_right } =
        joined;
    let single = |record: (i64, i64)| Outcome { key: record.0, pair: false };
    let outcomes = matched
        .map(|pair| Outcome { key: pair.left.0, pair: true })
        .union(unmatched_left.map(single))
        .union(unmatched_right.map(single));
    let windows = outcomes
        .key_by(|outcome| outcome.key)
        .window(Tumbling::of(secs(10)))
        .side_output_late_data()
        .apply(|_, _, outcomes: &[Outcome]| {
            let pairs = outcomes.iter().filter(|outcome| outcome.pair).count() as u64;
            (pairs, outcomes.len() as u64 - pairs)
        });
    let sessions = windows
        .results
        .map(|result| (result.key, result.value))
        .key_by(|result: &(i64, Counts)| result.0)
        .window(Session::with_gap(millis(GAP.unsigned_abs())))
        .side_output_late_data()
        .reduce(|counts: &mut (i64, Counts), next| add(&mut counts.1, next.1));
    let sums = sessions.results.map(|session| (session.key, session.window, session.value.1));
    let (mut sums, late, later, early_left, early_right) = block_on(async {
        futures::join!(
            sums.collect::<Vec<Counted>>(),
            windows.late.count(),
            sessions.late.count(),
            late_left.count(),
            late_right.count(),
        )
    });
    assert_eq!((early_left, early_right, late, later), (0, 0, 0, 0));

    // The same from all records at once.
    let mut counts: BTreeMap<(i64, i64), Counts> = BTreeMap::new();
    let mut enter = |key, time: i64, more| {
        add(counts.entry((key, time.div_euclid(10_000))).or_default(), more);
    };
    let close = |a: &(i64, i64), b: &(i64, i64)| a.0 == b.0 && (a.1 - b.1).abs() <= WITHIN;
    for record in &left {
        let partners: Vec<_> = right.iter().filter(|other| close(record, other)).collect();
        for other in &partners {
            enter(record.0, record.1.max(other.1), (1, 0));
        }
        if partners.is_empty() {
            enter(record.0, record.1, (0, 1));
        }
    }
    for record in right.iter().filter(|record| !left.iter().any(|other| close(record, other))) {
        enter(record.0, record.1, (0, 1));
    }
    let mut expected: Vec<Counted> = Vec::new();
    for ((key, index), more) in counts {
        let result = at(index * 10_000 + 9_999);
        let window = Window::new(result, result + millis(GAP.unsigned_abs()));
        match expected.last_mut() {
            Some((last, session, counts)) if *last == key && session.touches(&window) => {
                *session = session.cover(&window);
                add(counts, more);
            }
            _ => expected.push((key, window, more)),
        }
    }
    sums.sort_unstable();
    assert!(sums.iter().map(|sum| sum.2.0).sum::<u64>() > 100, "too few pairs to tell");
    assert_eq!(sums, expected);
}

#[test]
fn time_13_the_late_counter_is_the_number_of_late_records() {
    // 1000 records of 12 keys; 37 of them come a minute late.
    let records: Vec<(i64, i64)> = (0..1000)
        .map(|n| (n % 12, if n >= 500 && n % 13 == 0 && n < 500 + 13 * 37 { n - 60 } else { n }))
        .collect();
    let expected =
        records.iter().enumerate().filter(|(n, (_, second))| i64::try_from(*n).unwrap() != *second);
    assert_eq!(expected.count(), 37);
    let keyed = || {
        DataStream::from_stream(stream::iter(records.clone()))
            .assign_timestamps(|(_, s)| Timestamp::from_secs(*s), Watermarks::monotonous())
            .key_by(|(key, _)| *key)
    };

    let tumbling =
        keyed().window(Tumbling::of(secs(10))).side_output_late_data().aggregate(Count::new());
    tumbling.results.discard();
    assert_eq!(block_on(tumbling.late.count()), 37);

    let sliding = Sliding::of(secs(20)).every(secs(10));
    let dropped = keyed().window(sliding).drop_late_data().aggregate(Count::new());
    let ledger = dropped.ledger_handle().unwrap();
    block_on(dropped.for_each(drop)).unwrap();
    assert_eq!(ledger.read().late, 37);
    assert!(ledger.read().is_balanced());

    let sessions =
        keyed().window(Session::with_gap(secs(1))).side_output_late_data().aggregate(Count::new());
    let ledger = sessions.ledger_handle();
    sessions.results.discard();
    assert_eq!(block_on(sessions.late.count()), 37);
    assert_eq!(ledger.read()["late"].routed, 37);
}

#[test]
fn time_13_a_record_with_one_open_window_is_not_late() {
    let elements = [Element::watermark(at(25)), Element::record((), at(15))];
    let sliding = Sliding::of(millis(30)).every(millis(10));
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .window_all(sliding)
        .side_output_late_data()
        .aggregate(Count::new());
    let (results, late) =
        block_on(future::join(results.collect::<Vec<_>>(), late.collect::<Vec<_>>()));
    assert!(late.is_empty());
    let windows: Vec<Window> = results.iter().map(|result| result.window).collect();
    // [-10, 20) is closed.
    assert_eq!(windows, [Window::new(at(0), at(30)), Window::new(at(10), at(40))]);
}

#[test]
fn time_14_a_watermark_per_partition_keeps_replays_on_time() {
    let partition = || seconds(0..=1000, Duration::ZERO);
    let window = |stream: DataStream<i64>| {
        stream.window_all(Tumbling::of(secs(10))).side_output_late_data().aggregate(Count::new())
    };
    // Each with its own generator, the first read far ahead.
    let WindowStreams { results, late } = window(partition().union(partition()));
    results.discard();
    assert_eq!(block_on(late.count()), 0);

    // One generator after the merge.
    let merged = stream::iter(0..=1000).chain(stream::iter(0..=1000));
    let WindowStreams { results, late } = window(
        DataStream::from_stream(merged)
            .assign_timestamps(|s| Timestamp::from_secs(*s), Watermarks::monotonous())
            .boxed(),
    );
    results.discard();
    // All of the second partition but what falls into the window that is still open.
    assert_eq!(block_on(late.count()), 1000);
}

#[test]
fn time_15_a_quiet_stream_closes_its_windows_by_policy() {
    // The end of the input flushes.
    let bounded = seconds([1, 2], Duration::ZERO);
    let counts =
        bounded.window_all(Tumbling::of(secs(10))).drop_late_data().aggregate(Count::new());
    assert_eq!(block_on(counts.map(|r| r.value).collect::<Vec<_>>()), [2]);

    // A live one closes them by a policy: after five seconds event time goes on with the clock.
    let clock = TestClock::at(at(70));
    let (sender, source) = hand::<i64>();
    let mut counts = source
        .assign_timestamps(|ms| at(*ms), Watermarks::monotonous())
        .advance_when_idle(secs(5), clock.clone())
        .window_all(Tumbling::of(millis(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = counts.ledger_handle().unwrap();
    for ms in [1, 2] {
        sender.unbounded_send(ms).unwrap();
    }
    assert!(ready(&mut counts).is_empty());
    clock.advance(millis(4_999));
    assert!(ready(&mut counts).is_empty());
    assert_eq!(ledger.read().held, 1);
    clock.advance(millis(1));
    assert_eq!(ready(&mut counts).remove(0).value, 2);
    assert_eq!(ledger.read().held, 0);
    // The clock was right: a record that is on time by it is on time.
    sender.unbounded_send(5_002).unwrap();
    // This one is not.
    sender.unbounded_send(4_000).unwrap();
    assert!(ready(&mut counts).is_empty());
    assert_eq!((ledger.read().held, ledger.read().late), (1, 1));

    // Without one, nothing is said, and the ledger says what is open.
    let (sender, source) = hand::<i64>();
    let mut counts = source
        .assign_timestamps(|ms| at(*ms), Watermarks::monotonous())
        .window_all(Tumbling::of(millis(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = counts.ledger_handle().unwrap();
    for ms in [1, 2] {
        sender.unbounded_send(ms).unwrap();
    }
    assert!(ready(&mut counts).is_empty());
    assert_eq!((ledger.read().held, ledger.read().unrouted), (1, 2));
    assert!(ledger.read().is_balanced());

    // A quiet live input waits, and one that is idle beside a lively one does not hold it up.
    let clock = TestClock::at(at(0));
    let (sender, source) = hand::<i64>();
    let strategy = Watermarks::monotonous().with_idleness(secs(5), clock.clone());
    let mut elements = source.assign_timestamps(|s| Timestamp::from_secs(*s), strategy).elements();
    sender.unbounded_send(1).unwrap();
    assert_eq!(ready(&mut elements).len(), 2);
    clock.advance(secs(5));
    assert_eq!(ready(&mut elements).remove(0).unwrap(), Element::Mark(Mark::Idle));
    sender.unbounded_send(2).unwrap();
    let back: Vec<_> = ready(&mut elements).into_iter().map(Result::unwrap).collect();
    assert_eq!(
        back,
        [Element::Mark(Mark::Active), Element::record(2, at(2000)), Element::watermark(at(1999)),]
    );
}

#[test]
fn time_15_quiet_time_goes_on_by_itself_and_not_beyond_what_comes() {
    let clock = TestClock::at(at(0));
    let (sender, source) = hand::<i64>();
    let mut elements = source
        .assign_timestamps(|ms| at(*ms), Watermarks::monotonous())
        .advance_when_idle(millis(10), clock.clone())
        .elements();
    let (waker, woken) = futures_test::task::new_count_waker();
    let mut cx = TaskContext::from_waker(&waker);
    let mut poll = || {
        let mut seen = Vec::new();
        while let Poll::Ready(Some(element)) = Pin::new(&mut elements).poll_next(&mut cx) {
            seen.push(element.unwrap());
        }
        seen
    };
    // Nothing says where event time is.
    assert!(poll().is_empty());
    clock.set(at(500));
    assert!(poll().is_empty());
    sender.unbounded_send(100).unwrap();
    assert_eq!(poll(), [Element::record(100, at(100)), Element::watermark(at(99))]);
    let before = woken.get();
    clock.set(at(510));
    assert!(woken.get() > before);
    assert_eq!(poll(), [Element::watermark(at(109))]);
    clock.set(at(400));
    assert!(poll().is_empty());
    clock.set(at(525));
    assert_eq!(poll(), [Element::watermark(at(124))]);
    // Behind the clock: late for those who care, and no time goes back.
    sender.unbounded_send(111).unwrap();
    assert_eq!(poll(), [Element::record(111, at(111))]);
    sender.unbounded_send(130).unwrap();
    assert_eq!(poll(), [Element::record(130, at(130)), Element::watermark(at(129))]);
    clock.set(Timestamp::MAX);
    assert_eq!(poll(), [Element::watermark(Timestamp::MAX - millis(525 - 129))]);
    drop(sender);
    assert_eq!(poll(), [Element::watermark(Timestamp::MAX)]);
}

#[test]
fn time_16_a_clock_that_jumps_harms_nothing() {
    let clock = TestClock::at(Timestamp::from_secs(7200));
    let (sender, source) = hand::<i64>();
    let strategy = Watermarks::monotonous().with_idleness(secs(5), clock.clone());
    let mut elements = source.assign_timestamps(|s| Timestamp::from_secs(*s), strategy).elements();
    sender.unbounded_send(1).unwrap();
    assert_eq!(ready(&mut elements).len(), 2);
    clock.set(Timestamp::from_secs(3600));
    assert!(ready(&mut elements).is_empty());
    clock.set(Timestamp::from_secs(3 * 3600));
    let idle: Vec<_> = ready(&mut elements).into_iter().map(Result::unwrap).collect();
    assert_eq!(idle, [Element::Mark(Mark::Idle)]);
    clock.set(Timestamp::from_secs(-3600));
    assert!(ready(&mut elements).is_empty());
    clock.set(Timestamp::MAX);
    assert!(ready(&mut elements).is_empty());
}

#[test]
fn idleness_wakes_the_reader_by_itself() {
    let clock = TestClock::at(at(0));
    let (_sender, source) = hand::<i64>();
    let strategy = Watermarks::monotonous().with_idleness(secs(5), clock.clone());
    let mut elements = source.assign_timestamps(|s| Timestamp::from_secs(*s), strategy).elements();
    let (waker, count) = futures_test::task::new_count_waker();
    let mut cx = TaskContext::from_waker(&waker);
    assert!(Pin::new(&mut elements).poll_next(&mut cx).is_pending());
    assert_eq!(count.get(), 0);
    clock.advance(secs(5));
    assert_eq!(count.get(), 1);
    assert!(Pin::new(&mut elements).poll_next(&mut cx).is_ready());
}

#[test]
fn the_system_clock_wakes() {
    let (waker, count) = futures_test::task::new_count_waker();
    SystemClock.wake_at(SystemClock.now() + millis(5), &waker);
    let start = std::time::Instant::now();
    while count.get() == 0 && start.elapsed() < secs(10) {
        std::thread::yield_now();
    }
    assert_eq!(count.get(), 1);
}

#[test]
fn emission_every_so_much_event_time_is_a_function_of_the_records() {
    let stream = DataStream::from_stream(stream::iter([0, 3, 9, 10, 12, 31, 5])).assign_timestamps(
        |s| at(*s),
        Watermarks::bounded_out_of_orderness(millis(1)).emit_every(millis(10)),
    );
    let marks: Vec<_> = elements(stream.boxed())
        .into_iter()
        .filter(|element| matches!(element, Element::Mark(_)))
        .collect();
    assert_eq!(
        marks,
        [
            Element::watermark(at(-2)),
            Element::watermark(at(8)),
            Element::watermark(at(29)),
            Element::watermark(Timestamp::MAX),
        ]
    );
}

#[test]
fn watermarks_saturate_at_the_ends_of_time() {
    let extremes = [i64::MIN + 1, i64::MAX, 0, i64::MIN];
    let stream = DataStream::from_stream(stream::iter(extremes))
        .assign_timestamps(|s| at(*s), Watermarks::bounded_out_of_orderness(Duration::MAX));
    assert_eq!(elements(stream.boxed()).len(), 6);
}

#[test]
fn a_generator_may_propose_at_once_and_by_period() {
    struct Both;
    impl WatermarkGenerator<i64> for Both {
        fn on_record(&mut self, value: &i64, _at: Timestamp) -> Option<Timestamp> {
            (value % 2 == 0).then(|| at(*value))
        }
        fn on_period(&mut self) -> Option<Timestamp> {
            Some(at(3))
        }
    }
    let stream = DataStream::from_stream(stream::iter([1, 2, 4]))
        .assign_timestamps(|s| at(*s), Watermarks::from_generator(Both));
    assert_eq!(
        elements(stream.boxed()),
        [
            Element::record(1, at(1)),
            Element::watermark(at(3)),
            Element::record(2, at(2)),
            Element::record(4, at(4)),
            Element::watermark(at(4)),
            Element::watermark(Timestamp::MAX),
        ]
    );
}

#[test]
fn a_union_is_fair() {
    let endless = |n: i64| DataStream::from_stream(stream::repeat(n));
    let union = endless(1).union([endless(2), endless(3)]);
    let seen: Vec<i64> = block_on(union.take(10_000).collect());
    for n in 1..=3 {
        assert!(seen.iter().filter(|seen| **seen == n).count() > 2_000);
    }
}

#[test]
fn a_union_ends_with_the_error_of_an_input() {
    let failing = DataStream::from_try_stream(stream::iter([Ok(1), Err("broken")]));
    let fine = DataStream::from_stream(stream::pending());
    let results: Vec<_> = block_on(fine.union(failing).results().collect());
    assert_eq!(results.len(), 2);
    assert!(results[1].is_err());
}

#[test]
fn a_union_waits_for_a_barrier_of_every_input() {
    let barrier = Element::Mark(Mark::Barrier(7));
    let one = [Element::record(1, at(1)), barrier, Element::record(2, at(2)), barrier];
    let two = [Element::record(3, at(3)), Element::record(4, at(4)), barrier];
    let union = DataStream::from_elements(stream::iter(one))
        .union(DataStream::from_elements(stream::iter(two)));
    let elements = elements(union);
    let cut = elements.iter().position(|element| *element == barrier).unwrap();
    let before: Vec<_> = elements[..cut]
        .iter()
        .filter_map(|element| match element {
            Element::Record { value, .. } => Some(*value),
            Element::Mark(_) => None,
        })
        .collect();
    assert_eq!(before, [1, 3, 4]);
}

#[test]
fn alignment_of_one_input_filters_regressions() {
    let mut one = Alignment::union(1);
    assert!(one.on_watermark(0, at(10)).eq([Mark::Watermark(at(10))]));
    assert_eq!(one.on_watermark(0, at(5)).count(), 0);
    assert_eq!(one.on_mark(0, Mark::Barrier(1)).count(), 0);
}

/// Collects nothing: for driving an operator to the end.
struct Nowhere;

impl<S> Collect<S> for Nowhere {
    fn emit(&mut self, _route: S, _at: Timestamp) {}
    fn mark(&mut self, _mark: Mark) {}
}

#[test]
fn an_operator_forwards_what_is_not_time() {
    let mut operator =
        side_output::operator::AssignTimestamps::new(|n: &i64| at(*n), Watermarks::monotonous());
    let mut account = Account::new();
    for mark in [Mark::Idle, Mark::Active, Mark::Barrier(3)] {
        assert!(Turn::new(&mut Nowhere, &mut account, 1).mark(&mut operator, mark).unwrap());
    }
}
