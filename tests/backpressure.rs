//! Back-pressure, fairness, cancellation, errors: the cases FLOW-01 to FLOW-17.

mod common;

use common::{Rng, assert_balanced, read2};
use futures::executor::block_on;
use futures::future::{join, poll_fn};
use futures::task::noop_waker;
use futures::{FutureExt as _, Stream, StreamExt as _, sink, stream};
use side_output::prelude::*;
use side_output::{Element, Overflow, overflow_into};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

#[splitter]
#[derive(Debug, PartialEq)]
enum Small {
    #[output(capacity = 16)]
    Even(u64),
    #[output(capacity = 16)]
    Odd(u64),
}

fn by_parity(n: u64) -> Small {
    if n.is_multiple_of(2) { Small::Even(n) } else { Small::Odd(n) }
}

fn by_half(n: u64) -> Small {
    if (n / 2).is_multiple_of(2) { Small::Even(n) } else { Small::Odd(n) }
}

#[splitter]
enum Tight {
    #[output(capacity = 1)]
    Even(u64),
    #[output(capacity = 1)]
    Odd(u64),
}

fn tight(n: u64) -> Tight {
    if n.is_multiple_of(2) { Tight::Even(n) } else { Tight::Odd(n) }
}

fn poll_once<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut TaskContext::from_waker(&noop_waker()))
}

/// Polls a future until it waits for something that does not come.
fn run_until_stuck<F: Future + Unpin>(future: &mut F) {
    #[derive(Default)]
    struct Count(AtomicU64);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    loop {
        let before = count.0.load(Ordering::SeqCst);
        assert!(future.poll_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
        if count.0.load(Ordering::SeqCst) == before {
            return;
        }
    }
}

#[test]
fn flow_01_an_output_that_is_not_read_holds_no_more_than_its_capacity() {
    let streams = stream::iter(0..).split_with(by_parity);
    let handle = streams.ledger_handle();
    let SmallStreams { mut even, mut odd } = streams;
    let mut read = 0;
    while let Poll::Ready(Some(_)) = poll_once(&mut even) {
        read += 1;
    }
    let ledger = handle.read();
    assert!(read > 0);
    assert!((1..=16).contains(&ledger["odd"].buffered), "{ledger:?}");
    assert!(ledger["odd"].blocking);
    assert_balanced(&ledger);
    // Once the other is read, both go on.
    assert!(poll_once(&mut odd).is_ready());
    while poll_once(&mut odd).is_ready() && handle.read()["odd"].delivered < 100 {
        while poll_once(&mut even).is_ready() {}
    }
    assert!(handle.read()["even"].delivered > read);
}

#[test]
fn flow_01_a_dropping_policy_never_makes_main_wait() {
    #[splitter]
    enum Lossy {
        #[main]
        Main(u64),
        #[output(capacity = 16, overflow = "drop_oldest")]
        Oldest(u64),
        #[output(capacity = 16, overflow = "drop_newest")]
        Newest(u64),
    }
    let streams = stream::iter(0..3000).split_with(|n: u64| match n % 3 {
        0 => Lossy::Main(n),
        1 => Lossy::Oldest(n),
        _ => Lossy::Newest(n),
    });
    let handle = streams.ledger_handle();
    let LossyStreams { main, oldest, newest } = streams;
    assert_eq!(block_on(main.count()), 1000);
    let ledger = handle.read();
    assert_eq!((ledger["oldest"].dropped, ledger["oldest"].buffered), (984, 16));
    assert_eq!((ledger["newest"].dropped, ledger["newest"].buffered), (984, 16));
    assert_balanced(&ledger);
    assert_eq!(
        block_on(oldest.collect::<Vec<_>>()),
        (984..1000).map(|n| n * 3 + 1).collect::<Vec<_>>()
    );
    assert_eq!(
        block_on(newest.collect::<Vec<_>>()),
        (0..16).map(|n| n * 3 + 2).collect::<Vec<_>>()
    );
}

#[test]
fn flow_01_an_unbounded_output_grows() {
    #[splitter]
    enum Growing {
        #[main]
        Main(u64),
        #[output(overflow = "unbounded")]
        All(u64),
    }
    let GrowingStreams { main, all } = stream::iter(0..10_000)
        .split_with(|n: u64| if n < 5 { Growing::Main(n) } else { Growing::All(n) });
    assert_eq!(block_on(main.count()), 5);
    assert_eq!(block_on(all.count()), 9995);
}

#[test]
fn flow_02_concurrent_readers_get_all() {
    let SmallStreams { even, odd } = stream::iter(0..2000).split_with(by_parity);
    let (even, odd) = read2(even, odd);
    assert_eq!((even.len(), odd.len()), (1000, 1000));
}

#[test]
fn flow_02_readers_in_sequence_get_a_report_that_names_the_full_output() {
    let streams = stream::iter(0..2000).split_with(by_parity);
    let handle = streams.ledger_handle();
    let SmallStreams { even, odd } = streams;
    let error = block_on(even.fail_on_stall().for_each(drop)).unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "odd" }), "{error}");
    assert_eq!(error.to_string(), "output `odd` is full and nobody reads it; read or discard it");
    assert_eq!(handle.read().stalls, 1);
    assert_balanced(&handle.read());
    drop(odd);
}

