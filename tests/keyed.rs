//! Keyed state and timers. Tests of `shared` cases carry their ids.

mod bare;

use self::bare::{Bare, Lines, Seen, at};
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use proptest::prelude::*;
use side_output::operator::{Keyed, Operator as _, Turn};
use side_output::output::Account;
use side_output::prelude::*;
use side_output::{
    Collect, Element, KeyContext, KeyedContext, KeyedProcess, Mark, TestClock, TimerChange,
};
use std::collections::BTreeSet;
use std::task::Poll;
use std::time::Duration;

/// What a record asks for.
#[derive(Clone, Debug)]
enum Ask {
    Set(i64),
    Delete(i64),
    /// When the timer at the first time fires, set one at the second.
    ThenSet(i64, i64),
    /// When the timer at the first time fires, delete the one at the second.
    ThenDelete(i64, i64),
    Clear,
    Tell,
}

type Asked = (&'static str, Vec<Ask>);

/// Does what the records ask for, and says which timers fire.
struct Obey;

impl KeyedProcess for Obey {
    type Key = &'static str;
    type In = Asked;
    type State = Vec<Ask>;
    type Out = Lines;

    fn on_record(
        &mut self,
        (_, asks): Asked,
        state: &mut Vec<Ask>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        for ask in asks {
            match ask {
                Ask::Set(time) => cx.set_timer(at(time)),
                Ask::Delete(time) => cx.delete_timer(at(time)),
                Ask::Clear => cx.clear(),
                Ask::Tell => return Some(Lines::main(format!("{} {}", cx.key(), state.len()))),
                then => state.push(then),
            }
        }
        None
    }

    fn on_timer(
        &mut self,
        time: Timestamp,
        state: &mut Vec<Ask>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        state.retain(|ask| match *ask {
            Ask::ThenSet(when, new) if at(when) == time => {
                cx.set_timer(at(new));
                false
            }
            Ask::ThenDelete(when, old) if at(when) == time => {
                cx.delete_timer(at(old));
                false
            }
            _ => true,
        });
        Lines::main(format!("{}@{time:?}", cx.key()))
    }

    fn is_empty(state: &Vec<Ask>) -> bool {
        state.is_empty()
    }
}

type ByKey = fn(&Asked) -> &'static str;

fn obey() -> Bare<Keyed<Obey, ByKey>> {
    Bare::new(Keyed::new(|asked| asked.0, Obey))
}

#[test]
fn key_03_timers_fire_when_the_watermark_reaches_them_in_order_of_time() {
    let mut op = obey();
    op.record(("a", vec![Ask::Set(5), Ask::Set(3), Ask::Set(9), Ask::ThenSet(3, 4)]), 0);
    assert_eq!(op.watermark(2).texts(), [""; 0]);
    assert_eq!(op.watermark(5).texts(), ["a@3", "a@4", "a@5"]);
    assert_eq!(op.watermark(8).texts(), [""; 0]);
    assert_eq!(op.watermark(9).texts(), ["a@9"]);
}

#[test]
fn key_03_timers_of_the_same_time_fire_in_the_order_in_which_they_were_set() {
    let mut op = obey();
    for key in ["d", "b", "a", "c"] {
        op.record((key, vec![Ask::Set(7)]), 0);
    }
    op.record(("b", vec![Ask::Delete(7), Ask::Set(7)]), 0);
    assert_eq!(op.watermark(7).texts(), ["d@7", "a@7", "c@7", "b@7"]);
}

#[test]
fn key_04_a_cancelled_timer_does_not_fire() {
    let mut op = obey();
    // One key, two timers that are due in the same round: the first cancels the second.
    op.record(("a", vec![Ask::Set(4), Ask::Set(5), Ask::ThenDelete(4, 5)]), 0);
    op.record(("b", vec![Ask::Set(5)]), 0);
    assert_eq!(op.watermark(10).texts(), ["a@4", "b@5"]);
    // A timer that is moved before the watermark comes fires at its new time alone.
    op.record(("a", vec![Ask::Set(15)]), 11);
    op.record(("a", vec![Ask::Delete(15), Ask::Set(50)]), 12);
    assert_eq!(op.watermark(20).texts(), [""; 0]);
    assert_eq!(op.watermark(60).texts(), ["a@50"]);
}

#[test]
fn key_05_a_due_timer_fires_once_however_often_its_output_is_full() {
    let mut asks = vec![("k", vec![Ask::Set(5), Ask::Set(5)])];
    asks.extend((0..20).map(|_| ("other", vec![Ask::Set(5)])));
    let elements = asks.into_iter().map(|ask| Element::record(ask, at(0)));
    let elements = elements.chain([Element::watermark(at(5)), Element::watermark(at(6))]);
    let streams = DataStream::from_elements(stream::iter(elements.collect::<Vec<_>>()))
        .key_by(|asked: &Asked| asked.0)
        .process(Obey);
    let ledger = streams.ledger_handle();
    streams.side.discard();
    streams.note.discard();
    let fired = block_on(streams.main.collect::<Vec<_>>());
    assert_eq!(fired, ["k@5", "other@5"]);
    assert!(ledger.read().is_balanced(), "{:?}", ledger.read());
}

#[splitter]
enum Alerts {
    #[main]
    #[output(capacity = 1)]
    Alert(String),
    Other(u32),
}

/// An alert for the record, and one for the timer that it sets.
struct AlertTwice {
    processing: bool,
}

impl KeyedProcess for AlertTwice {
    type Key = &'static str;
    type In = &'static str;
    type State = ();
    type Out = Alerts;

    fn on_record(
        &mut self,
        key: &'static str,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Alerts> {
        if self.processing {
            cx.set_processing_timer(at(5));
        } else {
            cx.set_timer(at(5));
        }
        Alerts::Alert(key.to_owned())
    }

    fn on_timer(
        &mut self,
        time: Timestamp,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Alerts> {
        Alerts::Alert(format!("{}@{time:?}", cx.key()))
    }

    fn on_processing_timer(
        &mut self,
        time: Timestamp,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Alerts> {
        Alerts::Alert(format!("{}@{time:?}", cx.key()))
    }
}

#[test]
fn key_05_a_due_timer_gives_one_alert_after_a_thousand_blocked_ticks() {
    // In event time: every tick is a watermark.
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let AlertsStreams { alert, mut other } = DataStream::from_elements(receiver)
        .key_by(|key: &&str| *key)
        .process(AlertTwice { processing: false });
    sender.unbounded_send(Element::record("k", at(0))).unwrap();
    for tick in 5..1005 {
        sender.unbounded_send(Element::watermark(at(tick))).unwrap();
        // Drives the function, while nobody reads the alerts.
        assert!(other.next().now_or_never().is_none());
    }
    drop(sender);
    let (alerts, others) =
        block_on(futures::future::join(alert.collect::<Vec<_>>(), other.count()));
    assert_eq!((alerts, others), (vec!["k".to_owned(), "k@5".to_owned()], 0));

    // By the clock.
    let clock = TestClock::at(at(0));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let AlertsStreams { alert, mut other } = DataStream::from_stream(receiver)
        .key_by(|key: &&str| *key)
        .process_with_clock(AlertTwice { processing: true }, clock.clone());
    sender.unbounded_send("k").unwrap();
    for _ in 0..1000 {
        clock.advance(Duration::from_millis(1));
        assert!(other.next().now_or_never().is_none());
    }
    drop(sender);
    let (alerts, others) =
        block_on(futures::future::join(alert.collect::<Vec<_>>(), other.count()));
    assert_eq!((alerts, others), (vec!["k".to_owned(), "k@5".to_owned()], 0));
}

#[test]
fn key_06_rounded_timers_are_few_and_never_early() {
    struct Timeout;
    impl KeyedProcess for Timeout {
        type Key = ();
        type In = i64;
        type State = ();
        type Out = Lines;
        fn on_record(
            &mut self,
            time: i64,
            (): &mut (),
            cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Lines> {
            cx.set_timer_rounded(at(time + 1000), Duration::from_secs(1));
            None::<Lines>
        }
        fn on_timer(
            &mut self,
            time: Timestamp,
            (): &mut (),
            _: &mut KeyedContext<Self>,
        ) -> impl Routes<Lines> {
            Lines::main(format!("{time:?}"))
        }
    }
    let mut op = Bare::new(Keyed::new(|_: &i64| (), Timeout));
    for time in 500..1500 {
        op.record(time, time);
    }
    assert_eq!(op.op.timers(), 2);
    assert_eq!(op.watermark(1999).texts(), [""; 0]);
    assert_eq!(op.watermark(3000).texts(), ["2000", "3000"]);
    op.record(-1500, 0);
    assert_eq!(op.watermark(3001).texts(), ["0"]);
    assert_eq!(op.op.keys(), 0);
}

/// Counts per key, with a time to live.
struct Counts;

impl KeyedProcess for Counts {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        key: u32,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        if *count == 1 && key == 0 {
            cx.set_timer(Timestamp::MAX);
        }
        Lines::main(*count)
    }

    fn time_to_live(&self) -> Option<Duration> {
        Some(Duration::from_mins(2))
    }
}

#[test]
fn key_07_a_key_that_expires_leaves_nothing_behind() {
    let mut op = Bare::new(Keyed::new(|key: &u32| *key, Counts));
    for round in 0..3 {
        for key in 0..50_000 {
            op.record(key, round * 1000);
        }
    }
    assert_eq!((op.op.keys(), op.op.timers()), (50_000, 1));
    op.watermark(122_000 - 1);
    assert_eq!(op.op.keys(), 50_000);
    op.watermark(3_600_000);
    assert_eq!((op.op.keys(), op.op.timers()), (0, 0));
    op.routes();
    // It starts again from the default.
    assert_eq!(op.record(7, 3_600_001).texts(), ["1"]);
}

/// Collects nothing.
struct Nowhere;

impl<S> Collect<S> for Nowhere {
    fn emit(&mut self, _route: S, _at: Timestamp) {}
    fn mark(&mut self, _mark: Mark) {}
}

#[test]
fn key_07_a_million_keys_come_and_go() {
    struct Touch;
    impl KeyedProcess for Touch {
        type Key = u32;
        type In = u32;
        type State = u64;
        type Out = Lines;
        fn on_record(
            &mut self,
            _: u32,
            count: &mut u64,
            cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Lines> {
            *count += 1;
            if *count == 1 {
                // The expiry of its key takes it along.
                cx.set_timer(at(i64::MAX - 1));
            }
            None::<Lines>
        }
        fn time_to_live(&self) -> Option<Duration> {
            Some(Duration::from_mins(2))
        }
    }
    // Without optimisation a million takes longer than a test should.
    const KEYS: u32 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    let mut operator = Keyed::new(|key: &u32| *key, Touch);
    let mut account = Account::new();
    for event in 0..3 {
        for key in 0..KEYS {
            let mut out = Nowhere;
            let mut turn = Turn::new(&mut out, &mut account, 1);
            turn.record(&mut operator, key, at(event * 1000)).unwrap();
        }
    }
    assert_eq!(operator.held(), u64::from(KEYS));
    let hour = Mark::Watermark(at(3_600_000));
    while !Turn::new(&mut Nowhere, &mut account, 4096).mark(&mut operator, hour).unwrap() {}
    assert_eq!((account.unrouted, account.emitted()), (3 * u64::from(KEYS), 0));
    assert_eq!((operator.keys(), operator.timers(), operator.held()), (0, 0, 0));
}

#[test]
fn key_07_a_cleared_key_leaves_nothing_behind() {
    let mut op = obey();
    op.record(("a", vec![Ask::Set(5), Ask::Set(6), Ask::ThenSet(5, 7)]), 0);
    assert_eq!((op.op.keys(), op.op.timers()), (1, 2));
    op.record(("a", vec![Ask::Set(8), Ask::Clear]), 0);
    assert_eq!((op.op.keys(), op.op.timers()), (0, 0));
    // The slot is used again, and the entries of the old timers do not fire for its new key.
    op.record(("b", vec![Ask::Set(6)]), 0);
    assert_eq!(op.watermark(10).texts(), ["b@6"]);
    assert_eq!(op.op.keys(), 0);
}

#[test]
fn key_08_time_alone_makes_a_timeout() {
    let mut op = obey();
    op.record(("order", vec![Ask::Set(60)]), 0);
    op.record(("other", vec![]), 60);
    op.watermark(60);
    assert_eq!(op.out.seen[0], Seen::Route(Lines::main("order@60"), 60));
    assert_eq!(op.out.seen[1], Seen::Watermark(60));
}

#[test]
fn key_09_silent_keys_expire_while_another_is_busy() {
    let mut op = Bare::new(Keyed::new(|key: &u32| *key, Counts));
    for key in 1..20_000 {
        op.record(key, 0);
    }
    for minute in 0..60 {
        op.record(0, minute * 60_000);
        op.watermark(minute * 60_000);
    }
    assert_eq!(op.op.keys(), 1);
}

#[test]
fn state_is_that_of_the_record_s_key() {
    let visits = ["a", "b", "a", "c", "a", "b"];
    let streams = DataStream::from_stream(stream::iter(visits))
        .key_by(|key: &&str| *key)
        .process_with(|key, count: &mut u32, _: &mut KeyContext<&str, Lines>| {
            *count += 1;
            Lines::main(format!("{key}{count}"))
        });
    streams.side.discard();
    streams.note.discard();
    assert_eq!(block_on(streams.main.collect::<Vec<_>>()), ["a1", "b1", "a2", "c1", "a3", "b2"]);
}

#[test]
fn a_function_can_be_tested_without_a_stream() {
    let mut cx = KeyContext::at("a", at(7));
    let mut state = Vec::new();
    let asked = ("a", vec![Ask::Set(9), Ask::Tell]);
    let routes = KeyedProcess::on_record(&mut Obey, asked, &mut state, &mut cx).into_vec();
    assert_eq!(routes.unwrap(), [Lines::main("a 0")]);
    assert!(cx.timer_changes().eq([TimerChange::Set(at(9))]));
}

#[test]
fn a_timer_that_renews_itself_at_the_end_of_time_stops() {
    let mut op = obey();
    op.record(("a", vec![Ask::Set(i64::MAX), Ask::ThenSet(i64::MAX, i64::MAX)]), 0);
    assert_eq!(op.end().texts(), ["a@max"]);
}

#[test]
fn a_tap_carries_an_alert_beside_the_record() {
    let readings = [('a', 50.0), ('b', 30.5)];
    let streams = DataStream::from_stream(stream::iter(readings))
        .key_by(|reading: &(char, f64)| reading.0)
        .process_with(|(_, degrees), (): &mut (), cx: &mut KeyContext<char, Lines>| {
            if degrees < 32.0 {
                cx.output(Lines::NOTE_TAG, format!("{} freezes", cx.key()));
            }
            Lines::main(degrees)
        });
    streams.side.discard();
    let (main, note) = block_on(futures::future::join(
        streams.main.collect::<Vec<_>>(),
        streams.note.collect::<Vec<_>>(),
    ));
    assert_eq!(main, ["50", "30.5"]);
    assert_eq!(note, ["b freezes"]);
}

/// Sets processing-time timers, and says which fire.
struct Alarms;

impl KeyedProcess for Alarms {
    type Key = &'static str;
    type In = (&'static str, i64);
    type State = ();
    type Out = Lines;

    fn on_record(
        &mut self,
        (_, time): Self::In,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        if time < 0 {
            cx.delete_processing_timer(at(-time));
        } else {
            cx.set_processing_timer(at(time));
        }
        None::<Lines>
    }

    fn on_processing_timer(
        &mut self,
        time: Timestamp,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{}@{time:?}", cx.key()))
    }
}

#[test]
fn key_02_and_08_processing_time_timers_fire_in_order_without_any_record() {
    let clock = TestClock::at(at(100));
    let asks = [("a", 2000), ("b", 1000), ("a", 60_000), ("c", 3000), ("c", -3000), ("d", 50)];
    let streams = DataStream::from_stream(stream::iter(asks).chain(stream::pending()))
        .key_by(|ask: &(&'static str, i64)| ask.0)
        .process_with_clock(Alarms, clock.clone());
    streams.side.discard();
    streams.note.discard();
    let mut fired = streams.main;
    let (waker, woken) = futures_test::task::new_count_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut poll = || match fired.poll_next_unpin(&mut cx) {
        Poll::Ready(text) => text.expect("no end"),
        Poll::Pending => "none".to_owned(),
    };
    // Its time was over when it was set.
    assert_eq!([poll(), poll()], ["d@50", "none"]);
    let before = woken.get();
    clock.set(at(999));
    assert_eq!((woken.get(), poll()), (before, "none".to_owned()));
    clock.set(at(10_000));
    assert!(woken.get() > before);
    assert_eq!([poll(), poll(), poll()], ["b@1000", "a@2000", "none"]);
    clock.set(at(60_000));
    assert_eq!([poll(), poll()], ["a@60000", "none"]);
}

#[test]
fn all_processing_time_timers_that_are_due_come_before_the_next_record() {
    let clock = TestClock::at(at(100));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let streams = DataStream::from_stream(receiver)
        .key_by(|ask: &(&'static str, i64)| ask.0)
        .process_with_clock(Alarms, clock.clone());
    streams.side.discard();
    streams.note.discard();
    let mut fired = streams.main;
    // So many that they are put in order in several portions.
    (0..2000).for_each(|n| sender.unbounded_send(("many", 1_000_000 + n)).unwrap());
    while fired.next().now_or_never().is_some() {}
    clock.set(at(2_000_000));
    sender.unbounded_send(("late", 5)).unwrap();
    drop(sender);
    let fired = block_on(fired.collect::<Vec<_>>());
    assert_eq!((fired.len(), fired.last().unwrap().as_str()), (2001, "late@5"));
}

#[test]
fn a_processing_time_timer_without_a_clock_is_an_error() {
    let streams = DataStream::from_stream(stream::iter([1])).key_by(|n: &u32| *n).process_with(
        |_, (): &mut (), cx: &mut KeyContext<u32, Lines>| {
            cx.set_processing_timer(at(1));
            None::<Lines>
        },
    );
    streams.side.discard();
    streams.note.discard();
    let error = block_on(streams.main.for_each(drop)).unwrap_err();
    assert!(error.to_string().contains("process_with_clock"), "{error}");
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8, i64),
    Delete(u8, i64),
    Watermark(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..6u8, 0..40i64).prop_map(|(key, time)| Step::Set(key, time)),
        2 => (0..6u8, 0..40i64).prop_map(|(key, time)| Step::Delete(key, time)),
        1 => (0..40i64).prop_map(Step::Watermark),
    ];
    prop::collection::vec(step, 0..200)
}

struct Fire;

impl KeyedProcess for Fire {
    type Key = u8;
    type In = Step;
    type State = ();
    type Out = Lines;

    fn on_record(
        &mut self,
        step: Step,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        match step {
            Step::Set(_, time) => cx.set_timer(at(time)),
            Step::Delete(_, time) => cx.delete_timer(at(time)),
            Step::Watermark(_) => {}
        }
        None::<Lines>
    }

    fn on_timer(
        &mut self,
        time: Timestamp,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{}@{time:?}", cx.key()))
    }
}

proptest! {
    #[test]
    fn timers_fire_as_a_sorted_set_does(steps in steps()) {
        let mut op = Bare::new(Keyed::new(
            |step: &Step| match step {
                Step::Set(key, _) | Step::Delete(key, _) => *key,
                Step::Watermark(_) => unreachable!("no record"),
            },
            Fire,
        ));
        // By time, then by when it was set.
        let mut reference: BTreeSet<(i64, usize, u8)> = BTreeSet::new();
        let mut now = i64::MIN;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Set(key, time) => {
                    if !reference.iter().any(|timer| (timer.0, timer.2) == (time, key)) {
                        reference.insert((time, number, key));
                    }
                    op.record(step, 0);
                }
                Step::Delete(key, time) => {
                    reference.retain(|timer| (timer.0, timer.2) != (time, key));
                    op.record(step, 0);
                }
                Step::Watermark(time) => {
                    op.watermark(time);
                    let mut due = Vec::new();
                    if time > now {
                        now = time;
                        while let Some(timer) = reference.first().filter(|t| t.0 <= time).copied() {
                            reference.remove(&timer);
                            due.push(format!("{}@{:?}", timer.2, timer.0));
                        }
                    }
                    prop_assert_eq!(op.texts(), due);
                }
            }
            prop_assert_eq!(op.op.timers(), reference.len());
            let keys: BTreeSet<u8> = reference.iter().map(|timer| timer.2).collect();
            prop_assert_eq!(op.op.keys(), keys.len());
        }
        let rest: Vec<_> = reference.iter().map(|t| format!("{}@{:?}", t.2, t.0)).collect();
        prop_assert_eq!(op.end().texts(), rest);
    }
}
