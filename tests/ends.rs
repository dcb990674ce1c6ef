//! How a wiring ends: at an error, a panic, a cancellation, or the end of its input. The faults are
//! those of destinations and readers; a name carries the fault's number.

mod common;

use common::assert_balanced;
use futures::executor::block_on;
use futures::future::poll_fn;
use futures::task::noop_waker;
use futures::{FutureExt as _, Sink, Stream, StreamExt as _, sink, stream};
use side_output::prelude::*;
use side_output::stream::{Driver, Typed};
use side_output::{LedgerHandle, discard_noting, overflow_into};
use std::cell::RefCell;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, ready};

#[splitter]
enum Two {
    Good(u32),
    Bad(u32),
}

/// Tens are bad.
fn route(n: u32) -> Two {
    if n.is_multiple_of(10) { Two::Bad(n) } else { Two::Good(n) }
}

type Seen = Rc<RefCell<Vec<u32>>>;

/// A sink that keeps records until it is flushed, with as many polls for a flush or close as it is
/// told. At one of its methods it may fail or panic.
#[derive(Clone, Default)]
struct Buffering {
    buffer: Vec<u32>,
    written: Seen,
    closed: Rc<RefCell<bool>>,
    /// How many polls of a flush or a close are pending before one is ready.
    rests: u32,
    rested: u32,
    /// Not ready at every second poll.
    slow: bool,
    was_ready: bool,
    fails: Option<(At, How)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Ready,
    Send,
    Flush,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Error,
    Panic,
}

impl Buffering {
    fn resting(rests: u32) -> Self {
        Self { rests, ..Self::default() }
    }

    fn failing(at: At, how: How) -> Self {
        Self { fails: Some((at, how)), ..Self::default() }
    }

    fn written(&self) -> Vec<u32> {
        self.written.borrow().clone()
    }

    fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    fn check(&self, at: At) -> Result<(), &'static str> {
        match self.fails {
            Some((place, how)) if place == at => match how {
                How::Error => Err("disk full"),
                How::Panic => panic!("disk full"),
            },
            _ => Ok(()),
        }
    }

    fn poll_rest(&mut self, cx: &TaskContext<'_>) -> Poll<()> {
        if self.rested < self.rests {
            self.rested += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.rested = 0;
        self.written.borrow_mut().append(&mut self.buffer);
        Poll::Ready(())
    }
}

impl Sink<u32> for Buffering {
    type Error = &'static str;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        if self.slow && !self.was_ready {
            self.was_ready = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.check(At::Ready))
    }

    fn start_send(mut self: Pin<&mut Self>, item: u32) -> Result<(), Self::Error> {
        self.check(At::Send)?;
        self.was_ready = false;
        self.buffer.push(item);
        Ok(())
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.check(At::Flush)?;
        ready!(self.poll_rest(cx));
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.check(At::Flush)?;
        self.check(At::Close)?;
        ready!(self.poll_rest(cx));
        *self.closed.borrow_mut() = true;
        Poll::Ready(Ok(()))
    }
}

/// 1, 2, 3, and an error.
fn torn() -> DataStream<u32> {
    DataStream::from_try_stream(stream::iter([Ok(1), Ok(2), Ok(3), Err("torn")]))
}

/// Is pending once.
async fn rest() {
    let mut rested = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut rested, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut TaskContext::from_waker(&noop_waker()))
}

