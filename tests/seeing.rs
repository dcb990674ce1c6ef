//! Why nothing comes out, and times that can be read.

mod common;

use common::assert_balanced;
use futures::channel::mpsc::unbounded;
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::Timestamp as Instant;
use proptest::prelude::proptest;
use side_output::prelude::*;
use side_output::stream::InputIs;
use side_output::{Count, Element, Late, LateWindows, LedgerHandle};
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

#[test]
fn api_11_times_print_as_rfc_3339_beside_the_number() {
    let cases = [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00Z"),
        (951_868_800_000, "2000-03-01T00:00:00Z"),
        (1_359_641_100_250, "2013-01-31T14:05:00.250Z"),
        (-2_203_891_200_000, "1900-03-01T00:00:00Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ];
    for (millis, text) in cases {
        let at = Timestamp::from_millis(millis);
        assert_eq!(at.to_rfc3339().as_deref(), Some(text));
        assert_eq!(at.to_string(), format!("{millis} ({text})"));
        assert_eq!(format!("{at:?}"), millis.to_string());
    }
    // The format has no text for other years.
    for millis in [-62_167_219_200_001, 253_402_300_800_000] {
        assert_eq!(Timestamp::from_millis(millis).to_string(), millis.to_string());
    }
    assert_eq!(
        (Timestamp::MIN.to_string(), Timestamp::MAX.to_string()),
        ("min".into(), "max".into())
    );
}

proptest! {
    #[test]
    fn api_11_another_library_reads_the_same_instant(
        millis in -62_167_219_200_000_i64..253_402_200_000_000,
    ) {
        let text = Timestamp::from_millis(millis).to_rfc3339().unwrap();
        assert_eq!(text.parse::<Instant>().unwrap().as_millisecond(), millis);
    }
}

#[test]
fn api_11_the_reason_of_a_late_record_has_times() {
    let at = |second: i64| Timestamp::from_secs(1_357_000_000 + second);
    let windows = LateWindows::from(Window::new(at(0), at(60)));
    let late = Late { value: (), timestamp: at(30), watermark: at(90), windows };
    assert_eq!(
        late.to_string(),
        "at 1357000030000 (2013-01-01T00:27:10Z), \
         60000 ms behind the watermark 1357000090000 (2013-01-01T00:28:10Z); \
         window [1357000000000, 1357000060000) (2013-01-01T00:26:40Z to 2013-01-01T00:27:40Z) \
         had been complete for 30001 ms"
    );
}

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    #[output(capacity = 4)]
    Odd(u32),
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

fn states(ledger: &LedgerHandle) -> Vec<InputIs> {
    ledger.waiting_for().inputs.iter().map(|input| input.state).collect()
}

#[test]
fn api_15_the_input_that_holds_the_time_is_named_whatever_it_is_doing() {
    let at = |n| Timestamp::from_secs(n);
    let (inputs, streams): (Vec<_>, Vec<_>) = (0..3)
        .map(|_| unbounded::<Element<u32>>())
        .map(|(input, elements)| (input, DataStream::from_elements(elements)))
        .unzip();
    let mut streams = streams.into_iter();
    let united = streams.next().unwrap().union(streams.collect::<Vec<_>>());
    let mut counts = united
        .window_all(Tumbling::of(Duration::from_secs(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = counts.ledger_handle().unwrap();
    assert_eq!(states(&ledger), [InputIs::NotAsked; 3]);
    let send = |input: usize, element| inputs[input].unbounded_send(element).unwrap();
    send(0, Element::watermark(at(60)));
    send(1, Element::record(1, at(1)));
    send(2, Element::watermark(at(5)));
    assert!(counts.next().now_or_never().is_none());
    let now = ledger.waiting_for();
    // No watermark has come from input 1.
    assert_eq!((now.output, now.holds_the_time()), (None, Some(1)));
    assert_eq!(states(&ledger), [InputIs::Silent; 3]);
    assert!(
        now.to_string()
            .contains("input 1 was asked and has nothing; no watermark has come, which holds")
    );

    send(1, Element::Mark(side_output::Mark::Idle));
    assert!(counts.next().now_or_never().is_none());
    assert_eq!(states(&ledger), [InputIs::Silent, InputIs::Idle, InputIs::Silent]);
    let now = ledger.waiting_for();
    assert_eq!((now.holds_the_time(), now.inputs[2].watermark), (Some(2), at(5)));

    send(2, Element::Mark(side_output::Mark::Barrier(1)));
    assert!(counts.next().now_or_never().is_none());
    assert_eq!(states(&ledger)[2], InputIs::Barrier);
    drop(inputs);
    assert_eq!(block_on(counts.next()).unwrap().value, 1);
    assert_eq!(states(&ledger), [InputIs::Ended; 3]);
    assert_eq!(ledger.waiting_for().holds_the_time(), None);
    assert_balanced(&ledger.read());
}

#[test]
fn api_15_a_single_input_and_its_time() {
    let seconds = stream::iter([7, 9]).chain(stream::pending());
    let mut counts = DataStream::from_stream(seconds)
        .assign_timestamps(|n| Timestamp::from_secs(*n), Watermarks::monotonous())
        .window_all(Tumbling::of(Duration::from_secs(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = counts.ledger_handle().unwrap();
    assert!(counts.next().now_or_never().is_none());
    assert_eq!(
        ledger.waiting_for().to_string(),
        "input 0 was asked and has nothing; its watermark is 8999 (1970-01-01T00:00:08.999Z)"
    );
}

#[test]
fn api_15_the_output_that_is_full_is_named() {
    let NumbersStreams { mut even, odd } = stream::iter(0..100).split_with(by_parity);
    let ledger = even.ledger_handle().unwrap();
    let cx = &mut TaskContext::from_waker(Waker::noop());
    while futures::Stream::poll_next(Pin::new(&mut even), cx).is_ready() {}
    let now = ledger.waiting_for();
    assert_eq!(now.output, Some("odd"));
    assert!(now.to_string().starts_with("output `odd` takes no more\ninput 0 had something"));
    drop(odd);
}

#[test]
fn api_15_a_topology_has_all_ledgers_once() {
    let NumbersStreams { even, odd } = stream::iter(0..10).split_with(by_parity);
    // Both outputs of one operator meet again.
    let again = even.map(|n| n + 1).union(odd).split_with(by_parity);
    let last = again.ledger_handle();
    let ledger = block_on(again.wire().even(discard()).odd(discard()).run()).unwrap();
    assert_eq!(ledger["odd"].routed, 10);
    let ledgers: Vec<_> = last.topology().iter().map(LedgerHandle::read).collect();
    let received: Vec<_> = ledgers.iter().map(|ledger| ledger.received).collect();
    assert_eq!(received, [10, 10]);
    assert_eq!(ledgers[1], ledger);
    ledgers.iter().for_each(assert_balanced);
}

/// Spans, and in which of them something was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Spans>>);

#[derive(Default)]
struct Spans {
    all: Vec<String>,
    open: Vec<usize>,
    logged_in: Vec<String>,
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
        }
        let mut text = Text(attributes.metadata().name().to_owned());
        attributes.record(&mut text);
        let spans = &mut self.0.lock().unwrap().all;
        spans.push(text.0);
        tracing::span::Id::from_u64(spans.len() as u64)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with("seeing") {
            let spans = &mut *self.0.lock().unwrap();
            let open = spans.open.iter().map(|id| &*spans.all[id - 1]);
            spans.logged_in.push(open.collect::<Vec<_>>().join(" > "));
        }
    }
    fn enter(&self, id: &tracing::span::Id) {
        self.0.lock().unwrap().open.push(usize::try_from(id.into_u64()).unwrap());
    }
    fn exit(&self, _: &tracing::span::Id) {
        self.0.lock().unwrap().open.pop();
    }
}

#[test]
fn api_15_what_is_logged_in_a_function_is_in_the_span_of_its_operator() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let route = |n| {
            tracing::info!("routed");
            by_parity(n)
        };
        let NumbersStreams { even, odd } = stream::iter([2]).split_with(route);
        odd.discard();
        block_on(even.tee().wire().first(discard()).second(discard()).run()).unwrap();
    });
    assert_eq!(
        log.0.lock().unwrap().logged_in,
        ["operator name=\"Tee\" outputs=[\"first\", \"second\"] > \
          operator name=\"Numbers\" outputs=[\"even\", \"odd\"]"]
    );
    assert!(log.0.lock().unwrap().open.is_empty());
}
