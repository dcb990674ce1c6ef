//! The states of operators as rows.

use super::session::{Failure, Session, store_error};
use super::store::safe;
use crate::checksum::Checksum;
use futures_core::Stream;
use side_output_core::checkpoint::StoreError;
use side_output_core::state::{ChangedEntry, SavedState, StateChanges};
use std::collections::BTreeMap;
use std::pin::pin;

/// How many rows one statement has.
const ROWS: usize = 200;

pub(super) async fn load(
    session: &mut Session,
) -> Result<BTreeMap<String, SavedState>, StoreError> {
    let mut states = BTreeMap::<String, SavedState>::new();
    let sql = "SELECT uid, name, value, checksum FROM side_output_value";
    {
        let rows = sqlx::query_as::<_, (String, String, Vec<u8>, i64)>(sql);
        let mut rows = pin!(rows.fetch(session.connection()?));
        while let Some(row) = next(&mut rows).await {
            let (uid, name, value, checksum) = row.map_err(store_error)?;
            if checksum != value_checksum(&uid, &name, &value) {
                return Err(StoreError::Damaged(format!("value `{name}` of `{uid}`")));
            }
            states.entry(uid).or_default().insert_value(name, value);
        }
    }
    let sql = "SELECT uid, name, key_group, key, value, checksum FROM side_output_entry";
    let rows = sqlx::query_as::<_, (String, String, i64, Vec<u8>, Vec<u8>, i64)>(sql);
    let mut rows = pin!(rows.fetch(session.connection()?));
    while let Some(row) = next(&mut rows).await {
        let (uid, name, group, key, value, checksum) = row.map_err(store_error)?;
        let damaged =
            || StoreError::Damaged(format!("an entry of `{name}` in key group {group} of `{uid}`"));
        let group = u8::try_from(group).map_err(|_| damaged())?;
        if checksum != entry_checksum(&uid, &name, group, &key, &value) {
            return Err(damaged());
        }
        // Most rows belong to the same operator as the one before.
        let state = match states.get_mut(&uid) {
            Some(state) => state,
            None => states.entry(uid).or_default(),
        };
        state.insert_entry(&name, group, key, value);
    }
    Ok(states)
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_next(cx)).await
}

pub(super) async fn forget(session: &mut Session, uid: &str) -> Result<(), Failure> {
    for sql in [
        "DELETE FROM side_output_value WHERE uid = ?",
        "DELETE FROM side_output_entry WHERE uid = ?",
    ] {
        session.execute(sqlx::query(sql).bind(uid.to_owned())).await?;
    }
    Ok(())
}

pub(super) async fn apply(
    session: &mut Session,
    uid: &str,
    changes: &StateChanges,
) -> Result<(), Failure> {
    if changes.is_full() {
        forget(session, uid).await?;
    }
    for (name, value) in changes.values() {
        let sql = "INSERT OR REPLACE INTO side_output_value VALUES (?, ?, ?, ?)";
        let checksum = value_checksum(uid, name, value);
        let query = sqlx::query(sql).bind(uid.to_owned()).bind(name).bind(value.to_owned());
        session.execute(query.bind(checksum)).await?;
    }
    // In their order, since an entry may be written and removed.
    let mut run: Vec<ChangedEntry<'_>> = Vec::new();
    for entry in changes.entries() {
        let is_other =
            run.first().is_some_and(|first| first.value.is_none() != entry.value.is_none());
        if is_other || run.len() == ROWS {
            write(session, uid, &run).await?;
            run.clear();
        }
        run.push(entry);
    }
    write(session, uid, &run).await
}

/// Writes entries, or removes them: they are all of one kind.
async fn write(session: &mut Session, uid: &str, run: &[ChangedEntry<'_>]) -> Result<(), Failure> {
    let Some(first) = run.first() else { return Ok(()) };
    let rows = |row: &str| vec![row; run.len()].join(", ");
    let sql = if first.value.is_some() {
        format!("INSERT OR REPLACE INTO side_output_entry VALUES {}", rows("(?, ?, ?, ?, ?, ?)"))
    } else {
        format!(
            "DELETE FROM side_output_entry WHERE (uid, name, key_group, key) IN (VALUES {})",
            rows("(?, ?, ?, ?)")
        )
    };
    let mut query = sqlx::query(safe(sql));
    for ChangedEntry { table, group, key, value } in run {
        query = query.bind(uid.to_owned()).bind((*table).to_owned());
        query = query.bind(i64::from(*group)).bind(key.to_vec());
        if let Some(value) = value {
            let checksum = entry_checksum(uid, table, *group, key, value);
            query = query.bind(value.to_vec()).bind(checksum);
        }
    }
    session.execute(query).await
}

fn value_checksum(uid: &str, name: &str, value: &[u8]) -> i64 {
    Checksum::of_parts(&[uid.as_bytes(), name.as_bytes(), value]).into()
}

fn entry_checksum(uid: &str, name: &str, group: u8, key: &[u8], value: &[u8]) -> i64 {
    Checksum::of_parts(&[uid.as_bytes(), name.as_bytes(), &[group], key, value]).into()
}
