//! A splitter by hand: a main output and six side outputs, all of JSON values.
//!
//! Nothing here comes from a macro: this is what `#[splitter]` stands for.

use serde_json::Value;
use side_output::output::{OutputAt, OutputSpec, Splitter};
use side_output::stream::{
    Boxed, Driver, Hub, Lane, LanePairVisitor, LaneVisitor, Lanes, Outlet, StreamAt, Streamed,
    Typed,
};
use side_output::{DataStream, Timestamp};
use std::sync::Arc;

/// Most side outputs of a scenario's operator.
pub const SIDES: usize = 6;

/// A record on its way: output 0 is main.
#[derive(Debug)]
pub struct Fan {
    pub output: usize,
    pub record: Value,
}

#[derive(Default)]
pub struct FanLanes([Lane<Value>; SIDES + 1]);

impl Lanes<Fan> for FanLanes {
    fn push(&mut self, route: Fan, at: Timestamp) {
        self.0[route.output].push(route.record, at);
    }

    fn visit<V: LaneVisitor>(&mut self, visitor: &mut V) {
        for (index, lane) in self.0.iter_mut().enumerate() {
            visitor.lane(index, lane);
        }
    }

    fn visit_pairs<V: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        for (index, (lane, other)) in self.0.iter_mut().zip(&mut other.0).enumerate() {
            visitor.pair(index, lane, other);
        }
    }
}

pub struct FanStreams<H: Outlet<Fan> = Boxed> {
    main: DataStream<Value, H::Source<0>>,
    side1: DataStream<Value, H::Source<1>>,
    side2: DataStream<Value, H::Source<2>>,
    side3: DataStream<Value, H::Source<3>>,
    side4: DataStream<Value, H::Source<4>>,
    side5: DataStream<Value, H::Source<5>>,
    side6: DataStream<Value, H::Source<6>>,
}

impl<D: Driver<Fan> + Send + 'static> FanStreams<Typed<D>> {
    /// The streams by number.
    pub fn into_vec(self) -> Vec<DataStream<Value>> {
        vec![
            self.main.boxed(),
            self.side1.boxed(),
            self.side2.boxed(),
            self.side3.boxed(),
            self.side4.boxed(),
            self.side5.boxed(),
            self.side6.boxed(),
        ]
    }
}

const SPECS: [OutputSpec; SIDES + 1] = [
    OutputSpec::new(0, "main").main(),
    OutputSpec::new(1, "side1"),
    OutputSpec::new(2, "side2"),
    OutputSpec::new(3, "side3"),
    OutputSpec::new(4, "side4"),
    OutputSpec::new(5, "side5"),
    OutputSpec::new(6, "side6"),
];

impl Splitter for Fan {
    const NAME: &'static str = "Fan";
    const OUTPUTS: &'static [OutputSpec] = &SPECS;
    const SLOTS: usize = SIDES + 1;

    fn index(&self) -> usize {
        self.output
    }
}

impl Streamed for Fan {
    type Lanes = FanLanes;
    type Streams<H: Outlet<Self>> = FanStreams<H>;

    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> FanStreams<Typed<D>> {
        FanStreams {
            main: hub.stream(),
            side1: hub.stream(),
            side2: hub.stream(),
            side3: hub.stream(),
            side4: hub.stream(),
            side5: hub.stream(),
            side6: hub.stream(),
        }
    }
}

macro_rules! output {
    ($($index:literal $field:ident),*) => {$(
        impl OutputAt<$index> for Fan {
            type Payload = Value;
            const SPEC: OutputSpec = SPECS[$index];

            fn wrap(record: Value) -> Self {
                Self { output: $index, record }
            }

            fn take(self) -> Result<Value, Self> {
                if self.output == $index { Ok(self.record) } else { Err(self) }
            }
        }

        impl StreamAt<$index> for Fan {
            fn lane(lanes: &mut FanLanes) -> &mut Lane<Value> {
                &mut lanes.0[$index]
            }

            fn stream<H: Outlet<Self>>(
                streams: &mut FanStreams<H>,
            ) -> &mut DataStream<Value, H::Source<$index>> {
                &mut streams.$field
            }
        }
    )*};
}

output!(0 main, 1 side1, 2 side2, 3 side3, 4 side4, 5 side5, 6 side6);
