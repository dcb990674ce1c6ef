//! The capacity of an output counts its records, and what is not read stays within it.

mod common;

use common::assert_balanced;
use futures::{FutureExt as _, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{Element, Mark, TestClock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

fn at(millis: u32) -> Timestamp {
    Timestamp::from_millis(i64::from(millis))
}

#[splitter]
enum Outs {
    #[main]
    Often(u32),
    #[output(capacity = 3)]
    Rarely(u32),
    #[output(capacity = 3, overflow = "drop_oldest")]
    Oldest(u32),
    #[output(capacity = 3, overflow = "drop_newest")]
    Newest(u32),
}

/// A record with a watermark before it.
fn marked(n: u32) -> [Element<u32>; 2] {
    [Element::watermark(at(n)), Element::record(n, at(n))]
}

#[test]
fn fault_23_a_watermark_before_each_record_takes_no_room() {
    let input = stream::iter((0..100).flat_map(marked));
    let streams = DataStream::from_elements(input).split_with(|n: u32| match n % 2 {
        0 => Outs::Rarely(n),
        _ => Outs::Often(n),
    });
    let ledger = streams.ledger_handle();
    let OutsStreams { mut often, rarely, .. } = streams;
    while let Some(Some(_)) = often.next().now_or_never() {}
    assert_eq!(ledger.read()["rarely"].buffered, 3);
    assert!(ledger.read()["rarely"].blocking);
    assert_eq!(rarely.take(3).collect::<Vec<_>>().now_or_never().unwrap(), [0, 2, 4]);
}

#[test]
fn fault_23_marks_of_an_output_that_gets_nothing_never_block_the_others() {
    const COUNT: u32 = 20_000;
    let input = || DataStream::from_elements(stream::iter((0..COUNT).flat_map(marked)));
    let OutsStreams { mut often, rarely, .. } = input().split_with(Outs::Often);
    let read = often.by_ref().for_each(|_| std::future::ready(()));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut read = std::pin::pin!(read);
    while read.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending() {
        assert!(woken.0.swap(false, Ordering::SeqCst), "it waits for ever");
    }
    // And what they still say is there.
    let marks = rarely.elements().map(Result::unwrap).collect::<Vec<_>>().now_or_never().unwrap();
    assert_eq!(marks.last(), Some(&Element::watermark(Timestamp::MAX)));
    assert!(marks.len() <= 1024, "{}", marks.len());

    // The same for a closure's stream that nobody reads.
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let streams = input().split_with(Outs::Often);
    let ledger = streams.ledger_handle();
    let run = streams
        .wire()
        .often(discard())
        .rarely(move |stream: DataStream<u32>| {
            *keep.lock().unwrap() = Some(stream);
            std::future::ready(())
        })
        .oldest(discard())
        .newest(discard())
        .run();
    let mut run = std::pin::pin!(run);
    while woken.0.swap(false, Ordering::SeqCst) || ledger.read().received == 0 {
        assert!(run.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
    }
    assert_eq!(ledger.read().received, u64::from(COUNT));
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn fault_23_barriers_and_the_last_of_the_other_marks_stay_in_order() {
    let run = |n: u32| {
        let marks = [
            Element::watermark(at(10 * n)),
            Element::Mark(Mark::Idle),
            Element::Mark(Mark::Active),
            Element::watermark(at(10 * n + 1)),
        ];
        marks.into_iter().cycle().take(4 * 600)
    };
    let elements = run(1).chain([Element::Mark(Mark::Barrier(1))]).chain(run(2)).chain([
        Element::record(7, at(21)),
        Element::Mark(Mark::Barrier(2)),
        Element::record(8, at(30)),
    ]);
    let input = stream::iter(elements).chain(stream::pending());
    let streams = DataStream::from_elements(input).split_with(Outs::Often);
    let OutsStreams { often, mut rarely, .. } = streams;
    assert!(rarely.next().now_or_never().is_none());
    // Read as far as the marks go.
    let mut often = often.elements().map(Result::unwrap);
    let mut read = Vec::new();
    while let Some(Some(element)) = often.next().now_or_never() {
        read.push(element);
    }
    read.dedup_by(
        |next, kept| matches!((&*next, &*kept), (Element::Mark(a), Element::Mark(b)) if a == b),
    );
    let position = |element: &Element<u32>| read.iter().position(|other| other == element).unwrap();
    let barriers = [1, 2].map(|id| position(&Element::Mark(Mark::Barrier(id))));
    let watermarks = [11, 21].map(|millis| position(&Element::watermark(at(millis))));
    let records = [(7, 21), (8, 30)].map(|(n, millis)| position(&Element::record(n, at(millis))));
    let expected = [watermarks[0], barriers[0], watermarks[1], records[0], barriers[1], records[1]];
    assert!(expected.is_sorted(), "{read:?}");
    assert!(read.len() < 1500, "{}", read.len());
}

#[test]
fn fault_24_marks_of_a_lossy_output_that_is_not_read_take_little_room() {
    let marks = [Element::Mark(Mark::Idle), Element::Mark(Mark::Active)];
    let elements = [1, 2, 3, 4].map(|n| Element::record(n, at(n)));
    let input = elements.into_iter().chain(marks.into_iter().cycle().take(400_000));
    let streams = DataStream::from_elements(stream::iter(input))
        .split_with(|n: u32| [Outs::Oldest(n), Outs::Newest(n)]);
    let ledger = streams.ledger_handle();
    let OutsStreams { mut often, oldest, newest, .. } = streams;
    let cx = &mut TaskContext::from_waker(Waker::noop());
    while often.poll_next_unpin(cx) == Poll::Pending {}
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["oldest"].dropped, ledger["newest"].dropped), (1, 1));
    for stream in [oldest.boxed(), newest.boxed()] {
        let read: Vec<_> = stream.elements().collect().now_or_never().unwrap();
        assert!(read.len() <= 1024, "{}", read.len());
    }
}

#[test]
fn a_reader_that_waits_is_woken_by_a_watermark_alone() {
    let input = stream::iter([Element::watermark(at(1))]).chain(stream::pending());
    let others: Arc<Mutex<Option<DataStream<u32>>>> = Arc::default();
    let inside = Arc::clone(&others);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let input = input.inspect(move |_| {
        let mut rarely = inside.lock().unwrap();
        let cx = &mut TaskContext::from_waker(&waker);
        assert!(rarely.as_mut().unwrap().poll_next_unpin(cx).is_pending());
    });
    let streams = DataStream::from_elements(input).split_with(Outs::Often);
    let OutsStreams { mut often, rarely, .. } = streams;
    *others.lock().unwrap() = Some(rarely.boxed());
    assert!(often.next().now_or_never().is_none());
    assert!(woken.0.load(Ordering::SeqCst));
}

#[splitter]
enum Twofold {
    #[main]
    #[output(capacity = 8)]
    Passed(u32),
    Other(u32),
}

/// Passes each record on, and again from a timer for a time that is over.
struct Twice;

impl KeyedProcess for Twice {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Twofold;

    fn on_record(
        &mut self,
        n: u32,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Twofold> {
        cx.set_processing_timer(at(1));
        Twofold::Passed(n)
    }

    fn on_processing_timer(
        &mut self,
        _: Timestamp,
        (): &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Twofold> {
        Twofold::Passed(*cx.key())
    }
}

#[test]
fn fault_25_a_clock_and_records_in_one_turn_keep_to_the_capacity() {
    for count in 1..20 {
        let streams = DataStream::from_stream(stream::iter(0..count).chain(stream::pending()))
            .key_by(|n: &u32| *n)
            .process_with_clock(Twice, TestClock::at(at(100)));
        let ledger = streams.ledger_handle();
        let TwofoldStreams { mut passed, mut other } = streams;
        let mut read = 0;
        loop {
            while let Some(Some(_)) = other.next().now_or_never() {}
            let buffered = ledger.read()["passed"].buffered;
            assert!(buffered <= 8, "{buffered} of {count}");
            let Some(Some(_)) = passed.next().now_or_never() else { break };
            read += 1;
        }
        assert_eq!(read, 2 * count);
        assert_balanced(&ledger.read());
    }
}
