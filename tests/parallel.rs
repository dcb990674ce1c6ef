//! One keyed function on several tasks.

mod bare;

use self::bare::{Lines, at};
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use proptest::prelude::*;
use side_output::prelude::*;
use side_output::{Element, KeyedContext, KeyedProcess, StreamError};
use std::collections::BTreeMap;
use std::time::Duration;

type Record = (u32, i64);

/// Numbers the records of each key; multiples of five go to the side, timers too.
struct Number;

impl KeyedProcess for Number {
    type Key = u32;
    type In = Record;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        (key, number): Record,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        assert!(number >= 0, "a negative number");
        *count += 1;
        cx.set_timer_rounded(at(number), Duration::from_millis(10));
        let text = format!("{key}: {number} is {count}");
        if number % 5 == 0 { Lines::side(text) } else { Lines::main(text) }
    }

    fn on_timer(
        &mut self,
        time: Timestamp,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::side(format!("{}: {count} at {time:?}", cx.key()))
    }
}

fn records(records: &[Record]) -> DataStream<Record> {
    let mut elements = Vec::new();
    for (index, &(key, number)) in records.iter().enumerate() {
        elements.push(Element::record((key, number), at(number)));
        if index % 16 == 15 {
            elements.push(Element::watermark(at(i64::try_from(index).expect("small"))));
        }
    }
    DataStream::from_elements(stream::iter(elements))
}

