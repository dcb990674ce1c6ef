//! A stall is reported with the name of the full output. In a program of its own, since the watch
//! reports from its own thread and so to the log of the whole program.

mod common;

use common::text_of;
use futures::{FutureExt as _, sink, stream};
use side_output::prelude::*;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, Once};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    #[output(capacity = 4)]
    Odd(u32),
}

/// What was logged, of all tests of this program.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOGGED: Condvar = Condvar::new();
static LOG: Once = Once::new();

struct Warnings;

/// Waits for a warning with all of `parts`, for as long as a loaded machine may take.
#[track_caller]
fn expect_warning(parts: &[&str]) {
    let has_all = |text: &String| parts.iter().all(|part| text.contains(part));
    let warnings = WARNINGS.lock().unwrap();
    let missing = |warnings: &mut Vec<String>| !warnings.iter().any(has_all);
    let wait = Duration::from_mins(1);
    let (warnings, waited) = LOGGED.wait_timeout_while(warnings, wait, missing).unwrap();
    assert!(!waited.timed_out(), "{parts:?} in {warnings:?}");
}

fn log_warnings() {
    LOG.call_once(|| tracing::subscriber::set_global_default(Warnings).unwrap());
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        WARNINGS.lock().unwrap().push(text_of(event));
        LOGGED.notify_all();
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// FLOW-02: a stall is never silent. The watch reports within a second; the test waits for as long
/// as a loaded machine may take.
#[test]
fn a_stall_is_reported_with_the_name_of_the_full_output() {
    log_warnings();
    let streams = stream::iter(0..100)
        .split_with(|n: u32| if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) });
    let ledger = streams.ledger_handle();
    let NumbersStreams { mut even, odd } = streams;
    let cx = &mut TaskContext::from_waker(Waker::noop());
    while futures::Stream::poll_next(Pin::new(&mut even), cx).is_ready() {}

    expect_warning(&["splitter=\"Numbers\"", "output=\"odd\"", "capacity=4", "nobody reads it"]);
    assert!(ledger.read()["odd"].blocking);
    assert_eq!(ledger.read().stalls, 1);
    drop(odd);
}

/// Polls a run once more than it makes progress, and leaves it waiting.
fn leave_waiting(run: &mut (impl Future<Output = Result<Ledger, StreamError>> + Unpin)) {
    let cx = &mut TaskContext::from_waker(Waker::noop());
    assert!(run.poll_unpin(cx).is_pending());
}

#[splitter]
enum Ends {
    Sent(u32),
    GivenAway(u32),
}

/// The input has ended, and all is in a destination that never takes it.
#[test]
fn fault_20_a_wiring_that_waits_at_the_end_is_reported_with_the_output() {
    log_warnings();
    let dead = sink::unfold((), |(), _: u32| std::future::pending::<Result<(), StreamError>>());
    let streams = stream::iter(0..4).split_with(Ends::Sent);
    let ledger = streams.ledger_handle();
    let mut run = streams.wire().sent(dead).given_away(discard()).run();
    leave_waiting(&mut run);
    expect_warning(&["splitter=\"Ends\"", "output=\"sent\"", "the destination of this output"]);
    assert!(ledger.read()["sent"].blocking);
    assert_eq!(ledger.read().stalls, 1);

    let mut kept = None;
    let through = |stream: DataStream<u32>| {
        kept = Some(stream);
        std::future::ready(())
    };
    let streams = stream::iter(0..4).split_with(Ends::GivenAway);
    let mut run = streams.wire().sent(discard()).given_away(through).run();
    leave_waiting(&mut run);
    expect_warning(&[
        "splitter=\"Ends\"",
        "output=\"given_away\"",
        "the destination of this output",
    ]);
    drop((run, kept));
}

#[splitter]
enum Busy {
    #[output(capacity = 2)]
    Stuck(u32),
}

/// Polls that move nothing do not put the report off.
#[test]
fn fault_20_a_wiring_that_is_woken_all_the_time_is_reported_too() {
    log_warnings();
    let dead = sink::unfold((), |(), _: u32| std::future::pending::<Result<(), StreamError>>());
    let streams = stream::iter(0..9).split_with(Busy::Stuck);
    let ledger = streams.ledger_handle();
    let mut run = streams.wire().stuck(dead).run();
    while ledger.read().stalls == 0 {
        leave_waiting(&mut run);
        std::thread::yield_now();
    }
    expect_warning(&["splitter=\"Busy\"", "output=\"stuck\"", "capacity=2"]);
}

#[splitter]
enum Left {
    #[main]
    Read(u32),
    #[output(capacity = 4)]
    LeftBehind(u32),
}

/// A pattern with `..` on a variable leaves the other streams in it, alive and unread.
#[test]
fn api_08_outputs_left_in_a_variable_are_named() {
    log_warnings();
    let route = |n: u32| if n < 10 { Left::Read(n) } else { Left::LeftBehind(n) };
    let streams = stream::iter(0..100).split_with(route);
    let LeftStreams { read, .. } = streams;
    let error = futures::executor::block_on(read.fail_on_stall().for_each(drop)).unwrap_err();
    assert!(matches!(error, StreamError::Stalled { output: "left_behind" }), "{error:?}");
    expect_warning(&["left_behind", "nobody reads it"]);
    drop(streams.left_behind);
}
