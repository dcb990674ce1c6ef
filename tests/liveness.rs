//! Nobody waits for ever: not for a reader that was woken and does not come, nor for an operator
//! that foreign code took along when it panicked.

mod common;

use common::assert_balanced;
use futures::executor::block_on;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// As long as a loaded machine may take; what is waited for comes at once.
const PATIENCE: Duration = Duration::from_mins(1);

/// A record whose destructor panics if it has this number.
#[derive(Debug)]
struct Bomb(u32, u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 != self.1, "a destructor");
    }
}

#[splitter]
enum Three {
    X(Bomb),
    #[main]
    Y(u32),
    Z(u32),
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicU64);

impl Woken {
    fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (Arc::clone(&woken), Waker::from(woken))
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker");
    }
}

fn poll<S: Stream + Unpin>(stream: &mut S, waker: &Waker) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut TaskContext::from_waker(waker))
}

/// Polls a future as often as it is woken; it must not wait for anything else.
#[track_caller]
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (woken, waker) = Woken::new();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            return output;
        }
        assert!(woken.take() > 0, "it waits for ever");
    }
}

fn text<T>(result: Result<T, StreamError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// An input that has nothing when it is first asked, and then all of this.
fn later(records: Vec<u32>) -> impl Stream<Item = u32> + Send {
    let mut records = records.into_iter();
    let mut asked = false;
    stream::poll_fn(move |_| {
        if std::mem::replace(&mut asked, true) {
            Poll::Ready(records.next())
        } else {
            Poll::Pending
        }
    })
}

/// Numbers above 6 go to X, with a destructor that panics; even ones to Y, odd ones to Z.
fn three(n: u32) -> Three {
    match n {
        7.. => Three::X(Bomb(n, n)),
        n if n.is_multiple_of(2) => Three::Y(n),
        n => Three::Z(n),
    }
}

#[test]
fn fault_16_a_destructor_that_panics_under_one_reader_is_an_error_at_every_reader() {
    // One, or several in one turn.
    for records in [vec![2, 3, 7, 4], vec![2, 3, 7, 8, 9, 10, 4]] {
        let streams = later(records).split_with(three);
        let ledger = streams.ledger_handle();
        let ThreeStreams { x, y, z } = streams;
        drop(x);
        let (mut y, mut z) = (y.results(), z.results());
        let (woken, waker) = Woken::new();
        assert!(poll(&mut z, &waker).is_pending());
        woken.take();
        // Y drives, and drops the records of X.
        let read: Vec<_> = block_on(y.by_ref().map(text).collect());
        let error = Err("a function of the stream panicked: a destructor".to_owned());
        assert_eq!(read, [Ok(2), Ok(4), error.clone()]);
        assert!(woken.take() > 0);
        let read: Vec<_> = z.map(text).collect().now_or_never().unwrap();
        assert_eq!(read, [Ok(3), error]);
        assert_balanced(&ledger.read());
    }
}

#[test]
fn fault_16_a_full_output_whose_records_panic_when_it_is_dropped_is_in_nobodys_way() {
    #[splitter]
    enum Two {
        #[main]
        Free(u32),
        #[output(capacity = 2)]
        Full(Bomb),
    }
    let streams = stream::iter(0..4)
        .split_with(|n: u32| if n < 2 { Two::Full(Bomb(n, n)) } else { Two::Free(n) });
    let TwoStreams { mut free, full } = streams;
    let (woken, waker) = Woken::new();
    assert!(poll(&mut free, &waker).is_pending());
    woken.take();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(full))).is_err());
    assert_eq!(woken.take(), 1);
    assert_eq!(finish(free.collect::<Vec<_>>()), [2, 3]);
}

