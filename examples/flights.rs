//! Splits a month of real flights: `cargo run --release --example flights`.
//!
//! ```text
//! lines ─ parse ─ timestamps ─ split ┬─ flown ┬─ flown.jsonl
//!                                    │        ├─ by hour ┬─ hourly.csv, hourly.html
//!                                    │        │          └─ late.jsonl
//!                                    │        └─ by plane ┬─ matched.jsonl
//!                                    │           planes ──┼─ no_plane.jsonl
//!                                    │                    └─ no_flight.jsonl
//!                                    ├─ cancelled.jsonl
//!                                    ├─ diverted.jsonl
//!                                    ├─ malformed.jsonl
//!                                    └─ long_delay.jsonl (a tap)
//! ```
//!
//! All of it in one pass over the file, which is streamed, with all files written at the same time.

#[path = "flights/advise.rs"]
pub(crate) mod advise;
#[path = "flights/chart.rs"]
pub(crate) mod chart;
// The tests of the other modules do without; this one is tested as a program.
#[cfg(all(feature = "job", not(test)))]
#[path = "flights/durable.rs"]
pub(crate) mod durable;
#[path = "flights/fleet.rs"]
pub(crate) mod fleet;
#[path = "flights/hourly.rs"]
pub(crate) mod hourly;
#[path = "flights/job.rs"]
pub(crate) mod job;
#[path = "flights/json_lines.rs"]
pub(crate) mod json_lines;
#[path = "flights/lines.rs"]
pub(crate) mod lines;
#[path = "flights/options.rs"]
pub(crate) mod options;
#[path = "flights/record.rs"]
pub(crate) mod record;
#[path = "flights/report.rs"]
pub(crate) mod report;
#[path = "flights/time.rs"]
pub(crate) mod time;

use options::{Options, USAGE};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return print(USAGE),
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(options).await {
        Ok(report) => print(&report),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<String, String> {
    if options.advise {
        return advise::advise(&options.job).await.map(|advice| advise::report(&advice));
    }
    if let Some(directory) = &options.directory {
        return run_durably(&options, directory).await;
    }
    let out = options.job.out.clone();
    let outcome = options.job.run().await?;
    if options.json { report::json(&outcome) } else { Ok(report::table(&outcome, &out)) }
}

#[cfg(all(feature = "job", not(test)))]
async fn run_durably(options: &Options, directory: &Path) -> Result<String, String> {
    let counts = durable::run(&options.job, directory, options.rate).await?;
    if options.json { report::json_of(&counts) } else { counts.table(directory) }
}

#[cfg(not(all(feature = "job", not(test))))]
fn run_durably(
    _options: &Options,
    _directory: &Path,
) -> impl Future<Output = Result<String, String>> {
    let feature = "cargo run --release --features job --example flights";
    std::future::ready(Err(format!("`--job` needs the feature `job`: {feature}")))
}

fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads it, as in `flights | head -1`.
        Err(_) => ExitCode::FAILURE,
    }
}
