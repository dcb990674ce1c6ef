use super::session::{Failure, Session, store_error};
use super::sink::{Delta, Insert, Kind, SqliteSink, Upsert};
use super::{states, table};
use crate::checksum::Checksum;
use side_output_core::checkpoint::{Store, StoreError, Stored};
use side_output_core::state::StateChanges;
use sqlx::AssertSqlSafe;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Keeps the checkpoints of a job in a SQLite database, with the tables that its sinks write.
///
/// Its own tables have names with `side_output_`. The states of operators are rows there, of which
/// a checkpoint writes those that have changed. Rows of sinks are written as they come, in the
/// transaction that ends with their checkpoint: others see them when it is complete. So the job
/// holds the database's write lock most of the time. Other programs can read.
///
/// Clones are handles of the same store.
///
/// # Guarantee
///
/// A checkpoint and the rows that belong to it are one transaction (`synchronous=FULL`, in WAL
/// mode): after a crash at any point the database has the checkpoint before or this one, whole, with
/// the results of the same. Each row of a state has a checksum.
///
/// One process writes: it holds a lock of the operating system on a file beside, whose name ends in
/// `-lock`. Each transaction checks that no other writer has opened the store since.
///
/// # Examples
///
/// ```
/// use serde::Serialize;
/// use side_output::checkpoint::{JobSink as _, Store as _};
/// use side_output::connect::SqliteStore;
///
/// #[derive(Serialize)]
/// struct Hourly {
///     origin: &'static str,
///     hour: i64,
///     flights: u32,
///     revision: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), side_output::checkpoint::BoxError> {
/// # let path = std::env::temp_dir().join(format!("sqlite-store-{}.db", std::process::id()));
/// # std::fs::remove_file(&path).unwrap_or_default();
/// let mut store = SqliteStore::new(&path).create(
///     "CREATE TABLE hourly (origin TEXT, hour INTEGER, flights INTEGER, revision INTEGER, \
///      late INTEGER, PRIMARY KEY (origin, hour)) STRICT",
/// );
/// store.open("flights").await?;
///
/// // A result replaces the one of the same origin and hour, unless that has a higher revision.
/// let mut sink = store.upsert("hourly").revision("revision");
/// sink.open(None).await?;
/// let mut rows = vec![Hourly { origin: "JFK", hour: 7, flights: 12, revision: 0 }];
/// sink.write(&mut rows, &mut Vec::new()).await?;
/// sink.prepare(1).await?;
/// store.complete(1, Vec::new(), &[]).await?;
/// sink.commit(1).await?;
/// # drop((store, sink));
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// What the job's own tables and views are created with.
    creates: Vec<String>,
    forgotten: Vec<String>,
    session: Arc<Mutex<Session>>,
}