#[test]
fn flow_02_a_wiring_that_is_stuck_names_the_output() {
    let streams = stream::iter(0..2000).split_with(by_parity);
    let handle = streams.ledger_handle();
    let run = streams
        .wire()
        .even(discard())
        .odd(sink::unfold((), |(), _| std::future::pending::<Result<(), StreamError>>()));
    let mut run = Box::pin(run.run());
    run_until_stuck(&mut run);
    let ledger = handle.read();
    assert!(ledger["odd"].blocking, "{ledger:?}");
    assert!(!ledger["even"].blocking);
    assert_balanced(&ledger);
}

#[test]
fn flow_03_dropping_any_outputs_of_nested_splits_lets_the_rest_go_on() {
    for seed in 0..10_000 {
        let mut rng = Rng(seed);
        let SmallStreams { even, odd } = stream::iter(0..64).split_with(by_parity);
        let evens = even.split_with(by_half).boxed();
        let odds = odd.split_with(by_half).boxed();
        let mut leaves = [evens.even, evens.odd, odds.even, odds.odd].map(Some);
        let mut read = [const { Vec::new() }; 4];
        let mut done = [false; 4];
        let kept = rng.index(4);
        while !done[kept] {
            let index = rng.index(4);
            if index != kept && rng.below(20) == 0 {
                leaves[index] = None;
                continue;
            }
            if let Some(leaf) = &mut leaves[index] {
                match poll_once(leaf) {
                    Poll::Ready(Some(n)) => read[index].push(n),
                    Poll::Ready(None) => done[index] = true,
                    Poll::Pending => {}
                }
            }
        }
        let start = [0, 2, 1, 3][kept];
        assert_eq!(read[kept], (start..64).step_by(4).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// A waker that polls a stream again from inside `wake`.
struct Reentrant {
    stream: Mutex<Option<DataStream<u64>>>,
    polls: AtomicU64,
}

impl Wake for Reentrant {
    fn wake(self: Arc<Self>) {
        let Ok(mut stream) = self.stream.try_lock() else { return };
        if let Some(stream) = stream.as_mut() {
            let waker = Waker::from(Arc::clone(&self));
            self.polls.fetch_add(1, Ordering::SeqCst);
            let cx = &mut TaskContext::from_waker(&waker);
            while let Poll::Ready(Some(_)) = Pin::new(&mut *stream).poll_next(cx) {}
        }
    }
}

#[test]
fn flow_04_wakers_and_functions_run_without_a_lock() {
    // The input calls its waker inside its poll, and that polls the other output at once.
    let mut left = 100;
    let input = stream::poll_fn(move |cx: &mut TaskContext<'_>| {
        left -= 1;
        cx.waker().wake_by_ref();
        match left {
            0 => Poll::Ready(None),
            n if n % 3 == 0 => Poll::Pending,
            n => Poll::Ready(Some(n)),
        }
    });
    let streams = input.split_with(by_parity).boxed();
    let handle = streams.ledger_handle();
    let SmallStreams { even, mut odd } = streams;
    let reentrant =
        Arc::new(Reentrant { stream: Mutex::new(Some(even)), polls: AtomicU64::new(0) });
    let waker = Waker::from(Arc::clone(&reentrant));
    reentrant.wake_by_ref();
    loop {
        match Pin::new(&mut odd).poll_next(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(None) => break,
            Poll::Ready(Some(_)) | Poll::Pending => {}
        }
    }
    assert!(reentrant.polls.load(Ordering::SeqCst) > 1);
    assert_balanced(&handle.read());

    // The function reads the ledger of its own operator.
    let seen: Arc<Mutex<Option<side_output::LedgerHandle>>> = Arc::default();
    let inside = Arc::clone(&seen);
    let streams = stream::iter(0..10).split_with(move |n: u64| {
        assert!(inside.lock().unwrap().as_ref().unwrap().read().received <= n);
        by_parity(n)
    });
    *seen.lock().unwrap() = Some(streams.ledger_handle());
    let SmallStreams { even, odd } = streams;
    assert_eq!(read2(even, odd).0.len(), 5);
}

/// FLOW-05: the loom models in `side-output-core/src/stream/loom_tests.rs` go through every
/// interleaving; this is the same with real threads.
#[test]
fn flow_05_two_tasks_with_buffers_of_one_never_stall() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let TightStreams { even, odd } = stream::iter(0..100_000).split_with(tight);
        let even = tokio::spawn(even.fold(0, |sum, n| *sum += n));
        let odd = tokio::spawn(odd.fold(0, |sum, n| *sum += n));
        let sum = even.await.unwrap().unwrap() + odd.await.unwrap().unwrap();
        assert_eq!(sum, (0..100_000).sum::<u64>());
        for _ in 0..1000 {
            let TightStreams { even, odd } = stream::iter(0..100).split_with(tight);
            let even = tokio::spawn(even.collect::<Vec<_>>());
            let odd = tokio::spawn(odd.collect::<Vec<_>>());
            assert_eq!((even.await.unwrap().len(), odd.await.unwrap().len()), (50, 50));
        }
    });
}

