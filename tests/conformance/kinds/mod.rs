//! The kinds of operators, by name. A new kind is one module and one line in [`kind`].

mod broadcast_process;
mod chain;
mod co_process;
mod keyed_process;
mod ops;
mod process;
mod union;
mod watermarks;
mod window;

use crate::fan::Fan;
use crate::model::Item;
use serde_json::{Map, Value};
use side_output::operator::{Either, Operator, Turn};
use side_output::output::{Account, Collect};
#[cfg(feature = "job")]
use side_output::state::{Snapshot, StateChanges};
use side_output::{Alignment, DataStream, Element, Mark, Timestamp};
use std::collections::BTreeMap;

/// What a scenario describes, ready to be built as often as it takes.
pub trait Kind {
    /// Bare operators.
    fn bare(&self) -> Box<dyn Bare>;

    /// Streams by output name, on the futures runtime.
    fn streams(&self, inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>>;

    /// The group of a record's key, if it can be had in several partitions; of anything if it is no
    /// record.
    #[cfg(feature = "job")]
    fn group(&self, input: usize, record: &Value) -> Option<u8> {
        _ = (input, record);
        None
    }

    /// The key that stands in what comes out, or nothing.
    #[cfg(feature = "job")]
    fn key_of_output(&self, record: &Value) -> String {
        _ = record;
        String::new()
    }

    /// Whether the graph has to settle after each element of the script.
    fn one_at_a_time(&self) -> bool {
        false
    }
}

/// An operator, or a graph of them, without a runtime.
pub trait Bare {
    /// Takes an element of input number `input`, and puts what it causes on the outputs.
    fn feed(
        &mut self,
        input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String>;

    /// All that has state, in a fixed order.
    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot>;
}

/// An operator whose state can be saved, where that is asked for.
#[cfg(feature = "job")]
pub trait Saved: Snapshot {}
#[cfg(feature = "job")]
impl<Op: Snapshot> Saved for Op {}
#[cfg(not(feature = "job"))]
pub trait Saved {}
#[cfg(not(feature = "job"))]
impl<Op> Saved for Op {}

/// The group of a key.
#[cfg(feature = "job")]
pub fn group_of(key: &impl serde::Serialize) -> u8 {
    let mut changes = StateChanges::new(true);
    changes.entry("keys", key, &(), &()).expect("a key that can be saved");
    changes.entries().next().expect("the entry").group
}

/// The first of these fields that a record has.
#[cfg(feature = "job")]
pub fn key_in(record: &Value, fields: &[&str]) -> String {
    fields.iter().find_map(|field| record.get(field)).map_or_else(String::new, Value::to_string)
}

/// Reads what a scenario runs; `outputs` are the names that it compares.
pub fn graph(operator: &Map<String, Value>, outputs: &[String]) -> Result<Box<dyn Kind>, String> {
    let name = operator.get("kind").and_then(Value::as_str).ok_or("no kind")?;
    if name == "chain" {
        return chain::parse(operator);
    }
    let mut names = vec!["main".to_owned()];
    for side in operator.get("side_outputs").and_then(Value::as_array).into_iter().flatten() {
        names.push(side.as_str().ok_or("a side output's name")?.to_owned());
    }
    if let Some(unknown) = outputs.iter().find(|output| !names.contains(output)) {
        return Err(format!("output `{unknown}` is not declared"));
    }
    kind(name, operator, names)
}

/// Reads an operator that is no graph; `outputs` are its outputs, main first.
pub fn kind(
    name: &str,
    operator: &Map<String, Value>,
    outputs: Vec<String>,
) -> Result<Box<dyn Kind>, String> {
    match name {
        "broadcast_process" => broadcast_process::parse(operator, outputs),
        "co_process" => co_process::parse(operator, outputs),
        "keyed_process" => keyed_process::parse(operator, outputs),
        "process" => process::parse(operator, outputs),
        "union" => union::parse(operator),
        "watermarks" => watermarks::parse(operator),
        "window" | "window_all" => window::parse(operator, outputs),
        _ => Err(format!("unknown kind `{name}`")),
    }
}

/// What came out of each output. Elements for an output that nobody reads are dropped.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    outputs: Vec<(String, Vec<Element<Value>>)>,
}

impl Traces {
    pub fn new(outputs: &[String]) -> Self {
        Self { outputs: outputs.iter().map(|name| (name.clone(), Vec::new())).collect() }
    }

