//! The job that survives crashes: killed at any point and started again, it goes on from its last
//! checkpoint, and in the end the directory holds what a run without a crash gives.

use super::fleet::{self, FleetStreams, PlanesStreams};
use super::hourly::{self, Hour, Hours, LateFlight, Total};
use super::job::{CopiesStreams, FlightsStreams, Job, copy, scheduled, split_row};
use super::lines::{Line, MAX_LINE};
use super::record::{self, Row};
use super::report::Counts;
use super::{chart, time};
use serde::Serialize;
use side_output::WindowStreams;
use side_output::checkpoint::{BoxError, JobSource, Read};
use side_output::connect::{SqliteStore, files};
use side_output::job::{Every, JobReport, Pipeline};
use side_output::prelude::*;
use sqlx::Connection as _;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The result of an airport's hour; a later one replaces what an earlier one said.
const CREATE_HOURLY: &str = "CREATE TABLE hourly (\
    start TEXT NOT NULL, origin TEXT NOT NULL, flights INTEGER NOT NULL, \
    dep_delay INTEGER NOT NULL, on_time_flights INTEGER, on_time_dep_delay INTEGER, \
    late_updates INTEGER NOT NULL, PRIMARY KEY (start, origin)) STRICT";

/// A row of the table.
#[derive(Debug, Serialize)]
struct HourRow {
    start: String,
    origin: String,
    flights: u64,
    dep_delay: i64,
    /// Columns that a late update leaves as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_time_flights: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_time_dep_delay: Option<i64>,
    late_updates: u64,
}

impl From<WindowResult<String, Total>> for HourRow {
    fn from(result: WindowResult<String, Total>) -> Self {
        let on_time = (result.pane == Pane::OnTime).then_some(result.value);
        Self {
            start: time::format(result.window.start()),
            origin: result.key,
            flights: result.value.flights,
            dep_delay: result.value.dep_delay,
            on_time_flights: on_time.map(|total| total.flights),
            on_time_dep_delay: on_time.map(|total| total.dep_delay),
            late_updates: if let Pane::Late(update) = result.pane { update.into() } else { 0 },
        }
    }
}

/// What came of it, over all runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DurableCounts {
    #[serde(flatten)]
    counts: Counts,
    runs: u64,
    checkpoints: u64,
    restored: u64,
}

/// Runs the job in `directory`, with at most `rate` records a second if it is limited.
pub(crate) async fn run(
    job: &Job,
    directory: &Path,
    rate: Option<u32>,
) -> Result<DurableCounts, String> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let database = directory.join("flights.db");
    let store = SqliteStore::new(&database).create(CREATE_HOURLY);
    let report = side_output::job::Job::open("flights", store)
        .checkpoint_every(Every::records(5000).or_elapsed(Duration::from_millis(500)))
        .run(|pipeline| build(pipeline, job, directory, rate))
        .await
        .map_err(|error| error.to_string())?;
    let hours = hours(&database, report.written["late"])
        .await
        .map_err(|error| format!("cannot read {}: {error}", database.display()))?;
    chart::write(directory, &hours)?;
    Ok(DurableCounts::new(&report, &hours))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what `Job::run` takes")]
fn build(
    job: &mut Pipeline<'_, SqliteStore>,
    Job { flights, planes, .. }: &Job,
    directory: &Path,
    rate: Option<u32>,
) -> Result<(), BoxError> {
    let json_lines = |name: &str| files::json_lines(directory.join(name));
    let watermarks = Watermarks::bounded_out_of_orderness(hourly::BOUND);
    let source = Rated::new(files::lines(flights).longest(MAX_LINE), rate);
    let FlightsStreams { flown, cancelled, diverted, malformed, long_delay } = job
        .source("flights", source)
        .map(Line::from)
        .filter(|line| !record::is_header(line))
        .map(Row::parse)
        .assign_timestamps(scheduled, watermarks)
        .split_with(split_row);
    job.sink("cancelled", cancelled, json_lines("cancelled.jsonl"));
    job.sink("diverted", diverted, json_lines("diverted.jsonl"));
    job.sink("malformed", malformed, json_lines("malformed.jsonl"));
    job.sink("long_delay", long_delay, json_lines("long_delay.jsonl"));

    let CopiesStreams { written, counted, reconciled } = flown.split_with(copy);
    job.sink("flown", written, json_lines("flown.jsonl"));

    let WindowStreams { results, late } = counted
        .key_by(|flown| flown.flight.origin.clone())
        .window(hourly::windows())
        .allowed_lateness(hourly::LATENESS)
        .side_output_late_data()
        .uid("hourly")
        .aggregate(hourly::TotalDelay);
    let hourly = job.store().upsert("hourly").revision("late_updates");
    job.sink("hourly", results.map(HourRow::from), hourly);
    job.sink("late", late.map(LateFlight::from), json_lines("late.jsonl"));

    let PlanesStreams { plane, malformed } = job
        .source("planes", files::lines(planes).longest(MAX_LINE))
        .map(Line::from)
        .filter(|line| !fleet::is_header(line))
        .split_with(fleet::split_plane);
    job.sink("malformed_planes", malformed, json_lines("malformed_planes.jsonl"));
    let FleetStreams { matched, no_plane, no_flight, duplicate } = reconciled
        .key_by(|flown| flown.flight.tailnum.clone())
        .connect(plane.key_by(|plane| Some(plane.tailnum.clone())))
        .uid("fleet")
        .process(fleet::Reconcile);
    job.sink("matched", matched, json_lines("matched.jsonl"));
    job.sink("no_plane", no_plane, json_lines("no_plane.jsonl"));
    job.sink("no_flight", no_flight, json_lines("no_flight.jsonl"));
    job.sink("duplicate", duplicate, json_lines("duplicate_planes.jsonl"));
    Ok(())
}

