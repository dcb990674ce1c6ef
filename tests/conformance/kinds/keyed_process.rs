//! `keyed_process`: a function on a keyed stream, with state and timers.

use super::ops::{self, Call, Op};
use super::{Bare, BareFan, Kind, named};
#[cfg(feature = "job")]
use super::{group_of, key_in};
use crate::fan::Fan;
use crate::model;
use serde::Deserialize;
use serde_json::{Map, Value};
use side_output::operator::Keyed;
use side_output::{DataStream, KeyedContext, KeyedProcess, Routes, Timestamp};
use std::collections::BTreeMap;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    key: String,
    function: Function,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Function {
    Ops { on_element: Vec<Op>, on_timer: Vec<Op> },
}

#[derive(Clone)]
struct Ops {
    on_element: Vec<Op>,
    on_timer: Vec<Op>,
    outputs: Vec<String>,
}

impl KeyedProcess for Ops {
    type Key = String;
    type In = Value;
    type State = Option<i64>;
    type Out = Fan;

    fn on_record(
        &mut self,
        record: Value,
        state: &mut Option<i64>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        let Self { on_element, outputs, .. } = self;
        let own = ops::of_record(&record);
        let record = Some(&record);
        Call { place: "element", record, at, state, cx, outputs }
            .run(own.as_ref().unwrap_or(on_element))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Option<i64>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let Self { on_timer, outputs, .. } = self;
        Call { place: "timer", record: None, at, state, cx, outputs }.run(on_timer)
    }

    fn is_empty(state: &Option<i64>) -> bool {
        state.is_none()
    }
}

struct OnKeys {
    key: String,
    function: Ops,
}

pub fn parse(operator: &Map<String, Value>, outputs: Vec<String>) -> Result<Box<dyn Kind>, String> {
    let Description { key, function } = model::operator(operator)?;
    let Function::Ops { on_element, on_timer } = function;
    Ok(Box::new(OnKeys { key, function: Ops { on_element, on_timer, outputs } }))
}

impl Kind for OnKeys {
    fn bare(&self) -> Box<dyn Bare> {
        let field = self.key.clone();
        let operator =
            Keyed::new(move |record: &Value| ops::key(record, &field), self.function.clone());
        Box::new(BareFan { operator, outputs: self.function.outputs.clone() })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let field = self.key.clone();
        let streams = inputs
            .remove(0)
            .key_by(move |record: &Value| ops::key(record, &field))
            .process(self.function.clone());
        named(&self.function.outputs, streams.into_vec())
    }

    #[cfg(feature = "job")]
    fn group(&self, _input: usize, record: &Value) -> Option<u8> {
        Some(group_of(&ops::key(record, &self.key)))
    }

    #[cfg(feature = "job")]
    fn key_of_output(&self, record: &Value) -> String {
        key_in(record, &["k", &self.key])
    }
}