/// FLOW-06: what consumers do runs outside of every lock. Both are inside their work at the same
/// time, which a barrier proves without a clock.
#[test]
fn flow_06_consumers_work_at_the_same_time() {
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let SmallStreams { even, odd } = stream::iter(0..200).split_with(by_parity).boxed();
    let threads = [even, odd].map(|stream| {
        let barrier = Arc::clone(&barrier);
        std::thread::spawn(move || block_on(stream.for_each(|_| _ = barrier.wait())))
    });
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn flow_07_a_dead_sink_holds_up_nobody_where_its_overflow_goes_elsewhere() {
    #[splitter]
    enum Sinks {
        #[output(capacity = 8)]
        Db(u64),
        File(u64),
    }
    let route = |n: u64| if n.is_multiple_of(2) { Sinks::Db(n) } else { Sinks::File(n) };
    let dead = || sink::unfold((), |(), _: u64| std::future::pending::<Result<(), StreamError>>());

    let (mut file, mut db_overflow) = (0_u64, 0_u64);
    let streams = stream::iter(0..20_000).split_with(route);
    let handle = streams.ledger_handle();
    let wiring = streams
        .wire()
        .db(overflow_into(dead(), each(|_| db_overflow += 1)))
        .file(each(|_| file += 1));
    let mut run = Box::pin(wiring.run());
    run_until_stuck(&mut run);
    assert_eq!(handle.read()["db"].buffered + handle.read()["db"].delivered, 10_000);
    drop(run);
    assert_eq!(file, 10_000);
    assert!((9_990..10_000).contains(&db_overflow), "{db_overflow}");

    // With the policy `block` both stop, and the ledger says which output is in the way.
    let streams = stream::iter(0..20_000).split_with(route);
    let handle = streams.ledger_handle();
    let wiring = streams.wire().db(dead()).file(discard());
    let mut run = Box::pin(wiring.run());
    run_until_stuck(&mut run);
    let ledger = handle.read();
    assert!(ledger["db"].blocking && !ledger["file"].blocking);
    assert!(ledger["file"].routed < 20);
}

/// FLOW-09; the biased form says so by its name, `config_first`: JOIN-01.
#[test]
fn flow_09_inputs_that_are_always_ready_take_turns() {
    let endless = |name: char| DataStream::from_stream(stream::repeat(name));
    let merged = endless('a').union([endless('b')]);
    let first: Vec<char> = block_on(merged.take(10_000).collect());
    let share = first.iter().filter(|name| **name == 'a').count();
    assert!((4500..=5500).contains(&share), "{share} of the first 10,000");
}

#[splitter]
enum Deliveries {
    #[main]
    Delivered(&'static str),
    Failed {
        record: &'static str,
        attempts: u32,
    },
}

/// FLOW-08: the step that delivers says by a route what came of it, so that a record which cannot
/// be delivered leaves through an output of its own and holds up nobody.
#[test]
fn flow_08_a_record_that_cannot_be_delivered_does_not_block_those_behind_it() {
    let deliver =
        |record| std::future::ready(if record == "bad" { Err("refused") } else { Ok(()) });
    let deliveries = stream::iter(["g1", "bad", "g2"]).then(move |record| async move {
        for _ in 0..3 {
            if deliver(record).await.is_ok() {
                return Deliveries::Delivered(record);
            }
        }
        Deliveries::Failed { record, attempts: 3 }
    });
    let DeliveriesStreams { delivered, failed } =
        deliveries.split_with(|delivery: Deliveries| delivery);
    let (delivered, failed) = read2(delivered, failed);
    assert_eq!(delivered, ["g1", "g2"]);
    assert_eq!((failed[0].record, failed[0].attempts, failed.len()), ("bad", 3, 1));
}

/// FLOW-10: readers drive; where they are all busy, a driver goes on until the buffers are full.
#[test]
fn flow_10_the_input_goes_on_under_a_driver_while_the_readers_are_busy() {
    let polled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&polled);
    let input = stream::iter(0..).inspect(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let SmallStreams { even, odd } = input.split_with(by_parity);
    assert_eq!(polled.load(Ordering::SeqCst), 0, "nothing happens until somebody reads");
    let mut driver = even.driver();
    assert!(driver.poll_unpin(&mut TaskContext::from_waker(&noop_waker())).is_pending());
    let filled = polled.load(Ordering::SeqCst);
    assert!((16..=32).contains(&filled), "{filled}");
    drop((even, odd));
    let ended = driver.poll_unpin(&mut TaskContext::from_waker(&noop_waker()));
    assert!(matches!(ended, Poll::Ready(Err(StreamError::Cancelled))));
}

/// FLOW-11: zero is a compile error (`tests/ui/declare/capacity_out_of_range.rs`); an empty input ends.
#[test]
fn flow_11_an_empty_input_ends_at_once() {
    let TightStreams { even, odd } = stream::empty().split_with(tight);
    assert_eq!(read2(even, odd), (vec![], vec![]));
}

#[test]
fn flow_12_an_input_that_is_always_ready_lets_other_tasks_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let stop = Rc::new(Cell::new(false));
        let seen = Rc::clone(&stop);
        let input = stream::iter(0..).take_while(move |_| std::future::ready(!seen.get()));
        let run = input.split_with(by_parity).wire().even(discard()).odd(discard()).run();
        // Runs only if the endless wiring gives way.
        let other = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            stop.set(true);
        };
        let (ledger, ()) = tokio::join!(run, other);
        assert_balanced(&ledger.unwrap());

        let stop = Rc::new(Cell::new(false));
        let seen = Rc::clone(&stop);
        let input = stream::iter(0..).take_while(move |_| std::future::ready(!seen.get()));
        let SmallStreams { even, odd } = input.split_with(by_parity);
        odd.discard();
        let other = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            stop.set(true);
        };
        let (read, ()) = tokio::join!(even.for_each(drop), other);
        read.unwrap();
    });
}

