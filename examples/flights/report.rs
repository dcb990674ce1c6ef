//! What is printed in the end.

use super::hourly::Hours;
use super::job::Outcome;
use serde::Serialize;
use std::path::Path;

/// The counts by name, in the order in which they come about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Counts {
    #[serde(rename = "in")]
    pub(crate) lines: u64,
    pub(crate) flown: u64,
    pub(crate) cancelled: u64,
    pub(crate) diverted: u64,
    pub(crate) malformed: u64,
    pub(crate) long_delay: u64,
    pub(crate) late: u64,
    pub(crate) windows: u64,
    pub(crate) flights_in_windows: u64,
    pub(crate) total_dep_delay: i64,
    pub(crate) on_time_panes: u64,
    pub(crate) late_updates: u64,
    pub(crate) matched: u64,
    pub(crate) no_plane: u64,
    pub(crate) no_flight: u64,
}

impl Counts {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let Outcome { split, hours, reconciled } = outcome;
        Self::new(split.received, hours, |output| match output {
            "matched" | "no_plane" | "no_flight" => reconciled[output].routed,
            _ => split[output].routed,
        })
    }

    /// `count` says how many records an output had.
    pub(crate) fn new(lines: u64, hours: &Hours, count: impl Fn(&str) -> u64) -> Self {
        Self {
            lines,
            flown: count("flown"),
            cancelled: count("cancelled"),
            diverted: count("diverted"),
            malformed: count("malformed"),
            long_delay: count("long_delay"),
            late: hours.late(),
            windows: hours.len(),
            flights_in_windows: hours.flights(),
            total_dep_delay: hours.dep_delay(),
            on_time_panes: hours.on_time_panes(),
            late_updates: hours.late_updates(),
            matched: count("matched"),
            no_plane: count("no_plane"),
            no_flight: count("no_flight"),
        }
    }
}

/// One JSON object of counts.
pub(crate) fn json(outcome: &Outcome) -> Result<String, String> {
    json_of(&Counts::of(outcome))
}

pub(crate) fn json_of(counts: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(counts).map_err(|error| error.to_string())
}

/// The ledgers as a table, and where the files are.
pub(crate) fn table(outcome: &Outcome, out: &Path) -> String {
    let Outcome { split, hours, reconciled } = outcome;
    let mut lines = vec![format!("{:12} {:>8}", "lines", split.received)];
    for output in &split.outputs {
        let share = percent(output.routed, split.received);
        let tap = if output.tap { "  beside its own output" } else { "" };
        lines.push(format!("{:12} {:>8}  {share:>5.1} %{tap}", output.name, output.routed));
    }
    lines.push(String::new());
    lines.push("flown flights by airport and hour".to_owned());
    for (name, count) in [
        ("windows", hours.len()),
        ("in windows", hours.flights()),
        ("late", hours.late()),
        ("late updates", hours.late_updates()),
    ] {
        lines.push(format!("{name:12} {count:>8}"));
    }
    lines.push(String::new());
    lines.push("flown flights and planes".to_owned());
    for output in &reconciled.outputs {
        lines.push(format!("{:12} {:>8}", output.name, output.routed));
    }
    lines.push(String::new());
    lines.push(format!("written to {}; hourly.html is a picture", out.display()));
    lines.join("\n")
}

#[expect(clippy::cast_precision_loss, reason = "a share with one decimal")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
