use std::collections::BTreeMap;
use std::fmt;

/// What an operator writes for a checkpoint: values, which are saved whole, and the entries of
/// tables, which belong to keys.
///
/// Names of values and tables are the operator's own. A table's entry is found again by its key
/// and by what stands beside the key (a window, say), so an entry that is written again replaces
/// the one before.
#[derive(Clone, Default)]
pub struct StateChanges {
    full: bool,
    values: BTreeMap<&'static str, Vec<u8>>,
    entries: Vec<Written>,
    /// Keys and values of all entries, one after the other.
    bytes: Vec<u8>,
}

/// Where an entry stands among the bytes.
#[derive(Clone, Copy)]
struct Written {
    table: &'static str,
    group: u8,
    key: usize,
    value: usize,
    end: usize,
    removed: bool,
}

/// An entry of [`StateChanges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedEntry<'a> {
    /// The name of the table.
    pub table: &'a str,
    /// The group of the key; see [`key_group`](super::key_group()).
    pub group: u8,
    /// The key in its serialised form, and what stands beside it.
    pub key: &'a [u8],
    /// The value in its serialised form; `None` if the entry is gone.
    pub value: Option<&'a [u8]>,
}

impl StateChanges {
    /// Nothing yet. If it is to be `full`, what is written replaces all that was saved before.
    #[must_use]
    pub fn new(full: bool) -> Self {
        Self { full, ..Self::default() }
    }

    /// Whether everything is to be written, and not only what has changed.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Everything is written after all: what does not keep track of its changes calls this first.
    pub const fn write_all(&mut self) {
        self.full = true;
    }

    /// The values, by name, in their serialised form.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.values.iter().map(|(name, value)| (*name, &**value))
    }

    /// The entries of all tables, in the order in which they were written.
    pub fn entries(&self) -> impl Iterator<Item = ChangedEntry<'_>> {
        self.entries.iter().map(|entry| ChangedEntry {
            table: entry.table,
            group: entry.group,
            key: &self.bytes[entry.key..entry.value],
            value: (!entry.removed).then(|| &self.bytes[entry.value..entry.end]),
        })
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + self.values.values().map(Vec::len).sum::<usize>()
    }
}

/// What was saved of one operator, by one partition or by several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    values: BTreeMap<String, Vec<Vec<u8>>>,
    tables: BTreeMap<String, Table>,
}

/// The values of a table, by key group and key.
type Table = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

impl SavedState {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: BTreeMap::new(), tables: BTreeMap::new() }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.tables.values().all(BTreeMap::is_empty)
    }

    /// Brings it up to date with what one partition has written.
    pub fn apply(&mut self, changes: &StateChanges) {
        if changes.full {
            *self = Self::new();
        }
        for (name, value) in changes.values() {
            self.values.insert(name.to_owned(), vec![value.to_owned()]);
        }
        for entry in changes.entries() {
            match entry.value {
                Some(value) => {
                    let (key, value) = (entry.key.to_owned(), value.to_owned());
                    self.insert_entry(entry.table, entry.group, key, value);
                }
                None => {
                    if let Some(table) = self.tables.get_mut(entry.table) {
                        table.remove(&(entry.group, entry.key.to_owned()));
                        if table.is_empty() {
                            // As if it had never had an entry.
                            self.tables.remove(entry.table);
                        }
                    }
                }
            }
        }
    }

    /// Puts in a value, beside those that other partitions have saved under this name.
    pub fn insert_value(&mut self, name: impl Into<String>, value: Vec<u8>) {
        self.values.entry(name.into()).or_default().push(value);
    }

    /// Puts in an entry of a table.
    pub fn insert_entry(&mut self, table: &str, group: u8, key: Vec<u8>, value: Vec<u8>) {
        if !self.tables.contains_key(table) {
            self.tables.insert(table.to_owned(), BTreeMap::new());
        }
        if let Some(table) = self.tables.get_mut(table) {
            table.insert((group, key), value);
        }
    }

    /// The values, by name, in their serialised form: one for each partition that saved it.
    pub fn values(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.values.iter().flat_map(|(name, values)| {
            values.iter().map(move |value| (name.as_str(), value.as_slice()))
        })
    }

    /// The entries of all tables.
    pub fn entries(&self) -> impl Iterator<Item = ChangedEntry<'_>> {
        self.tables.iter().flat_map(|(table, entries)| {
            entries.iter().map(move |((group, key), value)| ChangedEntry {
                table,
                group: *group,
                key,
                value: Some(value),
            })
        })
    }

    /// All values, and the entries of those key groups that `which` has: what one partition loads.
    #[must_use]
    pub fn of_groups(&self, which: impl Fn(u8) -> bool) -> Self {
        let of_groups = |table: &Table| -> Table {
            let entries = table.iter().filter(|((group, _), _)| which(*group));
            entries.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let tables = self.tables.iter().map(|(name, table)| (name.clone(), of_groups(table)));
        Self { values: self.values.clone(), tables: tables.collect() }
    }
}

