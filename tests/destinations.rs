//! What can be a destination, and what the ledger says of it.

mod common;

use common::assert_balanced;
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde::Serialize;
use side_output::codec::{Bytes, Csv, JsonLines, Lines};
use side_output::prelude::*;
use side_output::{Overflow, write_to};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context as TaskContext, Poll, Waker};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

#[splitter]
enum Numbers {
    #[main]
    Even(u32),
    Odd(u32),
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

/// Takes some bytes at a time, rests in between, and may fail.
#[derive(Default)]
struct Slow {
    written: Vec<u8>,
    rested: bool,
    flushed: usize,
    closed: bool,
    room: Option<usize>,
}

impl AsyncWrite for Slow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.rested = !self.rested;
        if self.rested {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.room.is_some_and(|room| self.written.len() >= room) {
            return Poll::Ready(Err(io::ErrorKind::StorageFull.into()));
        }
        let some = bytes.len().min(3);
        self.written.extend_from_slice(&bytes[..some]);
        Poll::Ready(Ok(some))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        self.flushed = self.written.len();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        self.closed = true;
        self.poll_flush(cx)
    }
}

#[test]
fn api_04_a_writer_gets_what_its_codec_makes_of_the_records() {
    #[derive(Serialize)]
    struct Row {
        id: u32,
        name: String,
    }
    let row = |id| Row { id, name: format!("no. \"{id}\", or so") };
    let rows = || DataStream::from_stream(stream::iter([row(1), row(2)]));

    let mut json = Slow::default();
    block_on(rows().forward(write_to(&mut json, JsonLines))).unwrap();
    let expected = r#"{"id":1,"name":"no. \"1\", or so"}
{"id":2,"name":"no. \"2\", or so"}
"#;
    assert_eq!(String::from_utf8(json.written).unwrap(), expected);
    assert!(json.closed);

    let mut csv = Slow::default();
    block_on(rows().forward(write_to(&mut csv, Csv::default()))).unwrap();
    block_on(rows().forward(write_to(&mut csv, Csv::without_names()))).unwrap();
    let twice = "1,\"no. \"\"1\"\", or so\"\n2,\"no. \"\"2\"\", or so\"\n".repeat(2);
    assert_eq!(String::from_utf8(csv.written).unwrap(), format!("id,name\n{twice}"));

    let (mut lines, mut bytes, mut own) = (Slow::default(), Slow::default(), Slow::default());
    let words = || DataStream::from_stream(stream::iter(["to", "be"]));
    block_on(words().forward(write_to(&mut lines, Lines))).unwrap();
    block_on(words().forward(write_to(&mut bytes, Bytes))).unwrap();
    let shout = |word: &&str, into: &mut Vec<u8>| {
        into.extend(word.to_uppercase().bytes());
        Ok::<_, io::Error>(())
    };
    block_on(words().forward(write_to(&mut own, shout))).unwrap();
    assert_eq!(
        (&*lines.written, &*bytes.written, &*own.written),
        (&b"to\nbe\n"[..], &b"tobe"[..], &b"TOBE"[..])
    );
}

#[test]
fn api_04_a_writer_that_fails_names_its_output_and_only_what_was_flushed_is_delivered() {
    let mut file = Slow { room: Some(6), ..Slow::default() };
    let streams = stream::iter((0..100).step_by(2)).split_with(by_parity);
    let run = streams.wire().even(write_to(&mut file, Lines)).odd(discard()).run();
    let ledger = run.ledger_handle();
    let error = block_on(run).unwrap_err();
    assert_eq!(error.to_string(), "the destination of output `even` failed: no storage space");
    let ledger = ledger.read();
    assert_balanced(&ledger);
    assert_eq!((ledger["even"].delivered, ledger["even"].discarded), (0, 50));
    assert_eq!(ledger.error, Some(error.to_string()));
}

#[test]
fn api_04_a_record_that_a_codec_refuses_leaves_no_half_of_itself() {
    #[derive(Serialize)]
    struct Key(Vec<(Vec<u8>, u8)>);
    /// A map whose key is no text.
    struct Odd;
    impl Serialize for Odd {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(Key(Vec::new()), 1)])
        }
    }
    let mut file = Vec::new();
    let error = block_on(
        DataStream::from_stream(stream::iter([Odd])).forward(write_to(&mut file, JsonLines)),
    );
    assert!(error.unwrap_err().to_string().contains("key must be a string"));
    assert!(file.is_empty());
}

