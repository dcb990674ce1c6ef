use crate::lock::Lock;
use side_output_core::checkpoint::{BoxError, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};
use std::path::Path;
use std::time::Duration;

/// The one connection of a job to its database: the store and all of its sinks use it in turn.
///
/// A transaction is begun by whoever writes first, and ends with the checkpoint. So what sinks write
/// is refused, or not, when it is written, and is seen by others when the checkpoint is complete.
#[derive(Debug, Default)]
pub(super) struct Session {
    open: Option<Open>,
    /// How often it was opened: sinks of an earlier time must not write to it.
    pub(super) generation: u64,
    /// Makes the statement fail that comes after so many.
    #[cfg(test)]
    pub(super) fail_after: Option<usize>,
}

#[derive(Debug)]
struct Open {
    connection: SqliteConnection,
    /// Holds the lock.
    lock: Lock,
    /// Which writer this is.
    epoch: i64,
    in_transaction: bool,
    /// A statement has failed for another reason than its row: nothing more is written.
    broken: bool,
}

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The row is refused; the transaction goes on without it.
    Refused(String),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    pub(super) fn into_error(self) -> BoxError {
        match self {
            Self::Refused(reason) => reason.into(),
            Self::Store(error) => error.into(),
        }
    }
}

impl Session {
    /// Takes the lock and connects; whoever had this session before has it no more.
    pub(super) async fn connect(&mut self, path: &Path) -> Result<(), StoreError> {
        self.generation += 1;
        let lock = if let Some(Open { connection, lock, .. }) = self.open.take() {
            // What was begun is rolled back.
            connection.close().await.map_err(store_error)?;
            lock
        } else {
            let mut lock = path.as_os_str().to_owned();
            lock.push("-lock");
            Lock::take(Path::new(&lock))?
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5));
        let connection = SqliteConnection::connect_with(&options).await;
        let connection = connection.map_err(store_error)?;
        let open = Open { connection, lock, epoch: 0, in_transaction: false, broken: false };
        self.open = Some(open);
        Ok(())
    }

    /// Gives up the connection, with what was begun, and the lock.
    pub(super) async fn close(&mut self) {
        if let Some(Open { connection, lock, .. }) = self.open.take() {
            // What cannot be closed is dropped: it is rolled back either way.
            drop(connection.close().await);
            drop(lock);
        }
    }

    /// From now on this is the writer with that number.
    pub(super) fn set_epoch(&mut self, epoch: i64) {
        if let Some(open) = &mut self.open {
            open.epoch = epoch;
        }
    }

    fn open(&mut self) -> Result<&mut Open, StoreError> {
        match &mut self.open {
            None => Err(StoreError::failed("the store is not open")),
            Some(open) if open.broken => {
                Err(StoreError::failed("the store has failed before, and was not opened again"))
            }
            Some(open) => Ok(open),
        }
    }

    /// Begins the transaction, unless it was begun.
    pub(super) async fn begin(&mut self) -> Result<(), StoreError> {
        if self.open()?.in_transaction {
            return Ok(());
        }
        self.run("BEGIN IMMEDIATE").await.map_err(Failure::into_store)?;
        self.run("SAVEPOINT side_output").await.map_err(Failure::into_store)?;
        let open = self.open()?;
        open.in_transaction = true;
        if open.epoch == 0 {
            return Ok(()); // it is about to become the writer
        }
        // As long as the transaction lasts, nobody else becomes one.
        let epoch = sqlx::query_scalar::<_, i64>("SELECT epoch FROM side_output_job");
        match epoch.fetch_one(&mut open.connection).await {
            Ok(epoch) if epoch == open.epoch => Ok(()),
            Ok(_) => self.fail(StoreError::Fenced).await,
            Err(error) => self.fail(store_error(error)).await,
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT").await.map_err(Failure::into_store)?;
        self.open()?.in_transaction = false;
        Ok(())
    }

    /// Gives the transaction up.
    pub(super) async fn fail<R>(&mut self, error: StoreError) -> Result<R, StoreError> {
        if let Some(open) = &mut self.open {
            open.broken = true;
            // It may be over already; that the connection is not used any more holds either way.
            drop(open.connection.execute("ROLLBACK").await);
        }
        Err(error)
    }

    /// Runs a statement without arguments.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.execute(sqlx::query(AssertSqlSafe(sql.to_owned()))).await
    }

    /// Runs a statement. An error that is not about its row ends the transaction.
    pub(super) async fn execute(
        &mut self,
        query: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<(), Failure> {
        #[cfg(test)]
        if let Some(left) = &mut self.fail_after {
            if *left == 0 {
                self.fail_after = None;
                let error = StoreError::failed("the test wants it");
                return self.fail(error).await.map_err(Failure::Store);
            }
            *left -= 1;
        }
        let open = self.open()?;
        match query.execute(&mut open.connection).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let Some(reason) = refusal(&error) else {
                    return self.fail(store_error(error)).await.map_err(Failure::Store);
                };
                // A table may be declared so that a conflict ends the whole transaction. Then there
                // is no savepoint any more, and nothing more must be written.
                for sql in ["RELEASE side_output", "SAVEPOINT side_output"] {
                    if let Err(error) = open.connection.execute(sql).await {
                        return self.fail(store_error(error)).await.map_err(Failure::Store);
                    }
                }
                Err(Failure::Refused(reason))
            }
        }
    }

    /// For reading.
    pub(super) fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        Ok(&mut self.open()?.connection)
    }
}

impl Failure {
    pub(super) fn into_store(self) -> StoreError {
        match self {
            Self::Refused(reason) => StoreError::failed(reason),
            Self::Store(error) => error,
        }
    }
}

/// The primary result code of SQLite, without what it is extended by.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?.parse::<i32>().ok()?;
    Some(code & 0xFF)
}

/// The reason, if only the row is to blame.
fn refusal(error: &sqlx::Error) -> Option<String> {
    const TOO_BIG: i32 = 18;
    const CONSTRAINT: i32 = 19;
    const MISMATCH: i32 = 20;
    matches!(code(error)?, TOO_BIG | CONSTRAINT | MISMATCH)
        .then(|| error.as_database_error().map(|error| error.message().to_owned()))?
}

pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    const BUSY: i32 = 5;
    const CORRUPT: i32 = 11;
    const NOT_A_DATABASE: i32 = 26;
    match code(&error) {
        Some(BUSY) => StoreError::InUse(error.to_string()),
        Some(CORRUPT | NOT_A_DATABASE) => StoreError::Damaged(error.to_string()),
        _ => StoreError::failed(error),
    }
}
