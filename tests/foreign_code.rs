//! Destructors, wakers and the log may panic: whoever waits gets an error, and no thread that serves
//! all of the program ends.

mod common;

use common::assert_balanced;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::task::noop_waker;
use futures::{Stream, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{Clock as _, SystemClock, TestClock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 != 7, "destructor");
    }
}

#[splitter]
enum Three {
    X(Bomb),
    Y(u32),
    Z(u32),
}

fn poll_once<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut TaskContext::from_waker(&noop_waker()))
}

#[test]
fn fault_16_a_destructor_that_panics_under_one_reader_is_an_error_at_every_reader() {
    let (sender, input) = mpsc::unbounded();
    let streams = input.split_with(|n: u32| match n {
        7 => Three::X(Bomb(n)),
        n if n.is_multiple_of(2) => Three::Y(n),
        n => Three::Z(n),
    });
    let ledger = streams.ledger_handle();
    let ThreeStreams { x, y, z } = streams;
    x.discard();
    let (mut y, mut z) = (y.results(), z.results());
    assert!(poll_once(&mut z).is_pending());
    for n in [2, 3, 7, 4] {
        sender.unbounded_send(n).unwrap();
    }
    // Y drives, and drops the record of X.
    let mut results = Vec::new();
    while let Poll::Ready(Some(result)) = poll_once(&mut y) {
        results.push(result.map_err(|error| error.to_string()));
    }
    let error = Err("a function of the stream panicked: destructor".to_owned());
    assert_eq!(results, [Ok(2), Ok(4), error.clone()]);
    let rest: Vec<_> =
        block_on(z.map(|result| result.map_err(|error| error.to_string())).collect());
    assert_eq!(rest, [Ok(3), error]);
    assert_balanced(&ledger.read());
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("waker");
    }
}

#[test]
fn fault_16_a_waker_that_panics_keeps_nobody_else_waiting() {
    let (sender, input) = mpsc::unbounded();
    let streams = input.split_with(|n: u32| match n % 3 {
        0 => Three::X(Bomb(n)),
        1 => Three::Y(n),
        _ => Three::Z(n),
    });
    let ledger = streams.ledger_handle();
    let ThreeStreams { x, y, z } = streams;
    let (mut x, mut y, mut z) = (x.results(), y.results(), z.results());
    let panics = Waker::from(Arc::new(Panics));
    let (sent, wakes) = channel();
    let tells = Waker::from(Arc::new(Tells(sent)));
    assert!(Pin::new(&mut x).poll_next(&mut TaskContext::from_waker(&panics)).is_pending());
    assert!(Pin::new(&mut z).poll_next(&mut TaskContext::from_waker(&tells)).is_pending());
    // The input wakes both, and one of them panics.
    assert!(catch_unwind(AssertUnwindSafe(|| sender.unbounded_send(4))).is_err());
    assert_eq!(wakes.try_recv(), Ok(()));
    // Y drives while X waits with a waker that panics.
    assert!(Pin::new(&mut x).poll_next(&mut TaskContext::from_waker(&panics)).is_pending());
    assert!(Pin::new(&mut z).poll_next(&mut TaskContext::from_waker(&tells)).is_pending());
    drop(catch_unwind(AssertUnwindSafe(|| sender.unbounded_send(3))));
    assert!(Pin::new(&mut z).poll_next(&mut TaskContext::from_waker(&tells)).is_pending());
    while catch_unwind(AssertUnwindSafe(|| poll_once(&mut y))).is_ok_and(|poll| poll.is_ready()) {}
    sender.close_channel();
    // An end or an error, but no reader waits for ever.
    while let Poll::Ready(Some(_)) = poll_once(&mut z) {}
    assert!(poll_once(&mut z).is_ready());
    assert_balanced(&ledger.read());
}

struct Tells(Sender<()>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn fault_21_a_waker_that_panics_does_not_stop_the_clock() {
    let (sender, woken) = channel();
    let now = SystemClock.now();
    SystemClock.wake_at(now, &Waker::from(Arc::new(Panics)));
    SystemClock.wake_at(now + Duration::from_millis(1), &Waker::from(Arc::new(Tells(sender))));
    woken.recv_timeout(Duration::from_mins(1)).unwrap();

    let (sender, woken) = channel();
    let clock = TestClock::at(Timestamp::EPOCH);
    clock.wake_at(Timestamp::from_secs(1), &Waker::from(Arc::new(Panics)));
    clock.wake_at(Timestamp::from_secs(1), &Waker::from(Arc::new(Tells(sender))));
    let advance = AssertUnwindSafe(|| clock.advance(Duration::from_secs(1)));
    assert!(catch_unwind(advance).is_err());
    woken.try_recv().unwrap();
}

#[splitter]
enum Tight {
    #[main]
    Free(u32),
    #[output(capacity = 1)]
    Full(u32),
}

#[test]
fn fault_21_a_waker_that_panics_does_not_end_the_stall_watch() {
    let stuck = |waker: &Waker| {
        let TightStreams { free, full } = stream::iter(0..100)
            .split_with(|n: u32| if n == 0 { Tight::Free(n) } else { Tight::Full(n) });
        let mut free = Box::pin(free.fail_on_stall().results());
        while free.as_mut().poll_next(&mut TaskContext::from_waker(waker)).is_ready() {}
        (free, full)
    };
    let (sender, woken) = channel();
    let panics = stuck(&Waker::from(Arc::new(Panics)));
    let other = stuck(&Waker::from(Arc::new(Tells(sender))));
    woken.recv_timeout(Duration::from_mins(1)).unwrap();
    drop((panics, other));
    // And it can start again.
    let (sender, woken) = channel();
    let again = stuck(&Waker::from(Arc::new(Tells(sender))));
    woken.recv_timeout(Duration::from_mins(1)).unwrap();
    drop(again);
}
