//! Two inputs, reconciliation and broadcast configuration. Tests of cases carry their ids.

mod bare;

use self::bare::{Bare, Lines, Seen, at};
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use futures_test::stream::StreamTestExt as _;
use proptest::prelude::*;
use side_output::operator::{Broadcast, KeyedBroadcast, KeyedCo, Reconcile};
use side_output::prelude::*;
use side_output::{
    BroadcastContext, BroadcastProcess, CoProcess, Configuration, Either, Element,
    KeyedBroadcastContext, KeyedBroadcastProcess, Mark, Match, ReconcileWithin, Reconciliation,
};
use std::time::Duration;

/// A record of a join: key and number.
type Row = (u32, i64);
type Joined = Reconciliation<Row, Row>;
type ByKey = fn(&Row) -> u32;

fn join(within: i64, grace: i64) -> Bare<KeyedCo<Reconcile<u32, Row, Row>, ByKey, ByKey>> {
    let millis = |millis: i64| Duration::from_millis(millis.unsigned_abs());
    let within = ReconcileWithin::new(millis(within)).grace(millis(grace));
    Bare::new(KeyedCo::new(|row| row.0, |row| row.0, Reconcile::new(within)))
}

fn left(key: u32, time: i64) -> Either<Row, Row> {
    Either::Left((key, time))
}

fn right(key: u32, time: i64) -> Either<Row, Row> {
    Either::Right((key, time))
}

fn matched(key: u32, left: i64, right: i64) -> Joined {
    Joined::Matched(Match { left: (key, left), right: (key, right) })
}

#[test]
fn join_03_unmatched_is_only_what_cannot_be_matched_any_more() {
    let mut op = join(10, 5);
    assert_eq!(op.record(left(1, 0), 0).routes(), []);
    assert_eq!(op.record(right(1, 8), 8).routes(), [(matched(1, 0, 8), 8)]);
    op.record(left(2, 0), 0);
    assert_eq!(op.watermark(14).routes(), []);
    assert_eq!(op.watermark(15).routes(), [(Joined::UnmatchedLeft((2, 0)), 0)]);
    assert_eq!(op.record(right(2, 9), 9).routes(), [(Joined::LateRight((2, 9)), 9)]);
    assert_eq!(op.end().routes(), []);
    assert_eq!((op.op.keys(), op.op.timers()), (0, 0));
}

#[test]
fn join_04_an_old_record_within_the_grace_is_matched() {
    let mut op = join(10, 20);
    op.watermark(15);
    assert_eq!(op.record(left(1, 2), 2).routes(), []);
    assert_eq!(op.record(right(1, 5), 5).routes(), [(matched(1, 2, 5), 5)]);
    assert_eq!(op.end().routes(), []);
}

#[test]
fn join_06_a_record_that_was_matched_is_not_unmatched_later() {
    let mut op = join(10, 0);
    op.record(left(1, 10), 10);
    assert_eq!(op.record(right(1, 1), 1).routes(), [(matched(1, 10, 1), 10)]);
    assert_eq!(op.watermark(11).routes(), []);
    assert_eq!(op.watermark(20).routes(), []);
    assert_eq!(op.op.keys(), 0);
}

#[test]
fn join_07_late_records_have_two_typed_outputs() {
    let mut op = join(5, 0);
    op.watermark(100);
    assert_eq!(op.record(left(1, 90), 90).routes(), [(Joined::LateLeft((1, 90)), 90)]);
    assert_eq!(op.record(right(1, 80), 80).routes(), [(Joined::LateRight((1, 80)), 80)]);
    assert_eq!(op.record(left(1, 101), 101).routes(), []);
}

