//! Workload A: records, how they are split, and who consumes them.

use crate::common::splitmix;
use side_output::prelude::*;
use std::hint::black_box;
use std::sync::OnceLock;

/// Three integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) id: i64,
    pub(crate) amount: i64,
    pub(crate) time: i64,
}

/// The same with a string of 40 bytes on the heap.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) plain: Plain,
    pub(crate) payload: String,
}

/// A record of the workload.
pub(crate) trait Record: Clone + Send + Sync + Unpin + 'static {
    fn plain(&self) -> &Plain;

    fn weight(&self) -> i64;

    fn table() -> &'static [Self];
}

impl Record for Plain {
    #[inline]
    fn plain(&self) -> &Self {
        self
    }

    #[inline]
    fn weight(&self) -> i64 {
        self.amount
    }

    fn table() -> &'static [Self] {
        static TABLE: OnceLock<Vec<Plain>> = OnceLock::new();
        TABLE.get_or_init(|| {
            let mut state = 42;
            (0..TABLE_LEN as i64)
                .map(|id| {
                    let percent = splitmix(&mut state) % 100;
                    let amount = (splitmix(&mut state) % 10_000) as i64;
                    let time = START + (splitmix(&mut state) % 100_000) as i64;
                    match percent {
                        0..90 => Self { id, amount, time },
                        90..97 => Self { id, amount: -amount - 1, time },
                        _ => Self { id, amount, time: START - 1 - (amount & 1023) },
                    }
                })
                .collect()
        })
    }
}

impl Record for Owned {
    #[inline]
    fn plain(&self) -> &Plain {
        &self.plain
    }

    #[inline]
    fn weight(&self) -> i64 {
        self.plain.amount + self.payload.len() as i64
    }

    fn table() -> &'static [Self] {
        static TABLE: OnceLock<Vec<Owned>> = OnceLock::new();
        TABLE.get_or_init(|| {
            let payload = |plain: &Plain| format!("payload-{:032}", plain.id);
            Plain::table().iter().map(|p| Self { plain: *p, payload: payload(p) }).collect()
        })
    }
}

/// Before it, a record is late.
const START: i64 = 1_000_000;

const TABLE_LEN: usize = 1 << 16;

#[splitter]
pub(crate) enum Orders<R> {
    #[main]
    Valid(R),
    Invalid(Invalid<R>),
    Late(Late),
}

pub(crate) struct Invalid<R> {
    pub(crate) record: R,
    pub(crate) reason: &'static str,
}

pub(crate) struct Late {
    pub(crate) time: i64,
    pub(crate) by: i64,
}

/// 90 % valid, 7 % invalid, 3 % late.
#[inline]
pub(crate) fn classify<R: Record>(record: R) -> Orders<R> {
    let Plain { amount, time, .. } = *record.plain();
    if time < START {
        Orders::Late(Late { time, by: START - time })
    } else if amount < 0 {
        Orders::Invalid(Invalid { record, reason: "negative amount" })
    } else {
        Orders::Valid(record)
    }
}

/// A table of records, over and over.
#[derive(Clone)]
pub(crate) struct Records<R: 'static> {
    table: &'static [R],
    next: usize,
    len: usize,
}

pub(crate) fn records<R: Record>(len: usize) -> Records<R> {
    let table = R::table();
    assert_eq!(table.len(), TABLE_LEN, "the mask below relies on it");
    Records { table, next: 0, len }
}

impl<R: Record> Iterator for Records<R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        if self.next == self.len {
            return None;
        }
        let record = self.table[self.next & (TABLE_LEN - 1)].clone();
        self.next += 1;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len - self.next, Some(self.len - self.next))
    }
}

/// What is done with each record.
pub(crate) trait Consumer: Default + Send + Unpin + 'static {
    fn eat(&mut self, weight: i64);

    /// Records and sum.
    fn result(&self) -> (u64, i64);

    #[inline]
    fn valid<R: Record>(&mut self, record: R) {
        self.eat(record.weight());
    }

    #[inline]
    fn invalid<R: Record>(&mut self, invalid: Invalid<R>) {
        self.eat(invalid.record.weight() + invalid.reason.len() as i64);
    }

    #[inline]
    fn late(&mut self, late: Late) {
        self.eat(late.time ^ late.by);
    }
}

/// Counts and sums.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counting {
    count: u64,
    sum: i64,
}

impl Consumer for Counting {
    #[inline]
    fn eat(&mut self, weight: i64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(black_box(weight));
    }

    fn result(&self) -> (u64, i64) {
        (self.count, self.sum)
    }
}

/// Carries nothing from one record to the next, so that what remains is the transport.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opaque;

impl Consumer for Opaque {
    #[inline]
    fn eat(&mut self, weight: i64) {
        black_box(weight);
    }

    fn result(&self) -> (u64, i64) {
        (0, 0)
    }
}

/// What each output's consumer came to.
pub(crate) type Out = [(u64, i64); 3];

pub(crate) fn out<C: Consumer>(valid: &C, invalid: &C, late: &C) -> Out {
    [valid.result(), invalid.result(), late.result()]
}