/// The error and all of its sources, as a reporter prints them.
fn report(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text} <- {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn fault_05_what_a_slow_sink_was_given_is_delivered_when_the_run_is_dropped_half_way() {
    for polls in [1, 7, 30, 45] {
        let sink = Buffering { slow: true, ..Buffering::default() };
        let streams = stream::iter((0..50).map(|n| n * 10)).split_with(route);
        let ledger = streams.ledger_handle();
        let mut run = streams.wire().good(discard()).bad(sink.clone()).run();
        for _ in 0..polls {
            if poll_once(&mut run).is_ready() {
                break;
            }
            let bad = &ledger.read()["bad"];
            assert_eq!(bad.delivered, sink.written().len() as u64, "{bad:?}");
            assert_balanced(&ledger.read());
        }
        drop(run);
        let (written, bad) = (sink.written().len() as u64, &ledger.read()["bad"]);
        assert_eq!((bad.delivered, bad.discarded), (written, bad.routed - written));
        assert_balanced(&ledger.read());
    }
}

#[test]
fn fault_07_a_record_at_which_a_destination_panics_is_not_delivered() {
    for at in [At::Ready, At::Send] {
        for slow in [false, true] {
            let sink = Buffering { slow, ..Buffering::failing(at, How::Panic) };
            let streams = stream::iter(1..5).split_with(route);
            let ledger = streams.ledger_handle();
            let run = streams.wire().good(sink).bad(discard()).run();
            assert!(block_on(run).is_err());
            let good = &ledger.read()["good"];
            assert_eq!(good.delivered, 0, "{at:?} {slow} {good:?}");
            assert_eq!(good.discarded, good.routed, "{at:?} {slow} {good:?}");
            assert_balanced(&ledger.read());
        }
    }
    let streams = stream::iter(1..5).split_with(route);
    let ledger = streams.ledger_handle();
    let run = streams.wire().good(each(|n| assert!(n < 3, "third"))).bad(discard()).run();
    assert!(block_on(run).is_err());
    let good = &ledger.read()["good"];
    assert_eq!((good.routed, good.delivered, good.discarded), (3, 2, 1));
    assert_balanced(&ledger.read());
}

/// What is in the lanes when a wiring begins: 1 was read, the others wait.
fn half_read(last: u32) -> (TwoStreams<Typed<impl Driver<Two>>>, LedgerHandle) {
    // An output without a record drives, so that the records of the other one wait in its lane.
    let mut streams = stream::iter(1..last).split_with(route);
    let ledger = streams.ledger_handle();
    assert_eq!(block_on(streams.good.next()), Some(1));
    (streams, ledger)
}

#[test]
fn fault_07_a_destination_that_panics_at_what_waited_before_the_wiring() {
    // 1 to 24 without 10 and 20: after 1, 21 good ones wait, and two bad ones.
    let (streams, ledger) = half_read(25);
    let bad = Buffering::default();
    let run = streams.wire().good(each(|n| assert!(n < 4, "third"))).bad(bad.clone()).run();
    let error = block_on(run).unwrap_err().to_string();
    assert!(error.contains("`good`") && error.contains("third"), "{error}");
    let ledger = ledger.read();
    assert_balanced(&ledger);
    let good = &ledger["good"];
    assert_eq!((good.routed, good.delivered, good.discarded), (22, 3, 19));
    assert_eq!(bad.written(), [10, 20], "the other one has what waited for it");
    assert!(bad.is_closed());
    assert_eq!(ledger["bad"].delivered, 2);
}

#[test]
fn fault_07_whatever_a_sink_does_with_what_waited_the_ledger_balances() {
    let ways = [At::Ready, At::Send, At::Flush, At::Close];
    for (at, how, slow) in ways
        .into_iter()
        .flat_map(|at| [(at, How::Panic), (at, How::Error)])
        .flat_map(|(at, how)| [(at, how, false), (at, how, true)])
    {
        for polls in [1, 2, 100] {
            let (streams, ledger) = half_read(25);
            let sink = Buffering { slow, ..Buffering::failing(at, how) };
            let mut run = streams.wire().good(sink.clone()).bad(discard()).run();
            for _ in 0..polls {
                if poll_once(&mut run).is_ready() {
                    break;
                }
                assert_balanced(&ledger.read());
            }
            drop(run);
            let ledger = ledger.read();
            assert_balanced(&ledger);
            let (good, written) = (&ledger["good"], sink.written().len() as u64);
            assert_eq!(
                (good.buffered, good.delivered),
                (0, 1 + written),
                "{at:?} {how:?} {slow} {good:?}"
            );
        }
    }
}

#[test]
fn fault_07_every_kind_of_destination_balances_when_it_panics_at_what_waited() {
    fn check(
        ways: &str,
        run: impl Future<Output = Result<Ledger, StreamError>>,
        ledger: &LedgerHandle,
    ) {
        block_on(run).unwrap_err();
        let ledger = ledger.read();
        assert_balanced(&ledger);
        assert_eq!((ledger["good"].buffered, ledger["good"].routed), (0, 22), "{ways}");
    }
    let fifth = |n: u32| assert_ne!(n, 5, "fifth");
    let (streams, ledger) = half_read(25);
    let trying = try_each(move |n| {
        fifth(n);
        Ok::<(), &str>(())
    });
    check("try_each", streams.wire().good(trying).bad(discard()).run(), &ledger);
    let (streams, ledger) = half_read(25);
    let noting = discard_noting(move |note: side_output::Discarded<'_, u32>| fifth(*note.value));
    check("discard_noting", streams.wire().good(noting).bad(discard()).run(), &ledger);
    let (streams, ledger) = half_read(25);
    let dead = sink::unfold((), |(), _: u32| std::future::pending::<Result<_, StreamError>>());
    let spill = overflow_into(dead, each(fifth));
    // The sink takes one, and its capacity waits: the rest is spilled.
    let mut run = streams.wire().good(spill).bad(discard()).run();
    drop(poll_once(&mut run));
    drop(run);
    assert_balanced(&ledger.read());
    let (streams, ledger) = half_read(25);
    let closure = move |stream: DataStream<u32>| stream.for_each(fifth);
    check("closure", streams.wire().good(closure).bad(discard()).run(), &ledger);
    // Both panic: the first one is named.
    let (streams, ledger) = half_read(25);
    let bad = each(|_: u32| panic!("tens"));
    let run = streams.wire().good(each(fifth)).bad(bad).run();
    let error = block_on(run).unwrap_err().to_string();
    assert!(error.contains("`good`"), "{error}");
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["bad"].routed, ledger["bad"].discarded), (2, 2));
}