#[test]
fn records_without_timestamps_are_known_from_the_beginning_of_time() {
    let mut op = join(5, 0);
    op.record(right(1, 0), i64::MIN);
    op.record(right(2, 0), i64::MIN);
    op.watermark(1000);
    assert_eq!(op.record(left(1, 1001), 1001).routes(), [(matched(1, 1001, 0), 1001)]);
    assert_eq!(op.record(left(1, 2001), 2001).routes(), [(matched(1, 2001, 0), 2001)]);
    assert_eq!(op.end().routes(), [(Joined::UnmatchedRight((2, 0)), i64::MIN)]);
}

/// A record of either input, or a watermark.
#[derive(Clone, Debug)]
enum Step {
    Left(u32, i64),
    Right(u32, i64),
    Watermark(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4u32, 0..60i64).prop_map(|(key, time)| Step::Left(key, time)),
        3 => (0..4u32, 0..60i64).prop_map(|(key, time)| Step::Right(key, time)),
        1 => (0..60i64).prop_map(Step::Watermark),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A record is matched, unmatched once or late, whatever the order of arrival; what is
    /// emitted is on time for what follows.
    #[test]
    fn join_05_and_08_every_record_has_one_fate_and_is_on_time(
        steps in steps(), within in 0..15i64, grace in 0..15i64,
    ) {
        let mut op = join(within, grace);
        let (mut lefts, mut rights, mut late) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = i64::MIN;
        for step in steps {
            match step {
                Step::Watermark(time) => {
                    now = now.max(time);
                    op.watermark(time);
                }
                Step::Left(key, time) => {
                    op.record(left(key, time), time);
                    let list = if time + grace <= now { &mut late } else { &mut lefts };
                    list.push((key, time));
                }
                Step::Right(key, time) => {
                    op.record(right(key, time), time);
                    let list = if time + grace <= now { &mut late } else { &mut rights };
                    list.push((key, time));
                }
            }
        }
        op.end();
        // On time: above the watermark that its output has seen, unless it came late.
        let mut seen = i64::MIN;
        for item in &op.out.seen {
            match item {
                Seen::Watermark(time) => {
                    prop_assert!(*time > seen);
                    seen = *time;
                }
                Seen::Route(Joined::LateLeft(_) | Joined::LateRight(_), _) | Seen::Other(_) => {}
                Seen::Route(_, time) => prop_assert!(*time > seen, "{item:?} at {seen}"),
            }
        }
        let mut expected = Vec::new();
        for &(key, time) in &lefts {
            let mut any = false;
            for &(other, right) in &rights {
                if key == other && (time - right).abs() <= within {
                    expected.push(matched(key, time, right));
                    any = true;
                }
            }
            if !any {
                expected.push(Joined::UnmatchedLeft((key, time)));
            }
        }
        for &(key, time) in &rights {
            if !lefts.iter().any(|&(other, left)| key == other && (time - left).abs() <= within) {
                expected.push(Joined::UnmatchedRight((key, time)));
            }
        }
        let routes = op.routes().into_iter().map(|(route, _)| route);
        let mut actual: Vec<_> = routes
            .filter(|route| !matches!(route, Joined::LateLeft(_) | Joined::LateRight(_)))
            .collect();
        let order = |route: &Joined| format!("{route:?}");
        actual.sort_by_key(order);
        expected.sort_by_key(order);
        prop_assert_eq!(actual, expected);
        prop_assert_eq!((op.op.keys(), op.op.timers()), (0, 0));
    }
}

#[test]
fn join_05_an_order_with_several_items_is_matched_with_each() {
    let mut op = join(10, 0);
    for item in 1..=3 {
        op.record(right(1, item), item);
    }
    op.record(left(1, 0), 0).record(left(2, 0), 0).record(left(3, 0), 0).record(right(2, 4), 4);
    let routes: Vec<_> = op.end().routes().into_iter().map(|(route, _)| route).collect();
    assert_eq!(routes.iter().filter(|route| matches!(route, Joined::Matched(_))).count(), 4);
    assert_eq!(routes.last(), Some(&Joined::UnmatchedLeft((3, 0))));
    assert_eq!(routes.len(), 5);
}

