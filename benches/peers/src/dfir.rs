//! `dfir_rs`: `demux_enum` over an enum of its own derive.

use crate::common::Table;
use crate::records::{Consumer, Invalid, Late, Orders, Out, Plain, classify, out, records};
use dfir_rs::dfir_syntax;
use dfir_rs::util::demux_enum::DemuxEnum;
use futures::stream;
use std::cell::Cell;

pub(crate) fn enter<C: Consumer + Copy>(table: &mut Table<Out>) {
    table.run("dfir_rs, demux_enum of an iterator", iterator::<C>);
    table.run("dfir_rs, demux_enum of a stream", asynchronous::<C>);
}

#[derive(DemuxEnum)]
enum Sorted {
    Valid(Plain),
    Invalid(Invalid<Plain>),
    Late(Late),
}

#[inline]
fn sort(record: Plain) -> Sorted {
    match classify(record) {
        Orders::Valid(record) => Sorted::Valid(record),
        Orders::Invalid(invalid) => Sorted::Invalid(invalid),
        Orders::Late(late) => Sorted::Late(late),
    }
}

#[inline]
fn update<C: Copy + Default>(cell: &Cell<C>, eat: impl FnOnce(&mut C)) {
    let mut consumer = cell.get();
    eat(&mut consumer);
    cell.set(consumer);
}

macro_rules! contestant {
    ($name:ident, $source:ident, $records:expr) => {
        fn $name<C: Consumer + Copy>(n: usize) -> Out {
            let consumers: std::rc::Rc<[Cell<C>; 3]> = Default::default();
            let [a, b, c] = [(); 3].map(|()| std::rc::Rc::clone(&consumers));
            let records = $records(n);
            let mut flow = dfir_syntax! {
                demux = $source(records) -> map(sort) -> demux_enum::<Sorted>();
                demux[Valid] -> for_each(|(record,)| update(&a[0], |c| c.valid(record)));
                demux[Invalid] -> for_each(|(invalid,)| update(&b[1], |c| c.invalid(invalid)));
                demux[Late] -> for_each(|(late,)| update(&c[2], |c| c.late(late)));
            };
            flow.run_available_sync();
            drop(flow);
            let [valid, invalid, late] = [0, 1, 2].map(|index| consumers[index].get());
            out(&valid, &invalid, &late)
        }
    };
}

contestant!(iterator, source_iter, records::<Plain>);
contestant!(asynchronous, source_stream, |n| stream::iter(records::<Plain>(n)));
