//! A splitter written by hand: what `#[splitter]` generates is a client of public traits.

use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use side_output::__private as so;
use side_output::prelude::*;

#[derive(Debug, PartialEq)]
enum Numbers {
    Even(u32),
    Odd(String),
}

impl Splitter for Numbers {
    const NAME: &'static str = "Numbers";
    const OUTPUTS: &'static [so::OutputSpec] =
        &[<Self as so::OutputAt<0>>::SPEC, <Self as so::OutputAt<1>>::SPEC];
    const SLOTS: usize = 2;

    fn index(&self) -> usize {
        match self {
            Self::Even(..) => 0,
            Self::Odd(..) => 1,
        }
    }
}

impl so::Streamed for Numbers {
    type Lanes = NumbersLanes;
    type Streams<H: so::Outlet<Self>> = NumbersStreams<H>;

    fn open<D: so::Driver<Self>>(hub: &so::Arc<so::Hub<Self, D>>) -> NumbersStreams<so::Typed<D>> {
        NumbersStreams { even: hub.stream::<0>(), odd: hub.stream::<1>() }
    }
}

impl so::OutputAt<0> for Numbers {
    type Payload = u32;
    const SPEC: so::OutputSpec = so::OutputSpec::new(0, "even").main();

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

impl so::StreamAt<0> for Numbers {
    fn lane(lanes: &mut NumbersLanes) -> &mut so::Lane<u32> {
        &mut lanes.even
    }
    fn stream<H: so::Outlet<Self>>(
        streams: &mut NumbersStreams<H>,
    ) -> &mut DataStream<u32, H::Source<0>> {
        &mut streams.even
    }
}

impl so::OutputAt<1> for Numbers {
    type Payload = String;
    const SPEC: so::OutputSpec = so::OutputSpec::new(1, "odd").capacity(2);

    fn wrap(payload: String) -> Self {
        Self::Odd(payload)
    }
    fn take(self) -> Result<String, Self> {
        match self {
            Self::Odd(payload) => Ok(payload),
            other @ Self::Even(_) => Err(other),
        }
    }
}

impl so::StreamAt<1> for Numbers {
    fn lane(lanes: &mut NumbersLanes) -> &mut so::Lane<String> {
        &mut lanes.odd
    }
    fn stream<H: so::Outlet<Self>>(
        streams: &mut NumbersStreams<H>,
    ) -> &mut DataStream<String, H::Source<1>> {
        &mut streams.odd
    }
}

impl Numbers {
    const ODD_TAG: so::Tag<Self, 1> = so::Tag::new();
}

#[derive(Default)]
struct NumbersLanes {
    even: so::Lane<u32>,
    odd: so::Lane<String>,
}

impl so::Lanes<Numbers> for NumbersLanes {
    fn push(&mut self, route: Numbers, at: Timestamp) {
        match route {
            Numbers::Even(payload) => self.even.push(payload, at),
            Numbers::Odd(payload) => self.odd.push(payload, at),
        }
    }
    fn visit<V: so::LaneVisitor>(&mut self, visitor: &mut V) {
        visitor.lane(0, &mut self.even);
        visitor.lane(1, &mut self.odd);
    }
    fn visit_pairs<V: so::LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        visitor.pair(0, &mut self.even, &mut other.even);
        visitor.pair(1, &mut self.odd, &mut other.odd);
    }
}

/// The streams; the fields are generic over how they hold what they read.
struct NumbersStreams<H: so::Outlet<Numbers> = so::Boxed> {
    even: DataStream<u32, <H as so::Outlet<Numbers>>::Source<0>>,
    odd: DataStream<String, <H as so::Outlet<Numbers>>::Source<1>>,
}

impl<H: so::Outlet<Numbers>> NumbersStreams<H> {
    fn get_side_output<G: so::StreamTagOf<Numbers>>(&mut self, _tag: G) -> DataStream<G::Payload>
    where
        H: so::SendOutlet<Numbers>,
    {
        G::take::<H>(self)
    }

    fn boxed(self) -> NumbersStreams
    where
        H: so::SendOutlet<Numbers>,
    {
        NumbersStreams { even: H::boxed(self.even), odd: H::boxed(self.odd) }
    }

    fn ledger_handle(&self) -> so::LedgerHandle {
        [self.even.ledger_handle(), self.odd.ledger_handle()]
            .into_iter()
            .flatten()
            .next()
            .unwrap_or_else(so::LedgerHandle::empty)
    }
}

impl<D: so::Driver<Numbers>> NumbersStreams<so::Typed<D>> {
    fn wire(self) -> NumbersWiring<D, so::Unwired, so::Unwired> {
        let mut wiring = so::Wiring::new();
        wiring.attach(self.even);
        wiring.attach(self.odd);
        NumbersWiring { wiring, even: so::Unwired::new(), odd: so::Unwired::new() }
    }
}

struct NumbersWiring<D, A, B> {
    wiring: so::Wiring<Numbers, D>,
    even: A,
    odd: B,
}