/// Sends each record to the output that the configuration names, with the version.
#[derive(Clone)]
struct Route {
    hold_back: usize,
}

impl BroadcastProcess for Route {
    type In = &'static str;
    type Update = &'static str;
    type Config = Vec<&'static str>;
    type Out = Lines;

    fn on_record(
        &mut self,
        record: &'static str,
        side: &Vec<&'static str>,
        cx: &mut BroadcastContext<Lines>,
    ) -> impl Routes<Lines> {
        let text = format!("{record} v{}", cx.config_version());
        if side.contains(&record) { Lines::side(text) } else { Lines::main(text) }
    }

    fn on_update(
        &mut self,
        update: &'static str,
        config: &mut Configuration<Vec<&'static str>>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        match update {
            "none" => config.remove(),
            "?" => return Some(Lines::side("bad_config ?")),
            names => config.replace(names.split(' ').collect()),
        }
        None
    }

    fn on_unconfigured(
        &mut self,
        record: &'static str,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        Lines::side(format!("{record} no_config"))
    }

    fn hold_back(&self) -> usize {
        self.hold_back
    }
}

type Input = Either<&'static str, &'static str>;
const fn data(text: &'static str) -> Input {
    Either::Left(text)
}
const fn config(text: &'static str) -> Input {
    Either::Right(text)
}

#[test]
fn join_01_config_first_waits_for_the_whole_configuration() {
    for seed in 0..1000_u32 {
        let rules = stream::iter(["a", "b", "x y"]);
        let records = stream::iter(["x", "a", "y", "b", "z"]);
        // Either side may be slow.
        let rules = if seed % 2 == 0 {
            rules.left_stream()
        } else {
            rules.interleave_pending().right_stream()
        };
        let records = if seed % 3 == 0 {
            records.left_stream()
        } else {
            records.interleave_pending().right_stream()
        };
        let streams = DataStream::from_stream(records)
            .connect_broadcast(DataStream::from_stream(rules))
            .config_first()
            .process(Route { hold_back: 0 });
        let ledger = streams.ledger_handle();
        streams.note.discard();
        let (main, side) = block_on(futures::future::join(
            streams.main.collect::<Vec<_>>(),
            streams.side.collect::<Vec<_>>(),
        ));
        assert_eq!(main, ["a v3", "b v3", "z v3"]);
        assert_eq!(side, ["x v3", "y v3"]);
        assert!(ledger.read().is_balanced());
    }
}

#[test]
fn join_02_records_wait_for_the_first_configuration_and_carry_its_version() {
    let mut op = Bare::new(Broadcast::new(Route { hold_back: 2 }));
    op.record(data("d1"), 1).record(data("d2"), 2);
    assert_eq!(op.texts(), [""; 0]);
    // The third has no room.
    assert_eq!(op.record(data("d3"), 3).texts(), ["side d3 no_config"]);
    // The watermark waits with the records.
    op.watermark(3);
    assert_eq!(op.out.seen, []);
    op.record(config("d2"), 0);
    assert_eq!(
        op.out.seen,
        [
            Seen::Route(Lines::main("d1 v1"), 1),
            Seen::Route(Lines::side("d2 v1"), 2),
            Seen::Watermark(3),
        ]
    );
    op.routes();
    assert_eq!(op.record(data("d4"), 4).texts(), ["d4 v1"]);
    op.record(data("d5"), 5).record(config("d6"), 5).record(data("d6"), 6);
    assert_eq!(op.texts(), ["d5 v1", "side d6 v2"]);
    // A malformed one changes nothing.
    assert_eq!(op.record(config("?"), 6).texts(), ["side bad_config ?"]);
    assert_eq!(op.record(data("d6"), 6).texts(), ["side d6 v2"]);
    // Without a configuration records wait again; at the end they go where the function says.
    op.record(config("none"), 7).record(data("d7"), 7);
    assert_eq!(op.texts(), [""; 0]);
    assert_eq!(op.end().texts(), ["side d7 no_config"]);
}