/// What came out, by output and key, in order.
type Result = BTreeMap<(&'static str, String), Vec<String>>;

fn by_key(main: Vec<String>, side: Vec<String>) -> Result {
    let mut result = Result::new();
    for (output, texts) in [("main", main), ("side", side)] {
        for text in texts {
            let key = text.split(':').next().unwrap_or_default().to_owned();
            result.entry((output, key)).or_default().push(text);
        }
    }
    result
}

macro_rules! collect {
    ($streams:expr) => {{
        let streams = $streams;
        let ledger = streams.ledger_handle();
        streams.note.discard();
        let (main, side) = block_on(futures::future::join(
            streams.main.collect::<Vec<_>>(),
            streams.side.collect::<Vec<_>>(),
        ));
        assert!(ledger.read().is_balanced(), "{:?}", ledger.read());
        by_key(main, side)
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn several_partitions_give_what_one_gives(
        input in prop::collection::vec((0..20u32, 0..3000i64), 0..3000), partitions in 1..5usize,
    ) {
        let one = collect!(records(&input).key_by(|record: &Record| record.0).process(Number));
        let keyed = records(&input).key_by(|record: &Record| record.0);
        let together = collect!(keyed.parallel(partitions).process(|| Number));
        prop_assert_eq!(&one, &together);
        let keyed = records(&input).key_by(|record: &Record| record.0);
        let spawn = |task| drop(std::thread::spawn(|| block_on(task)));
        let threads = collect!(keyed.parallel(partitions).process_on(spawn, || Number));
        prop_assert_eq!(&one, &threads);
    }
}

#[test]
fn a_panic_in_one_partition_is_an_error_of_all() {
    for threads in [false, true] {
        let mut input: Vec<_> = (0..2000).map(|n| (n % 20, i64::from(n))).collect();
        input.push((7, -1));
        let keyed = records(&input).key_by(|record: &Record| record.0).parallel(3);
        let mut handles = Vec::new();
        let streams = if threads {
            keyed.process_on(|task| handles.push(std::thread::spawn(|| block_on(task))), || Number)
        } else {
            keyed.process(|| Number)
        };
        streams.note.discard();
        let (main, side) = block_on(futures::future::join(
            streams.main.for_each(drop),
            streams.side.for_each(drop),
        ));
        for error in [main.unwrap_err(), side.unwrap_err()] {
            assert!(matches!(&error, StreamError::Panicked(_)), "{error}");
            assert!(error.to_string().contains("a negative number"), "{error}");
        }
        for handle in handles {
            handle.join().expect("the panic is contained");
        }
    }
}

#[test]
fn tasks_end_when_nobody_reads() {
    let keyed = DataStream::from_stream(stream::repeat((1, 1)).chain(stream::pending()))
        .key_by(|record: &Record| record.0);
    let mut handles = Vec::new();
    let streams = keyed
        .parallel(2)
        .process_on(|task| handles.push(std::thread::spawn(|| block_on(task))), || Number);
    drop(streams);
    for handle in handles {
        handle.join().expect("no panic");
    }
}

#[test]
fn a_task_that_is_dropped_is_an_error() {
    let keyed = records(&[(1, 1)]).key_by(|record: &Record| record.0);
    let streams = keyed.parallel(2).process_on(drop, || Number);
    streams.note.discard();
    streams.side.discard();
    let error = block_on(streams.main.for_each(drop)).unwrap_err();
    assert!(matches!(error, StreamError::Cancelled), "{error}");
}

#[test]
fn time_15_what_the_partitions_hold_is_added_up() {
    let records: Vec<_> = (0..100).map(|n| Element::record((n, i64::from(n)), at(0))).collect();
    let streams = DataStream::from_elements(stream::iter(records).chain(stream::pending()))
        .key_by(|record: &Record| record.0)
        .parallel(3)
        .process(|| Number);
    let ledger = streams.ledger_handle();
    streams.side.discard();
    streams.note.discard();
    let mut main = streams.main;
    while main.next().now_or_never().is_some() {}
    assert_eq!(ledger.read().held, 100);
}

/// Keeps everything to itself.
struct Silent;

impl KeyedProcess for Silent {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        _: u32,
        count: &mut u32,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        None::<Lines>
    }
}

#[test]
fn partitions_that_emit_nothing_come_to_their_end() {
    // One record at a time, so that every turn of a partition counts and emits nothing.
    let mut ready = false;
    let one_by_one = (0..20_000_u32).collect::<Vec<_>>().into_iter();
    let mut left = one_by_one;
    let input = stream::poll_fn(move |cx: &mut std::task::Context<'_>| {
        ready = !ready;
        if ready {
            return std::task::Poll::Ready(left.next());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    });
    let streams = DataStream::from_stream(input)
        .key_by(|n: &u32| n % 8)
        .parallel(2)
        .process_on(|task| drop(std::thread::spawn(|| block_on(task))), || Silent);
    let ledger = streams.ledger_handle();
    streams.side.discard();
    streams.note.discard();
    block_on(streams.main.for_each(drop)).expect("no error");
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:#?}");
    assert_eq!((ledger.received, ledger.unrouted), (20_000, 20_000));
}

#[test]
fn an_input_of_which_everything_is_rejected_lets_others_run() {
    let input = DataStream::from_stream(stream::repeat(1_u32)).filter(|_| false);
    let streams = input.key_by(|n: &u32| *n).parallel(2).process(|| Silent);
    let mut main = streams.main;
    assert!(main.next().now_or_never().is_none());
}

#[test]
fn a_partition_that_waits_keeps_one_waker() {
    struct Counted;
    impl std::task::Wake for Counted {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let mut tasks = Vec::new();
    let streams = DataStream::from_elements(stream::pending::<Element<Record>>())
        .key_by(|record: &Record| record.0)
        .parallel(2)
        .process_on(|task| tasks.push(task), || Number);
    let mut wakers = Vec::new();
    for _ in 0..1000 {
        for task in &mut tasks {
            let waker = std::sync::Arc::new(Counted);
            wakers.push(std::sync::Arc::downgrade(&waker));
            let waker = std::task::Waker::from(waker);
            assert!(task.poll_unpin(&mut std::task::Context::from_waker(&waker)).is_pending());
        }
    }
    let kept = wakers.iter().filter(|waker| waker.strong_count() > 0).count();
    assert_eq!(kept, 2, "one for each partition");
    drop((tasks, streams));
    assert!(wakers.iter().all(|waker| waker.strong_count() == 0));
}
