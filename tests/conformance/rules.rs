//! Routing rules of `process` and of the `rules` function of `co_process`.

use crate::model::time_value;
use serde::Deserialize;
use serde_json::{Map, Value};
use side_output::Timestamp;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(default, rename = "match")]
    matching: Matching,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Matching {
    #[default]
    First,
    All,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    when: Option<Predicate>,
    emit: Vec<Emission>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Predicate {
    Compare { field: String, op: Op, value: Value },
    Missing { missing: String },
    Mod { r#mod: Remainder },
    Late { late_by_ms: i64 },
    All { all: Vec<Predicate> },
    Any { any: Vec<Predicate> },
    Not { not: Box<Predicate> },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remainder {
    field: String,
    by: i64,
    eq: i64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Emission {
    Unchanged(String),
    Template { to: String, record: Value },
    Each { to: String, each: String },
}

impl Rules {
    /// What `record` is routed to: names of outputs with records.
    pub fn route(
        &self,
        record: &Value,
        at: Timestamp,
        watermark: Timestamp,
    ) -> Vec<(String, Value)> {
        let mut routes = Vec::new();
        for rule in &self.rules {
            let matches = |when: &Predicate| when.holds(record, at, watermark);
            if !rule.when.as_ref().is_none_or(matches) {
                continue;
            }
            for emission in &rule.emit {
                emission.emit(record, at, watermark, &mut routes);
            }
            if matches!(self.matching, Matching::First) {
                break;
            }
        }
        routes
    }
}

impl Predicate {
    fn holds(&self, record: &Value, at: Timestamp, watermark: Timestamp) -> bool {
        let holds = |predicate: &Self| predicate.holds(record, at, watermark);
        match self {
            Self::Compare { field, op, value } => {
                record.get(field).is_some_and(|field| op.compare(field, value))
            }
            Self::Missing { missing } => record.get(missing).is_none(),
            Self::Mod { r#mod: Remainder { field, by, eq } } => {
                record.get(field).and_then(Value::as_i64).is_some_and(|v| v.rem_euclid(*by) == *eq)
            }
            Self::Late { late_by_ms } => at < watermark.saturating_sub_millis(*late_by_ms),
            Self::All { all } => all.iter().all(holds),
            Self::Any { any } => any.iter().any(holds),
            Self::Not { not } => !holds(not),
        }
    }
}

impl Op {
    fn compare(self, field: &Value, value: &Value) -> bool {
        let order = match value.as_str() {
            Some(text) => field.as_str().map(|field| field.cmp(text)),
            None => field.as_f64().and_then(|field| field.partial_cmp(&value.as_f64()?)),
        };
        order.is_some_and(|order| match self {
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
        })
    }
}

impl Emission {
    fn emit(
        &self,
        record: &Value,
        at: Timestamp,
        watermark: Timestamp,
        routes: &mut Vec<(String, Value)>,
    ) {
        match self {
            Self::Unchanged(to) => routes.push((to.clone(), record.clone())),
            Self::Template { to, record: template } => {
                routes.push((to.clone(), fill(template, record, at, watermark)));
            }
            Self::Each { to, each } => {
                let elements = record.get(each).and_then(Value::as_array).into_iter().flatten();
                routes.extend(elements.map(|element| (to.clone(), element.clone())));
            }
        }
    }
}

/// Fills a template: `"$f"` stands for the field f.
fn fill(template: &Value, record: &Value, at: Timestamp, watermark: Timestamp) -> Value {
    let fill = |template: &Value| fill(template, record, at, watermark);
    match template {
        Value::String(text) => match text.as_str() {
            "$ts" => at.known().map_or(Value::Null, time_value),
            "$watermark" => time_value(watermark),
            "$record" => record.clone(),
            text => match text.strip_prefix('$') {
                Some(field) => record.get(field).cloned().unwrap_or(Value::Null),
                None => template.clone(),
            },
        },
        Value::Array(elements) => elements.iter().map(fill).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), fill(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
