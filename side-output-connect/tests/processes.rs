//! Several processes: one writer, and one that is killed at any point and started again.

use side_output_connect::{FolderStore, SqliteStore, files};
use side_output_core::checkpoint::{BoxError, Cut, JobSink, JobSource as _, SourceCut};
use side_output_core::checkpoint::{Store, StoreError};
use side_output_core::state::StateChanges;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const CHECKPOINTS: u64 = 60;
const LINES: u64 = 600;
const TABLE: &str = "CREATE TABLE line (number INTEGER PRIMARY KEY, text TEXT) STRICT";

#[derive(serde::Serialize)]
struct Row {
    number: u64,
    text: String,
}

/// A job by hand: lines of a file go into a file of JSON lines, a CSV file, and, where the store is
/// a database, into a table.
async fn job(
    mut store: impl Store,
    database: Option<&SqliteStore>,
    folder: &Path,
) -> Result<(), BoxError> {
    let stored = store.open("job").await?;
    let cut = stored.as_ref().map(|stored| Cut::from_bytes(&stored.cut)).transpose()?;
    let mut id = stored.as_ref().map_or(0, |stored| stored.id);
    if let Some(stored) = &stored {
        let states: Vec<_> = stored.states["count"].read_values::<u64>("count")?;
        assert_eq!(states, [id]);
    }
    let prepared = |name| cut.as_ref().map(|cut| cut.sinks[name].as_slice());
    let mut source = files::lines(folder.join("input"));
    source.open(cut.as_ref().map(|cut| cut.sources["input"].position.as_slice())).await?;
    let mut json = files::json_lines(folder.join("out.jsonl"));
    JobSink::<Row>::open(&mut json, prepared("json")).await?;
    let mut csv = files::csv(folder.join("out.csv"));
    JobSink::<Row>::open(&mut csv, prepared("csv")).await?;
    let mut rows = database.map(|store| store.insert("line"));
    if let Some(rows) = &mut rows {
        rows.open(None).await?;
    }
    let mut done = 0;
    while id < CHECKPOINTS {
        id += 1;
        let mut lines = Vec::new();
        source.read(&mut lines, usize::try_from(LINES / CHECKPOINTS)?).await?;
        let rows_of = |lines: &[files::Line]| -> Vec<Row> {
            let row = |line: &files::Line| Row {
                number: line.number,
                text: line.text().unwrap_or_default().to_owned(),
            };
            lines.iter().map(row).collect()
        };
        let mut refused = Vec::new();
        json.write(&mut rows_of(&lines), &mut refused).await?;
        csv.write(&mut rows_of(&lines), &mut refused).await?;
        if let Some(rows) = &mut rows {
            rows.write(&mut rows_of(&lines), &mut refused).await?;
            rows.prepare(id).await?;
        }
        assert!(refused.is_empty());
        let mut cut = Cut::default();
        cut.sources
            .insert("input".to_owned(), SourceCut { position: source.position(), ended: false });
        cut.sinks.insert("json".to_owned(), JobSink::<Row>::prepare(&mut json, id).await?);
        cut.sinks.insert("csv".to_owned(), JobSink::<Row>::prepare(&mut csv, id).await?);
        let mut changes = StateChanges::new(false);
        changes.value("count", &id)?;
        for key in id..id + 20 {
            changes.entry("keys", &key, &(), &id)?;
        }
        store.complete(id, cut.to_bytes()?, &[("count".to_owned(), changes)]).await?;
        JobSink::<Row>::commit(&mut json, id).await?;
        JobSink::<Row>::commit(&mut csv, id).await?;
        if let Some(rows) = &mut rows {
            rows.commit(id).await?;
        }
        // Whoever started this process waits for it.
        writeln!(std::io::stdout(), "checkpoint {id}")?;
        std::io::stdout().flush()?;
        done += 1;
        if done == most() && id < CHECKPOINTS {
            // It goes on when it is killed: never.
            std::io::stdin().read_to_end(&mut Vec::new())?;
        }
    }
    Ok(())
}

/// How many checkpoints this process may complete.
fn most() -> u64 {
    let most = std::env::var("SIDE_OUTPUT_TEST_MOST").ok();
    most.and_then(|most| most.parse().ok()).unwrap_or(u64::MAX)
}

