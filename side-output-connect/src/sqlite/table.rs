//! Tables of results.

use super::session::{Failure, Session, store_error};
use super::store::{quoted, safe};
use crate::row::Value;
use side_output_core::checkpoint::StoreError;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use std::collections::BTreeMap;

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    /// The names of its columns, and what else was declared of them.
    pub(super) columns: BTreeMap<String, Column>,
    /// The columns of its primary key, in their order.
    pub(super) key: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    kind: String,
    not_null: bool,
}

impl Table {
    /// The table of this name, if there is one.
    pub(super) async fn find(
        connection: &mut SqliteConnection,
        name: &str,
    ) -> Result<Option<Self>, sqlx::Error> {
        let sql = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?)";
        let rows = sqlx::query_as::<_, (String, String, bool, i64)>(sql).bind(name.to_owned());
        let rows = rows.fetch_all(connection).await?;
        let mut key: Vec<_> = rows.iter().filter(|row| row.3 > 0).collect();
        key.sort_unstable_by_key(|row| row.3);
        let key = key.into_iter().map(|row| row.0.clone()).collect();
        let columns = rows.iter().map(|(name, kind, not_null, _)| {
            (name.clone(), Column { kind: kind.to_ascii_uppercase(), not_null: *not_null })
        });
        let table = Self { name: name.to_owned(), columns: columns.collect(), key };
        Ok((!table.columns.is_empty()).then_some(table))
    }

    /// The statement that would give it this column.
    pub(super) fn add_column(&self, name: &str, value: &Value) -> String {
        let kind = match value {
            Value::Null => "ANY",
            Value::Bool(_) | Value::Integer(_) => "INTEGER",
            Value::Real(_) => "REAL",
            Value::Text(_) => "TEXT",
            Value::Bytes(_) => "BLOB",
        };
        self.add(name, kind)
    }

    fn add(&self, name: &str, kind: &str) -> String {
        format!("ALTER TABLE {} ADD COLUMN {} {kind}", quoted(&self.name), quoted(name))
    }

    /// Why it is not the one that was declared, and what would mend that.
    fn difference(&self, declared: &Self) -> Option<String> {
        let name = &self.name;
        for (column, Column { kind, .. }) in &declared.columns {
            if !self.columns.contains_key(column) {
                let mend = self.add(column, kind);
                return Some(format!("table `{name}` has no column `{column}`: {mend}"));
            }
        }
        for (column, there) in &self.columns {
            let mend = format!("ALTER TABLE {} DROP COLUMN {}", quoted(name), quoted(column));
            match declared.columns.get(column) {
                None => {
                    let text = "which is not declared";
                    return Some(format!("table `{name}` has a column `{column}` {text}: {mend}"));
                }
                Some(declared) if declared != there => {
                    let is = |column: &Column| {
                        format!("{}{}", column.kind, if column.not_null { " NOT NULL" } else { "" })
                    };
                    let (there, declared) = (is(there), is(declared));
                    let text = format!("is {there} and declared as {declared}");
                    return Some(format!("column `{column}` of table `{name}` {text}: {mend}"));
                }
                Some(_) => {}
            }
        }
        (self.key != declared.key).then(|| {
            let (there, declared) = (self.key.join(", "), declared.key.join(", "));
            let mend = format!("ALTER TABLE {0} RENAME TO {0}_old", quoted(name));
            format!("the primary key of table `{name}` is ({there}) and not ({declared}): {mend}")
        })
    }
}

/// Runs those statements that create what is not there, and compares the rest.
pub(super) async fn create(session: &mut Session, statements: &[String]) -> Result<(), Failure> {
    if statements.is_empty() {
        return Ok(());
    }
    // What a statement creates is seen where nothing else is.
    let mut empty = SqliteConnection::connect("sqlite::memory:").await.map_err(store_error)?;
    for sql in statements {
        let before = names(&mut empty).await.map_err(store_error)?;
        let failed = |error| StoreError::failed(format!("{sql}: {error}"));
        empty.execute(safe(sql.clone())).await.map_err(failed)?;
        let after = names(&mut empty).await.map_err(store_error)?;
        let Some((kind, name)) = after.into_iter().find(|name| !before.contains(name)) else {
            return Err(StoreError::failed(format!("{sql}: it creates nothing")).into());
        };
        if name.starts_with("side_output_") {
            let text = format!("{sql}: names with `side_output_` are those of the store");
            return Err(StoreError::failed(text).into());
        }
        let connection = session.connection()?;
        if !names(connection).await.map_err(store_error)?.contains(&(kind.clone(), name.clone())) {
            session.run(sql).await?;
            continue;
        }
        if kind != "table" {
            continue;
        }
        let there = Table::find(connection, &name).await.map_err(store_error)?;
        let declared = Table::find(&mut empty, &name).await.map_err(store_error)?;
        if let (Some(there), Some(declared)) = (there, declared)
            && let Some(difference) = there.difference(&declared)
        {
            return Err(StoreError::failed(difference).into());
        }
    }
    empty.close().await.map_err(store_error)?;
    Ok(())
}

/// Kind and name of everything that was created.
async fn names(connection: &mut SqliteConnection) -> Result<Vec<(String, String)>, sqlx::Error> {
    let sql = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'";
    sqlx::query_as::<_, (String, String)>(sql).fetch_all(connection).await
}
