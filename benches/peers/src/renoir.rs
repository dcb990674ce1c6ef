//! renoir: all branches carry the type of the input, what differs comes in a step after it.

use crate::common::Table;
use crate::records::{Consumer, Invalid, Late, Out, Plain, out, records};
use renoir::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::{Arc, Mutex};

pub(crate) fn enter<C: Consumer + Copy>(table: &mut Table<Out>) {
    table.run("renoir, route", route::<C>);
    table.run("renoir, split and filters", split::<C>);
}

/// [`Plain`] as renoir asks for it; nothing is serialized within one process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Row {
    id: i64,
    amount: i64,
    time: i64,
}

impl From<Plain> for Row {
    #[inline]
    fn from(Plain { id, amount, time }: Plain) -> Self {
        Self { id, amount, time }
    }
}

impl From<Row> for Plain {
    #[inline]
    fn from(Row { id, amount, time }: Row) -> Self {
        Self { id, amount, time }
    }
}

/// A consumer as renoir asks for it.
#[derive(Clone, Copy, Default)]
struct Local<C>(C);

impl<C> Serialize for Local<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, C: Default> Deserialize<'de> for Local<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::default())
    }
}

/// As in `records`, whose result this one's is compared with.
const START: i64 = 1_000_000;

#[inline]
fn valid<C: Consumer>(consumer: &mut Local<C>, row: Row) {
    consumer.0.valid(Plain::from(row));
}

#[inline]
fn invalid<C: Consumer>(consumer: &mut Local<C>, row: Row) {
    consumer.0.invalid(Invalid { record: Plain::from(row), reason: "negative amount" });
}

#[inline]
fn late<C: Consumer>(consumer: &mut Local<C>, Row { time, .. }: Row) {
    consumer.0.late(Late { time, by: START - time });
}

type Shared<C> = Arc<Mutex<Local<C>>>;

fn keep<C: Copy + Send + 'static>(shared: &Shared<C>) -> impl Fn(Local<C>) + Clone + Send + use<C> {
    let shared = Arc::clone(shared);
    move |consumer| *shared.lock().expect("no consumer panics") = consumer
}

fn results<C: Consumer + Copy>(shared: &[Shared<C>; 3]) -> Out {
    let [valid, invalid, late] =
        shared.each_ref().map(|shared| shared.lock().expect("no consumer panics").0);
    out(&valid, &invalid, &late)
}

const THREE: &str = "there are three branches";

/// Each record goes to the first branch that wants it.
fn route<C: Consumer + Copy>(n: usize) -> Out {
    let shared: [Shared<C>; 3] = Default::default();
    let context = StreamContext::new(RuntimeConfig::local(1).expect("one thread per step"));
    let branches = context
        .stream_iter(records::<Plain>(n).map(Row::from))
        .route()
        .add_route(|row: &Row| row.time >= START && row.amount >= 0)
        .add_route(|row: &Row| row.time >= START)
        .add_route(|_| true)
        .build();
    let mut branches = branches.into_iter();
    let mut next = || branches.next().expect(THREE);
    next().fold(Local::<C>::default(), valid::<C>).for_each(keep(&shared[0]));
    next().fold(Local::<C>::default(), invalid::<C>).for_each(keep(&shared[1]));
    next().fold(Local::<C>::default(), late::<C>).for_each(keep(&shared[2]));
    context.execute_blocking();
    results(&shared)
}

/// Each branch has all records, and a filter.
fn split<C: Consumer + Copy>(n: usize) -> Out {
    let shared: [Shared<C>; 3] = Default::default();
    let context = StreamContext::new(RuntimeConfig::local(1).expect("one thread per step"));
    let branches = context.stream_iter(records::<Plain>(n).map(Row::from)).split(3);
    let mut branches = branches.into_iter();
    let mut next = || branches.next().expect(THREE);
    next()
        .filter(|row: &Row| row.time >= START && row.amount >= 0)
        .fold(Local::<C>::default(), valid::<C>)
        .for_each(keep(&shared[0]));
    next()
        .filter(|row: &Row| row.time >= START && row.amount < 0)
        .fold(Local::<C>::default(), invalid::<C>)
        .for_each(keep(&shared[1]));
    next()
        .filter(|row: &Row| row.time < START)
        .fold(Local::<C>::default(), late::<C>)
        .for_each(keep(&shared[2]));
    context.execute_blocking();
    results(&shared)
}
