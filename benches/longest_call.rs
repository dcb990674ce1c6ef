//! The longest single call and poll with a million keys:
//! `cargo bench --bench longest_call [-- filter]…`.
//!
//! State that grows, fires or is freed does so in portions, so that no call of an operator takes
//! long. A poll of its stream is up to 64 turns of 512 records. Times are those of the processor, so
//! that other processes do not matter.

use futures::{Stream, stream};
use rustix::time::{ClockId, clock_gettime};
use side_output::operator::{Keyed, Operator, Turn, Windows};
use side_output::output::{Account, Single};
use side_output::prelude::*;
use side_output::window::TriggerOf;
use side_output::{
    Assigner, Collect, Count, Element, KeyedContext, KeyedProcess, Mark, Session, Sliding,
    Tumbling, WindowStreams,
};
use std::hash::Hash;
use std::io::{Write as _, stdout};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// Records and watermarks, in milliseconds.
#[derive(Clone, Copy)]
enum Step {
    Record(i64),
    Watermark(i64),
}

/// For each of the steps a watermark, or a record of every key in an order of its own.
fn input(steps: &'static [Step]) -> impl Iterator<Item = Element<u64>> + Send + 'static {
    let element = |step: Step, key| match step {
        Step::Record(millis) => {
            // An odd number, so that every key comes once.
            let value = key * 611_953 % KEYS;
            Element::Record { value, at: Some(Timestamp::from_millis(millis)) }
        }
        Step::Watermark(millis) => Element::watermark(Timestamp::from_millis(millis)),
    };
    steps.iter().flat_map(move |step| {
        let count = if matches!(step, Step::Record(_)) { KEYS } else { 1 };
        (0..count).map(move |key| element(*step, key))
    })
}

fn now() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Receives and forgets.
struct Nowhere(u64);

impl<S> Collect<S> for Nowhere {
    fn emit(&mut self, route: S, _at: Timestamp) {
        drop(route);
        self.0 += 1;
    }

    fn mark(&mut self, _mark: Mark) {}
}

/// What was measured, in the order of its length.
struct Times(Vec<Duration>);

impl Times {
    fn new() -> Self {
        Self(Vec::with_capacity(1 << 24))
    }

    fn measure<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = now();
        let result = call();
        self.0.push(now().saturating_sub(start));
        result
    }

    /// In milliseconds.
    fn longest(&self) -> f64 {
        self.0.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3
    }

    /// In microseconds.
    fn median(&mut self) -> f64 {
        let middle = self.0.len() / 2;
        self.0.select_nth_unstable(middle).1.as_secs_f64() * 1e6
    }
}

/// Calls `operator` and polls `stream`, which are the same, to the end of the input.
fn report<Op: Operator<In = u64>, T>(
    name: &str,
    steps: &'static [Step],
    mut operator: Op,
    stream: impl Stream<Item = T>,
) {
    let (mut calls, mut polls) = (Times::new(), Times::new());
    let (mut out, mut account) = (Nowhere(0), Account::new());
    for element in input(steps).chain([Element::watermark(Timestamp::MAX)]) {
        loop {
            let mut turn = Turn::new(&mut out, &mut account, 512);
            let done = match element {
                Element::Record { value, at } => calls.measure(|| {
                    let at = at.unwrap_or(Timestamp::MIN);
                    turn.record(&mut operator, value, at).map(|()| true)
                }),
                Element::Mark(mark) => calls.measure(|| turn.mark(&mut operator, mark)),
            };
            if done.expect("the operator does not fail") {
                break;
            }
        }
    }
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut items = 0;
    loop {
        match polls.measure(|| stream.as_mut().poll_next(&mut cx)) {
            Poll::Ready(None) => break,
            Poll::Ready(Some(item)) => {
                drop(item);
                items += 1;
            }
            Poll::Pending => {}
        }
    }
    assert_eq!(out.0, items, "{name}");
    let (call, poll) = (calls.longest(), polls.longest());
    let line = format!("| {name} | {items} | {:.2} | {call:.2} | {poll:.2} |\n", calls.median());
    stdout().write_all(line.as_bytes()).expect("standard output is open");
}

