//! Every window operator against a small reference over the whole input.

mod common;

use common::OneByOne;
use proptest::prelude::*;
use side_output::operator::{KeepAll, LateToOutput, Operator, Turn, Windowed, Windows};
use side_output::output::Account;
use side_output::window::{Separate, TriggerOf};
use side_output::{
    Aggregate, Assigner, Collect, EventTime, Late, Mark, Pane, Session, Sliding, Timestamp,
    Tumbling, Window, WindowResult,
};
use std::time::Duration;

type Key = u8;
/// Key, number of the record, time.
type Record = (Key, usize, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// The numbers of the records, sorted.
    Fired(Key, Window, Vec<usize>, Pane),
    Late(usize, Vec<Window>),
    Watermark(i64),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Record(Key, i64),
    Watermark(i64),
}

/// Collects events in the order in which they came out.
#[derive(Default)]
struct Events {
    events: Vec<Event>,
}

impl Collect<Windowed<Key, Vec<usize>, Record>> for Events {
    fn emit(&mut self, route: Windowed<Key, Vec<usize>, Record>, at: Timestamp) {
        self.events.push(match route {
            Windowed::Result(WindowResult { key, window, mut value, pane }) => {
                assert_eq!(at, window.max_timestamp());
                value.sort_unstable();
                Event::Fired(key, window, value, pane)
            }
            Windowed::Late(Late { value, windows, timestamp, .. }) => {
                assert_eq!(at, timestamp);
                Event::Late(value.1, windows.to_vec())
            }
        });
    }

    fn mark(&mut self, mark: Mark) {
        if let Mark::Watermark(watermark) = mark {
            self.events.push(Event::Watermark(watermark.as_millis()));
        }
    }
}

/// How windows are run.
#[derive(Clone, Copy)]
struct Run<'a> {
    lateness: u64,
    finals: bool,
    room: usize,
    steps: &'a [Step],
}

/// The numbers of the records.
struct Numbers;

impl Aggregate for Numbers {
    type In = Record;
    type Accumulator = Vec<usize>;
    type Output = Vec<usize>;

    fn create(&mut self) -> Vec<usize> {
        Vec::new()
    }

    fn add(&mut self, numbers: &mut Vec<usize>, record: &Record) {
        numbers.push(record.1);
    }

    fn merge(&mut self, numbers: &mut Vec<usize>, other: Vec<usize>) {
        numbers.extend(other);
    }

    fn result(&mut self, numbers: &Vec<usize>) -> Vec<usize> {
        numbers.clone()
    }
}

fn key(record: &Record) -> Key {
    record.0
}

impl Run<'_> {
    fn windows<A, Tr>(self, windows: Windows<A, Tr>) -> Windows<A, Tr, KeepAll, LateToOutput> {
        let windows = windows.allowed_lateness(Duration::from_millis(self.lateness));
        if self.finals { windows.with_final_panes() } else { windows }.side_output_late_data()
    }

    /// With all records of each window.
    fn apply<A, Tr>(self, windows: Windows<A, Tr>) -> Vec<Event>
    where
        A: Assigner,
        Tr: TriggerOf<Record, A::Merging>,
    {
        let numbers =
            |_: &Key, _, records: &[Record]| records.iter().map(|record| record.1).collect();
        self.drive(self.windows(windows).apply(key, numbers))
    }

    /// With records condensed as they come.
    fn aggregate<A>(self, assigner: A) -> Vec<Event>
    where
        A: Assigner,
        A::Trigger: TriggerOf<Record, A::Merging>,
    {
        self.drive(self.windows(Windows::new(assigner)).aggregate(key, Numbers))
    }

    /// Checks that nothing is kept in the end and that all is accounted for.
    fn drive<Op>(self, mut operator: Op) -> Vec<Event>
    where
        Op: Operator<In = Record, Out = Windowed<Key, Vec<usize>, Record>>,
    {
        let Self { room, steps, .. } = self;
        let (mut out, mut account) = (Events::default(), Account::new());
        let mut received = 0;
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Record(key, time) => {
                    received += 1;
                    let at = Timestamp::from_millis(time);
                    let mut turn = Turn::new(&mut out, &mut account, room);
                    turn.record(&mut operator, (key, number, time), at).unwrap();
                }
                Step::Watermark(watermark) => {
                    let mark = Mark::Watermark(Timestamp::from_millis(watermark));
                    while !Turn::new(&mut out, &mut account, room)
                        .mark(&mut operator, mark)
                        .unwrap()
                    {}
                }
            }
        }
        let end = Mark::Watermark(Timestamp::MAX);
        while !Turn::new(&mut out, &mut account, room).mark(&mut operator, end).unwrap() {}
        assert_eq!(operator.held(), 0);
        assert_eq!(account.received(), received);
        let marks = out.events.iter().filter(|event| matches!(event, Event::Watermark(_))).count();
        assert_eq!(account.emitted(), (out.events.len() - marks) as u64);
        out.events
    }
}

