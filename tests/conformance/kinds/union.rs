//! `union`: several streams as one.

use super::{Bare, Kind, Traces};
use crate::model;
use serde::Deserialize;
use serde_json::{Map, Value};
#[cfg(feature = "job")]
use side_output::state::Snapshot;
use side_output::{Alignment, DataStream, Element};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Union {}

pub fn parse(operator: &Map<String, Value>) -> Result<Box<dyn Kind>, String> {
    let union: Union = model::operator(operator)?;
    Ok(Box::new(union))
}

impl Kind for Union {
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareUnion { alignment: Alignment::union(2) })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let first = inputs.remove(0);
        BTreeMap::from([("main".to_owned(), first.union(inputs))])
    }
}

struct BareUnion {
    alignment: Alignment,
}

impl Bare for BareUnion {
    fn feed(
        &mut self,
        input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        match element {
            Element::Mark(mark) => {
                self.alignment.on_mark(input, mark).for_each(|mark| traces.mark(mark));
            }
            record @ Element::Record { .. } => traces.extend("main", [record]),
        }
        Ok(())
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        vec![&mut self.alignment]
    }
}