impl<D, B> NumbersWiring<D, so::Unwired, B> {
    fn even<M, K: so::IntoDestination<u32, M>>(
        self,
        destination: K,
    ) -> NumbersWiring<D, so::Line<u32, K::Destination>, B> {
        let even = so::Line::new(self.wiring.spec::<0>(), destination);
        NumbersWiring { wiring: self.wiring, even, odd: self.odd }
    }
}

impl<D, A> NumbersWiring<D, A, so::Unwired> {
    fn odd<M, K: so::IntoDestination<String, M>>(
        self,
        destination: K,
    ) -> NumbersWiring<D, A, so::Line<String, K::Destination>> {
        let odd = so::Line::new(self.wiring.spec::<1>(), destination);
        NumbersWiring { wiring: self.wiring, even: self.even, odd }
    }
}

impl<D: so::Driver<Numbers>, A, B> NumbersWiring<D, A, B> {
    fn run(self) -> so::Run<Numbers, D, NumbersDestinations<A::Destination, B::Destination>>
    where
        A: EvenIsWired,
        B: OddIsWired,
    {
        self.wiring.run(NumbersDestinations { even: self.even.line(), odd: self.odd.line() })
    }
}

#[diagnostic::on_unimplemented(
    message = "output `even` of the splitter `Numbers` has no destination",
    label = "`even` must be wired before `run`",
    note = "wire it with `.even(…)`, or drop it on purpose with `.even(discard())`"
)]
trait EvenIsWired {
    type Destination: so::Destination<u32>;
    fn line(self) -> so::Line<u32, Self::Destination>;
}

impl<K: so::Destination<u32>> EvenIsWired for so::Line<u32, K> {
    type Destination = K;
    fn line(self) -> Self {
        self
    }
}

trait OddIsWired {
    type Destination: so::Destination<String>;
    fn line(self) -> so::Line<String, Self::Destination>;
}

impl<K: so::Destination<String>> OddIsWired for so::Line<String, K> {
    type Destination = K;
    fn line(self) -> Self {
        self
    }
}

struct NumbersDestinations<A, B> {
    even: so::Line<u32, A>,
    odd: so::Line<String, B>,
}

impl<A: so::Destination<u32>, B: so::Destination<String>> so::Destinations<Numbers>
    for NumbersDestinations<A, B>
{
    fn push(&mut self, route: Numbers, at: Timestamp) -> bool {
        match route {
            Numbers::Even(payload) => self.even.push(payload, at),
            Numbers::Odd(payload) => self.odd.push(payload, at),
        }
    }
    fn take_lanes(&mut self, lanes: &mut NumbersLanes) {
        self.even.take_lane(&mut lanes.even);
        self.odd.take_lane(&mut lanes.odd);
    }
    fn visit<V: so::DestinationVisitor>(&mut self, visitor: &mut V) {
        visitor.line(&mut self.even);
        visitor.line(&mut self.odd);
    }
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n.to_string()) }
}

#[test]
fn a_splitter_by_hand_splits() {
    let streams = stream::iter(0..6).split_with(by_parity);
    let handle = streams.ledger_handle();
    let NumbersStreams { even, odd } = streams;
    let (even, odd) =
        block_on(futures::future::join(even.collect::<Vec<_>>(), odd.collect::<Vec<_>>()));
    assert_eq!(even, [0, 2, 4]);
    assert_eq!(odd, ["1", "3", "5"]);
    assert!(handle.read().is_balanced());
}

#[test]
fn its_streams_can_be_boxed_and_taken_by_tag() {
    let mut streams = stream::iter(0..6).split_with(by_parity).boxed();
    let odd: DataStream<String> = streams.get_side_output(Numbers::ODD_TAG);
    streams.even.discard();
    assert_eq!(block_on(odd.collect::<Vec<_>>()), ["1", "3", "5"]);
    let error = block_on(streams.odd.for_each(drop)).unwrap_err();
    assert_eq!(error.to_string(), "the stream of output `odd` was already taken");
}

#[test]
fn its_outputs_can_be_wired() {
    let mut odd = Vec::new();
    let mut sum = 0;
    let ledger = block_on(
        stream::iter(0..6)
            .split_with(by_parity)
            .wire()
            .odd(&mut odd)
            .even(each(|n| sum += n))
            .run(),
    )
    .unwrap();
    assert_eq!(odd, ["1", "3", "5"]);
    assert_eq!(sum, 6);
    assert!(ledger.is_balanced(), "{ledger:?}");

    let ledger = block_on(
        stream::iter(0..6)
            .split_with(by_parity)
            .wire()
            .even(|stream: DataStream<u32>| stream.for_each(drop))
            .odd(discard())
            .run(),
    )
    .unwrap();
    assert_eq!(ledger["even"].delivered, 3);
    assert_eq!(ledger["odd"].discarded, 3);
    assert!(ledger.is_balanced(), "{ledger:?}");
}

#[test]
fn its_routes_are_values() {
    use so::OutputAt;
    assert_eq!(by_parity(3), Numbers::Odd("3".to_owned()));
    assert_eq!(by_parity(3).index(), 1);
    assert_eq!(<Numbers as OutputAt<0>>::wrap(2), Numbers::Even(2));
}
