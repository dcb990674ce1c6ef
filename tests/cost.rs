//! What one call costs, and what is kept: counted, not timed.

use side_output::operator::{Keyed, Operator, Turn, Windows};
use side_output::output::{Account, Single};
use side_output::prelude::*;
use side_output::{
    Aggregate, Assigner, Collect, Count, EventTime, EveryCount, KeyedContext, KeyedProcess, Mark,
    Session, Sliding, Tumbling,
};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

thread_local! {
    /// Keys that were hashed, cloned or dropped.
    static TOUCHED: Cell<u64> = const { Cell::new(0) };
    /// Windows that were assigned.
    static WINDOWS: Cell<u64> = const { Cell::new(0) };
    /// Parts of windows that were put together.
    static PARTS: Cell<u64> = const { Cell::new(0) };
}

fn count(counter: &'static std::thread::LocalKey<Cell<u64>>) {
    counter.set(counter.get() + 1);
}

#[derive(PartialEq, Eq)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        count(&TOUCHED);
        self.0.hash(state);
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        count(&TOUCHED);
        Self(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        count(&TOUCHED);
    }
}

/// Receives and counts.
#[derive(Default)]
struct Nowhere(u64);

impl<S> Collect<S> for Nowhere {
    fn emit(&mut self, route: S, _at: Timestamp) {
        drop(route);
        self.0 += 1;
    }

    fn mark(&mut self, _mark: Mark) {}
}

#[derive(Clone, Copy)]
enum Step {
    /// A record of every key.
    Records(i64),
    Watermark(i64),
}
use Step::{Records, Watermark};

/// Runs the steps, and gives the most keys that one call touched and the number of results.
fn run<Op: Operator<In = u64>>(operator: &mut Op, keys: u64, steps: &[Step]) -> (u64, u64) {
    let (mut out, mut account) = (Nowhere::default(), Account::new());
    let mut most = 0;
    let mut measure = |call: &mut dyn FnMut() -> bool| {
        loop {
            TOUCHED.set(0);
            let done = call();
            most = most.max(TOUCHED.get());
            if done {
                break;
            }
        }
    };
    for step in steps {
        match *step {
            Records(time) => {
                for key in 0..keys {
                    measure(&mut || {
                        let mut turn = Turn::new(&mut out, &mut account, 512);
                        turn.record(operator, key, at(time)).expect("it cannot fail");
                        true
                    });
                }
            }
            Watermark(time) => measure(&mut || {
                let mut turn = Turn::new(&mut out, &mut account, 512);
                turn.mark(operator, Mark::Watermark(at(time))).expect("it cannot fail")
            }),
        }
    }
    assert_eq!(operator.held(), 0, "all is over");
    (most, out.0)
}

/// Keys come, each fires once more when it is late, and all go.
const STEPS: &[Step] =
    &[Records(500), Watermark(1400), Records(500), Watermark(2500), Watermark(9000)];

/// More than is kept when nothing is held.
const KEYS: u64 = 40_000;

fn windows<A: Assigner>(assigner: A) -> impl Operator<In = u64>
where
    A::Trigger: side_output::window::TriggerOf<u64, A::Merging>,
{
    Windows::new(assigner)
        .allowed_lateness(SECOND)
        .side_output_late_data()
        .aggregate(|key: &u64| Key(*key), Count::new())
}

fn by_count() -> impl Operator<In = u64> {
    Windows::new(Tumbling::of(SECOND))
        .trigger(EveryCount::new(1))
        .allowed_lateness(SECOND)
        .side_output_late_data()
        .aggregate(|key: &u64| Key(*key), Count::new())
}

struct Lives;

impl KeyedProcess for Lives {
    type Key = Key;
    type In = u64;
    type State = [u64; 4];
    type Out = Single<u64>;

