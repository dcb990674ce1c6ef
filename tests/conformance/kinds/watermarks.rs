//! `watermarks`: timestamps and watermarks in the middle of a pipeline.

use super::{Bare, Collected, Kind, Traces, feed};
use crate::model;
use serde::Deserialize;
use serde_json::{Map, Value};
use side_output::operator::AssignTimestamps;
use side_output::output::Single;
#[cfg(feature = "job")]
use side_output::state::Snapshot;
use side_output::{
    BoundedOutOfOrderness, DataStream, Element, Timestamp, WatermarkGenerator, Watermarks,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assign {
    timestamp_field: Option<String>,
    strategy: Strategy,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Strategy {
    BoundedOutOfOrderness { bound_ms: u64, emit_every_records: u64 },
    Monotonous { emit_every_records: u64 },
    Punctuated { delay_ms: i64, min_ms: i64 },
    PunctuatedMarker { field: String },
}

pub fn parse(operator: &Map<String, Value>) -> Result<Box<dyn Kind>, String> {
    let assign: Assign = model::operator(operator)?;
    Ok(Box::new(assign))
}

/// A record with the timestamp that it came with.
type Stamped = (Value, Timestamp);

impl Assign {
    fn timestamp(&self) -> impl FnMut(&Stamped) -> Timestamp + Send + 'static {
        let field = self.timestamp_field.clone();
        move |(value, at)| match &field {
            Some(field) => value[field].as_i64().map_or(Timestamp::MIN, Timestamp::from_millis),
            None => *at,
        }
    }

    fn watermarks(&self) -> Watermarks<Generator> {
        let every = |bound: Duration, records| {
            let every =
                EveryRecords { bounded: BoundedOutOfOrderness::new(bound), records, seen: 0 };
            Watermarks::from_generator(Generator::Every(every))
        };
        match self.strategy.clone() {
            Strategy::BoundedOutOfOrderness { bound_ms, emit_every_records } => {
                every(Duration::from_millis(bound_ms), emit_every_records)
            }
            Strategy::Monotonous { emit_every_records } => {
                every(Duration::ZERO, emit_every_records)
            }
            Strategy::Punctuated { delay_ms, min_ms } => {
                Watermarks::from_generator(Generator::Delayed { delay_ms, min_ms })
            }
            Strategy::PunctuatedMarker { field } => {
                Watermarks::from_generator(Generator::Marker { field })
            }
        }
    }
}

/// The generators of the scenarios.
enum Generator {
    Every(EveryRecords),
    Delayed { delay_ms: i64, min_ms: i64 },
    Marker { field: String },
}

impl WatermarkGenerator<Stamped> for Generator {
    fn on_record(&mut self, record: &Stamped, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(every) => every.on_record(record, at),
            Self::Delayed { delay_ms, min_ms } => {
                Some(at.saturating_sub_millis(*delay_ms).max(Timestamp::from_millis(*min_ms)))
            }
            Self::Marker { field } => {
                record.0.get(&*field).and_then(Value::as_i64).map(Timestamp::from_millis)
            }
        }
    }

    fn seen(&self) -> Vec<i64> {
        match self {
            Self::Every(every) => {
                let bounded = WatermarkGenerator::<Stamped>::seen(&every.bounded);
                bounded.into_iter().chain([every.seen.cast_signed()]).collect()
            }
            Self::Delayed { .. } | Self::Marker { .. } => Vec::new(),
        }
    }

    fn resume(&mut self, numbers: &[i64]) -> bool {
        match (self, numbers) {
            (Self::Every(EveryRecords { bounded, seen, .. }), [bounded_seen @ .., count]) => {
                *seen = count.cast_unsigned();
                WatermarkGenerator::<Stamped>::resume(bounded, bounded_seen)
            }
            (Self::Every(_), []) => false,
            (_, numbers) => numbers.is_empty(),
        }
    }
}

/// Asks the bounded generator after every so many records.
struct EveryRecords {
    bounded: BoundedOutOfOrderness,
    records: u64,
    seen: u64,
}

impl EveryRecords {
    fn on_record(&mut self, record: &Stamped, at: Timestamp) -> Option<Timestamp> {
        let proposed = self.bounded.on_record(record, at);
        self.seen += 1;
        if self.seen.is_multiple_of(self.records) {
            WatermarkGenerator::<Stamped>::on_period(&mut self.bounded)
        } else {
            proposed
        }
    }
}

impl Kind for Assign {
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareAssign {
            operator: AssignTimestamps::new(self.timestamp(), self.watermarks()),
        })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let stream = with_timestamps(inputs.remove(0))
            .assign_timestamps(self.timestamp(), self.watermarks())
            .split_with(|(value, _): Stamped| Single(value));
        BTreeMap::from([("main".to_owned(), stream.boxed())])
    }
}

/// Makes the timestamp part of the record, so that a function of the record can keep it.
fn with_timestamps(stream: DataStream<Value>) -> DataStream<Stamped> {
    let pair = |value: Value, cx: &mut side_output::Context<Single<Stamped>>| {
        Single((value, cx.timestamp().unwrap_or(Timestamp::MIN)))
    };
    stream.split_with(pair).boxed()
}

struct BareAssign<F> {
    operator: AssignTimestamps<Stamped, F, Generator>,
}

impl<F: FnMut(&Stamped) -> Timestamp> Bare for BareAssign<F> {
    fn feed(
        &mut self,
        _input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let name = |Single((value, _)): Single<Stamped>| ("main".to_owned(), value);
        let mut out = Collected { traces, name };
        let element = match element {
            Element::Record { value, at } => {
                Element::Record { value: (value, at.unwrap_or(Timestamp::MIN)), at }
            }
            Element::Mark(mark) => Element::Mark(mark),
        };
        feed(&mut self.operator, element, &mut out)
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        vec![&mut self.operator]
    }
}