#[test]
fn without_hold_back_a_record_goes_at_once_where_the_function_says() {
    let mut op = Bare::new(Broadcast::new(Route { hold_back: 0 }));
    assert_eq!(op.record(data("d1"), 1).texts(), ["side d1 no_config"]);
    op.watermark(5);
    assert_eq!(op.out.seen, [Seen::Watermark(5)]);
}

/// Counts per key up to a limit that is configured, and says when time is up.
struct Limit;

impl KeyedBroadcastProcess for Limit {
    type Key = &'static str;
    type In = &'static str;
    type Update = u32;
    type Config = u32;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        key: &'static str,
        limit: &u32,
        count: &mut u32,
        cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        cx.set_timer(at(100));
        cx.output(Lines::NOTE_TAG, format!("{} v{}", cx.key(), cx.config_version()));
        if *count > *limit { Lines::side(key) } else { Lines::main(key) }
    }

    fn on_update(
        &mut self,
        update: u32,
        limit: &mut Configuration<u32>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        limit.replace(update);
        None::<Lines>
    }

    fn on_unconfigured(
        &mut self,
        key: &'static str,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        Lines::side(format!("{key} no_config"))
    }

    fn on_timer(
        &mut self,
        time: Timestamp,
        limit: Option<&u32>,
        count: &mut u32,
        cx: &mut side_output::KeyContext<&'static str, Lines>,
    ) -> impl Routes<Lines> {
        cx.clear();
        Lines::main(format!("{} {count}/{limit:?}@{time:?}", cx.key()))
    }

    fn hold_back(&self) -> usize {
        1
    }
}

#[test]
fn a_keyed_broadcast_function_has_configuration_state_and_timers() {
    let mut op = Bare::new(KeyedBroadcast::new(|key: &&'static str| *key, Limit));
    op.record(Either::Left("a"), 1).record(Either::Left("b"), 1);
    assert_eq!(op.texts(), ["side b no_config"]);
    op.watermark(50);
    op.record(Either::Right(1), 0);
    assert_eq!(op.texts(), ["a", "note a v1"]);
    op.record(Either::Left("a"), 60).record(Either::Right(5), 0).record(Either::Left("a"), 60);
    assert_eq!(op.texts(), ["side a", "note a v1", "a", "note a v2"]);
    assert_eq!(op.watermark(100).texts(), ["a 3/Some(5)@100"]);
    assert_eq!(
        op.record(Either::Left("a"), 101).end().texts(),
        ["a", "note a v2", "a 1/Some(5)@100"]
    );
}

/// Repeats a record after as many milliseconds of the clock as it is configured to.
struct Remind;

impl KeyedBroadcastProcess for Remind {
    type Key = &'static str;
    type In = &'static str;
    type Update = i64;
    type Config = i64;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        key: &'static str,
        after: &i64,
        count: &mut u32,
        cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        let now = cx.now().expect("a clock");
        if key == "never" {
            cx.set_processing_timer(now);
            cx.delete_processing_timer(now);
        }
        cx.set_processing_timer(now.saturating_add_millis(*after));
        Lines::main(key)
    }

    fn on_update(
        &mut self,
        after: i64,
        config: &mut Configuration<i64>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        config.replace(after);
        None::<Lines>
    }

    fn on_unconfigured(
        &mut self,
        key: &'static str,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        Lines::side(key)
    }

    fn on_processing_timer(
        &mut self,
        time: Timestamp,
        after: Option<&i64>,
        count: &mut u32,
        cx: &mut side_output::KeyContext<&'static str, Lines>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{} {count}/{}@{time:?}", cx.key(), after.expect("configured")))
    }

    fn hold_back(&self) -> usize {
        10
    }
}

#[test]
fn a_keyed_broadcast_function_has_timers_by_the_clock() {
    let clock = side_output::TestClock::at(at(1000));
    let (records, receiver) = futures::channel::mpsc::unbounded();
    let (updates, config) = futures::channel::mpsc::unbounded();
    let streams = DataStream::from_stream(receiver)
        .key_by(|key: &&'static str| *key)
        .connect_broadcast(DataStream::from_stream(config))
        .process_with_clock(Remind, clock.clone());
    let ledger = streams.ledger_handle();
    streams.side.discard();
    streams.note.discard();
    let mut main = streams.main;
    let mut read = || {
        let mut all = Vec::new();
        while let Some(Some(text)) = main.next().now_or_never() {
            all.push(text);
        }
        all
    };
    records.unbounded_send("a").unwrap();
    records.unbounded_send("never").unwrap();
    assert_eq!(read(), [""; 0]);
    // The records that waited set their timers when they are released.
    clock.set(at(2000));
    updates.unbounded_send(50).unwrap();
    assert_eq!(read(), ["a", "never"]);
    updates.unbounded_send(70).unwrap();
    assert_eq!(read(), [""; 0]);
    records.unbounded_send("a").unwrap();
    assert_eq!(read(), ["a"]);
    clock.set(at(2050));
    assert_eq!(read(), ["a 2/70@2050", "never 1/70@2050"]);
    clock.set(at(2071));
    assert_eq!(read(), ["a 2/70@2070"]);
    // One that is left at the end does not fire, and is counted.
    records.unbounded_send("b").unwrap();
    drop((records, updates));
    assert_eq!(read(), ["b"]);
    let ledger = ledger.read();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.received, ledger.updates, ledger.timers_left), (4, 2, 1));
}

