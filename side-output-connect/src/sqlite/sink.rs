use super::session::{Failure, Session, store_error};
use super::store::{quoted, safe};
use super::table::Table;
use crate::row::{Row, Value};
use serde::Serialize;
use side_output_core::checkpoint::{BoxError, Failed, Guarantee, JobSink, StoreError};
use std::marker::PhantomData;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Records as rows of a table, in the transaction of the checkpoint that they belong to.
///
/// Made by [`insert`](super::SqliteStore::insert), [`upsert`](super::SqliteStore::upsert) and
/// [`delta`](super::SqliteStore::delta). A record is a flat struct: its fields are columns of the
/// table, which may have others. The table is declared with
/// [`SqliteStore::create`](super::SqliteStore::create), or was there before.
///
/// # Guarantee
///
/// Exactly once. A row that the database refuses is refused alone, with the reason: a constraint, a
/// type, a key or revision that is missing. Rows that come while a checkpoint is on its way to the
/// store are written, or refused, with the next call after it.
///
/// # Errors
///
/// The first record must fit the table: if there is no such column, the error has the statement that
/// would add it.
///
/// A record that takes a row away is one that marks it: a column `gone`, say, that a view looks at.
/// It needs the revision as all others, so that no older record brings the row back.
#[derive(Debug)]
pub struct SqliteSink<T, K> {
    session: Arc<Mutex<Session>>,
    /// When it was opened.
    generation: u64,
    name: String,
    kind: Kind,
    marker: PhantomData<fn() -> K>,
    table: Option<Table>,
    /// A record has been a row of the table.
    fits: bool,
    /// Prepared, and not committed yet: the transaction is that of the checkpoint.
    prepared: bool,
    /// What has come since.
    held: Vec<(T, Row)>,
}

/// Each record is a row of its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct Insert {}

/// Each record replaces the row of its key.
#[derive(Debug)]
#[non_exhaustive]
pub struct Upsert {}

/// Each record is added to the row of its key.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delta {}

/// What becomes of a record whose row is there.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Insert,
    /// With the columns that tell which of two records is newer.
    Upsert(Vec<String>),
    Delta,
}

impl Kind {
    /// Columns that each record must have.
    fn required(&self, table: &Table) -> Vec<String> {
        match self {
            Self::Insert => Vec::new(),
            Self::Upsert(revision) => table.key.iter().chain(revision).cloned().collect(),
            Self::Delta => table.key.clone(),
        }
    }

    /// What is done where the row is there.
    fn on_conflict(&self, table: &Table, columns: &[String]) -> String {
        let name = quoted(&table.name);
        match self {
            Self::Insert => String::new(),
            Self::Upsert(revision) => {
                let set = |column: String| format!("{column} = excluded.{column}");
                let update = do_update(table, columns, set);
                let Some(first) = revision.first() else { return update };
                let of = |row: &str| {
                    let columns = revision.iter().map(|column| format!("{row}.{}", quoted(column)));
                    columns.collect::<Vec<_>>().join(", ")
                };
                // A row that only deltas were added to has no revision.
                let (first, new, old) = (quoted(first), of("excluded"), of(&name));
                format!("{update} WHERE {name}.{first} IS NULL OR ({new}) >= ({old})")
            }
            Self::Delta => do_update(table, columns, |column| {
                format!("{column} = coalesce({name}.{column}, 0) + coalesce(excluded.{column}, 0)")
            }),
        }
    }
}

fn do_update(table: &Table, columns: &[String], set: impl Fn(String) -> String) -> String {
    let quote = |column: &String| quoted(column);
    let key = table.key.iter().map(quote).collect::<Vec<_>>().join(", ");
    let columns = columns.iter().filter(|column| !table.key.contains(column));
    let columns = columns.map(|column| set(quoted(column))).collect::<Vec<_>>().join(", ");
    if columns.is_empty() {
        format!(" ON CONFLICT ({key}) DO NOTHING")
    } else {
        format!(" ON CONFLICT ({key}) DO UPDATE SET {columns}")
    }
}

impl<T> SqliteSink<T, Upsert> {
    /// The column by which the newer of two records is known, whichever comes first: a row whose
    /// value is greater stays as it is. Called again, it names the column that decides where those
    /// before are equal; where all are, the record that comes later replaces the row.
    #[must_use]
    pub fn revision(mut self, column: impl Into<String>) -> Self {
        if let Kind::Upsert(revision) = &mut self.kind {
            revision.push(column.into());
        }
        self
    }
}

impl<T, K> SqliteSink<T, K> {
    pub(super) fn new(session: Arc<Mutex<Session>>, name: String, kind: Kind) -> Self {
        Self {
            session,
            generation: 0,
            name,
            kind,
            marker: PhantomData,
            table: None,
            fits: false,
            prepared: false,
            held: Vec::new(),
        }
    }

    /// The row of a record, or why it is none.
    fn row(&self, table: &Table, record: &T) -> Result<Row, Problem>
    where
        T: Serialize,
    {
        let row = Row::of(record).map_err(|error| Problem::Row(error.to_string()))?;
        for (name, value) in row.names.iter().zip(&row.values) {
            if !table.columns.contains_key(&**name) {
                let mend = table.add_column(name, value);
                let text = format!("table `{}` has no column `{name}`: {mend}", self.name);
                return Err(Problem::Table(text));
            }
            // It would be stored as nothing.
            if matches!(value, Value::Real(value) if value.is_nan()) {
                return Err(Problem::Row(format!("column `{name}`: not a number")));
            }
        }
        for name in self.kind.required(table) {
            if matches!(row.get(&name), None | Some(Value::Null)) {
                return Err(Problem::Row(format!("column `{name}`: missing")));
            }
        }
        Ok(row)
    }

