use super::*;
use serde::Serialize;
use side_output_core::checkpoint::{
    BoxError, Failed, JobSink, MemoryStore, Store as _, StoreError,
};
use side_output_core::state::StateChanges;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _, SqliteConnection};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("side-output-sqlite-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::remove_dir_all(&path).unwrap_or_default();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("job.db")
    }

    /// A store with its tables.
    fn store(&self) -> SqliteStore {
        SqliteStore::new(self.path()).create(HOURLY).create(EVENT)
    }

    /// What another program sees.
    async fn query(&self, sql: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
        let rows = rows.unwrap().into_iter().map(|row| row.get::<String, _>(0)).collect();
        connection.close().await.unwrap();
        rows
    }

    async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn connect(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path()).create_if_missing(true);
        SqliteConnection::connect_with(&options).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

const HOURLY: &str = "CREATE TABLE hourly (origin TEXT NOT NULL, hour INTEGER NOT NULL, \
    count INTEGER, stamp INTEGER, sequence INTEGER, gone INTEGER, late INTEGER, \
    PRIMARY KEY (origin, hour)) STRICT";
const EVENT: &str = "CREATE TABLE event (id INTEGER CHECK (id < 100), name TEXT) STRICT";

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Hourly {
    origin: &'static str,
    hour: i64,
    count: i64,
    stamp: i64,
    sequence: i64,
    gone: bool,
}