/// Is the process that is killed, if it was started as that, and otherwise nothing.
#[tokio::test]
async fn child() {
    let Some(folder) = std::env::var_os("SIDE_OUTPUT_TEST_FOLDER") else { return };
    let folder = PathBuf::from(folder);
    let store = std::env::var("SIDE_OUTPUT_TEST_STORE").unwrap();
    run(&store, &folder).await.unwrap();
}

async fn run(store: &str, folder: &Path) -> Result<(), BoxError> {
    if store == "folder" {
        return job(FolderStore::new(folder.join("store")), None, folder).await;
    }
    let database = SqliteStore::new(folder.join("job.db")).create(TABLE);
    job(database.clone(), Some(&database), folder).await
}

/// Starts a process that completes at most so many checkpoints and then waits to be killed.
fn start(store: &str, folder: &Path, most: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("SIDE_OUTPUT_TEST_FOLDER", folder)
        .env("SIDE_OUTPUT_TEST_STORE", store)
        .env("SIDE_OUTPUT_TEST_MOST", most.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child has completed so many more checkpoints, or has ended.
fn wait_for(child: &mut Child, checkpoints: usize) -> bool {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let lines = lines.map_while(Result::ok).filter(|line| line.contains("checkpoint "));
    lines.take(checkpoints).count() == checkpoints
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("processes-{name}"));
    fs::remove_dir_all(&folder).unwrap_or_default();
    fs::create_dir_all(&folder).unwrap();
    let lines: Vec<_> = (1..=LINES).map(|number| format!("line {number}\r\n")).collect();
    fs::write(folder.join("input"), lines.concat()).unwrap();
    folder
}

/// Kills it at many points, starts it again at once, and compares with a run that nothing befell.
async fn killed_again_and_again(store: &str) {
    let (killed, whole) = (folder(&format!("{store}-killed")), folder(&format!("{store}-whole")));
    run(store, &whole).await.unwrap();
    let mut kills = 0;
    loop {
        let mut child = start(store, &killed, 8);
        // The kill comes at any point after this, also while it is being started.
        if !wait_for(&mut child, [1, 0, 3, 2, 7][kills % 5]) {
            assert!(child.wait().unwrap().success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills >= 7, "{kills}");
    run(store, &killed).await.unwrap();
    for name in ["out.jsonl", "out.csv"] {
        let [killed, whole] = [&killed, &whole].map(|folder| fs::read(folder.join(name)).unwrap());
        assert!(killed == whole, "{name}");
    }
    let is_temporary = |name: &String| name.contains(".pending-") || name.contains(".new");
    for folder in [killed.clone(), killed.join("store")] {
        let files = fs::read_dir(folder).into_iter().flatten();
        let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.find(is_temporary), None);
    }
    if store == "sqlite" {
        let [killed, whole] = [rows(&killed).await, rows(&whole).await];
        assert_eq!(killed.len(), usize::try_from(LINES).unwrap());
        assert!(killed == whole);
    }
    fs::remove_dir_all(killed).unwrap();
    fs::remove_dir_all(whole).unwrap();
}

async fn rows(folder: &Path) -> Vec<(i64, String)> {
    use sqlx::Connection as _;
    let url = format!("sqlite://{}", folder.join("job.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let rows = sqlx::query_as::<_, (i64, String)>("SELECT number, text FROM line ORDER BY number");
    rows.fetch_all(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_job_that_is_killed_at_any_point_gives_the_same_with_a_folder() {
    killed_again_and_again("folder").await;
}

#[tokio::test]
async fn a_job_that_is_killed_at_any_point_gives_the_same_with_a_database() {
    killed_again_and_again("sqlite").await;
}

#[tokio::test]
async fn a_second_process_is_told_that_the_store_is_in_use() {
    for store in ["folder", "sqlite"] {
        let folder = folder(&format!("{store}-in-use"));
        let mut child = start(store, &folder, 1);
        assert!(wait_for(&mut child, 1));
        let opened = match store {
            "folder" => FolderStore::new(folder.join("store")).open("job").await.map(drop),
            _ => SqliteStore::new(folder.join("job.db")).open("job").await.map(drop),
        };
        assert!(matches!(opened, Err(StoreError::InUse(_))), "{opened:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        // Right after it was killed.
        run(store, &folder).await.unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
