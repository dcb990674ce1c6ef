//! A splitter by hand with two outputs of text and a tap, and a bare driver for operators.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use side_output::__private as so;
use side_output::operator::{Operator, Turn};
use side_output::output::{Account, TapAt};
use side_output::prelude::*;
use side_output::{Collect, Mark};

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lines {
    Main(String),
    Side(String),
    Note(String),
}

impl Lines {
    pub const NOTE_TAG: so::Tag<Self, 2> = so::Tag::new();

    pub fn main(text: impl ToString) -> Self {
        Self::Main(text.to_string())
    }

    pub fn side(text: impl ToString) -> Self {
        Self::Side(text.to_string())
    }
}

#[derive(Default)]
pub struct LinesLanes([so::Lane<String>; 3]);

pub struct LinesStreams<H: so::Outlet<Lines> = so::Boxed> {
    pub main: DataStream<String, H::Source<0>>,
    pub side: DataStream<String, H::Source<1>>,
    pub note: DataStream<String, H::Source<2>>,
}

impl<H: so::Outlet<Lines>> LinesStreams<H> {
    pub fn ledger_handle(&self) -> so::LedgerHandle {
        self.main.ledger_handle().expect("an operator")
    }
}

impl so::Lanes<Lines> for LinesLanes {
    fn push(&mut self, route: Lines, at: Timestamp) {
        let index = route.index();
        let (Lines::Main(text) | Lines::Side(text) | Lines::Note(text)) = route;
        self.0[index].push(text, at);
    }
    fn visit<V: so::LaneVisitor>(&mut self, visitor: &mut V) {
        for (index, lane) in self.0.iter_mut().enumerate() {
            visitor.lane(index, lane);
        }
    }
    fn visit_pairs<V: so::LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        for (index, (lane, other)) in self.0.iter_mut().zip(&mut other.0).enumerate() {
            visitor.pair(index, lane, other);
        }
    }
}

impl Splitter for Lines {
    const NAME: &'static str = "Lines";
    const OUTPUTS: &'static [so::OutputSpec] = &[
        <Self as so::OutputAt<0>>::SPEC,
        <Self as so::OutputAt<1>>::SPEC,
        <Self as so::OutputAt<2>>::SPEC,
    ];
    const SLOTS: usize = 3;

    fn index(&self) -> usize {
        match self {
            Self::Main(_) => 0,
            Self::Side(_) => 1,
            Self::Note(_) => 2,
        }
    }
}

impl so::Streamed for Lines {
    type Lanes = LinesLanes;
    type Streams<H: so::Outlet<Self>> = LinesStreams<H>;

    fn open<D: so::Driver<Self>>(hub: &so::Arc<so::Hub<Self, D>>) -> LinesStreams<so::Typed<D>> {
        LinesStreams { main: hub.stream(), side: hub.stream(), note: hub.stream() }
    }
}

macro_rules! output {
    ($index:literal $variant:ident $field:ident $spec:expr) => {
        impl so::OutputAt<$index> for Lines {
            type Payload = String;
            const SPEC: so::OutputSpec = $spec;
            fn wrap(payload: String) -> Self {
                Self::$variant(payload)
            }
            fn take(self) -> Result<String, Self> {
                match self {
                    Self::$variant(payload) => Ok(payload),
                    other => Err(other),
                }
            }
        }

        impl so::StreamAt<$index> for Lines {
            fn lane(lanes: &mut LinesLanes) -> &mut so::Lane<String> {
                &mut lanes.0[$index]
            }
            fn stream<H: so::Outlet<Self>>(
                streams: &mut LinesStreams<H>,
            ) -> &mut DataStream<String, H::Source<$index>> {
                &mut streams.$field
            }
        }
    };
}
output!(0 Main main so::OutputSpec::new(0, "main").main());
output!(1 Side side so::OutputSpec::new(1, "side").capacity(8));
output!(2 Note note so::OutputSpec::new(2, "note").tap());
impl TapAt<2> for Lines {}

pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// What an operator emitted, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<S> {
    Route(S, i64),
    Watermark(i64),
    Other(Mark),
}

/// An operator and everything it has emitted; checks the ledger at each step.
pub struct Bare<Op: Operator> {
    pub op: Op,
    pub out: Trace<Op::Out>,
    /// What each call may spend.
    pub room: usize,
    account: Account,
}

pub struct Trace<S> {
    pub seen: Vec<Seen<S>>,
    routed: u64,
}

impl<S: Splitter> Collect<S> for Trace<S> {
    fn emit(&mut self, route: S, at: Timestamp) {
        self.routed += 1;
        self.seen.push(Seen::Route(route, at.as_millis()));
    }
    fn mark(&mut self, mark: Mark) {
        self.seen.push(match mark {
            Mark::Watermark(at) => Seen::Watermark(at.as_millis()),
            other => Seen::Other(other),
        });
    }
}

impl<Op: Operator> Bare<Op> {
    pub fn new(op: Op) -> Self {
        let out = Trace { seen: Vec::new(), routed: 0 };
        Self { op, out, room: 1, account: Account::new() }
    }

    #[track_caller]
    pub fn record(&mut self, value: Op::In, millis: i64) -> &mut Self {
        Turn::new(&mut self.out, &mut self.account, self.room)
            .record(&mut self.op, value, at(millis))
            .expect("no error");
        self.check();
        self
    }

    #[track_caller]
    pub fn watermark(&mut self, millis: i64) -> &mut Self {
        self.mark(Mark::Watermark(at(millis)))
    }

    #[track_caller]
    pub fn mark(&mut self, mark: Mark) -> &mut Self {
        self.mark_with(mark, |_| {})
    }

    /// Shows what was emitted after each call that it takes.
    #[track_caller]
    pub fn mark_with(&mut self, mark: Mark, mut show: impl FnMut(&[Seen<Op::Out>])) -> &mut Self {
        while !Turn::new(&mut self.out, &mut self.account, self.room)
            .mark(&mut self.op, mark)
            .expect("no error")
        {
            self.check();
            show(&self.out.seen);
        }
        self.check();
        self
    }

    #[track_caller]
    pub fn input_end(&mut self, input: usize) -> &mut Self {
        Turn::new(&mut self.out, &mut self.account, self.room)
            .input_end(&mut self.op, input)
            .expect("no error");
        self.check();
        self
    }

    #[track_caller]
    pub fn end(&mut self) -> &mut Self {
        self.watermark(i64::MAX)
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(self.account.emitted(), self.out.routed, "the account");
    }

    /// The routes since the last call, with their timestamps.
    pub fn routes(&mut self) -> Vec<(Op::Out, i64)> {
        let routes = self.out.seen.drain(..).filter_map(|seen| match seen {
            Seen::Route(route, at) => Some((route, at)),
            _ => None,
        });
        routes.collect()
    }
}

impl<Op: Operator<Out = Lines>> Bare<Op> {
    /// The texts of the routes since the last call.
    pub fn texts(&mut self) -> Vec<String> {
        let text = |(route, _)| match route {
            Lines::Main(text) => text,
            Lines::Side(text) => format!("side {text}"),
            Lines::Note(text) => format!("note {text}"),
        };
        self.routes().into_iter().map(text).collect()
    }
}
