//! `chain`: a graph of operators.

use super::{Bare, Kind, Traces};
use crate::fan::{Fan, SIDES};
use serde::Deserialize;
use serde_json::{Map, Value};
#[cfg(feature = "job")]
use side_output::state::Snapshot;
use side_output::{DataStream, Element};
use std::collections::BTreeMap;

struct Chain {
    nodes: Vec<Node>,
    /// Output names with the streams they show.
    outputs: BTreeMap<String, String>,
}

struct Node {
    id: String,
    from: Vec<String>,
    kind: Box<dyn Kind>,
    outputs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "tie_order")]
    _tie_order: Option<String>,
    nodes: Vec<Map<String, Value>>,
    outputs: BTreeMap<String, String>,
}

pub fn parse(operator: &Map<String, Value>) -> Result<Box<dyn Kind>, String> {
    let description = Description::deserialize(Value::Object(operator.clone()));
    let Description { nodes, outputs, .. } = description.map_err(|error| error.to_string())?;
    // A node's side outputs are those that somebody reads.
    let mut read: Vec<String> = outputs.values().cloned().collect();
    for node in &nodes {
        read.extend(froms(node)?);
    }
    let nodes = nodes.iter().map(|node| parse_node(node, &read)).collect::<Result<_, _>>()?;
    Ok(Box::new(Chain { nodes, outputs }))
}

fn froms(node: &Map<String, Value>) -> Result<Vec<String>, String> {
    let from = node.get("from").cloned().ok_or("a node without `from`")?;
    serde_json::from_value(from).map_err(|error| error.to_string())
}

fn parse_node(node: &Map<String, Value>, read: &[String]) -> Result<Node, String> {
    let text = |name| node.get(name).and_then(Value::as_str).ok_or(format!("no `{name}`"));
    let (id, kind) = (text("id")?.to_owned(), text("kind")?);
    let mut outputs = vec!["main".to_owned()];
    let prefix = format!("{id}.");
    for name in read.iter().filter_map(|name| name.strip_prefix(&prefix)) {
        if !outputs.iter().any(|output| output == name) {
            outputs.push(name.to_owned());
        }
    }
    let kind = super::kind(kind, node, outputs.clone())?;
    Ok(Node { id, from: froms(node)?, kind, outputs })
}

/// The stream of a node's output.
fn stream_name(id: &str, output: &str) -> String {
    if output == "main" { id.to_owned() } else { format!("{id}.{output}") }
}

/// The names of an input: `in` and `in1` are the same.
fn input_names(input: usize) -> Vec<String> {
    let mut names = vec![format!("in{}", input + 1)];
    if input == 0 {
        names.push("in".to_owned());
    }
    names
}

impl Chain {
    /// How often a stream is read.
    fn readers(&self, stream: &str) -> usize {
        let nodes = self.nodes.iter().flat_map(|node| &node.from);
        nodes.chain(self.outputs.values()).filter(|name| *name == stream).count()
    }
}

impl Kind for Chain {
    fn one_at_a_time(&self) -> bool {
        self.nodes.iter().any(|node| node.from.len() > 1)
    }

    fn bare(&self) -> Box<dyn Bare> {
        let nodes = self.nodes.iter().map(|node| BareNode {
            id: node.id.clone(),
            from: node.from.clone(),
            outputs: node.outputs.clone(),
            bare: node.kind.bare(),
        });
        Box::new(BareChain { nodes: nodes.collect(), outputs: self.outputs.clone() })
    }

    fn streams(&self, inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let mut streams: BTreeMap<String, Vec<DataStream<Value>>> = BTreeMap::new();
        let add = |streams: &mut BTreeMap<_, _>, name: String, stream: DataStream<Value>| {
            let copies = copies(stream, self.readers(&name));
            streams.insert(name, copies);
        };
        for (input, stream) in inputs.into_iter().enumerate() {
            let names = input_names(input);
            let read = names.iter().find(|name| self.readers(name) > 0).unwrap_or(&names[0]);
            add(&mut streams, read.clone(), stream);
        }
        for node in &self.nodes {
            let mut take = |name: &String| {
                streams.get_mut(name).and_then(Vec::pop).expect("nodes come after what they read")
            };
            let inputs = node.from.iter().map(&mut take).collect();
            for (output, stream) in node.kind.streams(inputs) {
                add(&mut streams, stream_name(&node.id, &output), stream);
            }
        }
        let mut take = |name: &String| streams.get_mut(name).and_then(Vec::pop).expect("a stream");
        self.outputs.iter().map(|(output, name)| (output.clone(), take(name))).collect()
    }
}

/// Copies of a stream, as a split that routes every record to several outputs.
fn copies(stream: DataStream<Value>, count: usize) -> Vec<DataStream<Value>> {
    assert!(count <= SIDES + 1, "too many readers of one stream");
    match count {
        0 => {
            stream.discard();
            Vec::new()
        }
        1 => vec![stream],
        _ => {
            let copy = move |record: Value| -> Vec<Fan> {
                (0..count).map(|output| Fan { output, record: record.clone() }).collect()
            };
            let mut streams = stream.split_with(copy).into_vec();
            streams.drain(count..).for_each(DataStream::discard);
            streams
        }
    }
}

struct BareChain {
    nodes: Vec<BareNode>,
    outputs: BTreeMap<String, String>,
}

struct BareNode {
    id: String,
    from: Vec<String>,
    outputs: Vec<String>,
    bare: Box<dyn Bare>,
}

impl Bare for BareChain {
    fn feed(
        &mut self,
        input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let mut settled: Vec<(String, Vec<Element<Value>>)> = Vec::new();
        for name in input_names(input) {
            settled.push((name, vec![element.clone()]));
        }
        for node in &mut self.nodes {
            let mut out = Traces::new(&node.outputs);
            for (position, from) in node.from.iter().enumerate() {
                let elements = settled.iter().filter(|(name, _)| name == from);
                for element in elements.flat_map(|(_, elements)| elements.clone()) {
                    node.bare.feed(position, element, &mut out)?;
                }
            }
            for output in &node.outputs {
                settled.push((stream_name(&node.id, output), out.take(output)));
            }
        }
        for (output, stream) in &self.outputs {
            for (_, elements) in settled.iter().filter(|(name, _)| name == stream) {
                traces.extend(output, elements.clone());
            }
        }
        Ok(())
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        self.nodes.iter_mut().flat_map(|node| node.bare.states()).collect()
    }
}
