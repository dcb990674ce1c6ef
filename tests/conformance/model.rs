//! A scenario as it stands in its file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use side_output::{Element, Mark, Timestamp};
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "reference")]
    _reference: String,
    pub operator: Map<String, Value>,
    pub input: Vec<Input>,
    pub expected: BTreeMap<String, Vec<Item>>,
}

/// One element of the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Counted from one.
    #[serde(rename = "input")]
    pub number: Option<usize>,
    pub record: Option<Value>,
    #[serde(default, deserialize_with = "time")]
    pub ts: Time,
    #[serde(default, deserialize_with = "some_time")]
    pub watermark: Option<Time>,
    #[serde(default)]
    pub idle: bool,
}

/// One element of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Record { record: Value, ts: Timestamp },
    Mark(Mark),
}

/// A time value: an integer, `"min"`, `"max"`, or `null` for none, which is the lowest one.
pub type Time = Timestamp;

impl Scenario {
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub fn kind(&self) -> &str {
        self.operator.get("kind").and_then(Value::as_str).unwrap_or("none")
    }
}

impl From<Element<Value>> for Item {
    fn from(element: Element<Value>) -> Self {
        match element {
            Element::Record { value, at } => {
                Self::Record { record: value, ts: at.unwrap_or(Timestamp::MIN) }
            }
            Element::Mark(mark) => Self::Mark(mark),
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            record: Option<Value>,
            #[serde(default, deserialize_with = "time")]
            ts: Time,
            #[serde(default, deserialize_with = "some_time")]
            watermark: Option<Time>,
            status: Option<String>,
        }
        let fields = Fields::deserialize(deserializer)?;
        match (fields.record, fields.watermark, fields.status.as_deref()) {
            (Some(record), None, None) => Ok(Self::Record { record, ts: fields.ts }),
            (None, Some(watermark), None) => Ok(Self::Mark(Mark::Watermark(watermark))),
            (None, None, Some("idle")) => Ok(Self::Mark(Mark::Idle)),
            (None, None, Some("active")) => Ok(Self::Mark(Mark::Active)),
            _ => Err(D::Error::custom("neither a record, a watermark nor a status")),
        }
    }
}

pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(Timestamp::MIN),
        Value::String(text) if text == "min" => Ok(Timestamp::MIN),
        Value::String(text) if text == "max" => Ok(Timestamp::MAX),
        value => value
            .as_i64()
            .map(Timestamp::from_millis)
            .ok_or_else(|| D::Error::custom(format!("`{value}` is not a time"))),
    }
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    time(deserializer).map(Some)
}

/// A time as scenarios write it inside of records.
pub fn time_value(time: Timestamp) -> Value {
    match time {
        Timestamp::MIN => json!("min"),
        Timestamp::MAX => json!("max"),
        time => json!(time.as_millis()),
    }
}

/// Reads an operator's description, without the fields that belong to the graph around it.
pub fn operator<'de, T: Deserialize<'de>>(fields: &Map<String, Value>) -> Result<T, String> {
    let mut fields = fields.clone();
    for around in ["kind", "id", "from", "side_outputs", "tie_order"] {
        fields.remove(around);
    }
    T::deserialize(Value::Object(fields)).map_err(|error| error.to_string())
}