/// Sets as many timers as a record says, and tells the watermark with each route.
struct Timers {
    hold_back: usize,
}

impl KeyedBroadcastProcess for Timers {
    type Key = i64;
    type In = (i64, i64);
    type Update = bool;
    type Config = ();
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        (_, timers): (i64, i64),
        _config: &(),
        fired: &mut u32,
        cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Lines> {
        (0..timers).for_each(|n| cx.set_timer(at(1_000_000 + n)));
        Lines::main(format!("{fired} at {:?}", cx.watermark()))
    }

    fn on_update(
        &mut self,
        update: bool,
        config: &mut Configuration<()>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        if update {
            config.replace(());
        } else {
            config.remove();
        }
        None::<Lines>
    }

    fn on_unconfigured(
        &mut self,
        _record: (i64, i64),
        cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        Lines::side(format!("at {:?}", cx.watermark()))
    }

    fn on_timer(
        &mut self,
        _time: Timestamp,
        _config: Option<&()>,
        fired: &mut u32,
        _cx: &mut side_output::KeyContext<i64, Lines>,
    ) -> impl Routes<Lines> {
        *fired += 1;
        None::<Lines>
    }

    fn hold_back(&self) -> usize {
        self.hold_back
    }
}

/// A function with 2000 timers, whose configuration is gone.
fn with_timers()
-> Bare<impl side_output::operator::Operator<In = Either<(i64, i64), bool>, Out = Lines>> {
    let mut op =
        Bare::new(KeyedBroadcast::new(|record: &(i64, i64)| record.0, Timers { hold_back: 1000 }));
    op.record(Either::Right(true), 0).record(Either::Left((1, 2000)), 0);
    op.record(Either::Right(false), 0);
    op.routes();
    op
}