#[test]
fn flow_13_the_input_is_not_polled_after_its_end() {
    let mut next = 0;
    let input = stream::poll_fn(move |_| {
        next += 1;
        match next {
            1..=4 => Poll::Ready(Some(next)),
            5 => Poll::Ready(None),
            _ => panic!("polled after its end"),
        }
    });
    let SmallStreams { mut even, mut odd } = input.split_with(by_parity);
    block_on(async {
        while even.next().await.is_some() {}
        while odd.next().await.is_some() {}
        for _ in 0..3 {
            assert_eq!(odd.next().await, None);
            assert_eq!(even.next().await, None);
        }
    });
}

#[test]
fn flow_14_a_cancelled_next_loses_nothing() {
    let mut rng = Rng(14);
    let mut pending = Rng(41);
    let mut next = 0;
    let input = stream::poll_fn(move |cx: &mut TaskContext<'_>| {
        if pending.below(3) == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        next += 1;
        Poll::Ready((next <= 100_000).then_some(next))
    });
    let SmallStreams { mut even, mut odd } = input.split_with(by_parity);
    let (mut evens, mut odds) = (Vec::new(), Vec::new());
    let (mut even_done, mut odd_done) = (false, false);
    while !(even_done && odd_done) {
        // Each `next` is polled once and dropped.
        let waker = noop_waker();
        let cx = &mut TaskContext::from_waker(&waker);
        if rng.below(2) == 0 {
            match even.next().poll_unpin(cx) {
                Poll::Ready(Some(n)) => evens.push(n),
                Poll::Ready(None) => even_done = true,
                Poll::Pending => {}
            }
        } else {
            match odd.next().poll_unpin(cx) {
                Poll::Ready(Some(n)) => odds.push(n),
                Poll::Ready(None) => odd_done = true,
                Poll::Pending => {}
            }
        }
    }
    assert_eq!(evens, (2..=100_000).step_by(2).collect::<Vec<_>>());
    assert_eq!(odds, (1..=100_000).step_by(2).collect::<Vec<_>>());
}