/// Panics when it is dropped, unless it was taken care of.
struct Fragile(u32);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.0 == 0, "dropped {}", self.0);
    }
}

#[splitter]
enum Fragiles {
    #[main]
    Good(Fragile),
    Bad(u32),
}

#[test]
fn fault_07_what_waits_may_panic_when_it_is_dropped_after_the_panic_of_its_destination() {
    let mut streams = stream::iter(1..6).split_with(|n: u32| Fragiles::Good(Fragile(n)));
    let ledger = streams.ledger_handle();
    let mut first = block_on(streams.good.next()).unwrap();
    first.0 = 0;
    let run = streams.wire().good(each(|_: Fragile| {})).bad(discard()).run();
    assert!(block_on(run).is_err());
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["good"].delivered, ledger["good"].discarded), (1, 4));
}

#[test]
fn fault_08_what_a_sink_accepted_is_not_delivered_before_it_is_flushed() {
    let streams = stream::iter(1..5).chain(stream::pending()).split_with(route);
    let ledger = streams.ledger_handle();
    let sink = Buffering::resting(2);
    let mut run = streams.wire().good(sink.clone()).bad(discard()).run();
    assert!(poll_once(&mut run).is_pending());
    let good = ledger.read()["good"].clone();
    assert_eq!((good.delivered, good.buffered, good.accepted), (0, 4, 4));
    while sink.written().is_empty() {
        assert!(poll_once(&mut run).is_pending());
    }
    let good = ledger.read()["good"].clone();
    assert_eq!((good.delivered, good.buffered, good.accepted), (4, 0, 0));
    assert_balanced(&ledger.read());
}

#[test]
fn fault_08_what_was_not_flushed_is_discarded_after_a_failure() {
    for at in [At::Flush, At::Close] {
        for how in [How::Error, How::Panic] {
            let input = stream::iter(1..5).chain(stream::once(async {
                rest().await;
                5
            }));
            let streams = Box::pin(input).split_with(route);
            let ledger = streams.ledger_handle();
            let sink = Buffering::failing(at, how);
            let run = streams.wire().good(sink.clone()).bad(discard()).run();
            assert!(block_on(run).is_err());
            let good = &ledger.read()["good"];
            assert_eq!(good.delivered, sink.written().len() as u64, "{at:?} {how:?} {good:?}");
            assert_eq!(good.discarded, good.routed - good.delivered);
            assert_eq!((good.buffered, good.accepted), (0, 0));
            assert_balanced(&ledger.read());
        }
    }
    // Also where the run was dropped.
    let streams = stream::iter(1..5).split_with(route);
    let ledger = streams.ledger_handle();
    let mut run = streams.wire().good(Buffering::resting(9)).bad(discard()).run();
    assert!(poll_once(&mut run).is_pending());
    drop(run);
    let good = &ledger.read()["good"];
    assert_eq!((good.delivered, good.discarded, good.accepted), (0, 4, 0));
}

