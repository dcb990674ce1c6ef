//! What happens at the seams of the runtime: readers that panic half-way through an operator's
//! work, streams that are taken, wired and dropped, drivers, stalls that are over.

use futures::channel::mpsc::unbounded;
use futures::executor::block_on;
use futures::task::noop_waker;
use futures::{FutureExt as _, Sink, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::stream::Source;
use side_output::{Count, Element, Mark, TestClock, Watermarks, overflow_into};
use std::cell::RefCell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

/// As long as a loaded machine may take; what is waited for comes within a second.
const PATIENCE: Duration = Duration::from_mins(1);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[splitter]
enum Two {
    #[main]
    #[output(capacity = 4)]
    A(u32),
    #[output(capacity = 4)]
    B(u32),
}

fn parity(n: u32) -> Two {
    if n.is_multiple_of(2) { Two::A(n) } else { Two::B(n) }
}

/// Says when it is woken, and runs something then.
struct Told {
    sender: Mutex<Sender<&'static str>>,
    then: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Told {
    fn waker(sender: Sender<&'static str>, then: Option<Box<dyn FnMut() + Send>>) -> Waker {
        Waker::from(Arc::new(Self { sender: Mutex::new(sender), then: Mutex::new(then) }))
    }
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        let sender = self.sender.lock().unwrap().clone();
        _ = sender.send("woken");
        let then = self.then.lock().unwrap().take();
        if let Some(mut then) = then {
            then();
        }
        _ = sender.send("done");
    }
}

/// Remembers whether it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls a future as often as it is woken; it must not wait for anything else.
#[track_caller]
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            return output;
        }
        assert!(woken.take(), "it waits for ever");
    }
}

#[track_caller]
fn reader_panics(read: impl Future) {
    let read = AssertUnwindSafe(|| drop(block_on(read)));
    assert!(catch_unwind(read).is_err());
}

#[test]
fn windows_are_whole_after_a_reader_panicked_while_they_fired() {
    let (input, elements) = unbounded::<Element<u32>>();
    let WindowStreams { results, late } = DataStream::from_elements(elements)
        .key_by(|n: &u32| *n)
        .window(Tumbling::of(Duration::from_millis(10)))
        .side_output_late_data()
        .aggregate(Count::new());
    for n in 1..=3 {
        input.unbounded_send(Element::record(n, at(5))).unwrap();
    }
    input.unbounded_send(Element::watermark(at(9))).unwrap();
    reader_panics(results.for_each(|_| panic!("the reader's own")));
    for n in 1..=3 {
        input.unbounded_send(Element::record(n, at(6))).unwrap();
    }
    drop(input);
    let late: Vec<_> = late.results().collect::<Vec<_>>().now_or_never().unwrap();
    assert_eq!(late.iter().filter(|record| record.is_ok()).count(), 3, "{late:?}");
}

#[test]
fn the_last_watermark_is_not_lost_by_a_reader_that_panics_at_it() {
    let elements = (1..=3).map(|n| Element::record(n, at(5)));
    let WindowStreams { results, late } = DataStream::from_elements(stream::iter(elements))
        .key_by(|n: &u32| *n)
        .window(Tumbling::of(Duration::from_millis(10)))
        .side_output_late_data()
        .aggregate(Count::new());
    let ledger = late.ledger_handle().unwrap();
    reader_panics(results.for_each(|_| panic!("the reader's own")));
    let late: Vec<_> = block_on(late.elements().map(Result::unwrap).collect());
    assert_eq!(late.len(), 1);
    assert!(matches!(late[0], Element::Mark(Mark::Watermark(Timestamp::MAX))));
    assert_eq!(ledger.read().held, 0);
    assert!(ledger.read().is_balanced());
}

struct Echo;

impl KeyedProcess for Echo {
    type Key = u32;
    type In = (u32, bool);
    type State = u32;
    type Out = Two;

