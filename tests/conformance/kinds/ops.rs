//! The little language of keyed functions: lists of operations on state and timers.

use crate::fan::Fan;
use crate::model::{time, time_value};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use side_output::{KeyContext, Timestamp};

/// One operation: exactly one of its fields is there, beside its options.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Op {
    Emit {
        emit: String,
        label: Option<Value>,
    },
    Forward {
        forward: String,
    },
    Register {
        #[serde(deserialize_with = "time")]
        register: Timestamp,
    },
    RegisterIn {
        register_in: i64,
    },
    Delete {
        #[serde(deserialize_with = "time")]
        delete: Timestamp,
    },
    DeleteIn {
        delete_in: i64,
    },
    Set {
        set: i64,
    },
    Add {
        add: i64,
    },
    Clear {
        #[serde(rename = "clear", deserialize_with = "yes")]
        _clear: (),
    },
    If {
        if_state_lt: i64,
        #[serde(default)]
        then: Vec<Op>,
        #[serde(default, rename = "else")]
        otherwise: Vec<Op>,
    },
}

fn yes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let yes = bool::deserialize(deserializer)?;
    if yes { Ok(()) } else { Err(serde::de::Error::custom("`clear` is `true`")) }
}

/// The operations that a record brings along instead of the function's own.
pub fn of_record(record: &Value) -> Option<Vec<Op>> {
    let ops = record.get("ops")?.clone();
    Some(serde_json::from_value(ops).expect("operations in a record"))
}

/// The key of a record, which is its field `field`.
pub fn key(record: &Value, field: &str) -> String {
    record.get(field).map_or_else(String::new, ToString::to_string)
}

/// What a list of operations works on.
pub struct Call<'a> {
    /// What is emitted as `at`.
    pub place: &'static str,
    pub record: Option<&'a Value>,
    pub at: Timestamp,
    pub state: &'a mut Option<i64>,
    pub cx: &'a mut KeyContext<String, Fan>,
    pub outputs: &'a [String],
}

impl Call<'_> {
    pub fn run(&mut self, ops: &[Op]) -> Vec<Fan> {
        let mut routes = Vec::new();
        self.run_into(ops, &mut routes);
        routes
    }

    fn run_into(&mut self, ops: &[Op], routes: &mut Vec<Fan>) {
        for op in ops {
            match op {
                Op::Emit { emit, label } => {
                    let record = self.describe(label.as_ref());
                    routes.extend(route(self.outputs, emit, record));
                }
                Op::Forward { forward } => {
                    let record = self.record.expect("a record to forward").clone();
                    routes.extend(route(self.outputs, forward, record));
                }
                Op::Register { register } => self.cx.set_timer(*register),
                Op::RegisterIn { register_in } => {
                    self.cx.set_timer(self.at.saturating_add_millis(*register_in));
                }
                Op::Delete { delete } => self.cx.delete_timer(*delete),
                Op::DeleteIn { delete_in } => {
                    self.cx.delete_timer(self.at.saturating_add_millis(*delete_in));
                }
                Op::Set { set } => *self.state = Some(*set),
                Op::Add { add } => *self.state = Some(self.state.unwrap_or(0) + add),
                Op::Clear { .. } => *self.state = None,
                Op::If { if_state_lt, then, otherwise } => {
                    let less = self.state.unwrap_or(0) < *if_state_lt;
                    self.run_into(if less { then } else { otherwise }, routes);
                }
            }
        }
    }

    fn describe(&self, label: Option<&Value>) -> Value {
        let mut record = Map::new();
        record.insert("at".into(), json!(self.place));
        if let Some(label) = label {
            record.insert("label".into(), label.clone());
        }
        let key: Value = serde_json::from_str(self.cx.key()).expect("a key");
        record.insert("k".into(), key);
        record.insert("ts".into(), time_value(self.at));
        record.insert("wm".into(), time_value(self.cx.watermark()));
        record.insert("state".into(), json!(*self.state));
        Value::Object(record)
    }
}

/// The route to the output with this name; one that is not declared has no reader.
pub fn route(outputs: &[String], name: &str, record: Value) -> Option<Fan> {
    let output = outputs.iter().position(|output| output == name)?;
    Some(Fan { output, record })
}
