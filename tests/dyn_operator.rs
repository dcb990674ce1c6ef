//! Operators behind a trait object do what they do bare, whatever the batches and the room.

mod bare;

use bare::{Bare, Lines, Seen, at};
use proptest::prelude::*;
use side_output::operator::{BatchItem, DynOperator, Keyed, Operator};
use side_output::output::Account;
use side_output::prelude::*;
use side_output::{Collect, KeyedContext, KeyedProcess, Mark};
use std::time::Duration;

/// Passes a record on, and tells of its key once more a while later.
struct Echo;

impl KeyedProcess for Echo {
    type Key = u8;
    type In = u8;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u8,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        cx.set_timer(cx.timestamp().unwrap_or_default() + Duration::from_millis(10));
        match record % 3 {
            0 => vec![],
            1 => vec![Lines::main(record)],
            _ => vec![Lines::main(record), Lines::side(*count)],
        }
    }

    fn on_timer(
        &mut self,
        _at: Timestamp,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        vec![Lines::side(format!("{} {count}", cx.key())); 1 + usize::from(*count == 2)]
    }
}

#[derive(Default)]
struct Events(Vec<Seen<Lines>>);

impl Collect<Lines> for Events {
    fn emit(&mut self, route: Lines, at: Timestamp) {
        self.0.push(Seen::Route(route, at.as_millis()));
    }

    fn mark(&mut self, mark: Mark) {
        self.0.push(match mark {
            Mark::Watermark(at) => Seen::Watermark(at.as_millis()),
            other => Seen::Other(other),
        });
    }
}

fn operator() -> impl Operator<In = u8, Out = Lines> {
    Keyed::new(|record: &u8| record % 4, Echo)
}

fn items() -> impl Strategy<Value = Vec<BatchItem<u8>>> {
    let item = prop_oneof![
        4 => (any::<u8>(), 0..100_i64).prop_map(|(n, millis)| BatchItem::Record(n, at(millis))),
        1 => (0..120_i64).prop_map(|millis| BatchItem::Mark(Mark::Watermark(at(millis)))),
        1 => Just(BatchItem::Mark(Mark::Barrier(1))),
    ];
    prop::collection::vec(item, 0..60)
}

proptest! {
    #[test]
    fn batches_give_what_single_calls_give(items in items(), room in 1..20_usize, size in 1..20_usize) {
        let mut bare = Bare::new(operator());
        for item in &items {
            match *item {
                BatchItem::Record(n, at) => _ = bare.record(n, at.as_millis()),
                BatchItem::Mark(mark) => _ = bare.mark(mark),
            }
        }
        let mut dynamic: Box<dyn DynOperator<u8, Lines>> = Box::new(operator());
        let (mut events, mut account) = (Events::default(), Account::new());
        for batch in items.chunks(size).map(<[_]>::to_vec) {
            let mut batch = batch.into_iter();
            loop {
                let before = events.0.len();
                let more = dynamic.on_batch(&mut batch, &mut events, &mut account, room).unwrap();
                // What one record or firing emits at once comes on top.
                prop_assert!(events.0.len() - before <= room + 2);
                if !more {
                    break;
                }
            }
        }
        let routes = events.0.iter().filter(|seen| matches!(seen, Seen::Route(..))).count();
        prop_assert_eq!(account.emitted(), routes as u64);
        prop_assert_eq!(dynamic.held(), Operator::held(&bare.op));
        prop_assert_eq!(events.0, bare.out.seen);
    }
}

/// Sets many timers by the clock with each record, one of which tells when it fires.
struct Alarms;

impl KeyedProcess for Alarms {
    type Key = u8;
    type In = u8;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u8,
        _count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        (0..2000).for_each(|n| cx.set_processing_timer(at(1_000_000 + n)));
        Lines::main(record)
    }

    fn on_processing_timer(
        &mut self,
        _at: Timestamp,
        count: &mut u32,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        *count += 1;
        None::<Lines>
    }
}

#[test]
fn the_clock_is_shown_again_until_nothing_is_due() {
    for room in [1, 100, 10_000] {
        let mut operator: Box<dyn DynOperator<u8, Lines>> =
            Box::new(Keyed::new(|record: &u8| *record, Alarms));
        let (mut events, mut account) = (Events::default(), Account::new());
        assert!(!operator.on_clock(at(0), &mut events, &mut account, room).unwrap());
        let mut batch = vec![BatchItem::Record(1, at(0))].into_iter();
        _ = operator.on_batch(&mut batch, &mut events, &mut account, room).unwrap();
        assert!(operator.alarm().is_some_and(|alarm| alarm <= at(1_000_000)));
        let mut calls = 1;
        while operator.on_clock(at(2_000_000), &mut events, &mut account, room).unwrap() {
            calls += 1;
        }
        assert_eq!(operator.alarm(), None, "all have fired, in {calls} calls");
        // No call takes long, whatever its room.
        assert!(calls > 2, "{calls}");
    }
}