    /// Writes what was held back, and takes those out that are refused.
    async fn flush(&mut self, refused: &mut Vec<Failed<T>>) -> Result<(), BoxError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let table = self.table.as_ref().ok_or("the sink is not open")?;
        let mut session = self.session.lock().await;
        if session.generation != self.generation {
            return Err("the store was opened again since".into());
        }
        session.begin().await?;
        let (records, rows): (Vec<T>, Vec<Row>) =
            std::mem::take(&mut self.held).into_iter().unzip();
        let mut reasons = vec![None; rows.len()];
        let mut at = 0;
        while let Some(first) = rows.get(at) {
            let most = (MOST_ARGUMENTS / first.names.len().max(1)).clamp(1, MOST_ROWS);
            let alike = rows[at..].iter().take(most).take_while(|row| row.names == first.names);
            let end = at + alike.count();
            match insert(&mut session, table, &self.kind, &rows[at..end]).await {
                Ok(()) => {}
                Err(Failure::Refused(_)) => {
                    for at in at..end {
                        reasons[at] = try_one(&mut session, table, &self.kind, &rows[at]).await?;
                    }
                }
                Err(error) => return Err(error.into_error()),
            }
            at = end;
        }
        drop(session);
        for (record, reason) in records.into_iter().zip(reasons) {
            refused.extend(reason.map(|reason| Failed::new(record, reason)));
        }
        Ok(())
    }
}

enum Problem {
    Row(String),
    Table(String),
}

/// How many rows a statement has.
const MOST_ROWS: usize = 100;

/// How many arguments SQLite takes.
const MOST_ARGUMENTS: usize = 32_766;

/// Writes a row on its own; the reason if it is refused.
async fn try_one(
    session: &mut Session,
    table: &Table,
    kind: &Kind,
    row: &Row,
) -> Result<Option<String>, BoxError> {
    match insert(session, table, kind, std::slice::from_ref(row)).await {
        Ok(()) => Ok(None),
        Err(Failure::Refused(reason)) => Ok(Some(reason)),
        Err(error) => Err(error.into_error()),
    }
}

/// Writes rows that have the same columns: all, or none.
async fn insert(
    session: &mut Session,
    table: &Table,
    kind: &Kind,
    rows: &[Row],
) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let columns: Vec<String> = first.names.iter().map(ToString::to_string).collect();
    let names = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    let sql = format!(
        "INSERT INTO {} ({names}) VALUES {}{}",
        quoted(&table.name),
        vec![row; rows.len()].join(", "),
        kind.on_conflict(table, &columns),
    );
    let mut query = sqlx::query(safe(sql));
    for value in rows.iter().flat_map(|row| &row.values) {
        query = match value {
            Value::Null => query.bind(None::<i64>),
            Value::Bool(value) => query.bind(*value),
            Value::Integer(value) => query.bind(*value),
            Value::Real(value) => query.bind(*value),
            Value::Text(value) => query.bind(value.clone()),
            Value::Bytes(value) => query.bind(value.clone()),
        };
    }
    session.execute(query).await
}

impl<T: Serialize + Send + 'static, K: 'static> JobSink<T> for SqliteSink<T, K> {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, _: Option<&[u8]>) -> Result<(), BoxError> {
        let mut session = self.session.lock().await;
        self.generation = session.generation;
        (self.fits, self.prepared) = (false, false);
        self.held.clear();
        let name = &self.name;
        let found = Table::find(session.connection()?, name).await.map_err(store_error)?;
        let Some(table) = found else {
            let text = format!("there is no table `{name}`: declare it with `SqliteStore::create`");
            return Err(StoreError::failed(text).into());
        };
        if !matches!(self.kind, Kind::Insert) && table.key.is_empty() {
            return Err(format!("table `{name}` has no primary key, and records need one").into());
        }
        for column in self.kind.required(&table) {
            if !table.columns.contains_key(&column) {
                return Err(format!("table `{name}` has no column `{column}`").into());
            }
        }
        self.table = Some(table);
        Ok(())
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        // Those that were held back come first.
        if !self.prepared {
            self.flush(refused).await?;
        }
        let Some(table) = self.table.take() else { return Err("the sink is not open".into()) };
        let mut mismatch = None;
        for record in batch.drain(..) {
            match self.row(&table, &record) {
                Ok(row) => {
                    self.fits = true;
                    self.held.push((record, row));
                }
                // No record would be a row.
                Err(Problem::Table(text)) if !self.fits => mismatch = mismatch.or(Some(text)),
                Err(Problem::Row(text) | Problem::Table(text)) => {
                    refused.push(Failed::new(record, text));
                }
            }
        }
        self.table = Some(table);
        if let Some(mismatch) = mismatch {
            return Err(mismatch.into());
        }
        if self.prepared { Ok(()) } else { self.flush(refused).await }
    }

    async fn prepare(&mut self, _: u64) -> Result<Vec<u8>, BoxError> {
        let mut refused = Vec::new();
        self.flush(&mut refused).await?;
        if let Some(Failed { error, .. }) = refused.first() {
            // Written again, it is refused when it comes.
            return Err(
                format!("a row of table `{}` is refused too late: {error}", self.name).into()
            );
        }
        self.prepared = true;
        Ok(Vec::new())
    }

    async fn commit(&mut self, _: u64) -> Result<(), BoxError> {
        self.prepared = false;
        Ok(())
    }
}
