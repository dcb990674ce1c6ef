//! A splitter for the unit tests of the runtime.

use crate::output::{OutputAt, OutputSpec, Overflow, Splitter};
use crate::stream::{
    Boxed, DataStream, Driver, Hub, Lane, LanePairVisitor, LaneVisitor, Lanes, Outlet, StreamAt,
    Streamed, Typed,
};
use crate::time::Timestamp;
use std::sync::Arc;

/// Two outputs; `CAPACITY` is the size of both buffers.
#[derive(Debug, PartialEq)]
pub(crate) enum Parity<const CAPACITY: usize = 1024> {
    Even(u32),
    Odd(u32),
}

impl<const C: usize> Parity<C> {
    pub(crate) fn of(number: u32) -> Self {
        if number.is_multiple_of(2) { Self::Even(number) } else { Self::Odd(number) }
    }
}

impl<const C: usize> Splitter for Parity<C> {
    const NAME: &'static str = "Parity";
    const OUTPUTS: &'static [OutputSpec] =
        &[<Self as OutputAt<0>>::SPEC, <Self as OutputAt<1>>::SPEC];
    const SLOTS: usize = 2;

    fn index(&self) -> usize {
        usize::from(matches!(self, Self::Odd(_)))
    }
}

impl<const C: usize> Streamed for Parity<C> {
    type Lanes = ParityLanes;
    type Streams<H: Outlet<Self>> = ParityStreams<C, H>;

    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> ParityStreams<C, Typed<D>> {
        ParityStreams { even: hub.stream::<0>(), odd: hub.stream::<1>() }
    }
}

impl<const C: usize> OutputAt<0> for Parity<C> {
    type Payload = u32;
    const SPEC: OutputSpec = OutputSpec::new(0, "even").capacity(C).overflow(Overflow::Block);

    fn wrap(payload: u32) -> Self {
        Self::Even(payload)
    }
    fn take(self) -> Result<u32, Self> {
        match self {
            Self::Even(payload) => Ok(payload),
            other @ Self::Odd(_) => Err(other),
        }
    }
}

impl<const C: usize> StreamAt<0> for Parity<C> {
    fn lane(lanes: &mut ParityLanes) -> &mut Lane<u32> {
        &mut lanes.even
    }
    fn stream<H: Outlet<Self>>(
        streams: &mut ParityStreams<C, H>,
    ) -> &mut DataStream<u32, H::Source<0>> {
        &mut streams.even
    }
}

impl<const C: usize> OutputAt<1> for Parity<C> {
    type Payload = u32;
    const SPEC: OutputSpec = OutputSpec::new(1, "odd").capacity(C);

    fn wrap(payload: u32) -> Self {
        Self::Odd(payload)
    }
    fn take(self) -> Result<u32, Self> {
        match self {
            Self::Odd(payload) => Ok(payload),
            other @ Self::Even(_) => Err(other),
        }
    }
}

impl<const C: usize> StreamAt<1> for Parity<C> {
    fn lane(lanes: &mut ParityLanes) -> &mut Lane<u32> {
        &mut lanes.odd
    }
    fn stream<H: Outlet<Self>>(
        streams: &mut ParityStreams<C, H>,
    ) -> &mut DataStream<u32, H::Source<1>> {
        &mut streams.odd
    }
}

#[derive(Debug, Default)]
pub(crate) struct ParityLanes {
    even: Lane<u32>,
    odd: Lane<u32>,
}

impl<const C: usize> Lanes<Parity<C>> for ParityLanes {
    fn push(&mut self, route: Parity<C>, at: Timestamp) {
        match route {
            Parity::Even(payload) => self.even.push(payload, at),
            Parity::Odd(payload) => self.odd.push(payload, at),
        }
    }
    fn visit<V: LaneVisitor>(&mut self, visitor: &mut V) {
        visitor.lane(0, &mut self.even);
        visitor.lane(1, &mut self.odd);
    }
    fn visit_pairs<V: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        visitor.pair(0, &mut self.even, &mut other.even);
        visitor.pair(1, &mut self.odd, &mut other.odd);
    }
}

#[derive(Debug)]
pub(crate) struct ParityStreams<const C: usize, H: Outlet<Parity<C>> = Boxed> {
    pub(crate) even: DataStream<u32, H::Source<0>>,
    pub(crate) odd: DataStream<u32, H::Source<1>>,
}
