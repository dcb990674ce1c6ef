//! The job: what is split into what, and where that goes.

use super::json_lines::JsonLines;
use super::lines::lines;
use super::record::{Arrival, Flight, Malformed, Row, is_header};
use futures::TryStreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use side_output::prelude::*;
use std::future::ready;
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::BufReader;

/// A departure this late, in minutes, goes to the tap as well.
const LONG_DELAY: i32 = 180;

/// Where a line of the data goes.
#[splitter]
pub(crate) enum Flights {
    /// Departed and arrived where it was to.
    #[main]
    Flown(Flown),
    /// Never departed.
    Cancelled(Flight),
    /// Departed, and arrived elsewhere or not at all.
    Diverted(Departed),
    /// No flight at all.
    Malformed(Malformed),
    /// A copy of those flown flights that left hours late.
    #[tap]
    LongDelay(Flown),
}

/// A flight as planned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Flown {
    #[serde(flatten)]
    pub(crate) flight: Flight,
    /// Minutes.
    pub(crate) dep_delay: i32,
    #[serde(flatten)]
    pub(crate) arrival: Arrival,
}

/// A flight without an arrival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Departed {
    #[serde(flatten)]
    pub(crate) flight: Flight,
    /// Minutes.
    pub(crate) dep_delay: i32,
}

#[splitter(Flights)]
pub(crate) fn split_row(row: Result<Row, Malformed>, cx: &mut Context<Flights>) -> Flights {
    let Row { flight, dep_delay, arrival } = match row {
        Ok(row) => row,
        Err(malformed) => return Flights::Malformed(malformed),
    };
    let Some(dep_delay) = dep_delay else {
        return Flights::Cancelled(flight);
    };
    let Some(arrival) = arrival else {
        return Flights::Diverted(Departed { flight, dep_delay });
    };
    let flown = Flown { flight, dep_delay, arrival };
    if dep_delay >= LONG_DELAY {
        cx.output(Flights::LONG_DELAY_TAG, flown.clone());
    }
    Flights::Flown(flown)
}

/// What to read, and where to write.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) flights: PathBuf,
    pub(crate) out: PathBuf,
}

impl Default for Job {
    /// January 2013, into `target/flights`.
    fn default() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            flights: root.join("examples/data/flights-2013-01.csv"),
            out: root.join("target/flights"),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) split: Ledger,
}

impl Job {
    /// Runs it; the error says what could not be read or written.
    pub(crate) async fn run(self) -> Result<Outcome, String> {
        let rows = self.rows().await?;
        let Self { out, .. } = &self;
        std::fs::create_dir_all(out)
            .map_err(|error| format!("cannot create {}: {error}", out.display()))?;
        let split = rows
            .split_with(split_row)
            .wire()
            .flown(JsonLines::create(out, "flown.jsonl")?)
            .cancelled(JsonLines::create(out, "cancelled.jsonl")?)
            .diverted(JsonLines::create(out, "diverted.jsonl")?)
            .malformed(JsonLines::create(out, "malformed.jsonl")?)
            .long_delay(JsonLines::create(out, "long_delay.jsonl")?)
            .run()
            .await
            .map_err(explain)?;
        Ok(Outcome { split })
    }

    /// The lines of the file, parsed.
    async fn rows(&self) -> Result<DataStream<Result<Row, Malformed>>, String> {
        let path = self.flights.clone();
        let (file, length) = open(&path).await?;
        let progress = progress(length);
        let lines = lines(BufReader::with_capacity(1 << 16, file))
            .inspect_ok(move |line| progress.inc(line.length))
            .try_filter(|line| ready(!is_header(line)))
            .map_err(move |error| cannot_read(&path, &error));
        Ok(DataStream::from_try_stream(lines).map(Row::parse).boxed())
    }
}

async fn open(path: &Path) -> Result<(File, u64), String> {
    let file = File::open(path).await.map_err(|error| cannot_read(path, &error))?;
    let metadata = file.metadata().await.map_err(|error| cannot_read(path, &error))?;
    if metadata.is_dir() {
        return Err(cannot_read(path, &io::ErrorKind::IsADirectory.into()));
    }
    Ok((file, metadata.len()))
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// The cause alone: that it came through a stream is no news to who ran the job.
fn explain(error: StreamError) -> String {
    match error {
        StreamError::Failed(cause) | StreamError::Destination { source: cause, .. } => {
            cause.to_string()
        }
        other => other.to_string(),
    }
}

/// A bar on the standard error stream; it hides itself where that is no terminal.
fn progress(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} % {msg}");
    ProgressBar::new(length)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message("of the flights")
        .with_finish(indicatif::ProgressFinish::AndClear)
}