#[cfg(feature = "job")]
mod encoded {
    use super::{SavedState, StateChanges, Written};
    use crate::state::{SnapshotError, key_group, saved_hash};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    impl StateChanges {
        /// Writes a value.
        ///
        /// # Errors
        ///
        /// If it cannot be serialized.
        pub fn value<V: Serialize>(
            &mut self,
            name: &'static str,
            value: &V,
        ) -> Result<(), SnapshotError> {
            let bytes = rmp_serde::to_vec_named(value);
            let bytes = bytes.map_err(|error| SnapshotError::new(name, error))?;
            self.values.insert(name, bytes);
            Ok(())
        }

        /// Writes an entry of a table, for `key` and what stands `beside` it: nothing, `()`, or a
        /// window, for example.
        ///
        /// # Errors
        ///
        /// If one of them cannot be serialized.
        pub fn entry<K: Serialize, B: Serialize, V: Serialize>(
            &mut self,
            table: &'static str,
            key: &K,
            beside: &B,
            value: &V,
        ) -> Result<(), SnapshotError> {
            let start = self.bytes.len();
            let written = self.key(table, key, beside).and_then(|mut written| {
                self.write(table, value)?;
                written.end = self.bytes.len();
                Ok(written)
            });
            self.keep(start, written)
        }

        /// Says that this entry of a table is gone.
        ///
        /// # Errors
        ///
        /// If the key cannot be serialized.
        pub fn remove<K: Serialize, B: Serialize>(
            &mut self,
            table: &'static str,
            key: &K,
            beside: &B,
        ) -> Result<(), SnapshotError> {
            let start = self.bytes.len();
            let written = self.key(table, key, beside);
            self.keep(start, written.map(|written| Written { removed: true, ..written }))
        }

        fn keep(
            &mut self,
            start: usize,
            written: Result<Written, SnapshotError>,
        ) -> Result<(), SnapshotError> {
            match written {
                Ok(written) => self.entries.push(written),
                Err(error) => {
                    self.bytes.truncate(start);
                    return Err(error);
                }
            }
            Ok(())
        }

        fn key<K: Serialize, B: Serialize>(
            &mut self,
            table: &'static str,
            key: &K,
            beside: &B,
        ) -> Result<Written, SnapshotError> {
            let start = self.bytes.len();
            self.write(table, key)?;
            let group = key_group(saved_hash(&self.bytes[start..]));
            self.write(table, beside)?;
            let end = self.bytes.len();
            Ok(Written { table, group, key: start, value: end, end, removed: false })
        }

        fn write<V: Serialize>(
            &mut self,
            table: &'static str,
            value: &V,
        ) -> Result<(), SnapshotError> {
            rmp_serde::encode::write_named(&mut self.bytes, value)
                .map_err(|error| SnapshotError::new(table, error))
        }
    }

    impl SavedState {
        /// The values of this name: one for each partition that saved it.
        ///
        /// # Errors
        ///
        /// If what was saved is something else.
        pub fn read_values<V: DeserializeOwned>(
            &self,
            name: &'static str,
        ) -> Result<Vec<V>, SnapshotError> {
            let values = self.values.get(name).into_iter().flatten();
            values.map(|bytes| read_all(name, bytes)).collect()
        }

        /// The one value of this name, if it was saved.
        ///
        /// # Errors
        ///
        /// If what was saved is something else, or several partitions have saved it.
        pub fn read_value<V: DeserializeOwned>(
            &self,
            name: &'static str,
        ) -> Result<Option<V>, SnapshotError> {
            let mut values = self.read_values(name)?;
            let value = values.pop();
            if values.is_empty() {
                Ok(value)
            } else {
                Err(SnapshotError::new(name, "saved by several partitions, and expected once"))
            }
        }

        /// The entries of a table, sorted by key group: key, what stood beside it, and value.
        ///
        /// # Errors
        ///
        /// Items are errors where what was saved is something else.
        pub fn read_entries<K: DeserializeOwned, B: DeserializeOwned, V: DeserializeOwned>(
            &self,
            table: &'static str,
        ) -> impl Iterator<Item = Result<(K, B, V), SnapshotError>> {
            let entries = self.tables.get(table).into_iter().flatten();
            entries.map(move |((group, key), value)| {
                let read = || {
                    let mut rest = key.as_slice();
                    let key = read_one(table, &mut rest)?;
                    let beside = read_all(table, rest)?;
                    Ok((key, beside, read_all(table, value)?))
                };
                read().map_err(|error: SnapshotError| error.in_key_group(*group))
            })
        }
    }