    fn on_record(
        &mut self,
        value: u64,
        state: &mut [u64; 4],
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Single<u64>> {
        state[0] += 1;
        cx.set_timer(at(900));
        Single(value)
    }

    fn time_to_live(&self) -> Option<Duration> {
        Some(SECOND)
    }
}

fn lives() -> impl Operator<In = u64> {
    Keyed::new(|key: &u64| Key(*key), Lives)
}

#[track_caller]
fn assert_even(mut operator: impl Operator<In = u64>, results: u64) {
    let (most, emitted) = run(&mut operator, KEYS, STEPS);
    assert_eq!(emitted, results * KEYS);
    assert!(most <= 10_000, "{most} keys in one call");
}

#[test]
fn fault_36_tumbling_windows_grow_and_are_freed_in_portions() {
    assert_even(windows(Tumbling::of(SECOND)), 2);
}

#[test]
fn fault_36_sliding_windows_grow_and_are_freed_in_portions() {
    assert_even(windows(Sliding::of(SECOND).every(SECOND / 2)), 3);
}

#[test]
fn fault_36_sessions_grow_and_are_freed_in_portions() {
    assert_even(windows(Session::with_gap(SECOND / 2)), 2);
}

#[test]
fn fault_36_windows_with_a_trigger_grow_and_are_freed_in_portions() {
    assert_even(by_count(), 2);
}

#[test]
fn fault_36_keys_grow_and_expire_in_portions() {
    assert_even(lives(), 2);
}

/// Fails if more than a tenth of the peak stays when nothing is held.
#[track_caller]
fn assert_given_back<Op: Operator<In = u64>>(make: impl FnOnce() -> Op) {
    let mut kept = None;
    let memory = allocation_counter::measure(|| {
        let mut operator = make();
        run(&mut operator, KEYS, STEPS);
        kept = Some(operator);
    });
    drop(kept);
    let (peak, stays) = (memory.bytes_max, memory.bytes_current);
    assert!(stays * 10 <= peak.cast_signed(), "{stays} of {peak} bytes stay");
}

#[test]
fn fault_38_tumbling_windows_give_memory_back() {
    assert_given_back(|| windows(Tumbling::of(SECOND)));
}

#[test]
fn fault_38_sliding_windows_give_memory_back() {
    assert_given_back(|| windows(Sliding::of(SECOND).every(SECOND / 2)));
}

#[test]
fn fault_38_sessions_give_memory_back() {
    assert_given_back(|| windows(Session::with_gap(SECOND / 2)));
}

#[test]
fn fault_38_windows_with_a_trigger_give_memory_back() {
    assert_given_back(by_count);
}

#[test]
fn fault_38_keys_that_expire_give_memory_back() {
    assert_given_back(lives);
}

/// Counts how often it is asked.
struct Counted<I>(I);

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        count(&WINDOWS);
        self.0.next()
    }

    fn nth(&mut self, skipped: usize) -> Option<I::Item> {
        count(&WINDOWS);
        self.0.nth(skipped)
    }
}

/// A day every second; counts the windows that it is asked for.
struct Days(Sliding);

impl Assigner for Days {
    type Windows = Counted<<Sliding as Assigner>::Windows>;
    type Trigger = EventTime;
    type Merging = <Sliding as Assigner>::Merging;

    fn assign(&self, at: Timestamp) -> Self::Windows {
        Counted(self.0.assign(at))
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(&self, at: Timestamp) -> Window {
        self.0.slice(at)
    }
}

/// A sum of its own, which counts how often it is put together.
struct Parts;

impl Aggregate for Parts {
    type In = u64;
    type Accumulator = u64;
    type Output = u64;

    fn create(&mut self) -> u64 {
        0
    }

    fn add(&mut self, sum: &mut u64, value: &u64) {
        *sum += value;
    }

    fn result(&mut self, sum: &u64) -> u64 {
        *sum
    }

    fn merge(&mut self, sum: &mut u64, other: u64) {
        count(&PARTS);
        *sum += other;
    }
}

/// Runs a record of each second through windows of a day, perhaps with a watermark behind each; how
/// many windows the assigner was asked for.
fn days(seconds: impl Iterator<Item = i64>, watermarks: bool) -> u64 {
    let mut operator = a_day_every_second();
    let (mut out, mut account) = (Nowhere::default(), Account::new());
    WINDOWS.set(0);
    for second in seconds {
        let mut turn = Turn::new(&mut out, &mut account, 512);
        turn.record(&mut operator, 1, at(second * 1000)).expect("it cannot fail");
        if watermarks {
            let mark = Mark::Watermark(at(second * 1000 - 2000));
            while !turn.mark(&mut operator, mark).expect("it cannot fail") {}
        }
    }
    WINDOWS.get()
}

fn a_day_every_second() -> impl Operator<In = u64> {
    let day = Sliding::of(Duration::from_hours(24)).every(SECOND);
    Windows::new(Days(day)).drop_late_data().aggregate(|_: &u64| (), Parts)
}

/// The windows of a record.
const DAY: u64 = 86_400;

#[test]
fn fault_37_a_new_slice_costs_what_it_changes() {
    for (seconds, watermarks) in [(10_000, false), (1000, true)] {
        let work = days(0..seconds, watermarks);
        assert!(work <= DAY + 100_000, "{work} windows for records in order");
        let work = days((0..seconds).map(|second| second ^ 1), watermarks);
        assert!(work <= DAY + 100_000, "{work} windows for records out of order");
    }
    let work = days((0..10_000).rev(), false);
    assert!(work <= DAY + 100_000, "{work} windows for records in reverse");
}

#[test]
fn fault_37_windows_that_hold_the_same_are_put_together_once() {
    let mut operator = a_day_every_second();
    let (mut out, mut account) = (Nowhere::default(), Account::new());
    for second in 0..1000 {
        let mut turn = Turn::new(&mut out, &mut account, 512);
        turn.record(&mut operator, 1, at(second * 1000)).expect("it cannot fail");
    }
    PARTS.set(0);
    while !Turn::new(&mut out, &mut account, 512)
        .mark(&mut operator, Mark::Watermark(Timestamp::MAX))
        .expect("it cannot fail")
    {}
    assert_eq!(out.0, DAY + 999);
    // Half a million for those that begin among the records, and not 86 million.
    assert!(PARTS.get() <= 600_000, "{} parts", PARTS.get());
}