/// The tables of the store itself.
const TABLES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS side_output_job (\
     one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, job TEXT NOT NULL, \
     epoch INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS side_output_checkpoint (\
     one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL, cut BLOB NOT NULL, \
     checksum INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS side_output_value (\
     uid TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL, \
     PRIMARY KEY (uid, name)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS side_output_entry (\
     uid TEXT NOT NULL, name TEXT NOT NULL, key_group INTEGER NOT NULL, key BLOB NOT NULL, \
     value BLOB NOT NULL, checksum INTEGER NOT NULL, \
     PRIMARY KEY (uid, name, key_group, key)) STRICT, WITHOUT ROWID",
];

/// The version of these tables.
const FORMAT: i64 = 1;

impl SqliteStore {
    /// A store in the database of this path, which is made if it does not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            creates: Vec::new(),
            forgotten: Vec::new(),
            session: Arc::default(),
        }
    }

    /// Has this `CREATE` statement run where the database lacks what it creates.
    ///
    /// A table that is there already is never altered: if it has other columns, opening the store is
    /// an error that has the statement which would mend it.
    #[must_use]
    pub fn create(mut self, sql: impl Into<String>) -> Self {
        self.creates.push(sql.into());
        self
    }

    /// Inserts each record as a row of this table. See [`SqliteSink`].
    pub fn insert<T>(&self, table: impl Into<String>) -> SqliteSink<T, Insert> {
        SqliteSink::new(Arc::clone(&self.session), table.into(), Kind::Insert)
    }

    /// Inserts each record as a row of this table, or sets the columns that it has in the row of its
    /// primary key. See [`SqliteSink`], and [`SqliteSink::revision`].
    pub fn upsert<T>(&self, table: impl Into<String>) -> SqliteSink<T, Upsert> {
        SqliteSink::new(Arc::clone(&self.session), table.into(), Kind::Upsert(Vec::new()))
    }

    /// Adds each record to the row of its primary key: the columns that the record has beside the
    /// key grow by its numbers, and all others stay as they are. The row is made if it is not there.
    /// See [`SqliteSink`].
    pub fn delta<T>(&self, table: impl Into<String>) -> SqliteSink<T, Delta> {
        SqliteSink::new(Arc::clone(&self.session), table.into(), Kind::Delta)
    }

    #[cfg(test)]
    pub(super) fn session(&self) -> Arc<Mutex<Session>> {
        Arc::clone(&self.session)
    }

    async fn open_as_writer(
        &self,
        session: &mut Session,
        job: &str,
    ) -> Result<Option<Stored>, StoreError> {
        session.connect(&self.path).await?;
        let epoch = self.begin_job(session, job).await.map_err(Failure::into_store)?;
        session.commit().await?;
        session.set_epoch(epoch);
        Self::load(session).await
    }

    async fn begin_job(&self, session: &mut Session, job: &str) -> Result<i64, Failure> {
        session.begin().await?;
        for table in TABLES {
            session.run(table).await?;
        }
        let owner = sqlx::query_as::<_, (i64, String, i64)>(
            "SELECT format, job, epoch FROM side_output_job",
        );
        let owner = owner.fetch_optional(session.connection()?).await.map_err(store_error)?;
        let epoch = match owner {
            None => 1,
            Some((format, ..)) if format != FORMAT => {
                let text = format!("format {format} is not known, only {FORMAT}");
                return Err(StoreError::Damaged(text).into());
            }
            Some((_, owner, _)) if owner != job => {
                return Err(StoreError::OtherJob(owner).into());
            }
            Some((.., epoch)) => epoch + 1,
        };
        let sql = "INSERT OR REPLACE INTO side_output_job VALUES (1, ?, ?, ?)";
        session.execute(sqlx::query(sql).bind(FORMAT).bind(job.to_owned()).bind(epoch)).await?;
        table::create(session, &self.creates).await?;
        Ok(epoch)
    }

    async fn load(session: &mut Session) -> Result<Option<Stored>, StoreError> {
        let row = sqlx::query_as::<_, (i64, Vec<u8>, i64)>(
            "SELECT id, cut, checksum FROM side_output_checkpoint",
        );
        let row = row.fetch_optional(session.connection()?).await.map_err(store_error)?;
        let Some((id, cut, checksum)) = row else { return Ok(None) };
        if checksum != cut_checksum(id, &cut) {
            return Err(StoreError::Damaged(format!("checkpoint {id}")));
        }
        let states = states::load(session).await?;
        Ok(Some(Stored { id: id.cast_unsigned(), cut, states }))
    }

    async fn write(
        session: &mut Session,
        (id, cut): (i64, Vec<u8>),
        forgotten: Vec<String>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), Failure> {
        session.begin().await?;
        for uid in forgotten {
            states::forget(session, &uid).await?;
        }
        for (uid, changes) in changes {
            states::apply(session, uid, changes).await?;
        }
        let checksum = cut_checksum(id, &cut);
        let sql = "INSERT OR REPLACE INTO side_output_checkpoint VALUES (1, ?, ?, ?)";
        session.execute(sqlx::query(sql).bind(id).bind(cut).bind(checksum)).await?;
        session.commit().await?;
        Ok(())
    }
}

fn cut_checksum(id: i64, cut: &[u8]) -> i64 {
    Checksum::of_parts(&[&id.to_le_bytes(), cut]).into()
}

impl Store for SqliteStore {
    async fn open(&mut self, job: &str) -> Result<Option<Stored>, StoreError> {
        let mut session = self.session.lock().await;
        let opened = self.open_as_writer(&mut session, job).await;
        if opened.is_err() {
            session.close().await;
        }
        opened
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), StoreError> {
        let forgotten = std::mem::take(&mut self.forgotten);
        let mut session = self.session.lock().await;
        let written = (id.cast_signed(), cut);
        match Self::write(&mut session, written, forgotten, changes).await {
            Ok(()) => Ok(()),
            Err(error) => session.fail(error.into_store()).await,
        }
    }

    fn forget(&mut self, uid: &str) {
        self.forgotten.push(uid.to_owned());
    }
}

/// A name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// SQL that was put together from quoted names.
pub(super) fn safe(sql: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(sql)
}