#[test]
fn fault_11_an_error_of_the_input_leaves_every_sink_flushed_and_closed() {
    for rests in 0..4 {
        let (first, second) = (Buffering::resting(rests), Buffering::resting(rests + 1));
        let streams = torn().split_with(|n: u32| if n == 2 { Two::Bad(n) } else { Two::Good(n) });
        let ledger = streams.ledger_handle();
        let run = streams.wire().good(first.clone()).bad(second.clone()).run();
        let error = block_on(run).unwrap_err();
        assert_eq!(error.to_string(), "the stream failed: torn");
        assert_eq!((first.written(), second.written()), (vec![1, 3], vec![2]), "{rests}");
        assert!(first.is_closed() && second.is_closed());
        assert_eq!((ledger.read()["good"].delivered, ledger.read()["bad"].delivered), (2, 1));
        assert_balanced(&ledger.read());
    }
}

#[test]
fn fault_11_an_error_of_the_function_leaves_every_sink_flushed_and_closed() {
    for panics in [false, true] {
        for rests in 0..4 {
            let sink = Buffering::resting(rests);
            let route = |n: u32| match n {
                4 if panics => panic!("torn"),
                4 => Err("torn"),
                n => Ok(Two::Good(n)),
            };
            let streams = stream::iter(1..9).split_with(route);
            let error =
                block_on(streams.wire().good(sink.clone()).bad(discard()).run()).unwrap_err();
            assert!(error.to_string().contains("torn"), "{error}");
            assert_eq!(sink.written(), [1, 2, 3], "{rests}");
            assert!(sink.is_closed());
        }
    }
}

#[test]
fn fault_11_a_destination_that_fails_keeps_none_of_the_others_from_it() {
    let places = [At::Ready, At::Send, At::Flush, At::Close];
    for (at, how) in places.into_iter().flat_map(|at| [(at, How::Error), (at, How::Panic)]) {
        for rests in 0..4 {
            for slow in [false, true] {
                let other = Buffering::resting(rests);
                let input = stream::iter(1..4).chain(stream::once(async {
                    rest().await;
                    10
                }));
                let bad = Buffering { slow, ..Buffering::failing(at, how) };
                let streams = Box::pin(input).split_with(route);
                let ledger = streams.ledger_handle();
                let run = streams.wire().good(other.clone()).bad(bad.clone()).run();
                let error = block_on(run).unwrap_err();
                assert!(error.to_string().contains("disk full"), "{error}");
                assert_eq!(other.written(), [1, 2, 3], "{at:?} {how:?} {rests} {slow}");
                assert!(other.is_closed(), "{at:?} {how:?} {rests} {slow}");
                assert_balanced(&ledger.read());
                // In the order of declaration the one that fails may come first too.
                let other = Buffering::resting(rests);
                let streams = stream::iter([10, 20, 1]).split_with(route);
                let bad = Buffering { slow, ..Buffering::failing(at, how) };
                let run = streams.wire().bad(other.clone()).good(bad).run();
                assert!(block_on(run).is_err());
                assert_eq!(other.written(), [10, 20], "{at:?} {how:?} {rests} {slow}");
                assert!(other.is_closed());
            }
        }
    }
}

#[test]
fn fault_11_forward_flushes_and_closes_its_sink_at_an_error() {
    for rests in 0..4 {
        let sink = Buffering::resting(rests);
        let error = block_on(torn().forward(sink.clone())).unwrap_err();
        assert_eq!(error.to_string(), "the stream failed: torn");
        assert_eq!(sink.written(), [1, 2, 3], "{rests}");
        assert!(sink.is_closed());
    }
}

