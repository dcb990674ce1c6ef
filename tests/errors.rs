//! Errors reach whoever reads, without a panic: as an item, as the end of the records, in the ledger.

mod common;

use common::text_of;
use futures::executor::block_on;
use futures::stream::FusedStream as _;
use futures::{StreamExt as _, join, stream};
use side_output::prelude::*;
use side_output::{Element, Mark};
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    Odd(u32),
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

fn torn() -> DataStream<u32> {
    DataStream::from_try_stream(stream::iter([Ok(1), Ok(2), Ok(4), Err("torn"), Ok(6)]))
}

/// What is logged as an error by this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn of(run: impl FnOnce()) -> Vec<String> {
        let log = Self::default();
        tracing::subscriber::with_default(log.clone(), run);
        let lines = log.0.lock().unwrap();
        lines.clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(text_of(event));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn api_01_records_end_at_an_error_and_the_error_is_at_hand() {
    let logged = Log::of(|| {
        let NumbersStreams { even, odd } = torn().split_with(by_parity);
        let ledger = even.ledger_handle().unwrap();
        assert_eq!(ledger.read().error, None);
        // Typed, and mapped and boxed.
        let (mut even, mut odd) = (even.records(), odd.map(|n| n + 1).boxed().records());
        let read = async { join!(even.by_ref().collect::<Vec<_>>(), odd.by_ref().count()) };
        assert_eq!(block_on(read), (vec![2, 4], 1));
        for error in [even.error(), odd.error()] {
            assert_eq!(error.unwrap().to_string(), "the stream failed: torn");
        }
        assert!(even.is_terminated());
        assert_eq!(block_on(even.next()), None);
        assert_eq!(ledger.read().error.as_deref(), Some("the stream failed: torn"));
        assert!(ledger.read().to_string().ends_with("the stream failed: torn"));
    });
    assert!(logged.is_empty(), "{logged:?}");
}

#[test]
fn api_01_a_plain_stream_ends_without_a_panic_and_its_error_is_logged_once() {
    let logged = Log::of(|| {
        let NumbersStreams { mut even, odd } = torn().split_with(by_parity);
        odd.discard();
        assert_eq!(block_on(even.by_ref().collect::<Vec<_>>()), [2, 4]);
        assert_eq!(block_on(even.next()), None);
        assert_eq!(even.error().unwrap().to_string(), "the stream failed: torn");
    });
    let [line] = &*logged else { panic!("{logged:?}") };
    assert!(line.contains("stream=\"even\"") && line.contains("torn"), "{line}");
}

#[test]
fn api_01_a_run_returns_the_error_and_the_ledger_keeps_it() {
    let streams = torn().split_with(by_parity);
    let ledger = streams.ledger_handle();
    let logged = Log::of(|| {
        let error = block_on(
            streams
                .wire()
                .even(async |s: DataStream<u32>| assert_eq!(s.count().await, 2))
                .odd(discard())
                .run(),
        );
        assert_eq!(error.unwrap_err().to_string(), "the stream failed: torn");
    });
    assert!(logged.is_empty(), "{logged:?}");
    assert_eq!(ledger.read().error.as_deref(), Some("the stream failed: torn"));

    // The true end is none, and readers that go away are one.
    let NumbersStreams { even, odd } = stream::iter([1, 2]).split_with(by_parity);
    let ledger = even.ledger_handle().unwrap();
    odd.discard();
    block_on(even.for_each(drop)).unwrap();
    assert_eq!(ledger.read().error, None);
    let streams = stream::iter([1, 2]).split_with(by_parity);
    let ledger = streams.ledger_handle();
    drop(streams);
    assert!(ledger.read().error.unwrap().contains("cancelled"));
}

#[test]
fn api_01_a_stream_that_was_taken_is_a_mistake_of_the_program() {
    let mut streams = stream::iter([1, 2]).split_with(by_parity);
    drop(streams.get_side_output(Numbers::EVEN_TAG));
    let again = streams.get_side_output(Numbers::EVEN_TAG);
    let read = std::panic::AssertUnwindSafe(|| block_on(again.count()));
    let panic = std::panic::catch_unwind(read).unwrap_err();
    assert_eq!(
        panic.downcast_ref::<String>().unwrap(),
        "the stream of output `even` was already taken"
    );
}

#[test]
fn api_03_elements_of_results_end_at_the_first_error() {
    let at = Timestamp::from_millis;
    let input = [
        Ok(Element::record(1, at(5))),
        Ok(Element::watermark(at(5))),
        Err("torn"),
        Ok(Element::record(2, at(6))),
    ];
    let mut elements = DataStream::from_try_elements(stream::iter(input)).elements();
    block_on(async {
        assert_eq!(elements.next().await.unwrap().unwrap(), Element::record(1, at(5)));
        let mark = elements.next().await.unwrap().unwrap();
        assert_eq!(mark, Element::Mark(Mark::Watermark(at(5))));
        assert!(!elements.is_terminated());
        assert_eq!(
            elements.next().await.unwrap().unwrap_err().to_string(),
            "the stream failed: torn"
        );
        assert!(elements.is_terminated());
        assert!(elements.next().await.is_none());
    });
}

#[test]
fn api_03_results_and_elements_are_fused() {
    let mut results = torn().results();
    block_on(async {
        assert_eq!(results.by_ref().count().await, 4);
        assert!(results.is_terminated());
        assert!(results.next().await.is_none());
        // In a `select!`, what has ended is not polled again.
        let mut elements = DataStream::from_stream(stream::iter([1])).elements();
        let (mut seen, mut results) = (0, torn().results());
        loop {
            futures::select! {
                element = elements.next() => seen += u32::from(element.is_some()),
                result = results.next() => seen += u32::from(result.is_some()),
                complete => break,
            }
        }
        assert_eq!(seen, 2 + 4);
    });
}

/// What a service's `main` looks like.
#[test]
fn api_06_the_question_mark_works_on_streams_and_on_io() {
    fn own() -> Result<(), StreamError> {
        block_on(stream::iter([1]).split_with(Numbers::Odd).odd.for_each(drop))?;
        Err(io::Error::other("no such file"))?
    }
    fn any() -> Result<(), Box<dyn Error>> {
        std::str::from_utf8(b"utf-8")?;
        block_on(torn().for_each(drop))?;
        Err(io::Error::other("not reached"))?
    }
    assert_eq!(own().unwrap_err().to_string(), "the stream failed: no such file");
    assert_eq!(any().unwrap_err().to_string(), "the stream failed: torn");
}

#[test]
fn api_06_one_cause_is_printed_once() {
    // Through a stream of results, a function of `io`, and another stream.
    let error = block_on(async {
        let once = DataStream::from_try_stream(torn().results());
        let twice = once.results().map(|result| result.map_err(io::Error::other));
        DataStream::from_try_stream(twice).for_each(drop).await.unwrap_err()
    });
    assert_eq!(error.to_string(), "the stream failed: torn");
    assert!(error.source().is_none());
    let in_a_destination = try_each(|_| Err::<(), _>(io::Error::other("disk full")));
    let streams = stream::iter([2]).split_with(by_parity);
    let error = block_on(streams.wire().even(in_a_destination).odd(discard()).run()).unwrap_err();
    assert_eq!(error.to_string(), "the destination of output `even` failed: disk full");
    assert!(error.source().is_none());
}
