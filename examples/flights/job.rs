//! The job: what is split into what, and where that goes.

use super::hourly::{self, Hours};
use super::json_lines::JsonLines;
use super::lines::{Line, lines};
use super::record::{self, Arrival, Flight, Malformed, Row};
use super::{chart, fleet};
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use side_output::prelude::*;
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

/// A flight that arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// What is done with a flown flight: three things, so there are two copies.
#[splitter]
pub(crate) enum Copies {
    #[main]
    Written(Flown),
    #[tap]
    Counted(Flown),
    #[tap]
    Reconciled(Flown),
}

#[splitter(Copies)]
pub(crate) fn copy(flown: Flown, cx: &mut Context<Copies>) -> Copies {
    cx.output(Copies::COUNTED_TAG, flown.clone());
    cx.output(Copies::RECONCILED_TAG, flown.clone());
    Copies::Written(flown)
}

/// What to read, and where to write.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) flights: PathBuf,
    pub(crate) planes: PathBuf,
    pub(crate) out: PathBuf,
}

impl Default for Job {
    /// January 2013, into `target/flights`.
    fn default() -> Self {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        // The tests compile these files as a module of the package above.
        let root = if package.ends_with("examples") { package.join("..") } else { package.into() };
        let root = root.canonicalize().unwrap_or(root);
        Self {
            flights: root.join("examples/data/flights-2013-01.csv"),
            planes: root.join("examples/data/planes.csv"),
            out: root.join("target/flights"),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) split: Ledger,
    pub(crate) hours: Hours,
    pub(crate) reconciled: Ledger,
}

impl Job {
    /// Runs it; the error says what could not be read or written.
    pub(crate) async fn run(self) -> Result<Outcome, String> {
        let rows = self.rows().await?;
        let planes = read(&self.planes).await?;
        let out = &*self.out;
        std::fs::create_dir_all(out)
            .map_err(|error| format!("cannot create {}: {error}", out.display()))?;
        let flown = JsonLines::create(out, "flown.jsonl")?;
        let late = JsonLines::create(out, "late.jsonl")?;
        let fleet = fleet::Files::create(out)?;

        let (mut hours, mut reconciled) = (None, None);
        let split = rows
            .split_with(split_row)
            .wire()
            .flown(|stream: DataStream<Flown>| {
                stream
                    .split_with(copy)
                    .wire()
                    .written(flown)
                    .counted(async |stream: DataStream<Flown>| {
                        hours = Some(hourly::count(stream, late).await?);
                        Ok::<_, StreamError>(())
                    })
                    .reconciled(async |stream: DataStream<Flown>| {
                        reconciled = Some(fleet::reconcile(stream, planes, fleet).await?);
                        Ok::<_, StreamError>(())
                    })
                    .run()
            })
            .cancelled(JsonLines::create(out, "cancelled.jsonl")?)
            .diverted(JsonLines::create(out, "diverted.jsonl")?)
            .malformed(JsonLines::create(out, "malformed.jsonl")?)
            .long_delay(JsonLines::create(out, "long_delay.jsonl")?)
            .run()
            .await
            .map_err(explain)?;
        let (Some(hours), Some(reconciled)) = (hours, reconciled) else {
            return Err("a part of the job did not run to its end".to_owned());
        };
        chart::write(out, &hours)?;
        Ok(Outcome { split, hours, reconciled })
    }

    /// The lines of the file, parsed, by the time of scheduled departure.
    ///
    /// They get their timestamps before they are split, because cancelled flights tell the time
    /// too. A malformed line has none, and does not move the watermark.
    pub(crate) async fn rows(&self) -> Result<DataStream<Result<Row, Malformed>>, String> {
        let lines = read(&self.flights).await?;
        let rows = lines.filter(|line| !record::is_header(line)).map(Row::parse);
        let watermarks = Watermarks::bounded_out_of_orderness(hourly::BOUND);
        Ok(rows.assign_timestamps(scheduled, watermarks).boxed())
    }
}

/// When a row's flight was to depart.
pub(crate) fn scheduled(row: &Result<Row, Malformed>) -> Timestamp {
    row.as_ref().map_or(Timestamp::MIN, |row| row.flight.scheduled)
}

/// The lines of a file.
async fn read(path: &Path) -> Result<DataStream<Line>, String> {
    let file = File::open(path).await.map_err(|error| cannot_read(path, &error))?;
    let metadata = file.metadata().await.map_err(|error| cannot_read(path, &error))?;
    if metadata.is_dir() {
        return Err(cannot_read(path, &io::ErrorKind::IsADirectory.into()));
    }
    let path = path.to_owned();
    let lines = lines(BufReader::with_capacity(1 << 16, file))
        .map_err(move |error| cannot_read(&path, &error));
    Ok(DataStream::from_try_stream(lines))
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// The cause alone: that it came through a stream is no news to who ran the job.
pub(crate) fn explain(error: StreamError) -> String {
    match error {
        StreamError::Failed(cause) | StreamError::Destination { source: cause, .. } => {
            cause.to_string()
        }
        other => other.to_string(),
    }
}
