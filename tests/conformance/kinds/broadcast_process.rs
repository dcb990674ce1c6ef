//! `broadcast_process`: a stream that a second one configures.

use super::{Bare, BareFan2, Kind, named, ops};
use crate::fan::Fan;
use crate::model::{self, time_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use side_output::operator::Broadcast;
use side_output::{
    Alignment, BroadcastContext, BroadcastProcess, Configuration, Context, DataStream, Routes,
    Timestamp,
};
use std::collections::BTreeMap;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    function: Function,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Function {
    ConfigRoute { late_by_ms: Option<i64> },
}

/// What a configuration record says.
#[derive(Serialize, Deserialize)]
struct Config {
    routes: BTreeMap<String, String>,
    default: Option<String>,
}

#[derive(Clone)]
struct ConfigRoute {
    late_by: Option<i64>,
    outputs: Vec<String>,
}

pub fn parse(operator: &Map<String, Value>, outputs: Vec<String>) -> Result<Box<dyn Kind>, String> {
    let Description { function: Function::ConfigRoute { late_by_ms } } = model::operator(operator)?;
    Ok(Box::new(ConfigRoute { late_by: late_by_ms, outputs }))
}

impl ConfigRoute {
    fn late(&self, record: Value, cx: &Context<Fan>) -> Result<Option<Fan>, Value> {
        match self.late_by {
            Some(late_by)
                if cx.timestamp().unwrap_or(Timestamp::MIN)
                    < cx.watermark().saturating_sub_millis(late_by) =>
            {
                Ok(ops::route(&self.outputs, "late", record))
            }
            _ => Err(record),
        }
    }
}

impl BroadcastProcess for ConfigRoute {
    type In = Value;
    type Update = Value;
    type Config = Config;
    type Out = Fan;

    fn on_record(
        &mut self,
        record: Value,
        config: &Config,
        cx: &mut BroadcastContext<Fan>,
    ) -> impl Routes<Fan> {
        let record = match self.late(record, cx) {
            Ok(route) => return route,
            Err(record) => record,
        };
        let target = record.get("type").and_then(Value::as_str);
        let target = target.and_then(|target| config.routes.get(target));
        let target = target.or(config.default.as_ref()).map_or("main", String::as_str);
        let declared = !matches!(target, "late" | "audit")
            && self.outputs.iter().any(|output| output == target);
        ops::route(&self.outputs, if declared { target } else { "main" }, record)
    }

    fn on_update(
        &mut self,
        update: Value,
        config: &mut Configuration<Config>,
        cx: &mut Context<Fan>,
    ) -> impl Routes<Fan> {
        if update.get("drop").is_some_and(|drop| drop == &json!(true)) {
            config.remove();
        } else {
            let text = |value: &Value| value.as_str().expect("a target").to_owned();
            let routes = update["routes"].as_object().expect("routes").iter();
            let routes = routes.map(|(name, target)| (name.clone(), text(target))).collect();
            config.replace(Config { routes, default: update.get("default").map(text) });
        }
        let audit = update.get("audit")?;
        let ts = time_value(cx.timestamp().unwrap_or(Timestamp::MIN));
        let wm = time_value(cx.watermark());
        ops::route(&self.outputs, "audit", json!({"config": audit, "ts": ts, "wm": wm}))
    }

    fn on_unconfigured(&mut self, record: Value, cx: &mut Context<Fan>) -> impl Routes<Fan> {
        self.late(record, cx).unwrap_or_else(|record| ops::route(&self.outputs, "main", record))
    }
}

impl Kind for ConfigRoute {
    fn bare(&self) -> Box<dyn Bare> {
        Box::new(BareFan2 {
            operator: Broadcast::new(self.clone()),
            alignment: Alignment::connected(2),
            outputs: self.outputs.clone(),
        })
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let config = inputs.remove(1);
        let streams = inputs.remove(0).connect_broadcast(config).process(self.clone());
        named(&self.outputs, streams.into_vec())
    }
}