#[test]
fn fault_11_a_closure_may_await_after_its_stream_has_failed() {
    for rests in 0..4 {
        let (kept, told) = (Seen::default(), Rc::new(RefCell::new(None)));
        let (keep, tell) = (Rc::clone(&kept), Rc::clone(&told));
        let through = async move |stream: DataStream<u32>| {
            let mut read = Vec::new();
            let end = stream.for_each(|n| read.push(n)).await;
            for _ in 0..rests {
                rest().await;
            }
            keep.borrow_mut().append(&mut read);
            *tell.borrow_mut() = Some(end);
        };
        let run = torn().split_with(route).wire().good(through).bad(discard()).run();
        assert_eq!(block_on(run).unwrap_err().to_string(), "the stream failed: torn");
        assert_eq!(*kept.borrow(), [1, 2, 3], "{rests}");
        let told = told.borrow_mut().take().unwrap().unwrap_err();
        assert_eq!(told.to_string(), "the stream failed: torn");
    }
}

#[test]
fn fault_11_a_dropped_run_cancels_at_once() {
    let sink = Buffering::resting(3);
    let streams = torn().split_with(route);
    let ledger = streams.ledger_handle();
    let mut run = streams.wire().good(sink.clone()).bad(discard()).run();
    assert!(poll_once(&mut run).is_pending());
    drop(run);
    assert!(sink.written().is_empty() && !sink.is_closed());
    assert_balanced(&ledger.read());
}

#[test]
fn fault_12_a_destination_that_reads_a_plain_stream_does_not_panic() {
    let kept = Seen::default();
    let keep = Rc::clone(&kept);
    let through = async move |mut stream: DataStream<u32>| {
        let mut read = Vec::new();
        while let Some(n) = stream.next().await {
            read.push(n);
        }
        assert_eq!(stream.next().await, None);
        keep.borrow_mut().append(&mut read);
    };
    let run = torn().split_with(route).wire().good(through).bad(discard()).run();
    assert_eq!(block_on(run).unwrap_err().to_string(), "the stream failed: torn");
    assert_eq!(*kept.borrow(), [1, 2, 3]);

    // Also behind a function, and where another destination has failed.
    let keep = Rc::clone(&kept);
    let through = async move |stream: DataStream<u32>| {
        let read: Vec<_> = stream.map(|n| n + 1).filter(|n| *n > 2).boxed().collect().await;
        *keep.borrow_mut() = read;
    };
    let bad = try_each(|_| Err::<(), _>("refused"));
    let streams = stream::iter([1, 2, 3, 10]).split_with(route);
    let run = streams.wire().good(through).bad(bad).run();
    let error = block_on(run).unwrap_err();
    assert_eq!(error.to_string(), "the destination of output `bad` failed: refused");
    assert_eq!(*kept.borrow(), [3, 4]);
}

/// A stream that was given away and whose run is dropped: nobody returns an error, so the stream
/// must have it.
#[test]
fn fault_12_a_cancelled_run_is_no_end_of_a_plain_stream() {
    let kept = RefCell::new(None);
    let through = |stream: DataStream<u32>| {
        *kept.borrow_mut() = Some(stream);
        std::future::pending::<()>()
    };
    let mut run = stream::iter(1..4).split_with(route).wire().good(through).bad(discard()).run();
    assert!(poll_once(&mut run).is_pending());
    drop(run);
    let mut stream = kept.borrow_mut().take().unwrap();
    block_on(stream.by_ref().for_each(async |_| ()));
    assert!(matches!(stream.error(), Some(StreamError::Cancelled)));
}

#[test]
fn fault_13_a_sink_that_panics_is_the_same_error_everywhere() {
    for at in [At::Ready, At::Send, At::Flush, At::Close] {
        for slow in [false, true] {
            let sink = Buffering { slow, ..Buffering::failing(at, How::Panic) };
            let run = stream::iter(1..4).split_with(route).wire().good(sink).bad(discard()).run();
            let error = block_on(run).unwrap_err();
            assert!(
                matches!(error, StreamError::Destination { output: "good", .. }),
                "{at:?} {error:?}"
            );
            assert_eq!(
                error.to_string(),
                "the destination of output `good` failed: it panicked: disk full"
            );
        }
    }
}