/// A window of one key in the reference.
struct Kept {
    key: Key,
    window: Window,
    records: Vec<usize>,
    age: usize,
    /// The time at which it fires next.
    due: bool,
    complete: bool,
    /// Late updates.
    late: u32,
}

impl Kept {
    fn fire(&mut self, pane: Pane) -> Event {
        Event::Fired(self.key, self.window, self.records.clone(), pane)
    }

    fn update(&mut self) -> Event {
        self.late += 1;
        self.complete = true;
        self.fire(Pane::Late(self.late))
    }
}

/// The same by brute force: all windows in one list, looked through for every step.
fn reference(
    assign: impl Fn(i64) -> Vec<Window>,
    merges: bool,
    by_window: bool,
    Run { lateness, finals, steps, .. }: Run<'_>,
) -> Vec<Event> {
    let lateness = i64::try_from(lateness).unwrap();
    let cleanup = |window: Window| window.max_timestamp().saturating_add_millis(lateness);
    let mut events = Vec::new();
    let mut kept: Vec<Kept> = Vec::new();
    let mut watermark = Timestamp::MIN;
    let end = [Step::Watermark(i64::MAX)];
    for (number, step) in steps.iter().chain(&end).enumerate() {
        match *step {
            Step::Record(key, time) => {
                let mut taken = false;
                for window in assign(time) {
                    let joins = |kept: &Kept| {
                        kept.key == key
                            && if merges {
                                kept.window.touches(&window)
                            } else {
                                kept.window == window
                            }
                    };
                    let (mut touched, rest): (Vec<_>, Vec<_>) = kept.drain(..).partition(joins);
                    kept = rest;
                    if touched.is_empty() {
                        if cleanup(window) <= watermark {
                            continue;
                        }
                        let (age, due) = (number * 100, true);
                        let age =
                            age + 99 - kept.iter().filter(|kept| kept.age / 100 == number).count();
                        let records = Vec::new();
                        let (complete, late) = (false, 0);
                        touched.push(Kept { key, window, records, age, due, complete, late });
                    }
                    taken = true;
                    let mut joined = touched.remove(0);
                    let before = joined.window;
                    joined.window = joined.window.cover(&window);
                    for other in touched {
                        joined.window = joined.window.cover(&other.window);
                        joined.records.extend(other.records);
                        joined.age = joined.age.min(other.age);
                        joined.complete |= other.complete;
                        joined.late = joined.late.max(other.late);
                    }
                    joined.records.push(number);
                    joined.records.sort_unstable();
                    let last = joined.window.max_timestamp();
                    if last <= watermark {
                        joined.due = false;
                        events.push(joined.update());
                    } else if joined.window != before {
                        joined.due = true;
                    }
                    kept.push(joined);
                }
                let late = time.saturating_add(lateness) <= watermark.as_millis();
                if !taken && (late || time == i64::MIN) {
                    let windows = if time == i64::MIN { Vec::new() } else { assign(time) };
                    events.push(Event::Late(number, windows));
                }
            }
            Step::Watermark(to) => {
                let to = Timestamp::from_millis(to);
                if to <= watermark {
                    continue;
                }
                watermark = to;
                let order = |kept: &Kept| {
                    let window = if by_window { kept.window.start() } else { Timestamp::MIN };
                    (kept.window.max_timestamp(), window, kept.age)
                };
                kept.sort_by_key(order);
                for kept in kept.chunk_by_mut(|one, other| by_window && one.window == other.window)
                {
                    for kept in &mut *kept {
                        if kept.due && kept.window.max_timestamp() <= watermark {
                            kept.due = false;
                            let update = std::mem::replace(&mut kept.complete, true);
                            events.push(if update {
                                kept.update()
                            } else {
                                kept.fire(Pane::OnTime)
                            });
                        }
                    }
                    if finals && cleanup(kept[0].window) <= watermark {
                        events.extend(kept.iter_mut().map(|kept| kept.fire(Pane::Final)));
                    }
                }
                kept.retain(|kept| cleanup(kept.window) > watermark);
                events.push(Event::Watermark(watermark.as_millis()));
            }
        }
    }
    events
}

