//! Models of the hub: every interleaving of its readers and of the input's waker.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p side-output-core --lib --release loom`.

use super::SplitExt as _;
use crate::test_support::{Parity, ParityStreams};
use futures_core::Stream;
use loom::future::block_on;
use loom::sync::Mutex;
use loom::thread;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Numbers up to `end`, all ready.
struct Ready {
    next: u32,
    end: u32,
}

impl Stream for Ready {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<u32>> {
        if self.next == self.end {
            return Poll::Ready(None);
        }
        self.next += 1;
        Poll::Ready(Some(self.next - 1))
    }
}

/// Records that another thread sends.
#[derive(Default)]
struct Mailbox {
    records: Vec<u32>,
    closed: bool,
    waker: Option<Waker>,
}

#[derive(Clone)]
struct Sent(Arc<Mutex<Mailbox>>);

impl Sent {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Mailbox::default())))
    }

    fn send(&self, records: &[u32], close: bool) {
        let waker = {
            let mut mailbox = self.0.lock().unwrap();
            mailbox.records.extend(records.iter().rev());
            mailbox.closed = close;
            mailbox.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Stream for Sent {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut mailbox = self.0.lock().unwrap();
        if let Some(record) = mailbox.records.pop() {
            return Poll::Ready(Some(record));
        }
        if mailbox.closed {
            return Poll::Ready(None);
        }
        mailbox.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

async fn collect<S: Stream<Item = u32> + Unpin>(mut stream: S) -> Vec<u32> {
    let mut records = Vec::new();
    while let Some(record) = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
        records.push(record);
    }
    records
}

#[test]
fn loom_two_readers_get_everything_through_buffers_of_one() {
    loom::model(|| {
        let input = Ready { next: 0, end: 3 };
        let ParityStreams { even, odd } = input.split_with(Parity::<1>::of);
        let reader = thread::spawn(move || block_on(collect(even)));
        assert_eq!(block_on(collect(odd)), [1]);
        assert_eq!(reader.join().unwrap(), [0, 2]);
    });
}

#[test]
fn loom_for_each_and_stream_read_together() {
    loom::model(|| {
        let input = Ready { next: 0, end: 3 };
        let ParityStreams { even, odd } = input.split_with(Parity::<1>::of);
        let reader = thread::spawn(move || {
            block_on(even.fold(Vec::new(), |records, record| records.push(record))).unwrap()
        });
        assert_eq!(block_on(collect(odd)), [1]);
        assert_eq!(reader.join().unwrap(), [0, 2]);
    });
}

#[test]
fn loom_the_wake_of_the_input_is_not_lost() {
    loom::model(|| {
        let input = Sent::new();
        let ParityStreams { even, odd } = input.clone().split_with(Parity::<1>::of);
        let sender = thread::spawn(move || input.send(&[0, 1], true));
        let reader = thread::spawn(move || block_on(collect(even)));
        assert_eq!(block_on(collect(odd)), [1]);
        assert_eq!(reader.join().unwrap(), [0]);
        sender.join().unwrap();
    });
}

#[test]
fn loom_a_reader_busy_elsewhere_does_not_hold_up_the_other() {
    loom::model(|| {
        let input = Sent::new();
        let ParityStreams { mut even, odd } = input.clone().split_with(Parity::<1>::of);
        // Drives once, so that the input has last been polled on its behalf, and is busy then.
        block_on(poll_fn(|cx| {
            assert!(Pin::new(&mut even).poll_next(cx).is_pending());
            Poll::Ready(())
        }));
        let sender = thread::spawn(move || input.send(&[1], true));
        assert_eq!(block_on(collect(odd)), [1]);
        sender.join().unwrap();
        drop(even);
    });
}

#[test]
fn loom_dropping_a_full_output_lets_the_other_go_on() {
    loom::model(|| {
        let input = Ready { next: 0, end: 4 };
        let ParityStreams { even, odd } = input.split_with(Parity::<1>::of);
        let dropper = thread::spawn(move || drop(even));
        assert_eq!(block_on(collect(odd)), [1, 3]);
        dropper.join().unwrap();
    });
}

#[test]
fn loom_the_input_goes_on_when_the_reader_who_drove_is_busy() {
    loom::model(|| {
        let mut records = [1, 2, 0].to_vec();
        let input = ListedStream(move || records.pop());
        let ParityStreams { mut even, mut odd } = input.split_with(Parity::<2>::of);
        // Drives a turn that has nothing for the other reader, and then never polls again.
        let busy = thread::spawn(move || {
            let record = block_on(poll_fn(|cx| Pin::new(&mut even).poll_next(cx)));
            assert_eq!(record, Some(0));
            even
        });
        assert_eq!(block_on(poll_fn(|cx| Pin::new(&mut odd).poll_next(cx))), Some(1));
        drop(busy.join().unwrap());
    });
}

/// Polls once and does not come again, whatever it is woken for.
fn poll_and_leave<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) {
    let mut poll = Some(poll);
    block_on(poll_fn(|cx| {
        drop(poll.take().map(|poll| poll(cx)));
        Poll::Ready(())
    }));
}

#[test]
fn loom_readers_that_do_not_come_again_keep_nobody_waiting() {
    loom::model(|| {
        let mut records = [1].to_vec();
        let input = ListedStream(move || records.pop());
        let ParityStreams { mut even, odd } = input.split_with(Parity::<1>::of);
        let mut driver = even.driver();
        let driver = thread::spawn(move || {
            poll_and_leave(|cx| Pin::new(&mut driver).poll(cx));
            driver
        });
        let cancelled = thread::spawn(move || {
            poll_and_leave(|cx| Pin::new(&mut even).poll_next(cx));
            even
        });
        assert_eq!(block_on(collect(odd)), [1]);
        drop((driver.join().unwrap(), cancelled.join().unwrap()));
    });
}

#[test]
fn loom_a_reader_that_waited_for_room_and_does_not_come_again_keeps_nobody_waiting() {
    loom::model(|| {
        let mut records = [1, 0, 0].to_vec();
        let input = ListedStream(move || records.pop());
        let ParityStreams { mut even, odd } = input.split_with(Parity::<1>::of);
        let mut driver = even.driver();
        // Drives until the buffer is full.
        poll_and_leave(|cx| Pin::new(&mut driver).poll(cx));
        let reader = thread::spawn(move || block_on(collect(odd)));
        for _ in 0..2 {
            assert_eq!(block_on(poll_fn(|cx| Pin::new(&mut even).poll_next(cx))), Some(0));
        }
        assert_eq!(reader.join().unwrap(), [1]);
        drop((driver, even));
    });
}

#[test]
fn loom_two_drivers_both_complete() {
    loom::model(|| {
        let input = Ready { next: 0, end: 1 };
        let ParityStreams { even, odd } = input.split_with(Parity::<1>::of);
        let drivers = [even.driver(), even.driver()];
        let drivers = drivers.map(|driver| thread::spawn(move || block_on(driver)));
        assert_eq!(block_on(collect(even)), [0]);
        for driver in drivers {
            driver.join().unwrap().unwrap();
        }
        drop(odd);
    });
}

#[test]
fn loom_the_end_comes_while_another_output_is_full() {
    loom::model(|| {
        let mut records = [0, 1].to_vec();
        let input = ListedStream(move || records.pop());
        let ParityStreams { even, odd } = input.split_with(Parity::<1>::of);
        let driver = even.driver();
        let driver = thread::spawn(move || block_on(driver));
        let reader = thread::spawn(move || block_on(collect(odd)));
        assert_eq!(block_on(collect(even)), [0]);
        assert_eq!(reader.join().unwrap(), [1]);
        driver.join().unwrap().unwrap();
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        // Without the message of a panic.
        resume_unwind(Box::new(()));
    }
}

#[test]
fn loom_a_waker_that_panics_keeps_nobody_waiting() {
    loom::model(|| {
        let mut records = [1, 0].to_vec();
        let input = ListedStream(move || records.pop());
        let ParityStreams { mut even, odd } = input.split_with(Parity::<2>::of);
        let driver = even.driver();
        let panics = Waker::from(Arc::new(Panics));
        let waiting = thread::spawn(move || {
            _ = Pin::new(&mut even).poll_next(&mut Context::from_waker(&panics));
            even
        });
        // The panic goes to whoever wakes, or the stream fails.
        let driver = thread::spawn(move || {
            drop(catch_unwind(AssertUnwindSafe(|| block_on(driver))));
        });
        let mut odd = odd.results();
        let mut next = || block_on(poll_fn(|cx| Pin::new(&mut odd).poll_next(cx)));
        while !matches!(catch_unwind(AssertUnwindSafe(&mut next)), Ok(None | Some(Err(_)))) {}
        driver.join().unwrap();
        drop(catch_unwind(AssertUnwindSafe(|| drop((waiting.join().unwrap(), odd)))));
    });
}

/// What a function lists, all ready.
struct ListedStream<F>(F);

impl<F: FnMut() -> Option<u32> + Unpin> Stream for ListedStream<F> {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<u32>> {
        Poll::Ready((self.0)())
    }
}
