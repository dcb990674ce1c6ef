//! State that is saved in the middle of anything, and loaded into a new operator: what comes out is
//! what would have come out anyway. And bytes that are wrong are an error, never anything else.

#![cfg(feature = "job")]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use side_output::operator::{
    Broadcast, Keyed, KeyedBroadcast, KeyedCo, KeyedFn, Operator, Reconcile, Turn, Windows,
};
use side_output::output::{Account, Single};
use side_output::prelude::*;
use side_output::state::{SavedState, Snapshot, StateChanges, key_group, saved_hash};
use side_output::{
    Aggregate, Alignment, BroadcastContext, BroadcastProcess, Collect, Configuration,
    ContinuousEventTime, Count, Either, EveryCount, Global, KeyContext, KeyedBroadcastContext,
    KeyedBroadcastProcess, KeyedContext, KeyedProcess, Late, Mark, Purging, ReconcileWithin,
    RouteLate, Session, Sliding, Tumbling, Watermarks, WindowContext, WindowProcess,
};
use std::fmt::Debug;
use std::time::Duration;

type Text = Single<String>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Clone, Debug)]
enum Step<T> {
    Record(T, i64),
    /// A record when the clock shows the first time.
    Timed(i64, T, i64),
    Watermark(i64),
    Idle(bool),
    Clock(i64),
    End(usize),
}

/// What came out, as text.
#[derive(Clone, Default)]
struct Seen(Vec<String>);

impl<S: Debug> Collect<S> for Seen {
    fn emit(&mut self, route: S, at: Timestamp) {
        self.0.push(format!("{route:?} at {at:?}"));
    }
    fn mark(&mut self, mark: Mark) {
        self.0.push(format!("{mark:?}"));
    }
}

/// So many calls for one step are no end.
const ENDLESS: usize = 100_000;

fn feed<Op>(op: &mut Op, step: &Step<Op::In>, seen: &mut Seen) -> Result<(), StreamError>
where
    Op: Operator<In: Clone, Out: Debug>,
{
    let account = &mut Account::new();
    let mark = match step {
        Step::Record(value, millis) => {
            return Turn::new(seen, account, 7).record(op, value.clone(), at(*millis));
        }
        Step::Timed(now, value, at) => {
            feed(op, &Step::Clock(*now), seen)?;
            return feed(op, &Step::Record(value.clone(), *at), seen);
        }
        Step::End(input) => return Turn::new(seen, account, 7).input_end(op, *input),
        Step::Clock(now) => {
            for _ in 0..ENDLESS {
                let mut turn = Turn::new(seen, account, 7);
                turn.clock(op, at(*now))?;
                if !turn.is_full::<Op::Out>() {
                    return Ok(());
                }
            }
            panic!("it never ends");
        }
        Step::Watermark(millis) => Mark::Watermark(at(*millis)),
        Step::Idle(true) => Mark::Idle,
        Step::Idle(false) => Mark::Active,
    };
    for _ in 0..ENDLESS {
        if Turn::new(seen, account, 7).mark(op, mark)? {
            return Ok(());
        }
    }
    panic!("it never ends");
}

fn feed_all<Op>(op: &mut Op, steps: &[Step<Op::In>], seen: &mut Seen)
where
    Op: Operator<In: Clone, Out: Debug>,
{
    for step in steps {
        feed(op, step, seen).unwrap();
    }
}

fn save<Op: Snapshot>(op: &mut Op, full: bool, saved: &mut SavedState) {
    let mut changes = StateChanges::new(full);
    op.save(&mut changes).unwrap();
    saved.apply(&changes);
}

fn saved<Op: Snapshot>(op: &mut Op) -> SavedState {
    let mut saved = SavedState::new();
    save(op, true, &mut saved);
    saved
}

fn load<Op: Snapshot>(mut op: Op, from: &SavedState) -> Op {
    op.load(from).unwrap_or_else(|error| panic!("{error}"));
    op
}