    pub fn record(&mut self, output: &str, value: Value, at: Timestamp) {
        if let Some((_, trace)) = self.outputs.iter_mut().find(|(name, _)| name == output) {
            trace.push(Element::Record { value, at: at.known() });
        }
    }

    pub fn mark(&mut self, mark: Mark) {
        for (_, trace) in &mut self.outputs {
            trace.push(Element::Mark(mark));
        }
    }

    pub fn take(&mut self, output: &str) -> Vec<Element<Value>> {
        let trace = self.outputs.iter_mut().find(|(name, _)| name == output);
        trace.map_or_else(Vec::new, |(_, trace)| std::mem::take(trace))
    }

    pub fn extend(&mut self, output: &str, elements: impl IntoIterator<Item = Element<Value>>) {
        if let Some((_, trace)) = self.outputs.iter_mut().find(|(name, _)| name == output) {
            trace.extend(elements);
        }
    }

    pub fn into_map(self) -> BTreeMap<String, Vec<Item>> {
        let items = |(name, trace): (String, Vec<_>)| {
            (name, trace.into_iter().map(Item::from).collect::<Vec<_>>())
        };
        self.outputs.into_iter().map(items).collect()
    }
}

/// Hands the routes of an operator to traces; `name` says where and as what a route goes.
pub struct Collected<'a, F> {
    pub traces: &'a mut Traces,
    pub name: F,
}

impl<S, F: FnMut(S) -> (String, Value)> Collect<S> for Collected<'_, F> {
    fn emit(&mut self, route: S, at: Timestamp) {
        let (output, value) = (self.name)(route);
        self.traces.record(&output, value, at);
    }

    fn mark(&mut self, mark: Mark) {
        self.traces.mark(mark);
    }
}

/// Feeds an element to an operator with one input, with room for a single route at a time.
/// The outputs of a fan by name; what is left over is discarded.
pub fn named(
    names: &[String],
    streams: Vec<DataStream<Value>>,
) -> BTreeMap<String, DataStream<Value>> {
    let mut outputs = BTreeMap::new();
    for (index, stream) in streams.into_iter().enumerate() {
        match names.get(index) {
            Some(name) => drop(outputs.insert(name.clone(), stream)),
            None => stream.discard(),
        }
    }
    outputs
}

/// An operator with one input whose outputs are a fan.
pub struct BareFan<Op> {
    pub operator: Op,
    pub outputs: Vec<String>,
}

impl<Op: Operator<In = Value, Out = Fan> + Saved> Bare for BareFan<Op> {
    fn feed(
        &mut self,
        _input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let Self { operator, outputs } = self;
        let name = |fan: Fan| (outputs[fan.output].clone(), fan.record);
        feed(operator, element, &mut Collected { traces, name })
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        vec![&mut self.operator]
    }
}

/// An operator with two inputs whose outputs are a fan.
pub struct BareFan2<Op> {
    pub operator: Op,
    pub alignment: Alignment,
    pub outputs: Vec<String>,
}

impl<Op> Bare for BareFan2<Op>
where
    Op: Operator<In = Either<Value, Value>, Out = Fan> + Saved,
{
    fn feed(
        &mut self,
        input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let Self { operator, alignment, outputs } = self;
        let name = |fan: Fan| (outputs[fan.output].clone(), fan.record);
        let mut out = Collected { traces, name };
        match element {
            Element::Mark(mark) => {
                for mark in alignment.on_mark(input, mark) {
                    feed(operator, Element::Mark(mark), &mut out)?;
                }
                Ok(())
            }
            Element::Record { value, at } => {
                for mark in alignment.on_active(input) {
                    feed(operator, Element::Mark(mark), &mut out)?;
                }
                let value = if input == 0 { Either::Left(value) } else { Either::Right(value) };
                feed(operator, Element::Record { value, at }, &mut out)
            }
        }
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        vec![&mut self.alignment, &mut self.operator]
    }
}

/// Feeds an element to an operator, with room for a single route at a time.
pub fn feed<Op: Operator>(
    operator: &mut Op,
    element: Element<Op::In>,
    out: &mut impl Collect<Op::Out>,
) -> Result<(), String> {
    let mut account = Account::new();
    let fed = match element {
        Element::Record { value, at } => {
            let at = at.unwrap_or(Timestamp::MIN);
            Turn::new(out, &mut account, 1).record(operator, value, at)
        }
        Element::Mark(mark) => loop {
            match Turn::new(out, &mut account, 1).mark(operator, mark) {
                Ok(false) => {}
                end => break end.map(drop),
            }
        },
    };
    fed.map_err(|error| error.to_string())
}