    /// Reads one value, and leaves what comes after it.
    fn read_one<V: DeserializeOwned>(
        name: &'static str,
        bytes: &mut &[u8],
    ) -> Result<V, SnapshotError> {
        let before = *bytes;
        if let Ok(value) = V::deserialize(&mut rmp_serde::Deserializer::new(&mut *bytes)) {
            return Ok(value);
        }
        // Once more, to name the field: keeping track of it takes longer than reading.
        *bytes = before;
        let mut decoder = rmp_serde::Deserializer::new(&mut *bytes);
        serde_path_to_error::deserialize(&mut decoder)
            .map_err(|error| SnapshotError::new(name, error))
    }

    fn read_all<V: DeserializeOwned>(
        name: &'static str,
        mut bytes: &[u8],
    ) -> Result<V, SnapshotError> {
        let value = read_one(name, &mut bytes)?;
        if bytes.is_empty() {
            Ok(value)
        } else {
            Err(SnapshotError::new(name, format!("{} bytes too many", bytes.len())))
        }
    }
}

impl fmt::Debug for StateChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateChanges")
            .field("full", &self.full)
            .field("values", &self.values.len())
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "job"))]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Counter {
        count: u32,
        #[serde(default)]
        first: Option<i64>,
    }

    #[derive(Serialize)]
    struct OldCounter {
        count: u32,
        dropped: &'static str,
    }

    #[derive(Debug, Deserialize)]
    struct Widened {
        #[expect(dead_code, reason = "it is never read")]
        count: String,
    }

    fn saved(changes: &StateChanges) -> SavedState {
        let mut saved = SavedState::new();
        saved.apply(changes);
        saved
    }

    #[test]
    fn what_is_written_is_read_and_later_changes_replace_it() {
        let mut changes = StateChanges::new(true);
        changes.value("watermark", &7_i64).unwrap();
        changes.entry("keys", &"a", &(), &Counter { count: 1, first: None }).unwrap();
        changes.entry("keys", &"b", &(), &Counter { count: 2, first: Some(3) }).unwrap();
        let mut state = saved(&changes);
        let mut changes = StateChanges::new(false);
        changes.entry("keys", &"a", &(), &Counter { count: 5, first: None }).unwrap();
        changes.remove("keys", &"b", &()).unwrap();
        state.apply(&changes);
        assert_eq!(state.read_value::<i64>("watermark").unwrap(), Some(7));
        let entries: Vec<_> =
            state.read_entries::<String, (), Counter>("keys").map(Result::unwrap).collect();
        assert_eq!(entries, [("a".to_owned(), (), Counter { count: 5, first: None })]);
    }

    #[test]
    fn fields_may_be_added_and_dropped_and_anything_else_is_an_error_that_names_the_field() {
        let mut changes = StateChanges::new(true);
        changes.entry("keys", &"a", &(), &OldCounter { count: 1, dropped: "" }).unwrap();
        let state = saved(&changes);
        let read = state.read_entries::<String, (), Counter>("keys").next().unwrap();
        assert_eq!(read.unwrap().2, Counter { count: 1, first: None });

        let read = state.read_entries::<String, (), Widened>("keys").next().unwrap();
        let error = read.unwrap_err().of("visits").to_string();
        let group = crate::state::key_group(crate::state::saved_hash(b"\xa1a"));
        let start = format!("the state of `visits`, `keys` in key group {group}: count: ");
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn no_byte_that_is_missing_or_wrong_is_a_panic() {
        let mut changes = StateChanges::new(true);
        changes.entry("keys", &"a", &(3_u8, 4_i64), &Counter { count: 300, first: None }).unwrap();
        let entry = changes.entries().next().unwrap();
        let (key, value) = (entry.key.to_owned(), entry.value.unwrap().to_owned());
        let read = |key: Vec<u8>, value: Vec<u8>| {
            let mut state = SavedState::new();
            state.insert_entry("keys", 0, key, value);
            state.read_entries::<String, (u8, i64), Counter>("keys").next().unwrap()
        };
        read(key.clone(), value.clone()).unwrap();
        for end in 0..key.len() {
            read(key[..end].to_owned(), value.clone()).unwrap_err();
        }
        for end in 0..value.len() {
            read(key.clone(), value[..end].to_owned()).unwrap_err();
        }
        for at in 0..value.len() {
            for bit in 0..8 {
                let mut flipped = value.clone();
                flipped[at] ^= 1 << bit;
                drop(read(key.clone(), flipped));
            }
        }
    }
}
