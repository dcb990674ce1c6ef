//! A job that survives crashes: counts words by minute, into a database.
//!
//! `cargo run --features job --example job -- PATH DIR`: kill it, start it again, and DIR has what an
//! undisturbed run leaves there.

use serde::Serialize;
use side_output::connect::{SqliteStore, files};
use side_output::job::{Every, Job, JobError, JobReport};
use side_output::prelude::*;
use side_output::{Count, Tumbling, WindowStreams};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Where a line goes: `SECOND WORD`.
#[splitter]
enum Lines {
    #[main]
    Word((i64, String)),
    Malformed(String),
}

#[splitter(Lines)]
fn split_line(line: files::Line) -> Lines {
    let text = String::from_utf8_lossy(&line.bytes).into_owned();
    let Some((second, word)) = text.split_once(' ') else {
        return Lines::Malformed(text);
    };
    match second.parse() {
        Ok(second) => Lines::Word((second, word.to_owned())),
        Err(_) => Lines::Malformed(text),
    }
}

/// A row of the table `minutes`; a later result of a minute replaces the one before.
#[derive(Serialize)]
struct Row {
    minute: i64,
    word: String,
    count: u64,
}

async fn count_words(path: &Path, directory: &Path) -> Result<JobReport, JobError> {
    let store = SqliteStore::new(directory.join("words.db")).create(
        "CREATE TABLE minutes (minute INTEGER, word TEXT, count INTEGER, \
         PRIMARY KEY (minute, word))",
    );
    let job = Job::open("words", store).checkpoint_every(Every::records(1000));
    let build = |job: &mut side_output::job::Pipeline<'_, SqliteStore>| {
        let LinesStreams { word, malformed } =
            job.source("lines", files::lines(path)).split_with(split_line);
        let WindowStreams { results, late } = word
            .assign_timestamps(
                |(second, _)| Timestamp::from_secs(*second),
                Watermarks::bounded_out_of_orderness(Duration::from_secs(10)),
            )
            .key_by(|(_, word)| word.clone())
            .window(Tumbling::of(Duration::from_mins(1)))
            .side_output_late_data()
            .uid("minutes")
            .aggregate(Count::new());
        let rows = results.map(|result| Row {
            minute: result.window.start().as_millis() / 60_000,
            word: result.key,
            count: result.value,
        });
        job.sink("minutes", rows, job.store().upsert("minutes"));
        let late = late.map(|late| late.to_string());
        job.sink("late", late, files::json_lines(directory.join("late.jsonl")));
        job.sink("malformed", malformed, files::json_lines(directory.join("malformed.jsonl")));
        Ok(())
    };
    job.run(build).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: job PATH DIR".into());
    };
    std::fs::create_dir_all(&directory)?;
    let report = count_words(path.as_ref(), directory.as_ref()).await?;
    let (minutes, malformed) = (report.written["minutes"], report.written["malformed"]);
    writeln!(std::io::stdout(), "{minutes} results, {malformed} malformed lines")?;
    Ok(())
}
