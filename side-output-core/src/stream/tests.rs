//! The runtime on its own, small enough for Miri.

use super::{DataStream, SplitExt as _};
use crate::test_support::{Parity, ParityStreams};
use crate::{Mark, StreamError, Timestamp};
use futures::executor::block_on;
use futures::{StreamExt as _, stream};

#[test]
fn two_threads_read_through_buffers_of_one() {
    let ParityStreams { even, odd } = stream::iter(0..20).split_with(Parity::<1>::of);
    let reader = std::thread::spawn(move || block_on(even.collect::<Vec<_>>()));
    assert_eq!(block_on(odd.collect::<Vec<_>>()), (1..20).step_by(2).collect::<Vec<_>>());
    assert_eq!(reader.join().unwrap(), (0..20).step_by(2).collect::<Vec<_>>());
}

#[test]
fn a_stream_read_in_part_and_boxed_goes_on_where_it_was() {
    let ParityStreams { mut even, odd } = stream::iter(0..10).split_with(Parity::<1024>::of);
    odd.discard();
    assert_eq!(block_on(even.next()), Some(0));
    let mut even = even.boxed();
    assert_eq!(block_on(even.next()), Some(2));
    let even = even.map(|n| n * 10);
    assert_eq!(block_on(even.collect::<Vec<_>>()), [40, 60, 80]);
}

#[test]
fn marks_reach_every_output_in_their_place() {
    use super::Element;
    let input = [
        Element::record(1, Timestamp::from_millis(10)),
        Element::watermark(Timestamp::from_millis(10)),
        Element::record(2, Timestamp::from_millis(20)),
        Element::Mark(Mark::Barrier(7)),
        Element::record(3, Timestamp::from_millis(30)),
    ];
    let input = DataStream::from_elements(stream::iter(input));
    let ParityStreams { even, odd } = input.split_with(Parity::<2>::of);
    let (even, odd) = block_on(futures::future::join(
        even.elements().map(Result::unwrap).collect::<Vec<_>>(),
        odd.elements().map(Result::unwrap).collect::<Vec<_>>(),
    ));
    let marks = [
        Element::watermark(Timestamp::from_millis(10)),
        Element::Mark(Mark::Barrier(7)),
        Element::watermark(Timestamp::MAX),
    ];
    let record = |n: u32| Element::record(n, Timestamp::from_millis(i64::from(n) * 10));
    assert_eq!(even, [marks[0], record(2), marks[1], marks[2]]);
    assert_eq!(odd, [record(1), marks[0], marks[1], record(3), marks[2]]);
}

#[test]
fn a_function_that_panics_fails_both_readers() {
    let ParityStreams { even, odd } = stream::iter(0..9).split_with(|n: u32| {
        assert!(n < 5, "five");
        Parity::<1024>::of(n)
    });
    let mut read = Vec::new();
    let error = block_on(even.for_each(|n| read.push(n))).unwrap_err();
    assert!(matches!(error, StreamError::Panicked(_)), "{error}");
    assert_eq!(read, [0, 2, 4]);
    let results = block_on(odd.results().collect::<Vec<_>>());
    assert_eq!(results.len(), 3);
    assert!(results[2].is_err());
}

#[test]
fn a_dropped_output_counts_what_its_reader_had_in_hand() {
    let ParityStreams { mut even, odd } = stream::iter(0..10).split_with(Parity::<1024>::of);
    let ledger = odd.ledger_handle().unwrap();
    assert_eq!(block_on(even.next()), Some(0));
    drop(even);
    assert_eq!(block_on(odd.count()), 5);
    let ledger = ledger.read();
    assert_eq!((ledger["even"].delivered, ledger["even"].discarded), (1, 4));
    assert!(ledger.is_balanced(), "{ledger:?}");
}