#[test]
fn fault_29_a_release_passes_the_watermark_in_full() {
    let mut op = with_timers();
    op.record(Either::Left((1, 0)), 2_000_001).watermark(2_000_000);
    assert_eq!(op.out.seen, []);
    op.record(Either::Right(true), 0);
    assert_eq!(op.out.seen.last(), Some(&Seen::Watermark(2_000_000)));
    assert_eq!(
        op.record(Either::Left((1, 0)), 2_000_001).texts().last().unwrap(),
        "2000 at 2000000"
    );
    op.watermark(2_000_001);
    assert_eq!(op.out.seen, [Seen::Watermark(2_000_001)]);
    op.out.seen.clear();
    assert_eq!(op.record(Either::Left((1, 0)), 2_000_002).texts(), ["2000 at 2000001"]);
}

#[test]
fn fault_29_many_held_records_are_released_at_the_end_in_turns_with_their_watermark() {
    for room in [1, 10, 512] {
        let mut op = with_timers();
        op.room = room;
        for _ in 0..600 {
            op.record(Either::Left((1, 0)), 2_000_001);
        }
        op.watermark(2_000_000).mark(Mark::Idle);
        assert_eq!(op.out.seen, []);
        let mut last = 0;
        op.mark_with(Mark::Watermark(Timestamp::MAX), |seen| {
            assert!(seen.len() - last <= room + 3, "one call emitted {}", seen.len() - last);
            last = seen.len();
        });
        let routes = op.out.seen.iter().filter(|seen| matches!(seen, Seen::Route(..))).count();
        assert_eq!(routes, 600);
        let rest: Vec<_> = op.out.seen.drain(..).skip(600).collect();
        let expected =
            [Seen::Watermark(2_000_000), Seen::Other(Mark::Idle), Seen::Watermark(i64::MAX)];
        assert_eq!(rest, expected, "{room}");
    }
}

#[test]
fn fault_29_what_is_released_by_the_end_of_the_configuration_has_its_watermark_after_it() {
    let mut op = with_timers();
    op.record(Either::Left((1, 0)), 2_000_001).watermark(2_000_000);
    op.input_end(1);
    assert_eq!(
        op.out.seen,
        [Seen::Route(Lines::side("at min"), 2_000_001), Seen::Watermark(2_000_000)]
    );
    op.routes();
    assert_eq!(op.record(Either::Left((1, 0)), 2_000_001).texts(), ["side at 2000000"]);
}

/// Says which input a record came from, and the watermark.
struct Show;

impl CoProcess for Show {
    type Left = u32;
    type Right = char;
    type Out = Lines;

    fn on_left(&mut self, number: u32, cx: &mut Context<Lines>) -> impl Routes<Lines> {
        Lines::main(format!("{number} {:?}", cx.watermark()))
    }

    fn on_right(&mut self, letter: char, cx: &mut Context<Lines>) -> impl Routes<Lines> {
        Lines::main(format!("{letter} {:?}", cx.watermark()))
    }
}

#[test]
fn an_input_that_ends_early_leaves_the_time_to_the_other() {
    let left = DataStream::from_elements(stream::iter([Element::record(1, at(1))]));
    let right = stream::iter([
        Element::watermark(at(5)),
        Element::record('x', at(6)),
        Element::watermark(at(9)),
        Element::record('y', at(10)),
    ]);
    let streams = left.connect(DataStream::from_elements(right.interleave_pending())).process(Show);
    let ledger = streams.ledger_handle();
    streams.side.discard();
    streams.note.discard();
    assert_eq!(block_on(streams.main.collect::<Vec<_>>()), ["1 min", "x 5", "y 9"]);
    assert!(ledger.read().is_balanced());
}

#[test]
fn two_inputs_that_are_always_ready_take_turns() {
    let numbers = DataStream::from_stream(stream::iter(0..10_000));
    let letters = DataStream::from_stream(stream::repeat('x').take(10_000));
    let streams = numbers.connect(letters).process(Show);
    streams.side.discard();
    streams.note.discard();
    let all = block_on(streams.main.collect::<Vec<_>>());
    assert_eq!(all.len(), 20_000);
    let letters = all[..4000].iter().filter(|text| text.starts_with('x')).count();
    assert!((1000..3000).contains(&letters), "{letters} of the first 4000");
}

