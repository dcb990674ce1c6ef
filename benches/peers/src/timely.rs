//! timely: an operator with three outputs of three types has to be written by hand.

use crate::common::Table;
use crate::records::{Consumer, Invalid, Late, Orders, Out, Record, classify, out, records};
use std::cell::Cell;
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::vec::ToStream as _;
use timely::dataflow::operators::{Input as _, Inspect as _};

pub(crate) fn enter<R: Record, C: Consumer + Copy>(table: &mut Table<Out>) {
    table.run("timely, custom operator", |n| custom::<R, C>(n, false));
    table.run("timely, custom operator, fed by hand", |n| custom::<R, C>(n, true));
}

/// Records of timely can be cloned.
type Reason<R> = (R, &'static str);
type LateBy = (i64, i64);

#[inline]
fn update<C: Copy + Default>(cell: &Cell<C>, eat: impl FnOnce(&mut C)) {
    let mut consumer = cell.get();
    eat(&mut consumer);
    cell.set(consumer);
}

/// By hand is how an asynchronous source has to feed timely.
fn custom<R: Record, C: Consumer + Copy>(n: usize, by_hand: bool) -> Out {
    timely::execute_directly(move |worker| {
        let consumers: Rc<[Cell<C>; 3]> = Rc::default();
        let [to_valid, to_invalid, to_late] = [(); 3].map(|()| Rc::clone(&consumers));
        let handle = worker.dataflow::<u64, _, _>(|scope| {
            let (handle, records) = if by_hand {
                let (handle, records) = scope.new_input::<Vec<R>>();
                (Some(handle), records)
            } else {
                (None, records::<R>(n).to_stream(scope))
            };
            let mut builder = OperatorBuilder::new("Split".to_owned(), records.scope());
            let mut input = builder.new_input(records, Pipeline);
            let (valid_port, valid) = builder.new_output::<Vec<R>>();
            let (invalid_port, invalid) = builder.new_output::<Vec<Reason<R>>>();
            let (late_port, late) = builder.new_output::<Vec<LateBy>>();
            let mut valid_port =
                OutputBuilder::<_, CapacityContainerBuilder<Vec<R>>>::from(valid_port);
            let mut invalid_port =
                OutputBuilder::<_, CapacityContainerBuilder<Vec<Reason<R>>>>::from(invalid_port);
            let mut late_port =
                OutputBuilder::<_, CapacityContainerBuilder<Vec<LateBy>>>::from(late_port);
            builder.build(move |_| {
                move |_frontiers| {
                    let mut valid = valid_port.activate();
                    let mut invalid = invalid_port.activate();
                    let mut late = late_port.activate();
                    input.for_each_stamp(|capability, data| {
                        let mut valid = valid.session(&capability);
                        let mut invalid = invalid.session(&capability);
                        let mut late = late.session(&capability);
                        for batch in data {
                            for record in batch.drain(..) {
                                match classify(record) {
                                    Orders::Valid(record) => valid.give(record),
                                    Orders::Invalid(Invalid { record, reason }) => {
                                        invalid.give((record, reason));
                                    }
                                    Orders::Late(Late { time, by }) => late.give((time, by)),
                                }
                            }
                        }
                    });
                }
            });
            // What is inspected is borrowed; it is dropped with its container.
            valid.inspect(move |record| update(&to_valid[0], |c| c.eat(record.weight())));
            invalid.inspect(move |(record, reason)| {
                update(&to_invalid[1], |c| c.eat(record.weight() + reason.len() as i64));
            });
            late.inspect(move |&(time, by)| update(&to_late[2], |c| c.late(Late { time, by })));
            handle
        });
        if let Some(mut handle) = handle {
            for (index, record) in records::<R>(n).enumerate() {
                handle.send(record);
                if index % 4096 == 4095 {
                    worker.step();
                }
            }
            handle.close();
        }
        while worker.has_dataflows() {
            worker.step();
        }
        let [valid, invalid, late] = [0, 1, 2].map(|index| consumers[index].get());
        out(&valid, &invalid, &late)
    })
}