/// Runs the script without and with crashes, and with bytes that are wrong.
fn check<Op>(name: &str, new: impl Fn() -> Op, script: &[Step<Op::In>])
where
    Op: Operator<In: Clone + Debug, Out: Debug> + Snapshot,
{
    let mut seen = Seen::default();
    let mut op = new();
    for step in script {
        feed(&mut op, step, &mut seen).unwrap();
    }
    let expected = seen.0;
    assert!(expected.len() > script.len() / 4, "{name}: too little happens");

    let (mut op, mut seen) = (new(), Seen::default());
    let (mut changing, mut crashing) = (new(), new());
    let (mut by_changes, mut before_crash) = (SavedState::new(), SavedState::new());
    let (mut ignored, mut seen_crashing) = (Seen::default(), Seen::default());
    for (position, step) in script.iter().enumerate() {
        feed(&mut op, step, &mut seen).unwrap();
        let full = saved(&mut op);
        let mut restored = load(new(), &full);
        assert_eq!(saved(&mut restored), full, "{name}, at {position}");
        let mut seen = seen.clone();
        for step in &script[position + 1..] {
            feed(&mut restored, step, &mut seen).unwrap();
        }
        assert_eq!(seen.0, expected, "{name}, restored at {position}");

        // With the changes only, and with a crash after each.
        feed(&mut changing, step, &mut ignored).unwrap();
        if position % 3 != 1 {
            save(&mut changing, position == 0, &mut by_changes);
            assert_eq!(by_changes, full, "{name}, by changes at {position}");
        }
        feed(&mut crashing, step, &mut seen_crashing).unwrap();
        save(&mut crashing, position == 0, &mut before_crash);
        crashing = load(new(), &before_crash);
    }
    assert_eq!(seen_crashing.0, expected, "{name}, with a crash after each step");
    spoil(&new, script, 2 * script.len() / 3);
}

/// Loads what was saved at `position` with every bit flipped once and every end cut off, and goes
/// on where that is no error.
fn spoil<Op>(new: &impl Fn() -> Op, script: &[Step<Op::In>], position: usize)
where
    Op: Operator<In: Clone, Out: Debug> + Snapshot,
{
    let (before, after) = script.split_at(position);
    let mut op = new();
    for step in before {
        feed(&mut op, step, &mut Seen::default()).unwrap();
    }
    let saved = saved(&mut op);
    let go_on = |spoilt: SavedState| {
        let mut op = new();
        if op.load(&spoilt).is_err() {
            return false;
        }
        for step in after.iter().chain([&Step::Watermark(i64::MAX)]) {
            // An error of the operator is one.
            if feed(&mut op, step, &mut Seen::default()).is_err() {
                break;
            }
        }
        true
    };
    assert!(go_on(saved.clone()));
    let (mut loaded, mut refused) = (0, 0);
    for spoilt in spoilt(&saved) {
        *(if go_on(spoilt) { &mut loaded } else { &mut refused }) += 1;
    }
    assert!(refused > loaded / 8, "{refused} refused, {loaded} loaded");
}

/// All parts of what was saved: the name or table with the group, key and value.
type Parts = Vec<(String, Option<(u8, Vec<u8>)>, Vec<u8>)>;

fn parts(saved: &SavedState) -> Parts {
    let values = saved.values().map(|(name, value)| (name.to_owned(), None, value.to_owned()));
    let entries = saved.entries().map(|entry| {
        let value = entry.value.unwrap().to_owned();
        (entry.table.to_owned(), Some((entry.group, entry.key.to_owned())), value)
    });
    values.chain(entries).collect()
}

fn from_parts(parts: &Parts) -> SavedState {
    let mut saved = SavedState::new();
    for (name, key, value) in parts {
        match key {
            None => saved.insert_value(name.clone(), value.clone()),
            Some((group, key)) => saved.insert_entry(name, *group, key.clone(), value.clone()),
        }
    }
    saved
}

/// Every way to flip one bit of it, to cut off one end, and to leave one part away.
fn spoilt(saved: &SavedState) -> impl Iterator<Item = SavedState> {
    let mut all = Vec::new();
    let good = parts(saved);
    // Of many entries the first ones, since the others are like them.
    for index in 0..good.len().min(5) {
        let mut spoil = |change: &dyn Fn(&mut Vec<u8>), of_key: bool| {
            let mut parts = good.clone();
            let (_, key, value) = &mut parts[index];
            match key {
                Some((_, key)) if of_key => change(key),
                _ => change(value),
            }
            all.push(from_parts(&parts));
        };
        for of_key in [false, true] {
            let bytes = match &good[index].1 {
                Some((_, key)) if of_key => key.len(),
                None if of_key => 0,
                _ => good[index].2.len(),
            };
            for byte in 0..bytes {
                for bit in 0..8 {
                    spoil(&|bytes| bytes[byte] ^= 1 << bit, of_key);
                }
                spoil(&|bytes| bytes.truncate(byte), of_key);
                spoil(&|bytes| bytes[byte] = 0xFF, of_key);
            }
        }
        let mut parts = good.clone();
        drop(parts.remove(index));
        all.push(from_parts(&parts));
    }
    all.into_iter()
}

/// A generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, below: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33).cast_signed() % below
    }

    fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[usize::try_from(self.below(1 << 20)).unwrap() % N]
    }
}

