//! The file of a checkpoint.
//!
//! Magic and version, checksum of all that follows, number, number of the checkpoint before (or 0),
//! job, cut, and what changes: one instruction after the other. All numbers are little-endian, and
//! what has a length stands after it.

use super::checksum;
use side_output_core::state::{SavedState, StateChanges};
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"SOFOLDR\x01";

/// How long the part with the numbers is.
pub(super) const HEAD: usize = 28;

pub(super) struct Contents {
    pub(super) id: u64,
    pub(super) before: Option<u64>,
    pub(super) job: String,
    pub(super) cut: Vec<u8>,
    pub(super) changes: Vec<u8>,
}

impl Contents {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.changes.len() + self.cut.len() + 256);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.before.unwrap_or_default().to_le_bytes());
        write(&mut bytes, self.job.as_bytes());
        write(&mut bytes, &self.cut);
        write(&mut bytes, &self.changes);
        let checksum = checksum(&bytes[12..]).to_le_bytes();
        bytes[8..12].copy_from_slice(&checksum);
        bytes
    }

    /// Reads a file; the error says what is wrong with it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let before = before(bytes)?;
        let (head, mut rest) = bytes.split_at(HEAD);
        if head[8..12] != checksum(&bytes[12..]).to_le_bytes() {
            return Err("its checksum is another one");
        }
        let id = number(&head[12..]).ok_or(TOO_SHORT)?;
        let job = read(&mut rest).ok_or(TOO_SHORT)?;
        let job =
            String::from_utf8(job.to_owned()).map_err(|_| "the name of its job is no text")?;
        let cut = read(&mut rest).ok_or(TOO_SHORT)?.to_owned();
        let changes = read(&mut rest).ok_or(TOO_SHORT)?.to_owned();
        if rest.is_empty() {
            Ok(Self { id, before, job, cut, changes })
        } else {
            Err("it is too long")
        }
    }
}

const TOO_SHORT: &str = "it is too short";

/// The number of the checkpoint before, from the beginning of a file.
pub(super) fn before(head: &[u8]) -> Result<Option<u64>, &'static str> {
    if head.len() < HEAD {
        return Err(TOO_SHORT);
    }
    if head[..7] != MAGIC[..7] {
        return Err("it is no checkpoint");
    }
    if head[7] != MAGIC[7] {
        return Err("its format is not known");
    }
    let before = number(&head[20..]).ok_or(TOO_SHORT)?;
    Ok((before != 0).then_some(before))
}

/// The instructions. `UID` and `TABLE` say whom those after them are about.
const UID: u8 = b'u';
const CLEAR: u8 = b'c';
const VALUE: u8 = b'v';
const TABLE: u8 = b't';
const ENTRY: u8 = b'e';
const REMOVE: u8 = b'r';

pub(super) fn write_changes(forgotten: &[String], changes: &[(String, StateChanges)]) -> Vec<u8> {
    let size: usize = changes.iter().map(|(_, changes)| changes.size()).sum();
    let mut bytes = Vec::with_capacity(size + size / 4);
    for uid in forgotten {
        write_named(&mut bytes, UID, uid);
        bytes.push(CLEAR);
    }
    for (uid, changes) in changes {
        write_named(&mut bytes, UID, uid);
        if changes.is_full() {
            bytes.push(CLEAR);
        }
        for (name, value) in changes.values() {
            write_named(&mut bytes, VALUE, name);
            write(&mut bytes, value);
        }
        let mut table = None;
        for entry in changes.entries() {
            if table != Some(entry.table) {
                table = Some(entry.table);
                write_named(&mut bytes, TABLE, entry.table);
            }
            bytes.extend([if entry.value.is_some() { ENTRY } else { REMOVE }, entry.group]);
            write(&mut bytes, entry.key);
            if let Some(value) = entry.value {
                write(&mut bytes, value);
            }
        }
    }
    bytes
}

/// The states of all operators.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<String, State>);

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<String, Vec<u8>>,
    tables: BTreeMap<String, Entries>,
}

/// The values of a table, by key group and key.
type Entries = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

impl States {
    /// Applies changes; `None` if they are none.
    pub(super) fn apply(&mut self, mut changes: &[u8]) -> Option<()> {
        let (mut uid, mut table) = (None, None);
        while let Some((instruction, rest)) = changes.split_first() {
            changes = rest;
            if *instruction == UID {
                let name = text(&mut changes)?;
                self.0.entry(name.clone()).or_default();
                (uid, table) = (Some(name), None);
                continue;
            }
            let state = self.0.get_mut(uid.as_ref()?)?;
            match *instruction {
                CLEAR => *state = State::default(),
                VALUE => {
                    let name = text(&mut changes)?;
                    state.values.insert(name, read(&mut changes)?.to_owned());
                }
                TABLE => {
                    let name = text(&mut changes)?;
                    state.tables.entry(name.clone()).or_default();
                    table = Some(name);
                }
                ENTRY | REMOVE => {
                    let entries = state.tables.get_mut(table.as_ref()?)?;
                    let (group, rest) = changes.split_first()?;
                    changes = rest;
                    let key = (*group, read(&mut changes)?.to_owned());
                    if *instruction == ENTRY {
                        entries.insert(key, read(&mut changes)?.to_owned());
                    } else {
                        entries.remove(&key);
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The changes that make them out of nothing.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (uid, state) in &self.0 {
            write_named(&mut bytes, UID, uid);
            for (name, value) in &state.values {
                write_named(&mut bytes, VALUE, name);
                write(&mut bytes, value);
            }
            for (table, entries) in &state.tables {
                write_named(&mut bytes, TABLE, table);
                for ((group, key), value) in entries {
                    bytes.extend([ENTRY, *group]);
                    write(&mut bytes, key);
                    write(&mut bytes, value);
                }
            }
        }
        bytes
    }

    pub(super) fn into_saved(self) -> BTreeMap<String, SavedState> {
        let mut all = BTreeMap::new();
        for (uid, state) in self.0 {
            let mut saved = SavedState::new();
            for (name, value) in state.values {
                saved.insert_value(name, value);
            }
            for (table, entries) in state.tables {
                for ((group, key), value) in entries {
                    saved.insert_entry(&table, group, key, value);
                }
            }
            if !saved.is_empty() {
                all.insert(uid, saved);
            }
        }
        all
    }
}

fn write_named(bytes: &mut Vec<u8>, instruction: u8, name: &str) {
    bytes.push(instruction);
    write(bytes, name.as_bytes());
}

fn write(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn read<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (part, rest) = bytes[8..].split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(read(bytes)?.to_owned()).ok()
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