#[test]
fn flow_15_a_lagging_reader_waits_or_is_told_how_much_it_missed() {
    #[splitter]
    enum Copied {
        #[main]
        Main(u64),
        #[tap]
        #[output(capacity = 8)]
        Lossless(u64),
        #[tap]
        #[output(capacity = 8, overflow = "drop_oldest")]
        Lossy(u64),
    }
    let copy = |n: u64, cx: &mut Context<Copied>| {
        cx.output(Copied::LOSSLESS_TAG, n);
        cx.output(Copied::LOSSY_TAG, n);
        Copied::Main(n)
    };
    let streams = stream::iter(0..100).split_with(copy);
    let handle = streams.ledger_handle();
    let CopiedStreams { mut main, lossless, lossy } = streams;
    while poll_once(&mut main).is_ready() {}
    assert!(handle.read()["lossless"].buffered <= 8, "the writer waits");
    drop(lossless);
    // Without the lossless copy main goes on; the lossy one holds the last 8 and counts the rest.
    let rest = block_on(main.count()) as u64;
    assert_eq!(handle.read()["main"].delivered, 100);
    assert!(rest <= 100);
    let ledger = handle.read();
    assert_eq!((ledger["lossy"].dropped, ledger["lossy"].buffered), (92, 8));
    assert_balanced(&ledger);
    assert_eq!(block_on(lossy.collect::<Vec<_>>()), (92..100).collect::<Vec<_>>());
}

#[test]
fn flow_16_a_panic_is_an_error_at_every_reader() {
    #[splitter]
    enum Three {
        A(u64),
        B(u64),
        C(u64),
    }
    let route = |n: u64| match n {
        5 => panic!("record 5"),
        n => match n % 3 {
            0 => Three::A(n),
            1 => Three::B(n),
            _ => Three::C(n),
        },
    };
    let streams = stream::iter(1..=10).split_with(route);
    let handle = streams.ledger_handle();
    let ThreeStreams { a, b, c } = streams;
    let read = |stream: DataStream<u64>| async {
        let mut records = Vec::new();
        let error = stream.for_each(|n| records.push(n)).await.unwrap_err();
        assert_eq!(error.to_string(), "a function of the stream panicked: record 5");
        records
    };
    let (a, b, c) =
        block_on(async { futures::join!(read(a.boxed()), read(b.boxed()), read(c.boxed())) });
    assert_eq!((a, b, c), (vec![3], vec![1, 4], vec![2]));
    let ledger = handle.read();
    assert_eq!((ledger.received, ledger.failed), (5, 1));
    assert_balanced(&ledger);

    let streams = stream::iter(1..=10).split_with(route);
    let handle = streams.ledger_handle();
    let error = block_on(streams.wire().a(discard()).b(discard()).c(discard()).run()).unwrap_err();
    assert_eq!(error.to_string(), "a function of the stream panicked: record 5");
    assert_balanced(&handle.read());

    // A plain stream of records has no room for an error: it ends, and keeps it.
    let ThreeStreams { mut a, b, c } = stream::iter(1..=10).split_with(route);
    b.discard();
    c.discard();
    assert_eq!(block_on(a.by_ref().collect::<Vec<_>>()), [3]);
    assert_eq!(a.error().unwrap().to_string(), "a function of the stream panicked: record 5");
}