/// Records of three keys around a growing time, watermarks behind it, and what `other` makes.
fn script<T>(
    seed: u64,
    length: usize,
    mut record: impl FnMut(&mut Random) -> T,
    mut other: impl FnMut(&mut Random, i64) -> Option<Step<T>>,
) -> Vec<Step<T>> {
    let mut random = Random(seed);
    let (mut time, mut watermark) = (0, i64::MIN);
    let mut script = Vec::new();
    for _ in 0..length {
        time += random.below(15);
        match random.below(5) {
            0 => {
                watermark = watermark.max(time - random.below(40));
                script.push(Step::Watermark(watermark));
            }
            1 if let Some(step) = other(&mut random, time) => script.push(step),
            _ => script.push(Step::Record(record(&mut random), time - random.below(60))),
        }
    }
    script.push(Step::Watermark(i64::MAX));
    script
}

fn nothing<T>(_: &mut Random, _: i64) -> Option<Step<T>> {
    None
}

type Event = (String, i64);

fn event(random: &mut Random) -> Event {
    (random.pick(["a", "b", "c"]).to_owned(), random.below(100))
}

fn key(event: &Event) -> String {
    event.0.clone()
}

/// Counts, and sets timers of both kinds.
#[derive(Default, Serialize, Deserialize)]
struct Counted {
    count: i64,
    last: Option<i64>,
}

struct Timing {
    time_to_live: Option<Duration>,
    delay: Duration,
}

impl KeyedProcess for Timing {
    type Key = String;
    type In = Event;
    type State = Counted;
    type Out = Text;

