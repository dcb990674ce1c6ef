//! `co_process`: a function on two connected streams, keyed or not.

use super::ops::{self, Call, Op};
use super::{Bare, BareFan2, Kind, named};
#[cfg(feature = "job")]
use super::{group_of, key_in};
use crate::fan::Fan;
use crate::model;
use crate::rules::Rules;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use side_output::operator::{Co, KeyedCo};
use side_output::{
    Alignment, CoProcess, Context, DataStream, KeyedCoProcess, KeyedContext, Routes, Timestamp,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    key1: Option<String>,
    key2: Option<String>,
    function: Function,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Function {
    Ops { on_element1: Vec<Op>, on_element2: Vec<Op>, on_timer: Vec<Op> },
    OrderPayment { timeout_ms: u64 },
    Rules { input1: Rules, input2: Rules },
}

pub fn parse(operator: &Map<String, Value>, outputs: Vec<String>) -> Result<Box<dyn Kind>, String> {
    let Description { key1, key2, function } = model::operator(operator)?;
    let keys = match (key1, key2) {
        (Some(key1), Some(key2)) => Some([key1, key2]),
        (None, None) => None,
        _ => return Err("a key for one input only".into()),
    };
    match (function, keys) {
        (Function::Rules { input1, input2 }, None) => {
            Ok(Box::new(ByRules { input1, input2, outputs }))
        }
        (Function::Ops { on_element1, on_element2, on_timer }, Some(keys)) => {
            let function = Ops { on_element1, on_element2, on_timer, outputs: outputs.clone() };
            Ok(Box::new(OnKeys { keys, function, outputs }))
        }
        (Function::OrderPayment { timeout_ms }, Some(keys)) => {
            let timeout = Duration::from_millis(timeout_ms);
            let function = OrderPayment { timeout, outputs: outputs.clone() };
            Ok(Box::new(OnKeys { keys, function, outputs }))
        }
        _ => Err("the function and the keys do not fit".into()),
    }
}

#[derive(Clone)]
struct ByRules {
    input1: Rules,
    input2: Rules,
    outputs: Vec<String>,
}

impl ByRules {
    fn route(&self, rules: &Rules, record: &Value, cx: &Context<Fan>) -> Vec<Fan> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        let routes = rules.route(record, at, cx.watermark()).into_iter();
        routes.filter_map(|(name, record)| ops::route(&self.outputs, &name, record)).collect()
    }
}

impl CoProcess for ByRules {
    type Left = Value;
    type Right = Value;
    type Out = Fan;

    fn on_left(&mut self, record: Value, cx: &mut Context<Fan>) -> impl Routes<Fan> {
        self.route(&self.input1, &record, cx)
    }

    fn on_right(&mut self, record: Value, cx: &mut Context<Fan>) -> impl Routes<Fan> {
        self.route(&self.input2, &record, cx)
    }
}

impl Kind for ByRules {
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareFan2 {
            operator: Co::new(self.clone()),
            alignment: Alignment::connected(2),
            outputs: self.outputs.clone(),
        })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let right = inputs.remove(1);
        let streams = inputs.remove(0).connect(right).process(self.clone());
        named(&self.outputs, streams.into_vec())
    }
}

#[derive(Clone)]
struct Ops {
    on_element1: Vec<Op>,
    on_element2: Vec<Op>,
    on_timer: Vec<Op>,
    outputs: Vec<String>,
}

impl KeyedCoProcess for Ops {
    type Key = String;
    type Left = Value;
    type Right = Value;
    type State = Option<i64>;
    type Out = Fan;

    fn on_left(
        &mut self,
        record: Value,
        state: &mut Option<i64>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        let own = ops::of_record(&record);
        let outputs = &self.outputs;
        Call { place: "element1", record: Some(&record), at, state, cx, outputs }
            .run(own.as_ref().unwrap_or(&self.on_element1))
    }

    fn on_right(
        &mut self,
        record: Value,
        state: &mut Option<i64>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        let own = ops::of_record(&record);
        let outputs = &self.outputs;
        Call { place: "element2", record: Some(&record), at, state, cx, outputs }
            .run(own.as_ref().unwrap_or(&self.on_element2))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Option<i64>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let outputs = &self.outputs;
        Call { place: "timer", record: None, at, state, cx, outputs }.run(&self.on_timer)
    }
}

#[derive(Clone)]
struct OrderPayment {
    timeout: Duration,
    outputs: Vec<String>,
}

impl KeyedCoProcess for OrderPayment {
    type Key = String;
    type Left = Value;
    type Right = Value;
    type State = Option<Value>;
    type Out = Fan;

    fn on_left(
        &mut self,
        order: Value,
        pending: &mut Option<Value>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        cx.set_timer(cx.timestamp().unwrap_or(Timestamp::MIN) + self.timeout);
        // As the recorded function does: an order that is replaced goes nowhere.
        *pending = Some(order);
        None::<Fan>
    }

    fn on_right(
        &mut self,
        payment: Value,
        pending: &mut Option<Value>,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        match pending.take() {
            Some(order) => {
                ops::route(&self.outputs, "main", json!({"order": order, "payment": payment}))
            }
            None => ops::route(&self.outputs, "UNMATCHED_PAY", payment),
        }
    }

    fn on_timer(
        &mut self,
        _at: Timestamp,
        pending: &mut Option<Value>,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fan> {
        let order = pending.take()?;
        ops::route(&self.outputs, "UNMATCHED_ORDER", order)
    }

    fn is_empty(pending: &Option<Value>) -> bool {
        pending.is_none()
    }
}

struct OnKeys<F> {
    keys: [String; 2],
    function: F,
    outputs: Vec<String>,
}

impl<F> OnKeys<F> {
    fn by(&self, input: usize) -> impl FnMut(&Value) -> String + Send + 'static {
        let field = self.keys[input].clone();
        move |record| ops::key(record, &field)
    }
}

impl<F> Kind for OnKeys<F>
where
    F: KeyedCoProcess<Key = String, Left = Value, Right = Value, Out = Fan>,
    F: Clone + Send + 'static,
    F::State: Send + Serialize + DeserializeOwned,
{
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareFan2 {
            operator: KeyedCo::new(self.by(0), self.by(1), self.function.clone()),
            alignment: Alignment::connected(2),
            outputs: self.outputs.clone(),
        })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let right = inputs.remove(1).key_by(self.by(1));
        let left = inputs.remove(0).key_by(self.by(0));
        named(&self.outputs, left.connect(right).process(self.function.clone()).into_vec())
    }

    #[cfg(feature = "job")]
    fn group(&self, input: usize, record: &Value) -> Option<u8> {
        Some(group_of(&ops::key(record, &self.keys[input])))
    }

    #[cfg(feature = "job")]
    fn key_of_output(&self, record: &Value) -> String {
        key_in(record, &["k", &self.keys[0], &self.keys[1]])
    }
}