#[test]
fn flow_16_an_error_of_the_input_is_an_error_at_every_reader() {
    let input = DataStream::from_try_stream(stream::iter([Ok(1), Ok(2), Err("torn"), Ok(3)]));
    let SmallStreams { even, odd } = input.split_with(by_parity);
    let (even, odd) =
        block_on(join(even.results().collect::<Vec<_>>(), odd.results().collect::<Vec<_>>()));
    assert_eq!((even.len(), odd.len()), (2, 2));
    assert!(even[0].is_ok() && odd[0].is_ok());
    for last in [&even[1], &odd[1]] {
        assert!(last.as_ref().unwrap_err().to_string().contains("torn"));
    }
}

#[test]
fn flow_16_a_reader_that_panics_takes_nobody_with_it() {
    let streams = stream::iter(0..100).split_with(by_parity);
    let handle = streams.ledger_handle();
    let SmallStreams { even, odd } = streams;
    let reader =
        std::thread::spawn(move || block_on(even.for_each(|n| assert!(n < 10, "reader of even"))));
    let odd = block_on(odd.collect::<Vec<_>>());
    assert_eq!(odd.len(), 50);
    assert!(reader.join().is_err());
    let ledger = handle.read();
    assert_eq!((ledger.received, ledger.failed), (100, 0));
    assert_balanced(&ledger);
}

#[splitter]
enum Local {
    Shared(Rc<u64>),
    Rest(u64),
}