#[test]
fn api_04_a_bounded_channel_holds_up_and_an_unbounded_one_does_not() {
    let (sender, mut receiver) = mpsc::channel(2);
    let (all, mut odd) = mpsc::unbounded_channel();
    let mut run =
        pin!(stream::iter(0..4000).split_with(by_parity).wire().even(sender).odd(all).run());
    let ledger = run.ledger_handle();
    let cx = &mut TaskContext::from_waker(Waker::noop());
    assert!(run.as_mut().poll(cx).is_pending());
    assert_eq!(ledger.read()["even"].delivered, 2);
    assert!(ledger.read().received < 4000);
    assert_balanced(&ledger.read());

    let reading = async {
        let mut sum = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        sum
    };
    let (end, sum) = block_on(async { futures::join!(run, reading) });
    let ledger = end.unwrap();
    assert_eq!((sum, ledger["even"].delivered), ((0..4000).step_by(2).sum::<u32>(), 2000));
    // The end of the output is the end of the channel.
    let mut count = 0;
    while odd.recv().now_or_never().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 2000);
    assert_balanced(&ledger);
}

#[test]
fn api_04_a_receiver_that_is_gone_is_an_error_with_the_output() {
    for bounded in [true, false] {
        let streams = stream::iter(0..10).split_with(by_parity);
        let ledger = streams.ledger_handle();
        let error = if bounded {
            let (sender, mut receiver) = mpsc::channel(1);
            let run = streams.wire().even(sender).odd(discard()).run();
            let read = async move { drop((receiver.recv().await, receiver)) };
            block_on(async { futures::join!(run, read) }).0.unwrap_err()
        } else {
            let (sender, _) = mpsc::unbounded_channel();
            block_on(streams.wire().even(sender).odd(discard()).run()).unwrap_err()
        };
        assert_eq!(error.to_string(), "the destination of output `even` failed: channel closed");
        assert_balanced(&ledger.read());
    }
}

#[test]
fn api_05_a_closure_needs_no_type() {
    let (mut sum, mut odd) = (0, Vec::new());
    let total = &mut sum;
    let ledger = block_on(
        stream::iter(0..10)
            .split_with(by_parity)
            .wire()
            // A method of the record, which `even(|stream| …)` could not call.
            .even_with(move |even| even.for_each(move |n| *total += n.pow(2)))
            .odd_with(async |odd_stream| {
                odd = odd_stream.map(|n| n.to_string()).records().collect().await;
                Ok::<_, io::Error>(())
            })
            .run(),
    )
    .unwrap();
    assert_eq!((sum, odd.len()), (120, 5));
    assert_balanced(&ledger);
}

#[test]
fn api_10_a_copy_is_one_call_and_each_is_counted() {
    let (mut archive, mut alerts, mut sum) = (Vec::new(), Vec::new(), 0);
    let mut copies = None;
    let ledger = block_on(
        stream::iter(0..10)
            .split_with(by_parity)
            .wire()
            .even_with(async |even| {
                let wiring = even.tee().wire().first(&mut archive).second_with(async |second| {
                    second.tee().wire().first(&mut alerts).second(each(|n| sum += n)).run().await
                });
                copies = Some(wiring.run().await?);
                Ok::<_, StreamError>(())
            })
            .odd(discard())
            .run(),
    )
    .unwrap();
    assert_eq!((&archive, sum), (&alerts, 20));
    let copies = copies.unwrap();
    assert_eq!((copies["first"].delivered, copies["second"].delivered), (5, 5));
    assert_eq!((copies.received, copies.tapped), (5, 5));
    assert_balanced(&copies);
    assert_balanced(&ledger);

    // Each with a buffer and a policy of its own.
    let mut streams = DataStream::from_stream(stream::iter(0..100)).tee();
    streams.second = streams.second.capacity(4).overflow(Overflow::DropNewest);
    let second = streams.second.boxed();
    assert_eq!(block_on(streams.first.count()), 100);
    assert_eq!(block_on(second.collect::<Vec<_>>()), [0, 1, 2, 3]);
}

#[test]
fn api_14_the_ledger_of_a_wiring_is_at_hand_before_it_runs() {
    let wiring = stream::iter(0..10).split_with(by_parity).wire().even(discard());
    let (before, wiring) = (wiring.ledger_handle(), wiring.odd(discard()));
    let run = wiring.run();
    let ledger = run.ledger_handle();
    assert_eq!((before.read().received, ledger.read().received), (0, 0));
    let end = block_on(run).unwrap();
    assert_eq!(ledger.read(), end);
    assert_eq!(before.read(), end);
}