#[test]
fn fault_13_the_error_of_a_sink_reaches_the_other_readers_as_the_cause() {
    for at in [At::Ready, At::Send] {
        for how in [How::Error, How::Panic] {
            let told = Rc::new(RefCell::new(Vec::new()));
            let tell = Rc::clone(&told);
            let through = async move |stream: DataStream<u32>| {
                let results: Vec<_> = stream.results().collect().await;
                *tell.borrow_mut() = results;
            };
            let sink = Buffering::failing(at, how);
            let streams = stream::iter([1, 2, 10, 20]).split_with(route);
            let error = block_on(streams.wire().good(through).bad(sink).run()).unwrap_err();
            let told = told.borrow();
            assert_eq!(told.len(), 3, "{told:?}");
            let cause = told[2].as_ref().unwrap_err();
            assert_eq!(cause.to_string(), error.to_string());
            assert!(cause.to_string().contains("`bad`"), "{cause}");
        }
    }
}

#[test]
fn fault_13_a_stream_given_away_gets_the_error_of_its_closure() {
    let kept = RefCell::new(None);
    let through = |stream: DataStream<u32>| {
        *kept.borrow_mut() = Some(stream);
        async { Err::<(), _>("closure") }
    };
    let run = stream::iter(1..4).split_with(route).wire().good(through).bad(discard()).run();
    let error = block_on(run).unwrap_err();
    let stream = kept.borrow_mut().take().unwrap();
    assert_eq!(block_on(stream.for_each(drop)).unwrap_err().to_string(), error.to_string());
}

/// The ledger's handle, and the error of a run of one record that destination `good` panics at.
macro_rules! panicking {
    ($good:expr) => {{
        let streams = stream::iter(1..4).split_with(route);
        let ledger: LedgerHandle = streams.ledger_handle();
        let error = block_on(streams.wire().good($good).bad(discard()).run()).unwrap_err();
        assert_balanced(&ledger.read());
        error
    }};
}

#[splitter]
enum Tiny {
    #[output(capacity = 1)]
    Good(u32),
}

#[test]
fn fault_14_a_destination_that_panics_is_named() {
    let full = || sink::unfold((), |(), _: u32| std::future::pending::<Result<(), StreamError>>());
    let errors = [
        panicking!(each(|_| panic!("boom"))),
        panicking!(try_each(|_| -> Result<(), StreamError> { panic!("boom") })),
        panicking!(discard_noting(|_: side_output::Discarded<'_, u32>| panic!("boom"))),
        panicking!(async |_: DataStream<u32>| assert_eq!(1, 2, "boom")),
        panicking!(async |stream: DataStream<u32>| stream.for_each(|_| panic!("boom")).await),
        panicking!(overflow_into(each(|_| panic!("boom")), discard())),
        panicking!(overflow_into(discard(), async |_: DataStream<u32>| assert_eq!(1, 2, "boom"))),
    ];
    for error in errors {
        let text = "the destination of output `good` failed: it panicked: ";
        let error = error.to_string();
        assert!(error.starts_with(text) && error.contains("boom"), "{error}");
    }
    let run = stream::iter(1..4)
        .split_with(Tiny::Good)
        .fail_on_stall()
        .wire()
        .good(overflow_into(full(), each(|_| panic!("boom"))))
        .run();
    assert!(block_on(run).unwrap_err().to_string().contains("`good`"));
}

#[test]
fn fault_15_a_cause_is_reported_once() {
    let error = block_on(torn().for_each(drop)).unwrap_err();
    assert_eq!(report(&error), "the stream failed: torn");

    let cause = std::io::Error::other(StreamError::failed("inner"));
    let error = StreamError::failed(cause);
    assert_eq!(report(&error).matches("inner").count(), 1, "{}", report(&error));

    let streams = stream::iter(1..4).split_with(route);
    let sink = Buffering::failing(At::Send, How::Error);
    let error = block_on(streams.wire().good(sink).bad(discard()).run()).unwrap_err();
    assert_eq!(report(&error), "the destination of output `good` failed: disk full");
}

#[test]
fn fault_15_an_error_that_went_through_a_stream_of_results_is_not_wrapped_again() {
    let again = DataStream::from_try_stream(torn().results());
    let error = block_on(again.for_each(drop)).unwrap_err();
    assert_eq!(error.to_string(), "the stream failed: torn");
    let boxed: Box<dyn Error + Send + Sync> = Box::new(error);
    assert_eq!(StreamError::failed(boxed).to_string(), "the stream failed: torn");
}

/// FAULT-20: a flag of the streams holds in the wiring too, wherever it waits.
#[test]
fn fault_20_a_wiring_of_streams_that_asked_for_it_fails_where_it_stalls() {
    #[splitter]
    enum Small {
        #[output(capacity = 4)]
        Stuck(u32),
        Free(u32),
    }
    let small = |n: u32| if n.is_multiple_of(2) { Small::Stuck(n) } else { Small::Free(n) };
    let stuck = || sink::unfold((), |(), _: u32| std::future::pending::<Result<(), StreamError>>());
    // While records come, and at the end of the input.
    for count in [100, 4] {
        let free = Buffering::resting(2);
        let streams = stream::iter(0..count).split_with(small).fail_on_stall();
        let ledger = streams.ledger_handle();
        let run = streams.wire().stuck(stuck()).free(free.clone()).run();
        let error = block_on(run).unwrap_err();
        assert!(matches!(error, StreamError::Stalled { output: "stuck" }), "{error}");
        assert!(free.is_closed());
        assert_eq!(ledger.read()["free"].delivered, free.written().len() as u64);
        assert_balanced(&ledger.read());
    }
    // One stream is enough.
    let mut streams = stream::iter(0..100).split_with(small);
    streams.free = streams.free.fail_on_stall();
    let error = block_on(streams.wire().stuck(stuck()).free(discard()).run()).unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "stuck" }), "{error}");
}