fn hourly(count: i64, stamp: i64, sequence: i64) -> Hourly {
    Hourly { origin: "JFK", hour: 1, count, stamp, sequence, gone: false }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Correction {
    origin: &'static str,
    hour: i64,
    late: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Event {
    id: i64,
    name: &'static str,
}

async fn write<T, S: JobSink<T>>(sink: &mut S, batch: impl Into<Vec<T>>) -> Vec<Failed<T>> {
    let mut refused = Vec::new();
    sink.write(&mut batch.into(), &mut refused).await.unwrap();
    refused
}

/// A checkpoint of one sink.
async fn checkpoint<T, S: JobSink<T>>(store: &mut SqliteStore, sink: &mut S, id: u64) {
    sink.prepare(id).await.unwrap();
    store.complete(id, Vec::new(), &[]).await.unwrap();
    sink.commit(id).await.unwrap();
}

const COUNTS: &str = "SELECT origin || hour || ':' || coalesce(count, '-') || '/' || coalesce(gone, '-') || '/' \
     || coalesce(late, '-') FROM hourly ORDER BY 1";

#[tokio::test]
async fn sink_04_an_older_value_never_replaces_a_newer_one_nor_brings_back_what_is_gone() {
    let folder = Folder::new("sink-04");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let mut sink = store.upsert("hourly").revision("stamp").revision("sequence");
    sink.open(None).await.unwrap();
    let gone = |stamp| Hourly { gone: true, ..hourly(0, stamp, 0) };
    let mut id = 0;
    for (row, expected) in [
        (hourly(2, 20, 0), "JFK1:2/0/-"),
        (hourly(1, 10, 0), "JFK1:2/0/-"),
        (gone(15), "JFK1:2/0/-"),
        (gone(30), "JFK1:0/1/-"),
        (hourly(3, 25, 0), "JFK1:0/1/-"),
        (hourly(4, 31, 0), "JFK1:4/0/-"),
    ] {
        id += 1;
        assert_eq!(write(&mut sink, [row]).await, []);
        checkpoint(&mut store, &mut sink, id).await;
        assert_eq!(folder.query(COUNTS).await, [expected]);
    }
}

#[tokio::test]
async fn sink_05_ties_are_decided_by_the_sequence_in_any_order_of_arrival() {
    let folder = Folder::new("sink-05");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let mut sink = store.upsert("hourly").revision("stamp").revision("sequence");
    sink.open(None).await.unwrap();
    let (mut rows, mut seed) = ([1, 2, 3, 4, 5], 1_u64);
    for hour in 1..=100 {
        for at in (1..rows.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            rows.swap(at, usize::try_from(seed >> 33).unwrap() % (at + 1));
        }
        let rows = rows.map(|sequence| Hourly { hour, ..hourly(60 + sequence, 7, sequence) });
        // In one statement, and in several.
        let (first, second) = rows.split_at(usize::try_from(hour).unwrap() % 5);
        assert_eq!(write(&mut sink, first).await, []);
        assert_eq!(write(&mut sink, second).await, []);
    }
    checkpoint(&mut store, &mut sink, 1).await;
    let sql = "SELECT count(*) || ',' || min(count) || ',' || max(count) FROM hourly";
    assert_eq!(folder.query(sql).await, ["100,65,65"]);
}

#[tokio::test]
async fn deltas_add_up_in_a_column_of_their_own_before_and_after_the_upsert() {
    let folder = Folder::new("delta");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let mut upsert = store.upsert("hourly").revision("stamp");
    let mut delta = store.delta("hourly");
    upsert.open(None).await.unwrap();
    delta.open(None).await.unwrap();
    let late = |late| Correction { origin: "JFK", hour: 1, late };
    assert_eq!(write(&mut delta, [late(1), late(2)]).await, []);
    assert_eq!(write(&mut upsert, [hourly(10, 5, 0)]).await, []);
    assert_eq!(write(&mut delta, [late(4)]).await, []);
    assert_eq!(write(&mut upsert, [hourly(11, 6, 0), hourly(9, 4, 0)]).await, []);
    delta.prepare(1).await.unwrap();
    checkpoint(&mut store, &mut upsert, 1).await;
    assert_eq!(folder.query(COUNTS).await, ["JFK1:11/0/7"]);
}

#[tokio::test]
async fn sink_08_a_bad_row_is_refused_alone_with_the_reason() {
    let folder = Folder::new("sink-08");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let mut sink = store.insert("event");
    sink.open(None).await.unwrap();
    for round in 0..20 {
        let rows: Vec<_> =
            (0..10).map(|id| Event { id: if id == 4 { 400 } else { id }, name: "x" }).collect();
        let refused = write(&mut sink, rows).await;
        assert_eq!(refused.len(), 1, "{round}");
        assert_eq!(refused[0].record.id, 400);
        assert!(refused[0].error.contains("CHECK constraint failed"), "{}", refused[0].error);
    }
    checkpoint(&mut store, &mut sink, 1).await;
    assert_eq!(folder.query("SELECT count(*) || '' FROM event").await, ["180"]);
}

#[tokio::test]
async fn sink_13_a_row_that_lacks_a_column_or_has_another_type_is_refused_with_its_name() {
    #[derive(Debug, PartialEq, Serialize)]
    struct Loose {
        origin: Option<&'static str>,
        hour: i64,
        stamp: Option<i64>,
        count: Count,
    }
    #[derive(Debug, PartialEq, Serialize)]
    #[serde(untagged)]
    enum Count {
        Number(f64),
        Text(&'static str),
    }
    let folder = Folder::new("sink-13");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let mut sink = store.upsert("hourly").revision("stamp");
    sink.open(None).await.unwrap();
    let row = |origin, stamp, count| Loose { origin, hour: 1, stamp, count };
    let refused = write(
        &mut sink,
        [
            row(Some("A"), Some(1), Count::Number(1.0)),
            row(None, Some(1), Count::Number(2.0)),
            row(Some("A"), None, Count::Number(3.0)),
            row(Some("A"), Some(2), Count::Number(f64::NAN)),
            row(Some("A"), Some(2), Count::Text("many")),
        ],
    )
    .await;
    let reasons: Vec<_> = refused.iter().map(|failed| failed.error.as_str()).collect();
    let strict = "cannot store TEXT value in INTEGER column hourly.count";
    assert_eq!(
        reasons,
        [
            "column `origin`: missing",
            "column `stamp`: missing",
            "column `count`: not a number",
            strict
        ]
    );
    checkpoint(&mut store, &mut sink, 1).await;
    assert_eq!(folder.query("SELECT count || '' FROM hourly").await, ["1"]);
}

#[tokio::test]
async fn sink_03_what_comes_after_the_barrier_belongs_to_the_next_checkpoint() {
    let folder = Folder::new("sink-03");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    let (mut slow, mut quick) = (store.insert("event"), store.insert("event"));
    slow.open(None).await.unwrap();
    quick.open(None).await.unwrap();
    let events =
        |ids: std::ops::Range<i64>| -> Vec<_> { ids.map(|id| Event { id, name: "x" }).collect() };
    let ids = "SELECT group_concat(id) FROM (SELECT id FROM event ORDER BY id)";
    write(&mut quick, events(0..2)).await;
    quick.prepare(1).await.unwrap();
    // One of them will be refused, in its time.
    assert_eq!(write(&mut quick, [Event { id: 500, name: "x" }]).await, []);
    assert_eq!(write(&mut quick, events(10..12)).await, []);
    write(&mut slow, events(2..4)).await;
    slow.prepare(1).await.unwrap();
    store.complete(1, Vec::new(), &[]).await.unwrap();
    assert_eq!(folder.query(ids).await, ["0,1,2,3"]);
    quick.commit(1).await.unwrap();
    slow.commit(1).await.unwrap();
    assert_eq!(write(&mut quick, events(12..13)).await.len(), 1);
    slow.prepare(2).await.unwrap();
    quick.prepare(2).await.unwrap();
    store.complete(2, Vec::new(), &[]).await.unwrap();
    assert_eq!(folder.query(ids).await, ["0,1,2,3,10,11,12"]);
}

#[tokio::test]
async fn tables_are_created_and_never_altered_and_a_mismatch_says_what_mends_it() {
    let folder = Folder::new("tables");
    folder.execute("CREATE TABLE event (id INTEGER, name TEXT, more BLOB) STRICT").await;
    let error = |error: StoreError| error.to_string();
    let opened = folder.store().open("job").await.map_err(error);
    assert_eq!(
        opened.unwrap_err(),
        "the store failed: table `event` has a column `more` which is not declared: \
         ALTER TABLE \"event\" DROP COLUMN \"more\""
    );
    // Nothing was done.
    assert_eq!(folder.query("SELECT name FROM sqlite_schema").await, ["event"]);
    folder.execute("DROP TABLE event").await;
    folder.execute("CREATE TABLE event (id INTEGER) STRICT").await;
    let opened = folder.store().open("job").await.map_err(error);
    let mend = "ALTER TABLE \"event\" ADD COLUMN \"name\" TEXT";
    assert!(opened.unwrap_err().ends_with(mend));
    folder.execute(mend).await;
    folder.store().open("job").await.unwrap();
    folder.execute("ALTER TABLE event DROP COLUMN name").await;
    folder.execute("ALTER TABLE event ADD COLUMN name INTEGER").await;
    let opened = folder.store().open("job").await.map_err(error);
    let text = "column `name` of table `event` is INTEGER and declared as TEXT";
    assert!(opened.unwrap_err().contains(text));

    let mut store = SqliteStore::new(folder.path());
    store.open("job").await.unwrap();
    let mut sink = store.insert("event");
    JobSink::<Correction>::open(&mut sink, None).await.unwrap();
    let mut batch = vec![Correction { origin: "JFK", hour: 1, late: 0 }];
    let error = sink.write(&mut batch, &mut Vec::new()).await.unwrap_err().to_string();
    assert!(error.ends_with("ALTER TABLE \"event\" ADD COLUMN \"origin\" TEXT"), "{error}");
    let mut sink = store.upsert::<Event>("event");
    let error = sink.open(None).await.unwrap_err().to_string();
    assert!(error.contains("has no primary key"), "{error}");
    let error = store.insert::<Event>("nowhere").open(None).await.unwrap_err().to_string();
    assert!(error.contains("there is no table `nowhere`"), "{error}");
    drop((store, sink));
    let mut store = SqliteStore::new(folder.path()).create("CREATE TABLE side_output_x (a)");
    assert!(store.open("job").await.is_err());
}

#[tokio::test]
async fn a_table_whose_conflicts_end_the_transaction_is_an_error_and_loses_nothing() {
    let folder = Folder::new("rollback");
    let sql = "CREATE TABLE single (id INTEGER UNIQUE ON CONFLICT ROLLBACK, name TEXT)";
    let mut store = SqliteStore::new(folder.path()).create(sql);
    store.open("job").await.unwrap();
    let mut sink = store.insert("single");
    sink.open(None).await.unwrap();
    let mut batch = vec![Event { id: 1, name: "a" }, Event { id: 1, name: "b" }];
    assert!(sink.write(&mut batch, &mut Vec::new()).await.is_err());
    assert!(store.complete(1, Vec::new(), &[]).await.is_err());
    assert_eq!(folder.query("SELECT name FROM single").await, [""; 0]);
}

/// What changes with each checkpoint.
fn changes(id: u64) -> Vec<(String, StateChanges)> {
    let mut changes = StateChanges::new(id.is_multiple_of(5));
    for key in id..id + 3 {
        changes.entry("keys", &key, &(), &format!("value {key} of {id}")).unwrap();
    }
    changes.remove("keys", &(id - 1), &()).unwrap();
    changes.entry("keys", &(id - 1), &7, &id).unwrap();
    changes.remove("keys", &(id + 1), &()).unwrap();
    changes.value("watermark", &id).unwrap();
    let mut many = StateChanges::new(false);
    for key in 0..450 {
        if (key + id).is_multiple_of(3) {
            many.remove("many", &key, &id.is_multiple_of(2)).unwrap();
        } else {
            many.entry("many", &key, &id.is_multiple_of(2), &(key + id)).unwrap();
        }
    }
    vec![("visits".to_owned(), changes), ("many".to_owned(), many)]
}

#[tokio::test]
async fn it_has_the_states_of_a_store_in_memory() {
    let folder = Folder::new("states");
    let (mut store, mut memory) = (folder.store(), MemoryStore::new());
    store.open("job").await.unwrap();
    memory.open("job").await.unwrap();
    for id in 1..12 {
        let changes = changes(id);
        if id == 7 {
            store.forget("many");
            memory.forget("many");
        }
        store.complete(id, vec![id.to_le_bytes()[0]], &changes).await.unwrap();
        memory.complete(id, vec![id.to_le_bytes()[0]], &changes).await.unwrap();
        assert_eq!(store.open("job").await.unwrap(), memory.stored());
    }
}

#[tokio::test]
async fn one_writer_one_job_and_a_stale_writer_is_fenced() {
    let folder = Folder::new("writers");
    let mut stale = folder.store();
    stale.open("job").await.unwrap();
    stale.complete(1, vec![1], &[]).await.unwrap();
    let mut sink = stale.insert("event");
    sink.open(None).await.unwrap();
    let in_use = folder.store().open("job").await;
    assert!(matches!(in_use, Err(StoreError::InUse(_))), "{in_use:?}");

    // The lock is gone, as on a disk that has none.
    fs::remove_file(folder.0.join("job.db-lock")).unwrap();
    let other = folder.store().open("other").await;
    assert!(matches!(other, Err(StoreError::OtherJob(job)) if job == "job"));
    let mut new = folder.store();
    assert_eq!(new.open("job").await.unwrap().unwrap().cut, [1]);
    let fenced = sink.write(&mut vec![Event { id: 1, name: "x" }], &mut Vec::new()).await;
    assert!(fenced.unwrap_err().to_string().contains("another writer has taken over"));
    fs::remove_file(folder.0.join("job.db-lock")).unwrap();
    stale.open("job").await.unwrap();
    let fenced = new.complete(2, vec![2], &[]).await;
    assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    stale.complete(2, vec![3], &[]).await.unwrap();
    // A sink of the time before writes nothing.
    let late = sink.write(&mut vec![Event { id: 1, name: "x" }], &mut Vec::new()).await;
    assert!(late.unwrap_err().to_string().contains("opened again"));
    assert_eq!(folder.query("SELECT name FROM event").await, [""; 0]);
}

#[tokio::test]
async fn a_changed_byte_of_any_row_is_damage() {
    let folder = Folder::new("damage");
    let mut store = folder.store();
    store.open("job").await.unwrap();
    store.complete(1, b"the cut".to_vec(), &changes(1)).await.unwrap();
    drop(store);
    let columns = [
        ("checkpoint", "cut"),
        ("checkpoint", "checksum"),
        ("value", "uid"),
        ("value", "name"),
        ("value", "value"),
        ("entry", "uid"),
        ("entry", "name"),
        ("entry", "key_group"),
        ("entry", "key"),
        ("entry", "value"),
        ("entry", "checksum"),
    ];
    for (table, column) in columns {
        folder.execute(&format!("CREATE TABLE kept AS SELECT * FROM side_output_{table}")).await;
        let changed = match column {
            "key_group" | "checksum" => format!("{column} + 1"),
            "uid" | "name" => format!("{column} || 'x'"),
            _ => format!("CAST({column} || 'x' AS BLOB)"),
        };
        let one = "LIMIT 1";
        folder
            .execute(&format!(
                "UPDATE side_output_{table} SET {column} = {changed} WHERE {column} IN \
                 (SELECT {column} FROM side_output_{table} {one})"
            ))
            .await;
        let opened = folder.store().open("job").await;
        assert!(matches!(opened, Err(StoreError::Damaged(_))), "{table}.{column}: {opened:?}");
        folder.execute(&format!("DELETE FROM side_output_{table}")).await;
        folder.execute(&format!("INSERT INTO side_output_{table} SELECT * FROM kept")).await;
        folder.execute("DROP TABLE kept").await;
    }
    folder.store().open("job").await.unwrap();
    fs::write(folder.path(), "this is no database, whatever its name may be").unwrap();
    let opened = folder.store().open("job").await;
    assert!(matches!(opened, Err(StoreError::Damaged(_))), "{opened:?}");
}

/// One run of a job with three sinks, from the checkpoint that is stored to the last one.
async fn run(path: &Path, fail_after: Option<usize>) -> Result<bool, BoxError> {
    const LAST: u64 = 4;
    let mut store = SqliteStore::new(path).create(HOURLY).create(EVENT);
    let session = store.session();
    session.lock().await.fail_after = fail_after;
    let stored = store.open("job").await?;
    let id = stored.as_ref().map_or(0, |stored| stored.id);
    let mut memory = MemoryStore::new();
    memory.open("job").await?;
    for id in 1..=id {
        memory.complete(id, vec![id.to_le_bytes()[0]], &changes(id)).await?;
    }
    assert_eq!(stored, memory.stored());
    let mut insert = store.insert("event");
    let mut upsert = store.upsert("hourly").revision("stamp");
    let mut delta = store.delta("hourly");
    insert.open(None).await?;
    upsert.open(None).await?;
    delta.open(None).await?;
    for id in id + 1..=LAST {
        let at = id.cast_signed();
        let mut refused = Vec::new();
        let mut events = vec![Event { id: at, name: "x" }, Event { id: 100 + at, name: "x" }];
        insert.write(&mut events, &mut refused).await?;
        assert_eq!(refused.len(), 1);
        upsert.write(&mut vec![hourly(at * 10, at, 0)], &mut Vec::new()).await?;
        delta
            .write(&mut vec![Correction { origin: "JFK", hour: 1, late: at }], &mut Vec::new())
            .await?;
        insert.prepare(id).await?;
        upsert.prepare(id).await?;
        delta.prepare(id).await?;
        store.complete(id, vec![id.to_le_bytes()[0]], &changes(id)).await?;
        insert.commit(id).await?;
        upsert.commit(id).await?;
        delta.commit(id).await?;
    }
    Ok(session.lock().await.fail_after.is_none())
}

#[tokio::test]
async fn results_and_states_are_exact_whichever_statement_fails() {
    let mut k = 0;
    loop {
        let folder = Folder::new("statements");
        if let Ok(false) = run(&folder.path(), Some(k)).await {
            break;
        }
        run(&folder.path(), None).await.unwrap();
        assert_eq!(folder.query(COUNTS).await, ["JFK1:40/0/10"], "statement {k}");
        let ids = "SELECT group_concat(id) FROM event";
        assert_eq!(folder.query(ids).await, ["1,2,3,4"], "statement {k}");
        k += 1;
    }
    assert!(k > 60, "{k} statements");
}