fn clamp(time: i128) -> Timestamp {
    let time = time.clamp(i64::MIN.into(), i64::MAX.into());
    Timestamp::from_millis(i64::try_from(time).unwrap())
}

/// The windows that contain `time`, newest first, by plain arithmetic.
fn aligned(size: u64, slide: u64, offset: i64) -> impl Fn(i64) -> Vec<Window> {
    move |time| {
        if time == i64::MIN {
            return Vec::new();
        }
        let (size, slide, offset) = (i128::from(size), i128::from(slide), i128::from(offset));
        let time = i128::from(time);
        let mut start = time - (time - offset).rem_euclid(slide);
        let mut windows = Vec::new();
        while start + size > time {
            windows.push(Window::through(clamp(start), clamp(start + size - 1)));
            start -= slide;
        }
        windows
    }
}

fn sessions(gap: u64) -> impl Fn(i64) -> Vec<Window> {
    move |time| {
        if time == i64::MIN {
            return Vec::new();
        }
        let last = clamp(i128::from(time) + i128::from(gap) - 1);
        vec![Window::through(Timestamp::from_millis(time), last)]
    }
}

fn near(time: i64) -> impl Strategy<Value = i64> {
    (-40..40i64).prop_map(move |by| time.saturating_add(by))
}

/// Times around one place: the epoch, one of the ends of time, or anywhere.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![4 => Just(0i64), 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()]
        .prop_flat_map(|place| {
            let step = prop_oneof![
                3 => (0..3u8, near(place)).prop_map(|(key, time)| Step::Record(key, time)),
                1 => near(place).prop_map(Step::Watermark),
            ];
            prop::collection::vec(step, 0..60)
        })
}

/// Sliding windows that share slices even where it is not worth it.
#[derive(Clone, Copy, Debug)]
struct Sharing {
    sliding: Sliding,
    /// Slices of one instant, and not the longest ones.
    instants: bool,
}

impl Assigner for Sharing {
    type Windows = <Sliding as Assigner>::Windows;
    type Trigger = EventTime;
    type Merging = Separate;

    fn assign(&self, at: Timestamp) -> Self::Windows {
        self.sliding.assign(at)
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(&self, at: Timestamp) -> Window {
        if self.instants { Window::through(at, at) } else { self.sliding.slice(at) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tumbling(
        steps in steps(), size in 1..30u64, offset in -50..50i64, lateness in 0..40u64,
        finals: bool, room in 1..4usize,
    ) {
        let tumbling = Tumbling::of(Duration::from_millis(size)).offset_millis(offset);
        let run = Run { lateness, finals, room, steps: &steps };
        let expected = reference(aligned(size, size, offset), false, true, run);
        prop_assert_eq!(&run.apply(Windows::new(tumbling)), &expected);
        prop_assert_eq!(&run.aggregate(tumbling), &expected);
        // The general way gives the same.
        let run = Run { finals: false, ..run };
        let expected = reference(aligned(size, size, offset), false, true, run);
        prop_assert_eq!(&run.apply(Windows::new(tumbling).trigger(OneByOne)), &expected);
    }

    #[test]
    fn sliding(
        steps in steps(), size in 1..30u64, slide in prop_oneof![1..8u64, 1..30u64],
        offset in -50..50i64, lateness in prop_oneof![Just(0), 0..40u64], finals: bool,
        room in 1..4usize, instants: bool,
    ) {
        let millis = Duration::from_millis;
        let sliding = Sliding::of(millis(size)).every(millis(slide)).offset_millis(offset);
        let run = Run { lateness, finals, room, steps: &steps };
        let expected = reference(aligned(size, slide, offset), false, true, run);
        prop_assert_eq!(&run.apply(Windows::new(sliding)), &expected);
        prop_assert_eq!(&run.aggregate(sliding), &expected);
        prop_assert_eq!(&run.aggregate(Sharing { sliding, instants }), &expected);
    }

    #[test]
    fn session(
        steps in steps(), gap in 1..30u64, lateness in 0..40u64, room in 1..4usize,
    ) {
        let windows = Windows::new(Session::with_gap(Duration::from_millis(gap)));
        let run = Run { lateness, finals: false, room, steps: &steps };
        let expected = reference(sessions(gap), true, false, run);
        prop_assert_eq!(&run.apply(windows), &expected);
    }
}