#[test]
fn fault_16_an_input_that_panics_when_it_is_dropped_is_an_error_at_every_reader() {
    // With an error of its own, that one counts.
    for (fails, expected) in [
        (false, "a function of the stream panicked: a destructor"),
        (true, "the stream failed: its own"),
    ] {
        let bomb = Bomb(0, 0);
        let input = later(vec![2, 3])
            .map(Ok)
            .chain(stream::iter(fails.then(|| Err(std::io::Error::other("its own")))));
        let input = input.inspect(move |_| _ = &bomb);
        let streams = DataStream::from_try_stream(input).split_with(three);
        let ThreeStreams { x, y, z } = streams;
        drop(x);
        let (mut y, mut z) = (y.results(), z.results());
        let (woken, waker) = Woken::new();
        assert!(poll(&mut z, &waker).is_pending());
        woken.take();
        let read: Vec<_> = block_on(y.by_ref().map(text).collect());
        assert_eq!(read, [Ok(2), Err(expected.to_owned())]);
        assert!(woken.take() > 0);
        let read: Vec<_> = z.map(text).collect().now_or_never().unwrap();
        assert_eq!(read, [Ok(3), Err(expected.to_owned())]);
    }
}

#[test]
fn fault_16_an_input_that_panics_when_it_is_dropped_is_the_error_of_a_run_and_of_a_driver() {
    let bomb = Bomb(0, 0);
    let input = later(vec![2, 3]).inspect(move |_| _ = &bomb);
    let streams = input.split_with(three);
    let mut driver = pin!(streams.y.driver());
    let run = streams.wire().x(discard()).y(discard()).z(discard()).run();
    let mut run = pin!(run);
    let (woken, waker) = Woken::new();
    let cx = &mut TaskContext::from_waker(&waker);
    assert!(run.as_mut().poll(cx).is_pending());
    assert!(driver.as_mut().poll(cx).is_pending());
    woken.take();
    let error = "a function of the stream panicked: a destructor";
    assert_eq!(text(finish(run)).unwrap_err(), error);
    assert!(woken.take() > 0);
    assert_eq!(text(finish(driver)).unwrap_err(), error);
}

/// A log that panics.
struct PanickingLog;