#[test]
fn an_error_of_one_input_is_an_error_of_all_outputs() {
    let numbers = DataStream::from_try_stream(stream::iter([Ok(1), Err("broken pipe")]));
    let letters = DataStream::from_stream(stream::pending::<char>());
    let streams = numbers.connect(letters).process(Show);
    streams.note.discard();
    let error = block_on(streams.main.for_each(drop)).unwrap_err();
    assert!(error.to_string().contains("broken pipe"), "{error}");
    assert!(block_on(streams.side.for_each(drop)).is_err());
}

#[test]
fn a_barrier_passes_when_both_inputs_have_brought_it() {
    let left = stream::iter([
        Element::record(1, at(1)),
        Element::Mark(Mark::Barrier(7)),
        Element::record(2, at(2)),
    ]);
    let right = stream::iter([
        Element::record('x', at(1)),
        Element::record('y', at(1)),
        Element::Mark(Mark::Barrier(7)),
        Element::record('z', at(2)),
    ]);
    let left = DataStream::from_elements(left);
    let right = DataStream::from_elements(right.interleave_pending());
    let streams = left.connect(right).process(Show);
    streams.side.discard();
    streams.note.discard();
    let elements = block_on(streams.main.elements().map(Result::unwrap).collect::<Vec<_>>());
    let barrier = elements
        .iter()
        .position(|element| *element == Element::Mark(Mark::Barrier(7)))
        .expect("the barrier");
    let texts = |elements: &[Element<String>]| -> Vec<String> {
        let text = |element: &Element<String>| match element {
            Element::Record { value, .. } => Some(value[..1].to_owned()),
            Element::Mark(_) => None,
        };
        let mut texts: Vec<_> = elements.iter().filter_map(text).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&elements[..barrier]), ["1", "x", "y"]);
    assert_eq!(texts(&elements[barrier..]), ["2", "z"]);
}

#[test]
fn reconciled_streams_can_be_read_or_wired() {
    let orders =
        || DataStream::from_stream(stream::iter([(1, 10), (2, 20)])).key_by(|row: &Row| row.0);
    let pays =
        || DataStream::from_stream(stream::iter([(1, 11), (3, 30)])).key_by(|row: &Row| row.0);
    let ten_minutes = Duration::from_mins(10);

    let mut unmatched = Vec::new();
    let ledger = block_on(
        orders()
            .reconcile(pays(), ten_minutes)
            .wire()
            .matched(discard())
            .unmatched_left(&mut unmatched)
            .unmatched_right(each(|row| assert_eq!(row, (3, 30))))
            .late_left(discard())
            .late_right(discard())
            .run(),
    )
    .unwrap();
    assert_eq!(unmatched, [(2, 20)]);
    assert_eq!(ledger["matched"].routed, 1);
    assert_eq!(ledger["unmatched_right"].delivered, 1);
    assert!(ledger.is_balanced(), "{ledger:?}");

    let mut streams = orders().reconcile(pays(), ten_minutes).boxed();
    let matched = streams.get_side_output(Joined::MATCHED_TAG);
    let ledger = streams.ledger_handle();
    streams.unmatched_left.discard();
    streams.unmatched_right.discard();
    streams.late_left.discard();
    streams.late_right.discard();
    assert_eq!(block_on(matched.collect::<Vec<_>>()), [Match { left: (1, 10), right: (1, 11) }]);
    assert!(ledger.read().is_balanced());
}

#[test]
fn fault_22_chained_unions_share_equally() {
    let ready = |n: u32| DataStream::from_stream(stream::repeat(n));
    let chained = ready(0).union(ready(1)).union(ready(2)).union(ready(3)).union(ready(4));
    let mut shares = [0; 5];
    block_on(chained.take(50_000).for_each(|n| {
        shares[n as usize] += 1;
        std::future::ready(())
    }));
    // A chunk each in turn: none is more than one ahead.
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= 512, "{shares:?}");
}

