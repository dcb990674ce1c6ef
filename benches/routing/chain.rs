//! Splits in a row, and event time.

use super::records::{
    Consumer as _, Counting, OrdersStreams, Out as Split, Plain, classify, out, records,
};
use crate::common::Table;
use futures::executor::block_on;
use futures::{join, stream};
use side_output::prelude::*;
use side_output::{Element, Watermarks};

/// Records and sum over all outputs.
type Out = (u64, i64);

#[splitter]
enum Sieve {
    #[main]
    Pass(Plain),
    Aside(Plain),
}

/// Puts one record in sixteen aside, another one for each `BIT`.
#[inline]
fn sieve<const BIT: u32>(record: Plain) -> Sieve {
    if (record.id >> BIT).rem_euclid(16) == 0 { Sieve::Aside(record) } else { Sieve::Pass(record) }
}

#[inline]
fn eat(count: &mut Counting, record: Plain) {
    count.valid(record);
}

fn total<const N: usize>(counts: [Result<Counting, StreamError>; N]) -> Out {
    let results = counts.map(|count| count.expect("the input cannot fail").result());
    results.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1.wrapping_add(one.1)))
}

async fn one(n: usize) -> Out {
    let SieveStreams { pass, aside } = stream::iter(records(n)).split_with(sieve::<0>);
    let (pass, aside) =
        join!(pass.fold(Counting::default(), eat), aside.fold(Counting::default(), eat));
    total([pass, aside])
}

async fn two(n: usize) -> Out {
    let SieveStreams { pass, aside } = stream::iter(records(n)).split_with(sieve::<0>);
    let SieveStreams { pass, aside: second } = pass.split_with(sieve::<4>);
    let (pass, aside, second) = join!(
        pass.fold(Counting::default(), eat),
        aside.fold(Counting::default(), eat),
        second.fold(Counting::default(), eat),
    );
    total([pass, aside, second])
}

async fn three(n: usize) -> Out {
    let SieveStreams { pass, aside } = stream::iter(records(n)).split_with(sieve::<0>);
    let SieveStreams { pass, aside: second } = pass.split_with(sieve::<4>);
    let SieveStreams { pass, aside: third } = pass.split_with(sieve::<8>);
    let (pass, aside, second, third) = join!(
        pass.fold(Counting::default(), eat),
        aside.fold(Counting::default(), eat),
        second.fold(Counting::default(), eat),
        third.fold(Counting::default(), eat),
    );
    total([pass, aside, second, third])
}

pub(crate) fn chain() -> Table<Out> {
    let mut table = Table::new("chain", "splits in a row, for_each on every output");
    table.run("one split", |n| block_on(one(n)));
    table.run("two splits", |n| block_on(two(n)));
    table.run("three splits", |n| block_on(three(n)));
    table
}

/// The same split with as many timestamps and watermarks as `elements` has.
async fn split(records: DataStream<Plain>) -> Split {
    let OrdersStreams { valid, invalid, late } = records.split_with(classify::<Plain>);
    let (valid, invalid, late) = join!(
        valid.fold(Counting::default(), Counting::valid),
        invalid.fold(Counting::default(), Counting::invalid),
        late.fold(Counting::default(), Counting::late),
    );
    out(&valid.expect(ENDS), &invalid.expect(ENDS), &late.expect(ENDS))
}

const ENDS: &str = "the input cannot fail";

fn stamped(record: Plain) -> Element<Plain> {
    Element::record(record, Timestamp::from_millis(record.time))
}

/// Stamped records, with a watermark after every `every` of them.
fn elements(n: usize, every: usize) -> impl Iterator<Item = Element<Plain>> + Send + 'static {
    let mut records = records(n);
    let (mut left, mut now) = (every, 0);
    std::iter::from_fn(move || {
        if left == 0 {
            left = every;
            now += 1;
            return Some(Element::watermark(Timestamp::from_millis(now)));
        }
        left -= 1;
        records.next().map(stamped)
    })
}

async fn assigned(n: usize) -> Split {
    let stamped = DataStream::from_stream(stream::iter(records::<Plain>(n))).assign_timestamps(
        |record: &Plain| Timestamp::from_millis(record.time),
        Watermarks::bounded_out_of_orderness(std::time::Duration::from_secs(1)),
    );
    let OrdersStreams { valid, invalid, late } = stamped.split_with(classify::<Plain>);
    let (valid, invalid, late) = join!(
        valid.fold(Counting::default(), Counting::valid),
        invalid.fold(Counting::default(), Counting::invalid),
        late.fold(Counting::default(), Counting::late),
    );
    out(&valid.expect(ENDS), &invalid.expect(ENDS), &late.expect(ENDS))
}

pub(crate) fn event_time() -> Table<Split> {
    let mut table = Table::new("event time", "the split with timestamps and watermarks");
    table.run("without", |n| block_on(split(DataStream::from_stream(stream::iter(records(n))))));
    table.run("a watermark every 1000 records", |n| {
        block_on(split(DataStream::from_elements(stream::iter(elements(n, 1000)))))
    });
    table.run("a watermark after every record", |n| {
        block_on(split(DataStream::from_elements(stream::iter(elements(n, 1)))))
    });
    table.run("assign_timestamps", |n| block_on(assigned(n)));
    table
}
