//! Runs a scenario both ways and compares.

use crate::kinds::{self, Traces};
use crate::model::{Item, Scenario};
use crate::script::{self, Gate};
use futures::{FutureExt as _, Stream, StreamExt as _};
use serde_json::Value;
use side_output::{DataStream, Element, StreamError};
use std::collections::BTreeMap;
use std::pin::Pin;

pub fn run(scenario: &Scenario) -> Result<(), String> {
    let elements = script::elements(scenario);
    let inputs = script::inputs(scenario);
    let outputs: Vec<String> = scenario.expected.keys().cloned().collect();
    let graph = kinds::graph(&scenario.operator, &outputs)?;

    let mut bare = graph.bare();
    let mut traces = Traces::new(&outputs);
    for (input, element) in elements.clone() {
        bare.feed(input, element, &mut traces)?;
    }
    compare(scenario, traces.into_map(), "as bare operators")?;
    #[cfg(feature = "job")]
    crate::restore::check(scenario, &*graph, &elements, &outputs)?;

    // Where the order of a union matters, the graph settles after each element.
    let chunks: &[usize] = if graph.one_at_a_time() { &[1] } else { &[1, 2, 7, usize::MAX] };
    for &chunk in chunks {
        let gate = Gate::new(elements.clone());
        let streams = graph.streams((0..inputs).map(|input| gate.stream(input)).collect());
        let traces = drive(&gate, chunk, streams).map_err(|error| error.to_string())?;
        let chunk = if chunk == usize::MAX { "all at once".into() } else { chunk.to_string() };
        compare(scenario, traces, &format!("as streams, chunk size {chunk}"))?;
    }
    Ok(())
}

type Outputs = BTreeMap<String, DataStream<Value>>;
type Elements = Pin<Box<dyn Stream<Item = Result<Element<Value>, StreamError>>>>;

/// Reads all streams to the end, `chunk` elements of the script at a time.
fn drive(
    gate: &Gate,
    chunk: usize,
    streams: Outputs,
) -> Result<BTreeMap<String, Vec<Item>>, StreamError> {
    let mut traces: BTreeMap<String, Vec<Item>> =
        streams.keys().map(|name| (name.clone(), Vec::new())).collect();
    let mut open: Vec<(String, Elements)> = streams
        .into_iter()
        .map(|(name, stream)| (name, Box::pin(stream.elements()) as Elements))
        .collect();
    while !open.is_empty() {
        let more = !gate.is_empty();
        gate.open(chunk);
        let mut moved = true;
        let mut progress = more;
        while moved {
            moved = false;
            let mut ended = Vec::new();
            for (index, (name, stream)) in open.iter_mut().enumerate() {
                while let Some(next) = stream.next().now_or_never() {
                    moved = true;
                    progress = true;
                    let Some(element) = next else {
                        ended.push(index);
                        break;
                    };
                    traces.get_mut(name).expect("its trace").push(element?.into());
                }
            }
            for index in ended.into_iter().rev() {
                drop(open.remove(index));
            }
        }
        assert!(progress, "the graph hangs: {:?}", open.iter().map(|o| &o.0).collect::<Vec<_>>());
    }
    Ok(traces)
}

pub fn compare(
    scenario: &Scenario,
    actual: BTreeMap<String, Vec<Item>>,
    how: &str,
) -> Result<(), String> {
    let ties = match scenario.operator.get("tie_order").map(|order| order.as_str()) {
        None => false,
        Some(Some("unspecified")) => true,
        Some(order) => return Err(format!("unknown tie order {order:?}")),
    };
    for (name, expected) in &scenario.expected {
        let mut expected = expected.clone();
        let mut actual = actual.get(name).cloned().unwrap_or_default();
        if ties {
            sort_ties(&mut expected);
            sort_ties(&mut actual);
        }
        if expected != actual {
            let first = expected.iter().zip(&actual).take_while(|(one, two)| one == two).count();
            return Err(format!(
                "{how}, output `{name}` differs at {first}:\n  expected {:?}\n  actual   {:?}",
                expected.get(first..),
                actual.get(first..),
            ));
        }
    }
    Ok(())
}

/// Sorts neighbouring records with equal timestamps.
fn sort_ties(items: &mut [Item]) {
    let time = |item: &Item| match item {
        Item::Record { ts, .. } => Some(*ts),
        Item::Mark(_) => None,
    };
    for run in items.chunk_by_mut(|one, two| time(one).is_some() && time(one) == time(two)) {
        run.sort_by_key(|item| format!("{item:?}"));
    }
}
