//! A service is told to stop, or to come to its end: what was read goes on either way.

mod common;

use common::assert_balanced;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::executor::block_on;
use futures::{FutureExt as _, Sink, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{Calls, Count, Element, Shutdown};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    Odd(u32),
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

/// Takes a record every other time, and needs two polls to flush.
#[derive(Clone, Default)]
struct Slow(Rc<RefCell<Kept>>);

#[derive(Default)]
struct Kept {
    rested: bool,
    buffer: Vec<u32>,
    flushed: Vec<u32>,
    closed: bool,
}

impl Slow {
    fn rest(&self, cx: &TaskContext<'_>) -> Poll<()> {
        let mut kept = self.0.borrow_mut();
        kept.rested = !kept.rested;
        if kept.rested {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl Sink<u32> for Slow {
    type Error = StreamError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), StreamError>> {
        self.rest(cx).map(Ok)
    }

    fn start_send(self: Pin<&mut Self>, n: u32) -> Result<(), StreamError> {
        self.0.borrow_mut().buffer.push(n);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), StreamError>> {
        self.rest(cx).map(|()| {
            let kept = &mut *self.0.borrow_mut();
            kept.flushed.append(&mut kept.buffer);
            Ok(())
        })
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), StreamError>> {
        self.as_ref().get_ref().0.borrow_mut().closed = true;
        self.poll_flush(cx)
    }
}

/// Whatever comes next, it is not there yet.
fn is_waiting(future: &mut (impl Future + Unpin)) -> bool {
    // A slow sink has its rests.
    let mut poll = || future.poll_unpin(&mut TaskContext::from_waker(Waker::noop())).is_pending();
    (0..1000).all(|_| poll())
}

fn numbers() -> (UnboundedSender<u32>, UnboundedReceiver<u32>) {
    unbounded()
}

#[test]
fn api_12_a_stop_flushes_all_that_was_read_and_returns_stopped() {
    for drain in [false, true] {
        let (sender, receiver) = numbers();
        let shutdown = Shutdown::new();
        let (even, odd) = (Slow::default(), Slow::default());
        let streams = shutdown.input(receiver).split_with(by_parity);
        let mut run = streams.wire().even(even.clone()).odd(odd.clone()).run();
        let ledger = run.ledger_handle();
        for n in 0..100 {
            sender.unbounded_send(n).unwrap();
        }
        // Not far: the sinks hold it up.
        assert!(run.poll_unpin(&mut TaskContext::from_waker(Waker::noop())).is_pending());
        if drain {
            shutdown.drain();
        } else {
            shutdown.stop();
        }
        // What was not read is not read any more.
        let read = ledger.read().received;
        sender.unbounded_send(1000).unwrap();
        let end = block_on(run);
        match (drain, &end) {
            (false, Err(StreamError::Stopped)) | (true, Ok(_)) => {}
            _ => panic!("{end:?}"),
        }
        let ledger = ledger.read();
        assert_balanced(&ledger);
        assert!(ledger.received >= read && ledger.received <= 100);
        let written = even.0.borrow().flushed.len() + odd.0.borrow().flushed.len();
        assert_eq!(written as u64, ledger.received);
        assert_eq!(ledger["even"].delivered + ledger["odd"].delivered, ledger.received);
        assert!(even.0.borrow().closed && odd.0.borrow().closed);
        assert_eq!(ledger.error.is_some(), !drain);
    }
}

#[test]
fn api_12_a_request_wakes_whoever_waits_for_the_input() {
    for drain in [false, true] {
        let shutdown = Shutdown::new();
        let mut results = shutdown.input(stream::pending::<u32>()).results();
        assert!(is_waiting(&mut results.next()));
        let asked = std::thread::spawn({
            let shutdown = shutdown.clone();
            move || if drain { shutdown.drain() } else { shutdown.stop() }
        });
        let next = block_on(results.next());
        asked.join().unwrap();
        assert_eq!(matches!(next, Some(Err(StreamError::Stopped))), !drain, "{next:?}");
        assert!(shutdown.is_requested());
        // The first request counts.
        shutdown.stop();
        shutdown.drain();
        let late = block_on(shutdown.input(stream::iter([1])).results().collect::<Vec<_>>());
        assert_eq!(late.len(), usize::from(!drain));
    }
}

#[test]
fn api_12_nothing_fires_on_a_stop_and_all_that_is_open_on_a_drain() {
    for drain in [false, true] {
        let shutdown = Shutdown::new();
        let (sender, elements) = unbounded::<Result<_, StreamError>>();
        let at = Timestamp::from_millis;
        for element in [
            Element::record(1, at(1)),
            Element::watermark(at(9)),
            Element::record(2, at(12)),
            Element::record(3, at(13)),
        ] {
            sender.unbounded_send(Ok(element)).unwrap();
        }
        let mut counts = shutdown
            .try_elements(elements)
            .window_all(Tumbling::of(Duration::from_millis(10)))
            .drop_late_data()
            .aggregate(Count::new());
        let ledger = counts.ledger_handle().unwrap();
        assert_eq!(block_on(counts.next()).unwrap().value, 1);
        assert!(is_waiting(&mut counts.next()));
        assert_eq!(ledger.read().held, 1);
        if drain {
            shutdown.drain();
        } else {
            shutdown.stop();
        }
        let rest = block_on(counts.by_ref().map(|count| count.value).collect::<Vec<_>>());
        assert_eq!(rest, if drain { vec![2] } else { vec![] });
        assert_eq!(matches!(counts.error(), Some(StreamError::Stopped)), !drain);
        assert_balanced(&ledger.read());
    }
}

#[test]
fn api_12_every_reader_sees_the_stop_after_what_was_read() {
    let shutdown = Shutdown::new();
    let handle = shutdown.clone();
    let endless = stream::iter(0..).inspect(move |n| {
        if *n == 99 {
            handle.stop();
        }
    });
    let NumbersStreams { even, odd } = shutdown.input(endless).split_with(by_parity);
    let read = |stream: DataStream<u32>| stream.results().collect::<Vec<_>>();
    let (even, odd) = block_on(async { futures::join!(read(even.boxed()), read(odd.boxed())) });
    for results in [even, odd] {
        let (last, records) = results.split_last().unwrap();
        assert!(matches!(last, Err(StreamError::Stopped)));
        assert_eq!(records.len(), 50);
    }
}

/// What the other input has ready was read, and is not lost.
#[test]
fn api_12_where_inputs_meet_a_stop_comes_after_what_was_read_of_all() {
    for inputs in [2, 3] {
        let shutdown = Shutdown::new();
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..inputs).map(|_| numbers()).unzip();
        let pulled = Arc::new(AtomicUsize::new(0));
        let mut streams = receivers.into_iter().map(|receiver| {
            let pulled = Arc::clone(&pulled);
            shutdown.input(receiver.inspect(move |_| _ = pulled.fetch_add(1, Ordering::SeqCst)))
        });
        let mut united = streams.next().unwrap().union(streams.collect::<Vec<_>>());
        for (sender, n) in senders.iter().zip(0..) {
            for i in 0..600 {
                sender.unbounded_send(n * 1000 + i).unwrap();
            }
        }
        let first = block_on(united.next()).unwrap();
        shutdown.stop();
        let mut seen = vec![first];
        block_on(united.by_ref().for_each(|n| {
            seen.push(n);
            std::future::ready(())
        }));
        assert!(matches!(united.error(), Some(StreamError::Stopped)));
        // All that was read, and of each input the beginning, without a gap.
        assert_eq!(seen.len(), pulled.load(Ordering::SeqCst));
        assert!(seen.len() >= 512);
        for n in 0..inputs {
            let of_input: Vec<_> = seen.iter().filter(|i| **i / 1000 == n).copied().collect();
            assert!(of_input.iter().copied().eq((n * 1000..).take(of_input.len())));
        }
    }
}

#[test]
fn api_12_calls_that_are_underway_come_to_their_ends() {
    let shutdown = Shutdown::new();
    let (answers, mut wait): (Vec<_>, Vec<_>) =
        (0..3).map(|_| futures::channel::oneshot::channel::<()>()).unzip();
    let (sender, receiver) = numbers();
    let streams = shutdown.input(receiver).map_async(Calls::ordered(8), |n| {
        let answer = wait.pop().unwrap();
        let n = *n;
        async move { answer.await.map(|()| n) }
    });
    let mut done = 0;
    let mut run =
        streams.wire().results(each(|_| done += 1)).failures(discard()).timeouts(discard()).run();
    for n in 0..3 {
        sender.unbounded_send(n).unwrap();
    }
    assert!(is_waiting(&mut run));
    shutdown.stop();
    assert!(is_waiting(&mut run));
    for answer in answers {
        answer.send(()).unwrap();
    }
    assert!(matches!(block_on(run), Err(StreamError::Stopped)));
    assert_eq!(done, 3);
}
