//! Barriers, idleness, held records and timers at the end. Tests carry the ids of the faults.

mod bare;
mod common;

use self::bare::{Lines, at};
use self::common::OneByOne;
use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, stream};
use futures_test::future::FutureTestExt as _;
use side_output::prelude::*;
use side_output::stream::Source;
use side_output::{
    BroadcastContext, BroadcastProcess, Configuration, Element, KeyedContext, KeyedProcess, Mark,
    Pane, TestClock, Tumbling, Watermarks, Window,
};
use std::time::Duration;

fn barrier<T>(id: u64) -> Element<T> {
    Element::Mark(Mark::Barrier(id))
}

fn elements<T: Send + 'static>(elements: impl IntoIterator<Item = Element<T>>) -> DataStream<T> {
    DataStream::from_elements(stream::iter(elements.into_iter().collect::<Vec<_>>()))
}

/// All there is, in order.
fn all<T, Src: Source<T>>(stream: DataStream<T, Src>) -> Vec<Element<T>> {
    block_on(stream.elements().map(Result::unwrap).collect())
}

/// Records and barriers as text, in order; other marks are left out.
fn texts<T: ToString, Src: Source<T>>(stream: DataStream<T, Src>) -> Vec<String> {
    let text = |element| match element {
        Element::Record { value, .. } => Some(T::to_string(&value)),
        Element::Mark(Mark::Barrier(id)) => Some(format!("barrier {id}")),
        Element::Mark(_) => None,
    };
    all(stream).into_iter().filter_map(text).collect()
}

/// Notes what it gets; letters configure it.
struct Note;

impl BroadcastProcess for Note {
    type In = u32;
    type Update = char;
    type Config = char;
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u32,
        config: &char,
        _cx: &mut BroadcastContext<Lines>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{config}{record}"))
    }

    fn on_update(
        &mut self,
        update: char,
        config: &mut Configuration<char>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        config.replace(update);
        Lines::main(update)
    }

    fn on_unconfigured(&mut self, record: u32, _cx: &mut Context<Lines>) -> impl Routes<Lines> {
        Lines::main(format!("?{record}"))
    }
}

#[test]
fn fault_33_a_higher_barrier_counts_as_the_lower_ones() {
    let one = || elements([barrier(1), Element::record(1, at(1)), barrier(2)]);
    let two = || elements([Element::record(2, at(1)), barrier(2), Element::record(3, at(1))]);
    assert_eq!(texts(one().union(two())), ["2", "barrier 1", "1", "barrier 2", "3"]);
    assert_eq!(texts(two().union(one())), ["2", "barrier 1", "1", "barrier 2", "3"]);
    let show = |number: u32, _: &mut Context<Lines>| Lines::main(number);
    let streams = one().connect(two()).process_with(show, show);
    streams.side.discard();
    streams.note.discard();
    assert_eq!(texts(streams.main), ["2", "barrier 1", "1", "barrier 2", "3"]);
}

#[test]
fn fault_33_an_input_that_has_ended_has_sent_every_barrier() {
    let long = || elements([barrier(1), barrier(2), Element::record(1, at(1)), barrier(4)]);
    let short = || elements([Element::record(2, at(1)), barrier(1)]);
    let expected = ["2", "barrier 1", "barrier 2", "1", "barrier 4"];
    assert_eq!(texts(long().union(short())), expected);
    let show = |number: u32, _: &mut Context<Lines>| Lines::main(number);
    let streams = long().connect(short()).process_with(show, show);
    streams.side.discard();
    streams.note.discard();
    assert_eq!(texts(streams.main), expected);
}

#[test]
fn fault_33_no_barrier_passes_before_the_input_that_is_read_last_has_sent_it() {
    let config = elements([
        Element::record('a', at(1)),
        barrier(1),
        Element::record('b', at(1)),
        barrier(2),
    ]);
    let records = elements([
        Element::record(1, at(1)),
        barrier(1),
        Element::record(2, at(1)),
        barrier(2),
        barrier(3),
    ]);
    let streams = records.connect_broadcast(config).config_first().process(Note);
    streams.side.discard();
    streams.note.discard();
    let expected = ["a", "b", "b1", "barrier 1", "b2", "barrier 2", "barrier 3"];
    assert_eq!(texts(streams.main), expected);
}

/// Passes records on.
struct Pass;

impl KeyedProcess for Pass {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u32,
        (): &mut (),
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::main(record)
    }
}

#[test]
fn fault_19_a_barrier_behind_the_end_of_time_passes_the_partitions() {
    let input =
        stream::iter([Element::watermark(Timestamp::MAX), barrier(1), Element::record(7, at(1))]);
    // All of it comes at once, so that partitions have ended when their barriers are looked at.
    let input = async { input }.pending_once().flatten_stream();
    let streams = DataStream::from_elements(input)
        .key_by(|record: &u32| *record)
        .parallel(3)
        .process(|| Pass);
    streams.side.discard();
    streams.note.discard();
    let ledger = streams.main.ledger_handle().expect("an operator");
    assert_eq!(texts(streams.main), ["barrier 1", "7"]);
    assert!(ledger.read().is_balanced(), "{:?}", ledger.read());
}

#[test]
fn fault_34_a_strategy_has_an_idleness_of_its_own() {
    let input = || {
        elements([
            Element::record(1, at(1)),
            Element::Mark(Mark::Idle),
            Element::Mark(Mark::Active),
            Element::watermark(Timestamp::MAX),
            Element::watermark(Timestamp::MAX),
        ])
    };
    let stamp = |_: &u32| at(10);
    let expected =
        [Element::record(1, at(10)), Element::watermark(at(9)), Element::watermark(Timestamp::MAX)];
    let plain = input().assign_timestamps(stamp, Watermarks::monotonous());
    assert_eq!(all(plain), expected);
    let (timeout, clock) = (Duration::from_secs(1), TestClock::at(at(0)));
    let idle = Watermarks::monotonous().with_idleness(timeout, clock.clone());
    assert_eq!(all(input().assign_timestamps(stamp, idle)), expected);
    let bounded = Watermarks::monotonous().max_future_skew(timeout, clock);
    let streams = input().assign_timestamps(stamp, bounded);
    streams.future_skew.discard();
    assert_eq!(all(streams.records), expected);
}

#[test]
fn fault_34_a_window_that_its_evictor_emptied_has_no_final_result() {
    let windows = || {
        elements([Element::record(1, at(1)), Element::watermark(at(9))])
            .window_all(Tumbling::of(Duration::from_millis(10)))
            .allowed_lateness(Duration::from_millis(10))
            .with_final_panes()
            .keep_last(0)
            .drop_late_data()
    };
    let expected = [(0, Pane::OnTime)];
    let count = |(): &(), _: Window, records: &[u32]| records.len();
    let results = windows().apply(count).map(|result| (result.value, result.pane));
    assert_eq!(block_on(results.collect::<Vec<_>>()), expected);
    let results = windows().trigger(OneByOne).apply(count);
    let results = results.map(|result| (result.value, result.pane));
    assert_eq!(block_on(results.collect::<Vec<_>>()), expected);
}