    fn on_record(
        &mut self,
        (_, first): (u32, bool),
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Two> {
        *count += 1;
        if first { Two::A(*cx.key()) } else { Two::B(*cx.key()) }
    }
}

#[test]
fn keys_are_whole_after_a_reader_panicked() {
    let input = DataStream::from_stream(stream::iter([(7, true), (7, false), (8, false)]));
    let TwoStreams { a, b } = input.key_by(|record: &(u32, bool)| record.0).process(Echo);
    reader_panics(a.for_each(|_| panic!("the reader's own")));
    let rest: Vec<_> = block_on(b.results().collect::<Vec<_>>());
    assert_eq!(rest.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn a_reader_that_panics_loses_nobody_a_record_or_a_watermark() {
    fn what_b_reads<Src: Source<u32>>(
        input: DataStream<u32, Src>,
        a_panics: bool,
    ) -> Vec<Element<u32>> {
        let streams =
            input.split_with(|n: u32| if n.is_multiple_of(3) { Two::A(n) } else { Two::B(n) });
        let ledger = streams.ledger_handle();
        let TwoStreams { a, b } = streams;
        if a_panics {
            reader_panics(a.for_each(|n| panic!("the reader's own, at {n}")));
        } else {
            a.discard();
        }
        let read = block_on(b.elements().map(Result::unwrap).collect());
        let ledger = ledger.read();
        assert!(ledger.is_balanced(), "{ledger:?}");
        assert_eq!((ledger.received, ledger.failed), (12, 0));
        read
    }
    // Straight from the stream, and from a chunk that was there before.
    let stamped = || {
        let numbers = stream::iter(0..12);
        numbers.assign_timestamps(|n: &u32| at((*n).into()), Watermarks::monotonous())
    };
    let expected = what_b_reads(stamped(), false);
    assert_eq!(expected.len(), 8 + 13);
    assert_eq!(what_b_reads(stamped(), true), expected);
    assert_eq!(what_b_reads(stamped().boxed(), true), expected);
}

#[test]
fn the_other_routes_of_a_record_whose_reader_panicked_arrive() {
    let streams = stream::iter(0..3).split_with(|n: u32| [Two::A(n), Two::B(n)]);
    let ledger = streams.ledger_handle();
    let TwoStreams { a, b } = streams;
    reader_panics(a.for_each(|_| panic!("the reader's own")));
    assert_eq!(block_on(b.collect::<Vec<_>>()), [0, 1, 2]);
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!((ledger["a"].delivered, ledger["a"].discarded), (1, 2));
    assert_eq!(ledger.fired, 0);
}

#[test]
fn a_lossy_output_that_is_full_of_marks_drops_nothing() {
    #[splitter]
    enum Newest {
        #[main]
        #[output(capacity = 4, overflow = "drop_newest")]
        A(u32),
    }
    let elements = (0..10).map(|n| Element::<u32>::watermark(at(n)));
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let run = DataStream::from_elements(stream::iter(elements).chain(stream::pending()))
        .split_with(Newest::A)
        .wire()
        .a(move |stream: DataStream<u32>| {
            *keep.lock().unwrap() = Some(stream);
            std::future::ready(())
        })
        .run();
    assert!(run.now_or_never().is_none());
}

#[test]
fn a_wiring_that_cannot_start_or_is_dropped_lets_go_of_its_outputs() {
    for run in [true, false] {
        let mut streams = stream::iter(0..100).split_with(parity);
        let taken = streams.get_side_output(Two::B_TAG);
        let ledger = taken.ledger_handle().unwrap();
        let wiring = streams.wire().a(discard()).b(discard());
        if run {
            assert!(block_on(wiring.run()).is_err());
        } else {
            drop(wiring);
        }
        assert_eq!(block_on(taken.count()), 50);
        assert_eq!(ledger.read()["a"].discarded, 50);
        assert!(ledger.read().is_balanced());
    }
}

#[test]
fn a_driver_ends_with_the_wiring_beside_it() {
    let streams = stream::iter(0..1000).split_with(parity);
    let driver = streams.a.driver();
    let run = streams.wire().a(discard()).b(discard()).run();
    let (ended, ledger) = block_on(futures::future::join(driver, run));
    ended.unwrap();
    let ledger = ledger.unwrap();
    assert_eq!((ledger.received, ledger["a"].discarded), (1000, 500));
    assert!(ledger.is_balanced());

    let streams = stream::iter(0..1000).split_with(parity);
    let mut driver = streams.a.driver();
    drop(streams.wire().a(discard()).b(discard()).run());
    assert!(matches!((&mut driver).now_or_never(), Some(Err(StreamError::Cancelled))));
}

#[test]
fn a_driver_that_is_dropped_waits_for_nothing() {
    let streams = stream::iter(0..100).split_with(parity);
    let ledger = streams.ledger_handle();
    let mut driver = streams.a.driver();
    assert!((&mut driver).now_or_never().is_none());
    assert!(ledger.read().outputs.iter().any(|output| output.blocking));
    drop(driver);
    assert!(ledger.read().outputs.iter().all(|output| !output.blocking));
}

#[test]
fn the_stall_watch_wakes_without_its_lock() {
    let (sender, told) = channel();
    let TwoStreams { a, b } = stream::iter(0..100).split_with(Two::A);
    let mut b = b.fail_on_stall().results();
    let TwoStreams { a: other_a, b: mut other_b } = stream::iter(0..100).split_with(Two::A);
    // Woken, it waits for room in another splitter, which is to be watched then.
    let then = move || {
        let waker = noop_waker();
        assert!(other_b.poll_next_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
    };
    let waker = Told::waker(sender, Some(Box::new(then)));
    assert!(b.poll_next_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
    assert_eq!(told.recv_timeout(PATIENCE), Ok("woken"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("done"));
    drop((a, other_a));
}

#[splitter]
enum Three {
    #[main]
    #[output(capacity = 2)]
    X(u32),
    #[output(capacity = 2)]
    Y(u32),
    #[output(capacity = 2)]
    Z(u32),
}

#[test]
fn a_reader_that_comes_after_the_stall_was_known_is_told_as_well() {
    let ThreeStreams { x, y, z } = stream::iter(0..100).split_with(Three::X);
    let (sender, told) = channel();
    for mut reader in [y.boxed(), z.boxed()].map(|reader| reader.fail_on_stall().results()) {
        let waker = Told::waker(sender.clone(), None);
        let cx = &mut TaskContext::from_waker(&waker);
        assert!(reader.poll_next_unpin(cx).is_pending());
        assert_eq!(told.recv_timeout(PATIENCE), Ok("woken"));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("done"));
        let error = reader.poll_next_unpin(cx);
        assert!(matches!(error, Poll::Ready(Some(Err(StreamError::Stalled { output: "x" })))));
    }
    drop(x);
}

#[test]
fn a_stall_that_is_over_is_no_error_later() {
    let (input, records) = unbounded();
    let send = |n, count| (0..count).for_each(|_| input.unbounded_send(n).unwrap());
    let TwoStreams { mut a, b } = records.split_with(parity);
    let mut b = b.fail_on_stall().results();
    let (sender, told) = channel();
    let waker = Told::waker(sender, None);
    let cx = &mut TaskContext::from_waker(&waker);
    send(0, 4);
    assert!(b.poll_next_unpin(cx).is_pending());
    assert_eq!(told.recv_timeout(PATIENCE), Ok("woken"));
    // Before the reader is polled, the full output is read.
    for _ in 0..4 {
        assert_eq!(a.poll_next_unpin(cx), Poll::Ready(Some(0)));
    }
    send(1, 1);
    assert!(matches!(b.poll_next_unpin(cx), Poll::Ready(Some(Ok(1)))));
    send(0, 4);
    assert!(b.poll_next_unpin(cx).is_pending());
    assert!(b.poll_next_unpin(cx).is_pending(), "it waits anew");
}

#[test]
fn a_union_cannot_hide_the_error_of_an_input_behind_the_others() {
    let mut ready = false;
    let busy = stream::poll_fn(move |cx: &mut TaskContext<'_>| {
        ready = !ready;
        if ready {
            return Poll::Ready(Some(1));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    let failing = DataStream::from_try_stream(stream::iter([Err::<u32, _>("torn")]));
    let union = DataStream::from_stream(busy).union(failing).results().take(1000);
    let records: Vec<_> = block_on(union.collect());
    assert!(records.len() < 10 && records.last().unwrap().is_err(), "{}", records.len());
}

#[test]
fn a_filter_that_rejects_everything_lets_others_run() {
    let mut filtered = DataStream::from_stream(stream::repeat(1)).filter(|n| *n == 2);
    assert!(filtered.next().now_or_never().is_none());
}

/// More records than one poll takes from a source that hands on chunks.
const MANY: u32 = 50_000;

#[test]
fn sources_that_hand_on_chunks_lose_nothing_between_polls() {
    fn all_arrive<Src: Source<u32>>(stream: impl Fn() -> DataStream<u32, Src>) {
        let expected = (0..MANY).collect::<Vec<_>>();
        let mut read = Vec::new();
        block_on(stream().for_each(|n| read.push(n))).unwrap();
        assert!(read == expected, "for_each: {} of {MANY}", read.len());
        let read = block_on(stream().fold(Vec::new(), Vec::push)).unwrap();
        assert!(read == expected, "fold: {} of {MANY}", read.len());
        let mut read = Vec::new();
        block_on(stream().map(|n| n + 1).for_each(|n| read.push(n - 1))).unwrap();
        assert!(read == expected, "map: {} of {MANY}", read.len());
    }
    let numbers = || DataStream::from_stream(stream::iter(0..MANY));
    let output = || {
        let TwoStreams { a, b } = stream::iter(0..MANY).split_with(Two::A);
        b.discard();
        a
    };
    all_arrive(numbers);
    all_arrive(|| numbers().boxed());
    all_arrive(|| numbers().filter(|_| true));
    all_arrive(|| numbers().union(DataStream::from_stream(stream::empty())));
    all_arrive(|| {
        DataStream::from_elements(stream::iter(0..MANY).map(|n| Element::record(n, at(n.into()))))
    });
    all_arrive(output);
    all_arrive(|| output().boxed());
    all_arrive(|| output().map(|n| n));
}

/// With room for a whole turn.
#[splitter]
enum Wide {
    #[main]
    A(u32),
    B(u32),
}

#[test]
fn an_operator_that_panics_after_its_reader_ends_the_others_with_an_error() {
    let streams = stream::iter(0..10).split_with(|n: u32| {
        assert!(n < 2, "the operator's own");
        [Wide::A(n), Wide::B(n)]
    });
    let ledger = streams.ledger_handle();
    let WideStreams { a, b } = streams;
    reader_panics(a.for_each(|_| panic!("the reader's own")));
    let b: Vec<_> = block_on(b.results().collect());
    assert!(matches!(b[..], [Ok(0), Ok(1), Err(_)]), "{b:?}");
    let error = b[2].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "a function of the stream panicked: the operator's own");
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!((ledger.received, ledger.failed), (3, 1));
    assert_eq!((ledger["a"].delivered, ledger["a"].discarded), (1, 1));
}

#[test]
fn an_operator_that_panics_after_the_reader_of_a_tap_ends_the_others_with_an_error() {
    #[splitter]
    enum Tapped {
        #[main]
        A(u32),
        #[tap]
        T(u32),
    }
    let streams = stream::iter(0..10).split_with(|n: u32, cx: &mut Context<Tapped>| {
        assert!(n < 2, "the operator's own");
        cx.output(Tapped::T_TAG, n);
        Tapped::A(n)
    });
    let ledger = streams.ledger_handle();
    let TappedStreams { a, t } = streams;
    reader_panics(t.for_each(|_| panic!("the reader's own")));
    let a: Vec<_> = block_on(a.results().collect());
    assert!(matches!(a[..], [Ok(0), Ok(1), Err(_)]), "{a:?}");
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!((ledger.received, ledger.failed), (3, 1));
}

#[test]
fn a_reader_that_panics_does_not_make_its_input_idle() {
    fn what_b_reads(a_panics: bool) -> Vec<Element<u32>> {
        let clock = TestClock::at(Timestamp::from_secs(100));
        let (input, records) = unbounded();
        let watermarks =
            Watermarks::monotonous().with_idleness(Duration::from_secs(10), clock.clone());
        let TwoStreams { a, b } = DataStream::from_stream(records)
            .assign_timestamps(|n: &u32| Timestamp::from_secs((*n).into()), watermarks)
            .split_with(parity);
        let mut b = b.elements();
        let mut read = Vec::new();
        let waker = noop_waker();
        let cx = &mut TaskContext::from_waker(&waker);
        input.unbounded_send(1).unwrap();
        while let Poll::Ready(element) = b.poll_next_unpin(cx) {
            read.push(element.unwrap().unwrap());
        }
        clock.advance(Duration::from_secs(9));
        input.unbounded_send(2).unwrap();
        let a = a.for_each(|n| assert!(!a_panics, "the reader's own, at {n}"));
        let mut a = Box::pin(a);
        let panicked = catch_unwind(AssertUnwindSafe(|| a.as_mut().poll(cx).is_pending())).is_err();
        assert_eq!(panicked, a_panics);
        // Eleven seconds after the first record, but two after the second.
        clock.advance(Duration::from_secs(2));
        while let Poll::Ready(element) = b.poll_next_unpin(cx) {
            read.push(element.unwrap().unwrap());
        }
        read
    }
    let expected = what_b_reads(false);
    assert!(!expected.contains(&Element::Mark(Mark::Idle)), "{expected:?}");
    assert_eq!(what_b_reads(true), expected);
}

#[test]
fn what_a_panicking_reader_took_from_its_lane_and_did_not_read_is_discarded() {
    let streams =
        stream::iter(0..6).split_with(|n: u32| if n < 4 { Wide::A(n) } else { Wide::B(n) });
    let ledger = streams.ledger_handle();
    let WideStreams { a, mut b } = streams;
    assert_eq!(block_on(b.next()), Some(4));
    reader_panics(a.for_each(|n| assert!(n < 1, "the reader's own")));
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!((ledger["a"].delivered, ledger["a"].discarded), (2, 2));
}

#[test]
fn a_reader_that_waits_gets_its_first_record_after_one_turn() {
    let WideStreams { a, mut b } = stream::iter(0..20_000)
        .split_with(|n: u32| if n % 100 == 50 { Wide::B(n) } else { Wide::A(n) });
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let (mut read, mut read_before) = (0, None);
    block_on(a.for_each(|_| {
        let cx = &mut TaskContext::from_waker(&waker);
        if read == 0 {
            assert!(b.poll_next_unpin(cx).is_pending());
        } else if read_before.is_none() && woken.take() {
            read_before = Some(read);
            assert_eq!(b.poll_next_unpin(cx), Poll::Ready(Some(50)));
        }
        read += 1;
        if read_before.is_some() {
            while b.poll_next_unpin(cx).is_ready() {}
        }
    }))
    .unwrap();
    // A turn is of 512 records.
    assert!(read_before.unwrap() <= 512, "{read_before:?}");
}

#[test]
fn a_reader_that_waits_takes_over_from_one_that_was_asked_to_come_again() {
    let [a_woken, b_woken] = [(); 2].map(|()| Arc::new(Woken::default()));
    let waiting: Arc<Mutex<Option<DataStream<u32>>>> = Arc::default();
    let (inside, waker) = (Arc::clone(&waiting), Waker::from(Arc::clone(&b_woken)));
    let mut n = 0;
    let input = stream::poll_fn(move |_| {
        n += 1;
        if n == 10 {
            let mut b = inside.lock().unwrap();
            let cx = &mut TaskContext::from_waker(&waker);
            assert!(b.as_mut().unwrap().poll_next_unpin(cx).is_pending());
        }
        Poll::Ready(Some(n))
    });
    let TwoStreams { mut a, b } = input.split_with(|n: u32| (n == 39_000).then_some(Two::B(n)));
    *waiting.lock().unwrap() = Some(b.boxed());
    let waker = Waker::from(Arc::clone(&a_woken));
    assert!(a.poll_next_unpin(&mut TaskContext::from_waker(&waker)).is_pending());
    assert!(a_woken.take());
    // The one that drove may be busy elsewhere for long, and the input is ready.
    assert!(b_woken.take());
    let mut b = waiting.lock().unwrap().take().unwrap();
    assert_eq!(finish(b.next()), Some(39_000));
}

#[test]
fn a_reader_that_waits_is_told_of_a_single_record_and_of_the_end() {
    let waiting: Arc<Mutex<Option<DataStream<u32>>>> = Arc::default();
    let b_woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&b_woken));
    let (inside, inside_waker) = (Arc::clone(&waiting), waker.clone());
    let mut polls = 0;
    let input = stream::poll_fn(move |_| {
        polls += 1;
        match polls {
            1 => {
                let cx = &mut TaskContext::from_waker(&inside_waker);
                let mut b = inside.lock().unwrap();
                assert!(b.as_mut().unwrap().poll_next_unpin(cx).is_pending());
                Poll::Ready(Some(7))
            }
            2 | 3 => Poll::Pending,
            _ => Poll::Ready(None),
        }
    });
    let WideStreams { mut a, b } = input.split_with(Wide::B);
    *waiting.lock().unwrap() = Some(b.boxed());
    let idle = noop_waker();
    assert!(a.poll_next_unpin(&mut TaskContext::from_waker(&idle)).is_pending());
    assert!(b_woken.take());
    let mut b = waiting.lock().unwrap().take().unwrap();
    let cx = &mut TaskContext::from_waker(&waker);
    assert_eq!(b.poll_next_unpin(cx), Poll::Ready(Some(7)));
    assert!(b.poll_next_unpin(cx).is_pending());
    // The other one comes to the end.
    assert_eq!(a.poll_next_unpin(&mut TaskContext::from_waker(&idle)), Poll::Ready(None));
    assert!(b_woken.take());
    assert_eq!(b.poll_next_unpin(cx), Poll::Ready(None));
}

#[test]
fn watermarks_that_fire_many_windows_keep_to_the_capacity() {
    let (keys, windows) = (50, 60);
    let records = (0..windows)
        .flat_map(move |millis| (0..keys).map(move |key: u32| Element::record(key, at(millis))));
    let watermarks = (0..windows).map(|millis| Element::watermark(at(millis)));
    let input = stream::iter(records.chain(watermarks)).chain(stream::pending());
    let streams = DataStream::from_elements(input)
        .key_by(|key: &u32| *key)
        .window(Tumbling::of(Duration::from_millis(1)))
        .side_output_late_data()
        .aggregate(Count::new());
    let ledger = streams.ledger_handle();
    let WindowStreams { results, mut late } = streams;
    for _ in 0..windows {
        assert!(late.next().now_or_never().is_none());
    }
    let ledger = ledger.read();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert!((512..=1024).contains(&ledger["results"].buffered), "{ledger:?}");
    drop(results);
}

#[test]
fn an_overflow_gets_nothing_of_a_stream_that_was_dropped() {
    let mut spilled = 0;
    let goes_away = |stream: DataStream<u32>| {
        drop(stream);
        std::future::ready(())
    };
    let run = stream::iter(0..100)
        .split_with(Two::A)
        .wire()
        .a(overflow_into(goes_away, each(|_| spilled += 1)))
        .b(discard())
        .run();
    let ledger = finish(run).unwrap();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!((ledger["a"].discarded, spilled), (100, 0));
}

/// What two sinks have to do with each other: one gives a permit for each record that it flushes,
/// the other takes one for each record.
#[derive(Clone, Default)]
struct Permits(Rc<RefCell<(u32, Option<Waker>)>>);

struct GivesOnFlush {
    permits: Permits,
    held_back: u32,
}

impl Sink<u32> for GivesOnFlush {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, _: u32) -> Result<(), Infallible> {
        self.held_back += 1;
        Ok(())
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Result<(), Infallible>> {
        let given = std::mem::take(&mut self.held_back);
        let (permits, waiting) = &mut *self.permits.0.borrow_mut();
        *permits += given;
        if let Some(waker) = waiting.take() {
            waker.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.poll_flush(cx)
    }
}

struct Takes(Permits);

impl Sink<u32> for Takes {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        let (permits, waiting) = &mut *self.0.0.borrow_mut();
        if *permits > 0 {
            return Poll::Ready(Ok(()));
        }
        *waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(self: Pin<&mut Self>, _: u32) -> Result<(), Infallible> {
        self.0.0.borrow_mut().0 -= 1;
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_full_output_waits_only_after_the_others_were_flushed() {
    for flushed_first in [true, false] {
        let permits = Permits::default();
        let gives = GivesOnFlush { permits: permits.clone(), held_back: 0 };
        let wiring = stream::iter(0..100).split_with(parity).wire();
        let ledger = if flushed_first {
            finish(wiring.a(gives).b(Takes(permits)).run())
        } else {
            finish(wiring.a(Takes(permits)).b(gives).run())
        };
        let ledger = ledger.unwrap();
        assert!(ledger.is_balanced(), "{ledger:?}");
        assert_eq!((ledger["a"].delivered, ledger["b"].delivered), (50, 50));
    }
}
