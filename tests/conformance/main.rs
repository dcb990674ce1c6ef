//! Runs every recorded scenario against this library.
//!
//! Each scenario is built twice: as bare operators, driven element by element, and as a graph of
//! streams on the futures runtime, fed in chunks of 1, 2 and 7 elements and all at once. Both
//! have to put on every output exactly what the trace says. With the feature `job`, the bare
//! operators are also saved at every position of the script and built anew from that.
//!
//! `CONFORMANCE_DIR` names another folder of scenarios; an argument runs those whose name
//! contains it. A kind or a field that is not known here is a failure.
//!
//! # Deliberate differences of representation
//!
//! One: a record without a timestamp *is* a record with the lowest timestamp here, on every
//! output. `process-no-timestamp` tells the two apart (`null` on main, `"min"` on a side output);
//! the comparison does not.

#![expect(unreachable_pub, reason = "the modules of this program share what they declare")]
#![expect(clippy::print_stdout, reason = "the count of passed scenarios is the result")]

mod fan;
mod kinds;
mod model;
#[cfg(feature = "job")]
mod restore;
mod rules;
mod run;
mod script;

use self::model::Scenario;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let folder = std::env::var_os("CONFORMANCE_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/scenarios")),
        PathBuf::from,
    );
    let mut passed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for path in scenarios(&folder) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&filter) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable scenario");
        let (kind, result) = match Scenario::parse(&text) {
            Ok(scenario) => (scenario.kind().to_owned(), run::run(&scenario)),
            Err(error) => ("unreadable".to_owned(), Err(error)),
        };
        let (ok, all) = passed.entry(kind).or_default();
        *all += 1;
        match result {
            Ok(()) => *ok += 1,
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    for failure in &failures {
        println!("FAILED {failure}");
    }
    for (kind, (ok, all)) in &passed {
        println!("{kind}: {ok} of {all} scenarios passed");
    }
    if failures.is_empty() && !passed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn scenarios(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
}