#[test]
fn fault_20_a_wiring_fails_where_a_stream_that_was_given_away_is_not_read() {
    let kept = RefCell::new(None);
    let through = |stream: DataStream<u32>| {
        *kept.borrow_mut() = Some(stream);
        std::future::ready(())
    };
    let streams = stream::iter(1..4).split_with(route).fail_on_stall();
    let error = block_on(streams.wire().good(through).bad(discard()).run()).unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "good" }), "{error}");
    // What it holds is not delivered any more.
    let stream = kept.borrow_mut().take().unwrap();
    let results: Vec<_> = block_on(stream.results().collect());
    assert!(matches!(results[..], [Err(StreamError::Stalled { .. })]), "{results:?}");
}

/// Nothing that makes progress is a stall, however slow it is.
#[test]
fn fault_20_a_stream_that_is_read_slowly_is_no_stall() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let through = move |stream: DataStream<u32>| {
        sender.send(stream).unwrap();
        std::future::ready(())
    };
    let reader = std::thread::spawn(move || {
        let mut stream = receiver.recv().unwrap();
        let mut read = Vec::new();
        while let Some(n) = block_on(stream.next()) {
            read.push(n);
        }
        read
    });
    let streams = stream::iter(1..4).split_with(route).fail_on_stall();
    block_on(streams.wire().good(through).bad(discard()).run()).unwrap();
    assert_eq!(reader.join().unwrap(), [1, 2, 3]);
}

fn assert_stalled<T: std::fmt::Debug>(stream: impl Stream<Item = Result<T, StreamError>>) {
    let results: Vec<_> = block_on(stream.collect());
    let last = results.last().unwrap();
    assert!(matches!(last, Err(StreamError::Stalled { output: "bad" })), "{last:?}");
}

/// A small output that nobody reads, and the other one below which something else follows.
#[splitter]
enum Upper {
    Good(u32),
    #[output(capacity = 4)]
    Bad(u32),
}

fn upper() -> UpperStreams<impl side_output::stream::SendOutlet<Upper>> {
    stream::iter(0..5000)
        .split_with(|n: u32| if n.is_multiple_of(10) { Upper::Bad(n) } else { Upper::Good(n) })
}

#[test]
fn fault_20_a_flag_set_below_an_operator_reaches_the_stall_above_it() {
    use std::time::Duration;
    let UpperStreams { good, bad } = upper();
    let TwoStreams { good, bad: lower } = good.split_with(route);
    lower.discard();
    assert_stalled(good.fail_on_stall().results());
    drop(bad);

    let UpperStreams { good, bad } = upper();
    let windows = good
        .assign_timestamps(|n| Timestamp::from_secs((*n).into()), Watermarks::monotonous())
        .key_by(|n| n % 3)
        .window(Tumbling::of(Duration::from_secs(10)))
        .side_output_late_data()
        .aggregate(side_output::Count::new());
    let WindowStreams { results, late } = windows.fail_on_stall();
    late.discard();
    assert_stalled(results.results());
    drop(bad);

    let UpperStreams { good, bad } = upper();
    let other = DataStream::from_stream(stream::empty::<u32>());
    let TwoStreams { good, bad: lower } = other.connect(good).process_with(
        |n: u32, _: &mut Context<Two>| Two::Good(n),
        |n: u32, _: &mut Context<Two>| Two::Good(n),
    );
    lower.discard();
    assert_stalled(good.fail_on_stall().results());
    drop(bad);

    let UpperStreams { good, bad } = upper();
    let run = good.split_with(route).fail_on_stall().wire().good(discard()).bad(discard()).run();
    let error = block_on(run).unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "bad" }), "{error}");
    drop(bad);
}