impl tracing::Subscriber for PanickingLog {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        panic!("a log");
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn fault_16_a_log_that_panics_is_an_error_at_every_reader() {
    let streams = later(vec![2, 3, 4]).split_with(|n: u32| match three(n) {
        Three::Z(n) => Three::X(Bomb(n, 0)),
        route => route,
    });
    let ThreeStreams { x, y, z } = streams;
    drop(x);
    let (y, mut z) = (y.results(), z.results());
    let (woken, waker) = Woken::new();
    assert!(poll(&mut z, &waker).is_pending());
    woken.take();
    let read: Vec<_> = tracing::subscriber::with_default(PanickingLog, || {
        block_on(y.map(text).collect::<Vec<_>>())
    });
    let error = "a function of the stream panicked: a log";
    assert_eq!(read.last(), Some(&Err(error.to_owned())));
    assert!(woken.take() > 0);
    assert_eq!(text(block_on(z.next()).unwrap()), Err(error.to_owned()));
}

/// Streams that are polled from inside the input: as if from other threads, while it is driven.
type Others = Arc<Mutex<Vec<(DataStream<u32>, Waker)>>>;

/// The numbers of a range, all ready; before the first one, the others are polled.
fn while_driven(
    others: &Others,
    mut numbers: std::ops::Range<u32>,
) -> impl Stream<Item = u32> + use<> {
    let others = Arc::clone(others);
    let mut polled = false;
    stream::poll_fn(move |_| {
        if !std::mem::replace(&mut polled, true) {
            for (stream, waker) in &mut *others.lock().unwrap() {
                assert!(poll(stream, waker).is_pending());
            }
        }
        Poll::Ready(numbers.next())
    })
}

#[splitter]
enum Outs {
    #[main]
    #[output(capacity = 4)]
    A(u32),
    #[output(capacity = 4)]
    B(u32),
    #[output(capacity = 4)]
    C(u32),
}

#[test]
fn fault_16_a_waker_that_panics_keeps_nobody_waiting() {
    let others = Others::default();
    let streams = while_driven(&others, 0..1000).split_with(|n: u32| match n {
        1 => Some(Outs::B(n)),
        999 => Some(Outs::C(n)),
        _ => None,
    });
    let ledger = streams.ledger_handle();
    let OutsStreams { mut a, b, c } = streams;
    let (woken, waker) = Woken::new();
    let panics = Waker::from(Arc::new(Panics));
    others.lock().unwrap().extend([(b.boxed(), panics), (c.boxed(), waker)]);
    // A goes on after the turn in which B got something. Either it gets an error, or the panic.
    drop(catch_unwind(AssertUnwindSafe(|| poll(&mut a, Waker::noop()))));
    assert!(woken.take() > 0);
    let (c, _) = others.lock().unwrap().pop().unwrap();
    // The end, or an error.
    finish(c.results().for_each(|_| std::future::ready(())));
    assert_balanced(&ledger.read());
}

#[test]
fn fault_17_a_reader_that_was_woken_and_does_not_come_keeps_nobody_waiting() {
    let others = Others::default();
    let streams = while_driven(&others, 0..1000)
        .split_with(|n: u32| if n == 999 { Outs::C(n) } else { Outs::A(n) });
    let OutsStreams { mut a, b, c } = streams;
    let [(b_woken, b_waker), (c_woken, c_waker)] = [Woken::new(), Woken::new()];
    others.lock().unwrap().extend([(b.boxed(), b_waker), (c.boxed(), c_waker)]);
    assert_eq!(a.next().now_or_never(), Some(Some(0)));
    // A is busy with its record, the input is ready, and B does not ask any more.
    assert_eq!((b_woken.take(), c_woken.take()), (1, 1));
    let (mut c, _) = others.lock().unwrap().pop().unwrap();
    drop(a);
    assert_eq!(finish(c.next()), Some(999));
}

#[test]
fn fault_17_a_reader_that_waited_for_room_and_does_not_come_keeps_nobody_waiting() {
    let others = Others::default();
    let streams = while_driven(&others, 0..10).split_with(|n: u32| match n {
        9 => Outs::C(n),
        n => Outs::B(n),
    });
    let OutsStreams { mut a, mut b, c } = streams;
    let [(a_woken, a_waker), (c_woken, c_waker)] = [Woken::new(), Woken::new()];
    others.lock().unwrap().push((c.boxed(), c_waker.clone()));
    // Drives until B is full.
    assert!(poll(&mut a, &a_waker).is_pending());
    assert_eq!((a_woken.take(), c_woken.take()), (0, 0));
    // Now there is room, and A does not ask any more.
    assert_eq!(b.next().now_or_never(), Some(Some(0)));
    assert_eq!((a_woken.take(), c_woken.take()), (1, 1));
    let (mut c, _) = others.lock().unwrap().pop().unwrap();
    assert!(poll(&mut c, &c_waker).is_pending());
    while let Poll::Ready(Some(_)) = poll(&mut b, Waker::noop()) {}
    assert_eq!(finish(async { futures::join!(c.next(), b.count()).0 }), Some(9));
}

#[test]
fn an_error_instead_of_a_stall_reaches_who_waits_for_records_as_well() {
    let others = Others::default();
    let streams = while_driven(&others, 0..100).split_with(Outs::B);
    let OutsStreams { mut a, b, c } = streams;
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Tells(Mutex::new(sender))));
    others.lock().unwrap().push((c.fail_on_stall().boxed(), waker));
    assert!(poll(&mut a, Waker::noop()).is_pending());
    woken.recv_timeout(PATIENCE).unwrap();
    let (c, _) = others.lock().unwrap().pop().unwrap();
    let error = block_on(c.results().next()).unwrap().unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "b" }), "{error}");
    drop(b);
}

struct Tells(Mutex<std::sync::mpsc::Sender<()>>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        _ = self.0.lock().unwrap().send(());
    }
}

