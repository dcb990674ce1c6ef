//! `dfir_rs`: `demux_enum` over an enum of its own derive.

use crate::common::Table;
use crate::records::{Consumer, Invalid, Late, Orders, Out, Owned, Plain, classify, out, records};
use dfir_rs::dfir_syntax;
use dfir_rs::util::demux_enum::DemuxEnum;
use futures::stream;
use std::cell::Cell;

pub(crate) fn plain<C: Consumer + Copy>(table: &mut Table<Out>) {
    table.run("dfir_rs, demux_enum of an iterator", plain::iterator::<C>);
    table.run("dfir_rs, demux_enum of a stream", plain::asynchronous::<C>);
}

pub(crate) fn owned<C: Consumer + Copy>(table: &mut Table<Out>) {
    table.run("dfir_rs, demux_enum of an iterator", owned::iterator::<C>);
    table.run("dfir_rs, demux_enum of a stream", owned::asynchronous::<C>);
}

#[inline]
fn update<C: Copy + Default>(cell: &Cell<C>, eat: impl FnOnce(&mut C)) {
    let mut consumer = cell.get();
    eat(&mut consumer);
    cell.set(consumer);
}

macro_rules! contestant {
    ($name:ident, $source:ident, $records:expr) => {
        pub(super) fn $name<C: Consumer + Copy>(n: usize) -> Out {
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

/// The contestants for one type of records: the enum cannot be generic.
macro_rules! contestants {
    ($module:ident, $record:ty) => {
        mod $module {
            use super::*;

            #[derive(DemuxEnum)]
            enum Sorted {
                Valid($record),
                Invalid(Invalid<$record>),
                Late(Late),
            }

            #[inline]
            fn sort(record: $record) -> Sorted {
                match classify(record) {
                    Orders::Valid(record) => Sorted::Valid(record),
                    Orders::Invalid(invalid) => Sorted::Invalid(invalid),
                    Orders::Late(late) => Sorted::Late(late),
                }
            }

            contestant!(iterator, source_iter, records::<$record>);
            contestant!(asynchronous, source_stream, |n| stream::iter(records::<$record>(n)));
        }
    };
}

contestants!(plain, Plain);
contestants!(owned, Owned);
