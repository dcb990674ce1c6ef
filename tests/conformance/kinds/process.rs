//! `process`: a function on a stream without keys.

use super::{Bare, Collected, Kind, Traces, feed};
use crate::fan::{Fan, SIDES};
use crate::model;
use crate::rules::Rules;
use serde::Deserialize;
use serde_json::{Map, Value};
use side_output::operator::{Split, WithContext};
#[cfg(feature = "job")]
use side_output::state::Snapshot;
use side_output::{Alignment, Context, DataStream, Element, Timestamp};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Exchange {
    #[default]
    Forward,
    Rebalance,
}

struct Process {
    rules: Rules,
    exchange: Exchange,
    outputs: Vec<String>,
}

pub fn parse(operator: &Map<String, Value>, outputs: Vec<String>) -> Result<Box<dyn Kind>, String> {
    let mut fields = operator.clone();
    let exchange = fields.remove("exchange").map(Exchange::deserialize).transpose();
    let exchange = exchange.map_err(|error| error.to_string())?.unwrap_or_default();
    if outputs.len() > SIDES + 1 {
        return Err("too many side outputs".into());
    }
    Ok(Box::new(Process { rules: model::operator(&fields)?, exchange, outputs }))
}

impl Process {
    fn function(&self) -> impl FnMut(Value, &mut Context<Fan>) -> Vec<Fan> + Send + 'static {
        let Self { rules, outputs, .. } = self;
        let (rules, outputs) = (rules.clone(), outputs.clone());
        move |record, cx| {
            let at = cx.timestamp().unwrap_or(Timestamp::MIN);
            let routes = rules.route(&record, at, cx.watermark());
            let route = |(name, record)| {
                // A name that is not declared has no reader.
                let output = outputs.iter().position(|output| *output == name)?;
                Some(Fan { output, record })
            };
            routes.into_iter().filter_map(route).collect()
        }
    }
}

impl Kind for Process {
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareProcess {
            operator: Split::<Value, Fan, _, WithContext>::new(self.function()),
            exchange: (self.exchange == Exchange::Rebalance).then(|| Alignment::union(1)),
            outputs: self.outputs.clone(),
        })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let mut input = inputs.remove(0);
        if self.exchange == Exchange::Rebalance {
            input = input.union([]).boxed();
        }
        let streams = input.split_with(self.function()).into_vec();
        let mut outputs = BTreeMap::new();
        for (index, stream) in streams.into_iter().enumerate() {
            match self.outputs.get(index) {
                Some(name) => drop(outputs.insert(name.clone(), stream)),
                None => stream.discard(),
            }
        }
        outputs
    }
}

struct BareProcess<F> {
    operator: Split<Value, Fan, F, WithContext>,
    exchange: Option<Alignment>,
    outputs: Vec<String>,
}

impl<F: FnMut(Value, &mut Context<Fan>) -> Vec<Fan>> Bare for BareProcess<F> {
    fn feed(
        &mut self,
        _input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let Self { operator, exchange, outputs } = self;
        let name = |fan: Fan| (outputs[fan.output].clone(), fan.record);
        let mut out = Collected { traces, name };
        match (element, exchange) {
            (Element::Mark(mark), Some(exchange)) => {
                for mark in exchange.on_mark(0, mark) {
                    feed(operator, Element::Mark(mark), &mut out)?;
                }
                Ok(())
            }
            (element, _) => feed(operator, element, &mut out),
        }
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        let exchange = self.exchange.as_mut().map(|exchange| exchange as &mut dyn Snapshot);
        exchange.into_iter().chain([&mut self.operator as &mut dyn Snapshot]).collect()
    }
}