/// Counts nothing, passes everything on.
struct Pass;

impl KeyedProcess for Pass {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Two;

    fn on_record(&mut self, n: u32, (): &mut (), _cx: &mut KeyedContext<Self>) -> impl Routes<Two> {
        Two::Good(n)
    }
}

#[test]
fn fault_20_a_flag_set_below_any_wrapping_reaches_the_stall_above_it() {
    use side_output::TestClock;
    use std::time::Duration;
    fn clock() -> TestClock {
        TestClock::at(Timestamp::EPOCH)
    }
    fn second() -> Duration {
        Duration::from_secs(1)
    }
    type Wrap = fn(DataStream<u32>) -> DataStream<u32>;
    let wraps: [(&str, Wrap); 9] = [
        ("map", |good| good.map(|n| n).boxed()),
        ("filter", |good| good.filter(|_| true).boxed()),
        ("union", |good| good.union(DataStream::from_stream(stream::empty()))),
        ("idleness", |good| {
            let idle = Watermarks::monotonous().with_idleness(second(), clock());
            good.assign_timestamps(|n| Timestamp::from_secs((*n).into()), idle).boxed()
        }),
        ("stamp_with_clock", |good| good.stamp_with_clock(clock(), second()).boxed()),
        ("advance_when_idle", |good| good.advance_when_idle(second(), clock()).boxed()),
        ("process_with_clock", |good| {
            let TwoStreams { good, bad } =
                good.key_by(|n: &u32| n % 3).process_with_clock(Pass, clock());
            bad.discard();
            good.boxed()
        }),
        ("parallel", |good| {
            let TwoStreams { good, bad } =
                good.key_by(|n: &u32| n % 3).parallel(2).process(|| Pass);
            bad.discard();
            good.boxed()
        }),
        ("parallel on threads", |good| {
            let spawn = |task| drop(std::thread::spawn(|| block_on(task)));
            let TwoStreams { good, bad } =
                good.key_by(|n: &u32| n % 3).parallel(2).process_on(spawn, || Pass);
            bad.discard();
            good.boxed()
        }),
    ];
    // They wait for the stall watch side by side.
    std::thread::scope(|scope| {
        for (name, wrap) in wraps {
            scope.spawn(move || {
                let UpperStreams { good, bad } = upper().boxed();
                let wrapped = wrap(good);
                let (sender, receiver) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    let read = wrapped.fail_on_stall().results().collect::<Vec<_>>();
                    drop(sender.send(block_on(read).pop()));
                });
                let last = receiver.recv_timeout(Duration::from_secs(20));
                let stalled = matches!(last, Ok(Some(Err(StreamError::Stalled { output: "bad" }))));
                assert!(stalled, "{name}: {last:?}");
                drop(bad);
            });
        }
    });
}

#[test]
fn fault_20_a_flag_set_while_another_reader_drives_is_not_lost() {
    // The function sets the flag of one reader while the other one drives.
    let UpperStreams { good, bad } = upper().boxed();
    let slot = std::sync::Arc::new(std::sync::Mutex::new(None::<DataStream<u32>>));
    let inner = std::sync::Arc::clone(&slot);
    let TwoStreams { good, bad: mut lower } = good.split_with(move |n: u32| {
        let mut slot = inner.lock().unwrap();
        *slot = slot.take().map(DataStream::fail_on_stall);
        Two::Bad(n)
    });
    *slot.lock().unwrap() = Some(good.boxed());
    assert_eq!(block_on(lower.next()), Some(1));
    let good = slot.lock().unwrap().take().unwrap();
    lower.discard();
    assert_stalled(good.results());
    drop(bad);
}