    fn on_record(
        &mut self,
        (_, n): Event,
        state: &mut Counted,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Text> {
        let now = cx.timestamp().unwrap_or_default();
        state.count = state.count.wrapping_add(1);
        state.last = Some(n);
        match n % 6 {
            0 => cx.clear(),
            1 => cx.set_processing_timer(now + millis(20)),
            2 => cx.delete_timer(now + millis(10)),
            _ => {
                cx.set_timer_rounded(now + millis(10), millis(20));
                cx.set_timer(now + millis(50));
            }
        }
        Single(format!("{} {}", cx.key(), state.count))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Counted,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Text> {
        state.count = state.count.wrapping_sub(2);
        if state.count > 0 {
            cx.set_timer(at + millis(5));
        }
        Single(format!("{} at {at:?}, {} {:?}", cx.key(), state.count, state.last))
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        state: &mut Counted,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Text> {
        Single(format!("{} by the clock at {at:?}, {}", cx.key(), state.count))
    }

    fn is_empty(state: &Counted) -> bool {
        state.count <= 0
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }

    fn output_delay(&self) -> Duration {
        self.delay
    }
}

#[test]
fn keyed_functions_go_on_with_timers_expiry_and_delay() {
    let other = |random: &mut Random, time| match random.below(3) {
        0 => Some(Step::Idle(true)),
        1 => Some(Step::Idle(false)),
        _ => Some(Step::Clock(time - random.below(30))),
    };
    for (seed, time_to_live, delay) in [(1, None, 0), (2, Some(60), 0), (3, Some(30), 20)] {
        let mut steps = vec![Step::Clock(0)];
        steps.extend(script(seed, 90, event, other));
        // The clock is shown before anything happens.
        let timed = steps.into_iter().map(|step| match step {
            Step::Record(event, at) => Step::Timed(at - 40, event, at),
            step => step,
        });
        let script: Vec<_> = timed.collect();
        let new = || {
            let function = Timing { time_to_live: time_to_live.map(millis), delay: millis(delay) };
            Keyed::new(key, function)
        };
        check(&format!("keyed {seed}"), new, &script);
    }
}

#[test]
fn reconciliation_goes_on_with_what_waits() {
    let record = |random: &mut Random| {
        let event = event(random);
        if random.below(2) == 0 { Either::Left(event) } else { Either::Right(event) }
    };
    let within = ReconcileWithin::new(millis(30)).grace(millis(10));
    let new = || KeyedCo::new(key, key, Reconcile::new(within));
    check("reconcile", new, &script(4, 80, record, nothing));
}

/// Adds what it is configured with.
struct Adding;

impl BroadcastProcess for Adding {
    type In = Event;
    type Update = Option<i64>;
    type Config = Option<i64>;
    type Out = Text;

    fn on_record(
        &mut self,
        (key, n): Event,
        config: &Option<i64>,
        cx: &mut BroadcastContext<Text>,
    ) -> impl Routes<Text> {
        Single(format!("{key} {n} {config:?} {} {}", cx.config_version(), cx.watermark()))
    }

    fn on_update(
        &mut self,
        update: Option<i64>,
        config: &mut Configuration<Option<i64>>,
        _cx: &mut Context<Text>,
    ) -> impl Routes<Text> {
        if update == Some(0) {
            config.remove();
        } else {
            config.replace(update);
        }
        None::<Text>
    }

    fn on_unconfigured(&mut self, event: Event, cx: &mut Context<Text>) -> impl Routes<Text> {
        Single(format!("without {event:?} {}", cx.watermark()))
    }

    fn hold_back(&self) -> usize {
        5
    }
}

/// The same for each key, with timers.
struct AddingByKey;

impl KeyedBroadcastProcess for AddingByKey {
    type Key = String;
    type In = Event;
    type Update = Option<i64>;
    type Config = Option<i64>;
    type State = i64;
    type Out = Text;

    fn on_record(
        &mut self,
        (_, n): Event,
        config: &Option<i64>,
        sum: &mut i64,
        cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Text> {
        *sum = sum.wrapping_add(n.wrapping_mul(config.unwrap_or(1)));
        cx.set_timer(cx.timestamp().unwrap_or_default() + millis(20));
        Single(format!("{} {sum} {}", cx.key(), cx.config_version()))
    }

    fn on_update(
        &mut self,
        update: Option<i64>,
        config: &mut Configuration<Option<i64>>,
        _cx: &mut Context<Text>,
    ) -> impl Routes<Text> {
        if update == Some(0) {
            config.remove();
        } else {
            config.replace(update);
        }
        None::<Text>
    }

    fn on_unconfigured(&mut self, event: Event, cx: &mut Context<Text>) -> impl Routes<Text> {
        Single(format!("without {event:?} {}", cx.watermark()))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        config: Option<&Option<i64>>,
        sum: &mut i64,
        cx: &mut KeyContext<String, Text>,
    ) -> impl Routes<Text> {
        Single(format!("{} at {at:?}: {sum} {config:?}", cx.key()))
    }

    fn hold_back(&self) -> usize {
        5
    }
}

/// Events and updates; the configuration is removed at times, and its input ends.
fn configured(seed: u64) -> Vec<Step<Either<Event, Option<i64>>>> {
    let record = |random: &mut Random| match random.below(6) {
        0 => Either::Right(random.pick([None, Some(0), Some(0), Some(3)])),
        _ => Either::Left(event(random)),
    };
    let other = |random: &mut Random, _| Some(Step::Idle(random.below(2) == 0));
    let mut steps = script(seed, 90, record, other);
    // Records wait for the first configuration, and for one that does not come.
    let first = steps.iter().position(|step| matches!(step, Step::Record(Either::Right(_), _)));
    steps.insert(first.unwrap(), Step::Idle(true));
    steps.insert(70, Step::End(1));
    steps.retain({
        let mut ended = false;
        move |step| {
            ended |= matches!(step, Step::End(_));
            !ended || !matches!(step, Step::Record(Either::Right(_), _))
        }
    });
    steps
}

#[test]
fn broadcast_functions_go_on_with_configuration_and_what_waits_for_it() {
    for seed in 5..8 {
        check("broadcast", || Broadcast::new(Adding), &configured(seed));
        check("keyed broadcast", || KeyedBroadcast::new(key, AddingByKey), &configured(seed));
    }
}

/// The highest number.
#[derive(Clone)]
struct Highest;

impl Aggregate for Highest {
    type In = Event;
    type Accumulator = Option<i64>;
    type Output = Option<i64>;

    fn create(&mut self) -> Option<i64> {
        None
    }

    fn add(&mut self, highest: &mut Option<i64>, (_, n): &Event) {
        // A number below 10 is none.
        *highest = (*highest).max(Some(*n).filter(|n| *n >= 10));
    }

    fn merge(&mut self, highest: &mut Option<i64>, other: Option<i64>) {
        *highest = (*highest).max(other);
    }

    fn result(&mut self, highest: &Option<i64>) -> Option<i64> {
        *highest
    }
}

/// Lists the records, with state of both kinds.
struct Listing;

impl WindowProcess for Listing {
    type Key = String;
    type In = Event;
    type State = i64;
    type KeyState = i64;
    type Out = Text;

    fn process(
        &mut self,
        key: &String,
        events: &[Event],
        cx: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Text> {
        let events: Vec<_> = events.iter().map(|(_, n)| *n).collect();
        let (window, pane, watermark) = (cx.window(), cx.pane(), cx.watermark());
        *cx.state() = cx.state().wrapping_add(1);
        let state = *cx.state();
        let key_state = cx.key_state();
        let before = *key_state;
        *key_state = events.last().copied().filter(|n| n % 3 > 0);
        Single(format!("{key} {window} {pane} {watermark} {events:?} {state} {before:?}"))
    }

    fn merge(&mut self, state: &mut i64, other: i64) {
        *state = state.wrapping_add(other);
    }
}

impl RouteLate for Listing {
    fn on_late(&mut self, late: Late<Event>) -> impl Routes<Text> {
        Single(format!("late {:?}: {late}", late.value))
    }
}

#[test]
fn windows_go_on_in_all_engines() {
    let steps = |seed| script(seed, 80, event, nothing);
    let tumbling = || Windows::new(Tumbling::of(millis(20))).allowed_lateness(millis(30));
    let sliding = || Windows::new(Sliding::of(millis(40)).every(millis(10)));
    let session = || Windows::new(Session::with_gap(millis(10))).allowed_lateness(millis(30));
    for seed in 10..13 {
        let aggregated = || tumbling().side_output_late_data().aggregate(key, Highest);
        check("tumbling", aggregated, &steps(seed));
        let finals = || tumbling().with_final_panes().side_output_late_data().process(key, Listing);
        check("tumbling, with final panes", finals, &steps(seed));
        let sliced = || sliding().side_output_late_data().aggregate(key, Highest);
        check("sliding", sliced, &steps(seed));
        let late = || {
            let windows = sliding().allowed_lateness(millis(30)).with_final_panes();
            windows.side_output_late_data().aggregate(key, Highest)
        };
        check("sliding, with lateness", late, &steps(seed));
        let kept = || {
            let windows = sliding().allowed_lateness(millis(30));
            windows.keep_last(3).side_output_late_data().process(key, Listing)
        };
        check("sliding, with records", kept, &steps(seed));
        let sessions = || session().side_output_late_data().process(key, Listing);
        check("sessions", sessions, &steps(seed));
        let reduced = || {
            let newer = |one: &mut Event, other: Event| one.1 = one.1.max(other.1);
            session().with_final_panes().side_output_late_data().reduce(key, newer)
        };
        check("sessions, reduced", reduced, &steps(seed));
    }
}

#[test]
fn windows_with_triggers_go_on() {
    let steps = |seed| script(seed, 80, event, nothing);
    for seed in 20..23 {
        let purging = || {
            Windows::new(Tumbling::of(millis(30)))
                .allowed_lateness(millis(30))
                .trigger(Purging(ContinuousEventTime::every(millis(7))))
                .side_output_late_data()
                .aggregate(key, Highest)
        };
        check("purging", purging, &steps(seed));
        let counted = || {
            Windows::new(Session::with_gap(millis(10)))
                .allowed_lateness(millis(30))
                .trigger(EveryCount::new(2))
                .side_output_late_data()
                .process(key, Listing)
        };
        check("counted sessions", counted, &steps(seed));
        let continuous = || {
            Windows::new(Session::with_gap(millis(10)))
                .trigger(ContinuousEventTime::every(millis(7)))
                .with_final_panes()
                .side_output_late_data()
                .process(key, Listing)
        };
        check("continuous sessions", continuous, &steps(seed));
        let global = || {
            Windows::new(Global)
                .trigger(Purging(EveryCount::new(3)))
                .drop_late_data()
                .apply(key, |_: &String, _, events: &[Event]| events.to_vec())
        };
        check("global", global, &steps(seed));
    }
}

#[test]
fn watermark_strategies_go_on_with_their_period() {
    use side_output::operator::AssignTimestamps;
    let timestamp = |event: &Event| at(event.1);
    let mut time = 0;
    let record = |random: &mut Random| {
        time += random.below(9);
        ("a".to_owned(), time - random.below(20))
    };
    let steps = script(30, 60, record, nothing);
    for period in [0, 25] {
        let strategy =
            || Watermarks::bounded_out_of_orderness(millis(10)).emit_every(millis(period));
        check("timestamps", || AssignTimestamps::new(timestamp, strategy()), &steps);
    }
}

#[test]
fn time_11_the_watermark_is_part_of_what_is_saved() {
    let new = || {
        Windows::new(Sliding::of(millis(10)).every(millis(5)))
            .side_output_late_data()
            .aggregate(key, Count::new())
    };
    let record = |n: i64| Step::Record(("a".to_owned(), n), n);
    let before = [record(3), record(93), Step::Watermark(100)];
    let after = [record(20), record(101), Step::Watermark(90), Step::Watermark(200)];
    let (mut op, mut seen) = (new(), Seen::default());
    feed_all(&mut op, &before, &mut seen);
    let mut restored = load(new(), &saved(&mut op));
    let (mut without, mut with) = (Seen::default(), Seen::default());
    feed_all(&mut op, &after, &mut without);
    feed_all(&mut restored, &after, &mut with);
    assert_eq!(with.0, without.0);
    assert!(with.0[0].starts_with("Late(Late { value: (\"a\", 20)"), "{}", with.0[0]);
    let results = with.0.iter().filter(|seen| seen.starts_with("Result")).count();
    assert_eq!(results, 2, "{:?}", with.0);
}

#[test]
fn key_01_timers_and_windows_wake_up_without_a_record_of_their_key() {
    let new = || {
        let windows = Windows::new(Tumbling::of(millis(10))).drop_late_data();
        windows.aggregate(key, Count::new())
    };
    let record = |key: &str, at| Step::Record((key.to_owned(), 3), at);
    let mut op = new();
    for at in [0, 4, 8] {
        feed(&mut op, &record("a", at), &mut Seen::default()).unwrap();
    }
    let (mut op, mut seen) = (load(new(), &saved(&mut op)), Seen::default());
    for step in [record("b", 15), Step::Watermark(20)] {
        feed(&mut op, &step, &mut seen).unwrap();
    }
    assert!(seen.0[0].contains("key: \"a\", window: [0, 10), value: 3"), "{:?}", seen.0);

    let new = || Keyed::new(key, Timing { time_to_live: None, delay: Duration::ZERO });
    let mut op = new();
    feed(&mut op, &record("a", 0), &mut Seen::default()).unwrap();
    let (mut op, mut seen) = (load(new(), &saved(&mut op)), Seen::default());
    for step in [record("b", 15), Step::Watermark(20)] {
        feed(&mut op, &step, &mut seen).unwrap();
    }
    assert_eq!(seen.0[1], "Single(\"a at 20, -1 Some(3)\") at 20");
}

#[test]
fn key_02_processing_timers_that_came_due_meanwhile_fire_at_once_in_order() {
    struct Wakes;
    impl KeyedProcess for Wakes {
        type Key = String;
        type In = Event;
        type State = ();
        type Out = Text;
        fn on_record(
            &mut self,
            (_, after): Event,
            (): &mut (),
            cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Text> {
            cx.set_processing_timer(at(after));
            None::<Text>
        }
        fn on_processing_timer(
            &mut self,
            at: Timestamp,
            (): &mut (),
            _cx: &mut KeyedContext<Self>,
        ) -> impl Routes<Text> {
            Single(format!("{at:?}"))
        }
    }
    let new = || Keyed::new(key, Wakes);
    let mut op = new();
    feed(&mut op, &Step::Clock(0), &mut Seen::default()).unwrap();
    for (key, after) in [("a", 2000), ("b", 60_000), ("a", 1000)] {
        let record = Step::Record((key.to_owned(), after), 0);
        feed(&mut op, &record, &mut Seen::default()).unwrap();
    }
    let mut op = load(new(), &saved(&mut op));
    let mut fired = |now| {
        let mut seen = Seen::default();
        feed(&mut op, &Step::Clock(now), &mut seen).unwrap();
        seen.0
    };
    let min = Timestamp::MIN;
    assert_eq!(fired(10_000), [1000, 2000].map(|at| format!("Single(\"{at}\") at {min:?}")));
    assert_eq!(fired(59_999), <[String; 0]>::default());
    assert_eq!(fired(60_000), [format!("Single(\"60000\") at {min:?}")]);
    assert_eq!(fired(70_000), <[String; 0]>::default());
}

#[test]
fn win_11_a_checkpoint_waits_for_what_fires_and_nothing_is_repeated_after_it() {
    const KEYS: u32 = 1000;
    let new = || {
        let windows = Windows::new(Tumbling::of(millis(10))).drop_late_data();
        windows.aggregate(|key: &u32| *key, Count::new())
    };
    let (mut op, mut seen) = (new(), Seen::default());
    for key in 0..KEYS {
        for at in [3, 13] {
            feed(&mut op, &Step::Record(key, at), &mut seen).unwrap();
        }
    }
    // Other things may happen while windows fire; barriers come between marks.
    let first =
        Turn::new(&mut seen, &mut Account::new(), 100).mark(&mut op, Mark::Watermark(at(10)));
    assert!(!first.unwrap() && seen.0.len() < 200);
    let error = op.save(&mut StateChanges::new(true)).unwrap_err().to_string();
    assert!(error.contains("half done"), "{error}");
    feed(&mut op, &Step::Watermark(10), &mut seen).unwrap();
    let mut restored = load(new(), &saved(&mut op));
    feed(&mut restored, &Step::Watermark(30), &mut seen).unwrap();
    let mut results: Vec<_> = seen.0.iter().filter(|seen| seen.starts_with("Single")).collect();
    assert_eq!(results.len(), 2 * KEYS as usize);
    results.sort();
    results.dedup();
    assert_eq!(results.len(), 2 * KEYS as usize);
}

/// What a save would have to write for this to be there.
fn written(
    values: &[(&'static str, Value)],
    entries: &[(&'static str, Value, Value, Value)],
) -> SavedState {
    let mut changes = StateChanges::new(true);
    for (name, value) in values {
        changes.value(name, value).unwrap();
    }
    for (table, key, beside, value) in entries {
        changes.entry(table, key, beside, value).unwrap();
    }
    let mut saved = SavedState::new();
    saved.apply(&changes);
    saved
}

#[track_caller]
fn refused<Op: Snapshot>(mut op: Op, from: &SavedState, why: &str) {
    let error = op.load(from).expect_err(why).to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn state_that_makes_no_sense_is_an_error() {
    let time = json!({"watermark": 5, "forwarded": 5, "horizon": i64::MAX, "idle": false});
    let timing = || Keyed::new(key, Timing { time_to_live: None, delay: Duration::ZERO });
    let kept = |timers| {
        let key = json!({"state": {"count": 1, "last": 2}, "timers": timers});
        written(&[("time", time.clone())], &[("keys", json!("a"), json!(null), key)])
    };
    load(timing(), &kept(json!([[7, 0], [9, 1]])));
    refused(timing(), &kept(json!([[9, 0], [7, 1]])), "not in order");
    refused(timing(), &kept(json!([[7, 0], [7, 1]])), "not in order");
    refused(timing(), &kept(json!([[7, 1_u64 << 63]])), "out of range");
    let nothing = json!({"state": {"count": 1, "last": 2}});
    let entry = ("keys", json!("a"), json!(null), nothing);
    refused(timing(), &written(&[], &[entry]), "missing");

    let time = |engine| json!({"watermark": 5, "horizon": i64::MAX, "engine": engine});
    let window = |start, last| json!({"start": start, "last": last});
    let aligned = || {
        let windows = Windows::new(Tumbling::of(millis(10))).drop_late_data();
        windows.aggregate(key, Highest)
    };
    let entry = |key, window, place| {
        let kept = json!({"contents": 3, "side": null, "place": place});
        ("windows", json!(key), window, kept)
    };
    let windows = |entries: &[_]| written(&[("time", time("Aligned"))], entries);
    let good = [entry("a", window(0, 9), 7), entry("b", window(0, 9), 3)];
    let (mut op, mut seen) = (load(aligned(), &windows(&good)), Seen::default());
    feed(&mut op, &Step::Watermark(9), &mut seen).unwrap();
    assert!(seen.0[0].contains("\"b\"") && seen.0[1].contains("\"a\""), "{:?}", seen.0);
    refused(aligned(), &windows(&[entry("a", window(9, 0), 0)]), "ends before it starts");
    refused(aligned(), &windows(&[entry("a", window(5, 14), 0)]), "not a window of");
    let sliced = || {
        let windows = Windows::new(Sliding::of(millis(20)).every(millis(10))).drop_late_data();
        windows.aggregate(key, Highest)
    };
    refused(sliced(), &windows(&good), "as Aligned");
    let of_slice = |stretch, arrival: u64| {
        let kept = json!({"contents": 3, "arrival": arrival});
        written(&[("time", time("Sliced"))], &[("slices", json!("a"), stretch, kept)])
    };
    load(sliced(), &of_slice(window(0, 9), 0));
    refused(sliced(), &of_slice(window(0, 19), 0), "not a slice of");
    refused(sliced(), &of_slice(window(0, 9), u64::MAX), "out of range");
    let sessions = || {
        let windows = Windows::new(Session::with_gap(millis(10))).drop_late_data();
        windows.aggregate(key, Highest)
    };
    let session = |age: u64, window| {
        let firings = json!({"early": 0, "late": 0, "complete": false});
        let kept = json!({"window": window, "contents": 3, "side": null, "firings": firings});
        ("windows", json!("a"), json!(age), kept)
    };
    let windows = |entries: &[_]| written(&[("time", time("Sessions"))], entries);
    load(sessions(), &windows(&[session(0, window(0, 9)), session(1, window(20, 29))]));
    let touching = [session(0, window(0, 9)), session(1, window(5, 14))];
    refused(sessions(), &windows(&touching), "are one");
    refused(sessions(), &windows(&[session(0, window(9, 0))]), "ends before it starts");
    refused(sessions(), &windows(&[session(u64::MAX, window(0, 9))]), "out of range");
    let with_trigger = || {
        let windows = Windows::new(Tumbling::of(millis(10))).trigger(EveryCount::new(3));
        windows.drop_late_data().aggregate(key, Highest)
    };
    let general = |age: u64, timers| {
        let (_, key, age, mut kept) = session(age, window(0, 9));
        kept["trigger"] = json!(1);
        kept["contents"] = json!([3]);
        kept["timers"] = timers;
        ("windows", key, age, kept)
    };
    let windows = |entries: &[_]| written(&[("time", time("General"))], entries);
    load(with_trigger(), &windows(&[general(0, json!([3, 9]))]));
    refused(with_trigger(), &windows(&[general(0, json!([3, 3]))]), "not in order");
    let twice = [general(0, json!([])), general(1, json!([]))];
    refused(with_trigger(), &windows(&twice), "twice");

    let mut alignment = Alignment::union(2);
    alignment.on_watermark(0, at(7)).for_each(drop);
    let saved = saved(&mut alignment);
    assert_eq!(load(Alignment::union(2), &saved), alignment);
    refused(Alignment::union(3), &saved, "other inputs");
    refused(Alignment::connected(2), &saved, "other inputs");
}

/// What several partitions have saved, for one.
fn together(partitions: &[SavedState]) -> SavedState {
    from_parts(&partitions.iter().flat_map(parts).collect())
}

#[test]
fn the_time_of_several_partitions_is_the_lowest() {
    let new = || {
        let windows = Windows::new(Tumbling::of(millis(10))).side_output_late_data();
        windows.aggregate(key, Highest)
    };
    let at_watermark = |key: &str, watermark| {
        let mut op = new();
        let record = Step::Record((key.to_owned(), 20), watermark + 1);
        for step in [Step::Watermark(watermark), record] {
            feed(&mut op, &step, &mut Seen::default()).unwrap();
        }
        saved(&mut op)
    };
    let (mut op, mut seen) =
        (load(new(), &together(&[at_watermark("a", 100), at_watermark("b", 50)])), Seen::default());
    for step in [Step::Watermark(50), Step::Watermark(70), Step::Watermark(200)] {
        feed(&mut op, &step, &mut seen).unwrap();
    }
    let short: Vec<_> = seen.0.iter().map(|seen| &seen[..13]).collect();
    assert_eq!(short, ["Result(Window", "Watermark(70)", "Result(Window", "Watermark(200"]);
}

#[test]
fn records_that_wait_for_a_configuration_go_with_their_keys() {
    let new = || KeyedBroadcast::new(key, AddingByKey);
    let mut op = new();
    let record = |key: &str, n| Step::Record(Either::Left((key.to_owned(), n)), 1);
    for (key, n) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
        feed(&mut op, &record(key, n), &mut Seen::default()).unwrap();
    }
    let saved = saved(&mut op);
    let routed = |from: &SavedState| {
        let (mut op, mut seen) = (load(new(), from), Seen::default());
        feed(&mut op, &Step::Record(Either::Right(Some(2)), 1), &mut seen).unwrap();
        seen.0
    };
    let all = routed(&saved);
    assert_eq!(all.len(), 4);
    let of_a = key_group(saved_hash(b"\xa1a"));
    let halves =
        [true, false].map(|half| routed(&saved.of_groups(|group| (group == of_a) == half)));
    assert!(halves.iter().all(|half| half.len() < 4));
    for key in ["a", "b", "c"] {
        let of_key = |seen: &[String]| -> Vec<String> {
            seen.iter().filter(|seen| seen.contains(&format!("\"{key} "))).cloned().collect()
        };
        assert_eq!(of_key(&halves.concat()), of_key(&all));
    }
}

#[test]
fn fields_of_a_state_may_be_added_and_dropped() {
    #[derive(Default, Serialize, Deserialize)]
    struct Old {
        count: u32,
        dropped: String,
    }
    #[derive(Default, Serialize, Deserialize)]
    struct New {
        count: u32,
        #[serde(default)]
        added: Option<i64>,
    }
    #[derive(Default, Serialize, Deserialize)]
    struct Other {
        count: String,
    }
    let by = |n: &u32| *n;
    let mut old = Keyed::new(
        by,
        KeyedFn::new(|_, state: &mut Old, _: &mut KeyContext<u32, Text>| {
            state.count += 1;
            state.dropped.push('x');
            None::<Text>
        }),
    );
    for _ in 0..3 {
        feed(&mut old, &Step::Record(7, 0), &mut Seen::default()).unwrap();
    }
    let saved = saved(&mut old);
    let new = KeyedFn::new(|_, state: &mut New, _: &mut KeyContext<u32, Text>| {
        Single(format!("{} {:?}", state.count, state.added))
    });
    let (mut new, mut seen) = (load(Keyed::new(by, new), &saved), Seen::default());
    feed(&mut new, &Step::Record(7, 0), &mut seen).unwrap();
    assert_eq!(seen.0, ["Single(\"3 None\") at 0"]);
    let other = KeyedFn::new(|_, state: &mut Other, _: &mut KeyContext<u32, Text>| {
        Single(state.count.clone())
    });
    let group = key_group(saved_hash(&[7]));
    refused(Keyed::new(by, other), &saved, &format!("`keys` in key group {group}: state.count: "));
}
