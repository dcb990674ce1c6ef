//! A stall is reported with the name of the full output. In a program of its own, since the watch
//! reports from its own thread and so to the log of the whole program.

use futures::stream;
use side_output::prelude::*;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    #[output(capacity = 4)]
    Odd(u32),
}

struct Warnings(Sender<String>);

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
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                write!(self.0, "{}={value:?} ", field.name()).unwrap();
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.send(text.0).unwrap();
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// FLOW-02: a stall is never silent. The watch reports within a second; the test waits for as long
/// as a loaded machine may take.
#[test]
fn a_stall_is_reported_with_the_name_of_the_full_output() {
    let (sender, warnings) = channel();
    tracing::subscriber::set_global_default(Warnings(sender)).unwrap();
    let streams = stream::iter(0..100)
        .split_with(|n: u32| if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) });
    let ledger = streams.ledger_handle();
    let NumbersStreams { mut even, odd } = streams;
    let cx = &mut TaskContext::from_waker(Waker::noop());
    while futures::Stream::poll_next(Pin::new(&mut even), cx).is_ready() {}

    let warning = warnings.recv_timeout(Duration::from_mins(1)).unwrap();
    for part in ["splitter=\"Numbers\"", "output=\"odd\"", "capacity=4"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert!(ledger.read()["odd"].blocking);
    assert_eq!(ledger.read().stalls, 1);
    drop(odd);
}