#[test]
fn fault_18_two_drivers_are_both_woken_and_both_complete() {
    let (sender, input) = futures::channel::mpsc::unbounded();
    let OutsStreams { a, b, c } = input.split_with(Outs::A);
    let (mut first, mut second) = (Box::pin(a.driver()), Box::pin(a.driver()));
    let [(first_woken, first_waker), (second_woken, second_waker)] = [Woken::new(), Woken::new()];
    let mut poll_both = || {
        let first = first.as_mut().poll(&mut TaskContext::from_waker(&first_waker));
        let second = second.as_mut().poll(&mut TaskContext::from_waker(&second_waker));
        (first.is_ready(), second.is_ready())
    };
    assert_eq!(poll_both(), (false, false));
    sender.unbounded_send(1).unwrap();
    assert_eq!((first_woken.take(), second_woken.take()), (1, 1));
    assert_eq!(poll_both(), (false, false));
    drop(sender);
    assert!(first_woken.take() > 0 && second_woken.take() > 0);
    assert_eq!(poll_both(), (true, true));
    assert_eq!(block_on(a.collect::<Vec<_>>()), [1]);
    drop((b, c));
}

#[test]
fn fault_18_two_drivers_on_two_threads_complete() {
    let streams = stream::iter(0..50_000).split_with(|n: u32| match n % 3 {
        0 => Outs::A(n),
        1 => Outs::B(n),
        _ => Outs::C(n),
    });
    let drivers = [streams.a.driver(), streams.a.driver(), streams.b.driver()];
    let (sender, ended) = channel();
    for driver in drivers {
        let sender = sender.clone();
        thread::spawn(move || sender.send(block_on(driver).is_ok()));
    }
    let OutsStreams { a, b, c } = streams;
    let count = block_on(async { futures::join!(a.count(), b.count(), c.count()) });
    assert_eq!(count, (16_667, 16_667, 16_666));
    for _ in 0..3 {
        assert_eq!(ended.recv_timeout(PATIENCE), Ok::<_, RecvTimeoutError>(true));
    }
}

/// Passes on what it gets.
struct Pass;

impl KeyedProcess for Pass {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Outs;

    fn on_record(&mut self, n: u32, (): &mut (), _: &mut KeyedContext<Self>) -> impl Routes<Outs> {
        Outs::A(n)
    }
}

#[test]
fn fault_16_a_partition_whose_waker_panics_keeps_no_other_waiting() {
    let (sender, input) = futures::channel::mpsc::unbounded();
    let mut tasks = Vec::new();
    let OutsStreams { a, b, c } = DataStream::from_stream(input)
        .key_by(|n: &u32| *n)
        .parallel(2)
        .process_on(|task| tasks.push(Box::pin(task)), || Pass);
    let panics = Waker::from(Arc::new(Panics));
    let (woken, waker) = Woken::new();
    for (task, waker) in tasks.iter_mut().zip([&panics, &waker]) {
        assert!(task.as_mut().poll(&mut TaskContext::from_waker(waker)).is_pending());
    }
    // The input wakes both.
    assert!(catch_unwind(AssertUnwindSafe(|| sender.unbounded_send(1))).is_err());
    assert!(woken.take() > 0);
    drop(catch_unwind(AssertUnwindSafe(|| drop((a, b, c, tasks)))));
}

#[test]
fn fault_16_partitions_get_the_error_of_an_input_that_panics() {
    let mut polls = 0;
    let input = stream::poll_fn(move |_| {
        polls += 1;
        assert!(polls < 3, "the input");
        Poll::<Option<u32>>::Pending
    });
    let mut tasks = Vec::new();
    let OutsStreams { a, b, c } = DataStream::from_stream(input)
        .key_by(|n: &u32| *n)
        .parallel(2)
        .process_on(|task| tasks.push(Box::pin(task)), || Pass);
    let [first, second] = [Woken::new(), Woken::new()];
    let poll_both = |tasks: &mut [Pin<Box<_>>]| -> [bool; 2] {
        [(0, &first.1), (1, &second.1)].map(|(index, waker)| poll_task(&mut tasks[index], waker))
    };
    assert_eq!(poll_both(&mut tasks), [false, false]);
    assert_eq!(poll_both(&mut tasks), [true, true]);
    let error = finish(a.results().map(text).collect::<Vec<_>>());
    assert_eq!(error, [Err("a function of the stream panicked: the input".to_owned())]);
    drop((b, c));
}

fn poll_task<F: Future<Output = ()>>(task: &mut Pin<Box<F>>, waker: &Waker) -> bool {
    task.as_mut().poll(&mut TaskContext::from_waker(waker)).is_ready()
}
