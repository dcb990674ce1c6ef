//! What is printed in the end.

use super::job::Outcome;
use serde_json::{Map, Value};
use std::path::Path;

/// One JSON object of counts.
pub(crate) fn json(outcome: &Outcome) -> String {
    Value::Object(counts(outcome)).to_string()
}

/// The same counts by name, in the order in which they come about.
pub(crate) fn counts(outcome: &Outcome) -> Map<String, Value> {
    let mut counts = Map::new();
    counts.insert("in".to_owned(), outcome.split.received.into());
    for output in &outcome.split.outputs {
        counts.insert(output.name.to_owned(), output.routed.into());
    }
    counts
}

/// The ledger as a table, and where the files are.
pub(crate) fn table(outcome: &Outcome, out: &Path) -> String {
    let ledger = &outcome.split;
    let mut lines = vec![format!("{:12} {:>8}", "lines", ledger.received)];
    for output in &ledger.outputs {
        let share = percent(output.routed, ledger.received);
        let tap = if output.tap { "  beside its own output" } else { "" };
        lines.push(format!("{:12} {:>8}  {share:>5.1} %{tap}", output.name, output.routed));
    }
    lines.push(format!("written to {}", out.display()));
    lines.join("\n")
}

#[expect(clippy::cast_precision_loss, reason = "a share with one decimal")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