/// FLOW-17: the static assertions are in `tests/auto_traits.rs`.
#[test]
fn flow_17_works_with_borrows_inside_a_spawned_task_and_without_send() {
    struct Service {
        prefix: String,
    }
    impl Service {
        async fn run(&self) -> Vec<String> {
            let prefix: &str = &self.prefix;
            let SmallStreams { even, odd } = stream::iter(0..10_u64)
                .map(|n| n + 1)
                .filter(|n| std::future::ready(*n != 7))
                .chain(stream::iter([100]))
                .take(50)
                .split_with(by_parity);
            odd.discard();
            even.map(|n| format!("{prefix}{n}")).collect().await
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let task = runtime.spawn(async { Service { prefix: "n".to_owned() }.run().await });
    assert_eq!(block_on(task).unwrap(), ["n2", "n4", "n6", "n8", "n10", "n100"]);

    let LocalStreams { shared, rest } = stream::iter(0..4)
        .split_with(|n: u64| if n < 2 { Local::Shared(Rc::new(n)) } else { Local::Rest(n) });
    let (shared, rest) = read2(shared, rest);
    assert_eq!((*shared[1], rest), (1, vec![2, 3]));
}

#[test]
fn the_ledger_is_exact_after_cancellation_anywhere() {
    for seed in 0..2000 {
        let mut rng = Rng(seed);
        let mut pending = Rng(seed + 1);
        let input = stream::iter(0..200).then(move |n: u64| {
            let yields = pending.below(2);
            async move {
                for _ in 0..yields {
                    let mut yielded = false;
                    poll_fn(|cx| {
                        if std::mem::replace(&mut yielded, true) {
                            return Poll::Ready(());
                        }
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
                n
            }
        });
        let streams = input.split_with(by_parity);
        let handle = streams.ledger_handle();
        let SmallStreams { even, odd } = streams;
        let mut even = Some(even);
        let mut odd = Some(odd);
        for _ in 0..rng.below(100) {
            match rng.below(30) {
                0 => drop(even.take()),
                1 => drop(odd.take()),
                n if n % 2 == 0 => drop(even.as_mut().map(poll_once)),
                _ => drop(odd.as_mut().map(poll_once)),
            }
            assert_balanced(&handle.read());
        }
        drop((even, odd));
        let ledger = handle.read();
        assert_balanced(&ledger);
        assert!(ledger.outputs.iter().all(|output| output.buffered == 0), "{ledger:?}");
    }
}

/// A waker that owns a stream of the operator it waits for, as the last waker of a task that was
/// given up does.
struct Owner {
    _stream: Mutex<DataStream<u64>>,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

/// FLOW-04: a waker that is replaced may be the last owner of a task, and of a stream in it.
#[test]
fn flow_04_dropping_a_waker_may_drop_a_stream_of_the_same_operator() {
    let SmallStreams { even, mut odd } =
        stream::pending::<u64>().chain(stream::iter(0..1)).split_with(by_parity).boxed();
    let owner = Waker::from(Arc::new(Owner { _stream: Mutex::new(even) }));
    assert!(Pin::new(&mut odd).poll_next(&mut TaskContext::from_waker(&owner)).is_pending());
    drop(owner);
    // Takes the place of the owner's waker, which was the last one.
    assert!(poll_once(&mut odd).is_pending());
}

#[test]
fn streams_that_were_read_in_part_can_be_wired() {
    // Ten records are read ahead in one turn, to the end of the input; of a thousand, a part is.
    for count in [10, 1000] {
        let mut streams = stream::iter(0..count)
            .split_with(|n: u64| if n.is_multiple_of(2) { Lanes::Even(n) } else { Lanes::Odd(n) });
        assert_eq!(block_on(streams.odd.next()), Some(1));
        let (mut evens, mut odds) = (Vec::new(), Vec::new());
        let ledger =
            block_on(streams.wire().even(&mut evens).odd(each(|n| odds.push(n))).run()).unwrap();
        assert_eq!(evens, (0..count).step_by(2).collect::<Vec<_>>());
        assert_eq!(odds, (3..count).step_by(2).collect::<Vec<_>>());
        assert_balanced(&ledger);
        assert_eq!(ledger.received, count);
        for output in ["even", "odd"] {
            assert_eq!((ledger[output].delivered, ledger[output].buffered), (count / 2, 0));
        }
    }
}

#[splitter]
enum Lanes {
    Even(u64),
    Odd(u64),
}

/// FLOW-16: a reader that panics while a watermark fires windows is no failure of the operator.
#[test]
fn flow_16_a_reader_or_destination_that_panics_leaves_the_ledger_balanced() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let windows = || {
        stream::iter(0..100_u64)
            .assign_timestamps(|n| Timestamp::from_secs(n.cast_signed()), Watermarks::monotonous())
            .key_by(|n| n % 3)
            .window(Tumbling::of(std::time::Duration::from_secs(10)))
            .side_output_late_data()
            .aggregate(side_output::Count::new())
    };
    let streams = windows();
    let ledger = streams.ledger_handle();
    let WindowStreams { results, late } = streams;
    let mut seen = 0;
    let read = results.for_each(|_| {
        seen += 1;
        assert!(seen < 5, "reader");
    });
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(read))).is_err());
    block_on(late.for_each(drop)).unwrap();
    let ledger = ledger.read();
    assert_eq!((ledger.received, ledger.failed), (100, 0), "{ledger:?}");
    assert_balanced(&ledger);

    let streams = windows();
    let ledger = streams.ledger_handle();
    let mut seen = 0;
    let run = streams.wire().late(discard()).results(each(|_| {
        seen += 1;
        assert!(seen < 5, "destination");
    }));
    assert!(block_on(run.run()).is_err());
    assert_balanced(&ledger.read());

    let streams = stream::iter(0..10).split_with(by_parity);
    let ledger = streams.ledger_handle();
    let run = streams.wire().even(each(|n| assert!(n < 4, "destination"))).odd(discard()).run();
    let error = block_on(run).unwrap_err();
    let text = "the destination of output `even` failed: it panicked: destination";
    assert_eq!(error.to_string(), text);
    assert_eq!((ledger.read().received, ledger.read().failed), (5, 0));
    assert_balanced(&ledger.read());
}

mod fault_26 {
    use super::*;
    use side_output::{Count, TestClock};
    use std::time::Duration;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A window's worth of records, a watermark far behind it, and `late` records that are late.
    fn with_late_records(late: u64) -> impl Stream<Item = Element<u64>> + Send + Unpin {
        let on_time = (0..5).map(|n| Element::record(n, at(5)));
        let watermark = [Element::watermark(at(100))];
        let late = (0..late).map(|n| Element::record(n, at(7)));
        stream::iter(on_time.chain(watermark).chain(late))
    }

    macro_rules! windows {
        ($late:expr) => {
            DataStream::from_elements(with_late_records($late))
                .key_by(|n| n % 5)
                .window(Tumbling::of(Duration::from_millis(10)))
                .side_output_late_data()
                .aggregate(Count::new())
        };
    }

    #[test]
    fn fault_26_late_records_that_nobody_reads_keep_to_the_capacity_that_was_given() {
        for (overflow, first) in [(Overflow::DropOldest, 40), (Overflow::DropNewest, 0)] {
            let streams = windows!(50);
            let ledger = streams.ledger_handle();
            let WindowStreams { results, late } = streams;
            let late = late.capacity(10).overflow(overflow);
            assert_eq!(block_on(results.count()), 5);
            let now = ledger.read();
            assert_eq!((now["late"].buffered, now["late"].dropped), (10, 40), "{overflow:?}");
            assert_balanced(&now);
            let late: Vec<_> = block_on(late.map(|late| late.value).collect());
            assert_eq!(late, (first..first + 10).collect::<Vec<_>>(), "{overflow:?}");
        }
    }

    #[test]
    fn fault_26_full_late_records_block_the_results() {
        let streams = windows!(50);
        let ledger = streams.ledger_handle();
        let WindowStreams { results, late } = streams;
        let (mut results, mut late) = (results.capacity(3), late.capacity(7));
        let (mut read, mut most) = ((0, 0), (0, 0));
        // A reader that stops as soon as it has to wait, and then the other.
        loop {
            while let Poll::Ready(Some(_)) = poll_once(&mut results) {
                read.0 += 1;
            }
            let now = ledger.read();
            most = (most.0.max(now["results"].buffered), most.1.max(now["late"].buffered));
            while let Poll::Ready(next) = poll_once(&mut late) {
                if next.is_none() {
                    assert_eq!(read, (5, 50));
                    // Whoever drives for itself passes no buffer.
                    assert!(most.0 <= 3 && (1..=7).contains(&most.1), "{most:?}");
                    return assert_balanced(&ledger.read());
                }
                read.1 += 1;
            }
            let now = ledger.read();
            most = (most.0.max(now["results"].buffered), most.1.max(now["late"].buffered));
        }
    }

    #[test]
    fn fault_26_a_wiring_keeps_to_it() {
        let mut streams = windows!(50);
        streams.late = streams.late.capacity(4).overflow(Overflow::DropNewest);
        let never = |late: DataStream<_>| async move {
            let _late = late;
            std::future::pending::<Result<(), StreamError>>().await
        };
        let ledger = streams.ledger_handle();
        let mut run = streams.wire().results(discard()).late(never).run();
        run_until_stuck(&mut run);
        let ledger = ledger.read();
        assert_eq!((ledger["late"].buffered, ledger["late"].dropped), (4, 46));
        assert_eq!(ledger["results"].discarded, 5);
        assert_balanced(&ledger);
    }

    #[test]
    fn fault_26_a_declared_output_and_the_others_of_the_library() {
        let SmallStreams { even, odd } = stream::iter(0..100).split_with(by_parity);
        let ledger = even.ledger_handle().unwrap();
        let odd = odd.overflow(Overflow::Unbounded);
        assert_eq!(block_on(even.count()), 50);
        assert_eq!(ledger.read()["odd"].buffered, 50);
        drop(odd);

        let clock = TestClock::at(at(0));
        let streams = stream::iter(0..100_u64).assign_timestamps(
            |n| at(if n.is_multiple_of(2) { 0 } else { 1_000_000 }),
            Watermarks::monotonous().max_future_skew(Duration::from_secs(1), clock),
        );
        let ledger = streams.ledger_handle();
        let side_output::operator::StampedStreams { records, future_skew } = streams;
        let future_skew = future_skew.capacity(1).overflow(Overflow::DropNewest);
        assert_eq!(block_on(records.count()), 50);
        assert_eq!((ledger.read()["future_skew"].buffered, block_on(future_skew.count())), (1, 1));
        assert_balanced(&ledger.read());
    }

    /// Who waits for room is told that there is some.
    #[test]
    fn fault_26_a_reader_that_waits_is_woken_by_a_higher_capacity() {
        let SmallStreams { even, odd } = stream::iter(0..100).split_with(by_parity);
        let (waker, count) = futures_test::task::new_count_waker();
        let mut even = even.for_each(drop).boxed_local();
        assert!(even.poll_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
        let before = count.get();
        assert!(even.poll_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
        assert_eq!(count.get(), before, "it waits for room, and not for its turn");
        let odd = odd.capacity(1000);
        assert_eq!(count.get(), before + 1);
        assert!(even.poll_unpin(&mut TaskContext::from_waker(&waker)).is_ready());
        assert_eq!(block_on(odd.count()), 50);
    }

    #[test]
    #[should_panic(expected = "the capacity of an output must be at least 1")]
    fn fault_26_a_capacity_of_zero_is_refused() {
        drop(stream::iter(0..100).split_with(by_parity).even.capacity(0));
    }
}
