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
    // What was written last of each counts; sorted, they are found next to each other.
    let entries = changes.entries().map(|entry| {
        let ChangedEntry { table, group, key, .. } = entry;
        ((table, group, key), entry)
    });
    let entries: BTreeMap<_, _> = entries.collect();
    let (written, removed): (Vec<_>, Vec<_>) =
        entries.into_values().partition(|entry| entry.value.is_some());
    for rows in written.chunks(ROWS) {
        write(session, uid, rows).await?;
    }
    for rows in removed.chunks(ROWS) {
        remove(session, uid, rows).await?;
    }
    Ok(())
}

async fn write(session: &mut Session, uid: &str, rows: &[ChangedEntry<'_>]) -> Result<(), Failure> {
    let values = vec!["(?, ?, ?, ?, ?, ?)"; rows.len()].join(", ");
    let sql = format!("INSERT OR REPLACE INTO side_output_entry VALUES {values}");
    let mut query = sqlx::query(safe(sql));
    for ChangedEntry { table, group, key, value } in rows {
        let value = value.unwrap_or_default();
        query = query.bind(uid.to_owned()).bind((*table).to_owned());
        query = query.bind(i64::from(*group)).bind(key.to_vec()).bind(value.to_vec());
        query = query.bind(entry_checksum(uid, table, *group, key, value));
    }
    session.execute(query).await
}

async fn remove(
    session: &mut Session,
    uid: &str,
    rows: &[ChangedEntry<'_>],
) -> Result<(), Failure> {
    let values = vec!["(?, ?, ?, ?)"; rows.len()].join(", ");
    let sql = format!(
        "DELETE FROM side_output_entry WHERE (uid, name, key_group, key) IN (VALUES {values})"
    );
    let mut query = sqlx::query(safe(sql));
    for ChangedEntry { table, group, key, .. } in rows {
        query = query.bind(uid.to_owned()).bind((*table).to_owned());
        query = query.bind(i64::from(*group)).bind(key.to_vec());
    }
    session.execute(query).await
}

fn value_checksum(uid: &str, name: &str, value: &[u8]) -> i64 {
    Checksum::of_parts(&[uid.as_bytes(), name.as_bytes(), value]).into()
}

fn entry_checksum(uid: &str, name: &str, group: u8, key: &[u8], value: &[u8]) -> i64 {
    Checksum::of_parts(&[uid.as_bytes(), name.as_bytes(), &[group], key, value]).into()
}
