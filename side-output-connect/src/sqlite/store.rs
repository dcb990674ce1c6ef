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

/// Keeps the checkpoints of a job in a SQLite database.
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

    /// Inserts each record as a row of this table.
    pub fn insert<T>(&self, table: impl Into<String>) -> SqliteSink<T, Insert> {
        SqliteSink::new(Arc::clone(&self.session), table.into(), Kind::Insert)
    }

    /// Inserts each record as a row of this table, or updates the row that has its primary key.
    pub fn upsert<T>(&self, table: impl Into<String>) -> SqliteSink<T, Upsert> {
        SqliteSink::new(Arc::clone(&self.session), table.into(), Kind::Upsert(Vec::new()))
    }

    /// Adds the numbers of each record to those of the row that has its primary key.
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