/// The results in the store.
async fn hours(database: &Path, late: u64) -> Result<Hours, BoxError> {
    type Row = (String, String, i64, i64, Option<i64>, Option<i64>, i64);

    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
    let rows: Vec<Row> = sqlx::query_as("SELECT * FROM hourly").fetch_all(&mut connection).await?;
    connection.close().await?;
    let mut hours = Hours::with_late(late);
    for (start, origin, flights, dep_delay, on_time_flights, on_time_delay, late_updates) in rows {
        let start = time::parse_hour(&start).ok_or("no hour")?;
        let total = Total { flights: flights.try_into()?, dep_delay };
        let on_time = match on_time_flights.zip(on_time_delay) {
            Some((flights, dep_delay)) => Some(Total { flights: flights.try_into()?, dep_delay }),
            None => None,
        };
        let late_updates = late_updates.try_into()?;
        hours.insert(start, origin, Hour { total, on_time, late_updates });
    }
    Ok(hours)
}

impl DurableCounts {
    fn new(report: &JobReport, hours: &Hours) -> Self {
        let written = |sink: &str| report.written.get(sink).copied().unwrap_or(0);
        let split = ["flown", "cancelled", "diverted", "malformed"];
        let counts = Counts::new(split.map(written).iter().sum(), hours, written);
        let JobReport { runs, checkpoints, restored, .. } = *report;
        Self { counts, runs, checkpoints, restored }
    }

    /// The counts as a table, and where the results are.
    pub(crate) fn table(&self, directory: &Path) -> Result<String, String> {
        let counts = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let counts = counts.as_object().into_iter().flatten();
        let mut lines: Vec<_> =
            counts.map(|(name, count)| format!("{name:18} {count:>8}")).collect();
        lines.push(format!("\nwritten to {}; hourly.html is a picture", directory.display()));
        Ok(lines.join("\n"))
    }
}

impl From<files::Line> for Line {
    fn from(line: files::Line) -> Self {
        // With its end.
        Self { number: line.number, bytes: line.bytes, length: line.length + 1 }
    }
}

/// A source that gives at most so many records a second, so that there is time to kill it.
struct Rated<S> {
    source: S,
    /// Records a second.
    rate: Option<u32>,
    next: Instant,
}

impl<S> Rated<S> {
    fn new(source: S, rate: Option<u32>) -> Self {
        Self { source, rate, next: Instant::now() }
    }
}

impl<S: JobSource + Sync> JobSource for Rated<S> {
    type Item = S::Item;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.source.open(position).await
    }

    async fn read(&mut self, into: &mut Vec<S::Item>, most: usize) -> Result<Read, BoxError> {
        let Some(rate) = self.rate else {
            return self.source.read(into, most).await;
        };
        sleep_until(self.next).await;
        let read = self.source.read(into, most.min(100)).await?;
        let records = u32::try_from(into.len()).unwrap_or(u32::MAX);
        self.next = Instant::now() + Duration::from_secs(1) * records / rate;
        Ok(read)
    }

    fn position(&self) -> Vec<u8> {
        self.source.position()
    }

    async fn completed(&mut self, position: &[u8]) -> Result<(), BoxError> {
        self.source.completed(position).await
    }
}
