//! The flights job, killed at any point and started again: the directory holds in the end what a run
//! without a crash leaves there.

use side_output::checkpoint::BoxError;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs, thread};

/// How often it is killed; `KILLS=1000` for a long night.
const KILLS: u32 = 40;

/// The program, beside the tests of the same build.
fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let target = tests.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples").join(format!("flights{}", env::consts::EXE_SUFFIX));
    if !program.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--workspace", "--all-features", "--example", "flights"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
    }
    program
}

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed").join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

fn start(program: &Path, directory: &Path) -> Child {
    Command::new(program)
        .arg("--json")
        .arg("--job")
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn counts(child: Child) -> BTreeMap<String, i64> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Where both inputs meet, the order of the lines is a matter of timing.
const MEETING: [&str; 4] =
    ["matched.jsonl", "no_plane.jsonl", "no_flight.jsonl", "duplicate_planes.jsonl"];

/// All results: the contents of files by name, and the rows of tables by theirs.
async fn results(directory: &Path) -> Result<BTreeMap<String, Vec<String>>, BoxError> {
    let mut results = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("flights.db") {
            continue;
        }
        let mut lines: Vec<_> = fs::read_to_string(&path)?.lines().map(str::to_owned).collect();
        if MEETING.contains(&&*name) {
            lines.sort_unstable();
        }
        results.insert(name, lines);
    }
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.join("flights.db"));
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let tables = sqlx::query("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .fetch_all(&mut connection)
        .await?;
    for table in tables {
        let table: String = table.get(0);
        if table.starts_with("side_output_") {
            continue;
        }
        let sql = format!(
            "SELECT json_array(t.start, t.origin, t.flights, t.dep_delay, \
            t.on_time_flights, t.on_time_dep_delay, t.late_updates) FROM {table} t ORDER BY 1"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&mut connection).await?;
        results.insert(table, rows.iter().map(|row| row.get(0)).collect());
    }
    connection.close().await?;
    Ok(results)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn assert_same(left: &BTreeMap<String, Vec<String>>, right: &BTreeMap<String, Vec<String>>) {
    let names = |results: &BTreeMap<_, _>| results.keys().cloned().collect::<Vec<String>>();
    assert_eq!(names(left), names(right));
    for (name, lines) in left {
        assert!(*lines == right[name], "{name}: {} and {}", lines.len(), right[name].len());
    }
}

#[test]
fn a_job_that_is_killed_ends_with_the_results_of_one_that_is_not() {
    let program = program();
    let whole = directory("whole");
    let began = Instant::now();
    let mut expected = counts(start(&program, &whole));
    let length = began.elapsed();
    assert_eq!((expected["runs"], expected["restored"], expected["flown"]), (1, 0, 26398));
    let results_of_whole = block_on(results(&whole)).unwrap();
    assert_eq!(results_of_whole["hourly"].len(), 1642);

    let kills = env::var("KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    // Anywhere in the time that a whole run takes, whatever the machine is like.
    let mut random = 0x9E37_79B9_u32;
    let (mut killed, mut round, mut restored) = (0, 0, 0);
    while killed < kills {
        let directory = directory(&format!("killed-{round}"));
        round += 1;
        let mut runs = 0;
        let counts = loop {
            let mut child = start(&program, &directory);
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            runs += 1;
            if runs < 15 {
                thread::sleep(length * (random >> 24) / 256);
                child.kill().unwrap();
                // It may have been done before. The next one prints the counts again.
                killed += u32::from(!child.wait().unwrap().success());
                continue;
            }
            break counts(child);
        };
        restored += counts["restored"];
        for name in ["runs", "checkpoints", "restored"] {
            expected.insert(name.to_owned(), counts[name]);
        }
        assert_eq!(counts, expected);
        assert_same(&results_of_whole, &block_on(results(&directory)).unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }
    assert!(restored > 0);
}
