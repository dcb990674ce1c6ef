//! What happens at the seams of the runtime: readers that panic half-way through an operator's
//! work, streams that are taken, wired and dropped, drivers, stalls that are over.

use futures::channel::mpsc::unbounded;
use futures::executor::block_on;
use futures::task::noop_waker;
use futures::{FutureExt as _, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::stream::Source;
use side_output::{Count, Element, Mark, Watermarks};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
