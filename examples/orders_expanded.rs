//! What `#[splitter]` generates for a small enum, by hand and simplified: without the wiring.

use futures::executor::block_on;
use futures::{stream, try_join};
use side_output::__private as so;
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};

// #[splitter]
enum Orders {
    // #[main]
    Valid(u32),
    Invalid(String),
}

/// The tags have no size, and each its own type.
impl Orders {
    const INVALID_TAG: so::Tag<Self, 1> = so::Tag::new();
}

/// The streams, one public field for each output. `H` says how a field holds what it reads.
struct OrdersStreams<H: so::Outlet<Orders> = so::Boxed> {
    valid: DataStream<u32, <H as so::Outlet<Orders>>::Source<0>>,
    invalid: DataStream<String, <H as so::Outlet<Orders>>::Source<1>>,
}

impl<H: so::SendOutlet<Orders>> OrdersStreams<H> {
    fn get_side_output<G: so::StreamTagOf<Orders>>(&mut self, _tag: G) -> DataStream<G::Payload> {
        G::take::<H>(self)
    }
}

/// Where records wait for readers, one lane for each output.
#[derive(Default)]
struct OrdersLanes {
    valid: so::Lane<u32>,
    invalid: so::Lane<String>,
}

impl so::Lanes<Orders> for OrdersLanes {
    fn push(&mut self, route: Orders, at: Timestamp) {
        match route {
            Orders::Valid(payload) => self.valid.push(payload, at),
            Orders::Invalid(payload) => self.invalid.push(payload, at),
        }
    }
    fn visit<V: so::LaneVisitor>(&mut self, visitor: &mut V) {
        visitor.lane(0, &mut self.valid);
        visitor.lane(1, &mut self.invalid);
    }
    fn visit_pairs<V: so::LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        visitor.pair(0, &mut self.valid, &mut other.valid);
        visitor.pair(1, &mut self.invalid, &mut other.invalid);
    }
}

impl Splitter for Orders {
    const NAME: &'static str = "Orders";
    const OUTPUTS: &'static [so::OutputSpec] =
        &[<Self as so::OutputAt<0>>::SPEC, <Self as so::OutputAt<1>>::SPEC];
    const SLOTS: usize = 2;

    fn index(&self) -> usize {
        match self {
            Self::Valid(_) => 0,
            Self::Invalid(_) => 1,
        }
    }
}

impl so::Streamed for Orders {
    type Lanes = OrdersLanes;
    type Streams<H: so::Outlet<Self>> = OrdersStreams<H>;

    fn open<D: so::Driver<Self>>(hub: &so::Arc<so::Hub<Self, D>>) -> OrdersStreams<so::Typed<D>> {
        OrdersStreams { valid: hub.stream::<0>(), invalid: hub.stream::<1>() }
    }
}

/// One of these for each output; the macro writes all of them out.
macro_rules! output {
    ($index:literal, $variant:ident($payload:ty), $field:ident, $spec:expr) => {
        impl so::OutputAt<$index> for Orders {
            type Payload = $payload;
            const SPEC: so::OutputSpec = $spec;

            fn wrap(payload: $payload) -> Self {
                Self::$variant(payload)
            }
            fn take(self) -> Result<$payload, Self> {
                if let Self::$variant(payload) = self { Ok(payload) } else { Err(self) }
            }
        }

        impl so::StreamAt<$index> for Orders {
            fn lane(lanes: &mut OrdersLanes) -> &mut so::Lane<$payload> {
                &mut lanes.$field
            }
            fn stream<H: so::Outlet<Self>>(
                streams: &mut OrdersStreams<H>,
            ) -> &mut DataStream<$payload, H::Source<$index>> {
                &mut streams.$field
            }
        }
    };
}
output!(0, Valid(u32), valid, so::OutputSpec::new(0, "valid").main());
output!(1, Invalid(String), invalid, so::OutputSpec::new(1, "invalid"));

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut streams = stream::iter(["17", "x", "4"]).split_with(|text: &str| match text.parse() {
        Ok(amount) => Orders::Valid(amount),
        Err(_) => Orders::Invalid(text.to_owned()),
    });
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    let side = streams.get_side_output(Orders::INVALID_TAG);
    block_on(async { try_join!(streams.valid.forward(&mut valid), side.forward(&mut invalid)) })?;
    writeln!(out, "valid: {valid:?}\ninvalid: {invalid:?}")?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