fn windows<A, K>(name: &str, assigner: A, steps: &'static [Step], key: fn(&u64) -> K)
where
    A: Assigner + Clone + Send + 'static,
    A::Trigger: TriggerOf<u64, A::Merging> + Send,
    K: Hash + Eq + Clone + Send + 'static,
{
    let operator = Windows::new(assigner.clone())
        .allowed_lateness(SECOND)
        .side_output_late_data()
        .aggregate(key, Count::new());
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(input(steps)))
        .key_by(key)
        .window(assigner)
        .allowed_lateness(SECOND)
        .side_output_late_data()
        .aggregate(Count::new());
    late.discard();
    report(name, steps, operator, results);
}

/// Sets a timer, or lives for a second.
struct Keeps {
    timer: bool,
}

impl KeyedProcess for Keeps {
    type Key = u64;
    type In = u64;
    type State = [u64; 4];
    type Out = Single<u64>;

    fn on_record(
        &mut self,
        key: u64,
        state: &mut [u64; 4],
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Single<u64>> {
        state[0] += 1;
        if self.timer {
            cx.set_timer(Timestamp::from_millis(900));
        }
        Single(key)
    }

    fn on_timer(
        &mut self,
        _at: Timestamp,
        state: &mut [u64; 4],
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Single<u64>> {
        cx.clear();
        Single(state[0])
    }

    fn time_to_live(&self) -> Option<Duration> {
        (!self.timer).then_some(SECOND)
    }
}

fn keyed(name: &str, timer: bool, steps: &'static [Step]) {
    let stream = DataStream::from_elements(stream::iter(input(steps)))
        .key_by(|key: &u64| *key)
        .process(Keeps { timer });
    report(name, steps, Keyed::new(|key: &u64| *key, Keeps { timer }), stream);
}

/// A day every second, with a watermark behind each of 10,000 records: how long all of it takes.
fn day() {
    let mut operator = Windows::new(Sliding::of(86_400 * SECOND).every(SECOND))
        .drop_late_data()
        .aggregate(|_: &u64| (), Count::new());
    let (mut out, mut account) = (Nowhere(0), Account::new());
    let mut times = Times::new();
    let mut mark = |operator: &mut _, out: &mut _, at| {
        while !Turn::new(out, &mut account, 512)
            .mark(operator, Mark::Watermark(at))
            .expect("no error")
        {}
    };
    let mut records = Account::new();
    times.measure(|| {
        for second in 0..10_000 {
            let at = Timestamp::from_secs(second);
            let mut turn = Turn::new(&mut out, &mut records, 512);
            turn.record(&mut operator, 1, at).expect("no error");
            drop(turn);
            mark(&mut operator, &mut out, at);
        }
    });
    times.measure(|| mark(&mut operator, &mut out, Timestamp::MAX));
    let (records, end) = (times.0[0].as_secs_f64(), times.0[1].as_secs_f64());
    let line = format!(
        "\nA day every second, 10,000 records: {records:.2} s, and {end:.2} s at the end\n"
    );
    stdout().write_all(line.as_bytes()).expect("standard output is open");
}

fn main() {
    use Step::{Record, Watermark};
    let filter: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let wants = |name: &str| filter.is_empty() || filter.iter().any(|part| name.contains(part));
    let head = "| a million keys | results | median call, µs | longest call, ms | longest poll, ms |\n\
                | :--- | ---: | ---: | ---: | ---: |\n";
    stdout().write_all(head.as_bytes()).expect("standard output is open");
    // Fire; the same once more, each at once; freed; and what comes after that.
    let windowed: &[Step] =
        &[Record(500), Watermark(999), Record(500), Watermark(1998), Watermark(3000), Record(9500)];
    let slices: &[Step] = &[
        Record(500),
        Record(700),
        Record(900),
        Watermark(999),
        Record(500),
        Watermark(1998),
        Watermark(3000),
        Watermark(5000),
    ];
    let keys: &[Step] =
        &[Record(0), Watermark(899), Watermark(1000), Watermark(5000), Record(9000)];
    if wants("tumbling") {
        windows("tumbling, late updates", Tumbling::of(SECOND), windowed, |key| *key);
        // Freed one by one. The allocator puts them together again in one go.
        windows("tumbling, text keys", Tumbling::of(SECOND), windowed, u64::to_string);
    }
    if wants("sliding") {
        windows("sliding, late updates", Sliding::of(SECOND).every(SECOND / 5), slices, |key| *key);
    }
    if wants("sessions") {
        windows("sessions, late updates", Session::with_gap(SECOND / 2), windowed, |key| *key);
    }
    if wants("timers") {
        keyed("timers of one time", true, keys);
    }
    if wants("time to live") {
        keyed("time to live", false, keys);
    }
    if wants("day") {
        day();
    }
}