#[test]
fn every_input_of_a_union_that_fails_is_an_error_of_the_union() {
    for failing in 0..3 {
        let input = |input: u32| {
            let numbers = stream::iter([Ok(10 * input), Ok(10 * input + 1)]);
            let end = if input == failing {
                stream::iter([Err(format!("input {input}"))]).right_stream()
            } else {
                stream::empty().left_stream()
            };
            DataStream::from_try_stream(numbers.chain(end))
        };
        let union = input(0).union([input(1), input(2)]);
        let mut results = block_on(union.results().collect::<Vec<_>>());
        let error = results.pop().unwrap().unwrap_err().to_string();
        assert_eq!(error, format!("the stream failed: input {failing}"));
        let read: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(read.contains(&(10 * failing)) && read.contains(&(10 * failing + 1)), "{read:?}");
    }
}

/// Reads a union of a wiring's stream and `other` as plain records, in a destination of the wiring;
/// the error of the wiring, and whether the reader came to an end.
fn union_in_a_wiring(fails: bool, other: DataStream<u32>) -> (Option<StreamError>, bool) {
    let numbers = stream::iter([Ok(1), Ok(2), if fails { Err("wired") } else { Ok(3) }]);
    let mut ended = false;
    let end = &mut ended;
    let read = move |stream: DataStream<u32>| async move {
        drop(stream.union(other).collect::<Vec<_>>().await);
        *end = true;
    };
    let run = DataStream::from_try_stream(numbers).split_with(One::Any).wire().any(read).run();
    let error = block_on(run).err();
    (error, ended)
}

#[splitter]
enum One {
    Any(u32),
}

#[test]
fn a_plain_reader_of_a_union_sees_no_error_that_is_returned_elsewhere() {
    let open = DataStream::from_stream(stream::iter([7]).chain(stream::pending()));
    let (error, ended) = union_in_a_wiring(true, open);
    assert_eq!((error.unwrap().to_string().as_str(), ended), ("the stream failed: wired", true));
    let (error, ended) = union_in_a_wiring(false, DataStream::from_stream(stream::iter([7])));
    assert!(error.is_none() && ended);
    // That of the other input is returned nowhere else: it is logged, and the records end.
    let torn = DataStream::from_try_stream(stream::iter([Ok(7), Err("torn")]));
    let (error, ended) = union_in_a_wiring(false, torn);
    assert!(error.is_none() && ended);
}

#[test]
fn a_union_that_was_read_in_part_keeps_its_order() {
    let mut first =
        DataStream::from_stream(stream::iter(0..5)).union(DataStream::from_stream(stream::empty()));
    assert_eq!(block_on(first.next()), Some(0));
    let all = first.union(DataStream::from_stream(stream::iter(10..12)));
    let mut all: Vec<i32> = block_on(all.collect());
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 10, 11]);
}

#[test]
fn a_union_that_was_read_keeps_the_barriers_that_came() {
    let barrier = Element::Mark(Mark::Barrier(1));
    let element = |n: u32| Element::Record { value: n, at: None };
    let a = stream::iter([barrier, element(1)]);
    let (sender, b) = futures::channel::mpsc::unbounded();
    let mut union = DataStream::from_elements(a).union(DataStream::from_elements(b));
    assert!(union.next().now_or_never().is_none(), "it waits for the other barrier");
    let all = union.union(DataStream::from_elements(stream::iter([barrier])));
    sender.unbounded_send(barrier).unwrap();
    drop(sender);
    let elements: Vec<_> = block_on(all.elements().map(Result::unwrap).collect());
    let before = elements.iter().position(|other| *other == barrier).expect("the barrier passes");
    let record = elements.iter().position(|other| *other == element(1)).expect("the record");
    assert!(before < record, "{elements:?}");
}
