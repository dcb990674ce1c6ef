use super::{Aligned, Kept, Open, Updates};
use crate::operator::window::Parts;
use crate::operator::window::snapshot::check;
use crate::state::{KeyHash, SavedState, SnapshotError, StateChanges};
use crate::window::{Assigner, Window};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hash;

/// The table of [`Saved`], by key and window.
const WINDOWS: &str = "windows";

/// What a window keeps of one key, to write and to read.
#[derive(Serialize, Deserialize)]
struct Saved<C, S> {
    contents: C,
    side: S,
    /// The place of the key in its window.
    place: u64,
    /// How many late updates it has had.
    #[serde(default, skip_serializing_if = "is_zero")]
    updates: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it this way")]
const fn is_zero(updates: &u32) -> bool {
    *updates == 0
}

impl<K, C, S> Aligned<K, C, S>
where
    K: Hash + Eq + Clone + Serialize + DeserializeOwned,
    C: Serialize + DeserializeOwned,
    S: Serialize + DeserializeOwned,
{
    pub(in super::super) fn save<A, Tr, B>(
        &self,
        parts: &Parts<A, Tr, B>,
        to: &mut StateChanges,
    ) -> Result<(), SnapshotError> {
        for Open { window, table, updates, .. } in &self.open[self.gone..] {
            for (slot, entry) in (0..).zip(table.iter()) {
                let Kept { contents, side } = &entry.value;
                let updates = updates.of(&parts.hash, slot);
                let saved = Saved { contents, side, place: slot.into(), updates };
                to.entry(WINDOWS, &entry.key, window, &saved)?;
            }
        }
        Ok(())
    }

    pub(in super::super) fn load<A: Assigner, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        let mut windows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for entry in from.read_entries(WINDOWS) {
            let (key, window, saved): (K, Window, Saved<C, S>) = entry?;
            windows.entry(check(WINDOWS, window)?).or_default().push((key, saved));
        }
        for (window, mut entries) in windows {
            if A::DISJOINT && !parts.assigner.assign(window.start()).eq([window]) {
                let other = format!("{window} is not a window of this assigner");
                return Err(SnapshotError::new(WINDOWS, other));
            }
            entries.sort_by_key(|(_, saved)| saved.place);
            let complete = window.max_timestamp() <= parts.watermark;
            let (table, updates) = (self.pool.take(entries.len()), Updates::default());
            let mut open = Open { window, complete, table, done: 0, updates };
            for (slot, (key, Saved { contents, side, updates, .. })) in (0..).zip(entries) {
                let hash = parts.hash.of(&key);
                if open.table.slot(hash, &key).is_some() {
                    return Err(SnapshotError::new(WINDOWS, "a key is in a window twice"));
                }
                open.table.push(hash, key, Kept { contents, side });
                open.updates.set(&parts.hash, slot, updates);
            }
            self.open.push(open);
        }
        Ok(())
    }
}

impl Updates {
    /// How many this key has had.
    pub(in super::super) fn of(&self, hasher: &KeyHash, number: u32) -> u32 {
        let Some(table) = &self.0 else { return 0 };
        let slot = table.slot(hasher.of(&number), &number);
        slot.and_then(|slot| table.get(slot)).map_or(0, |entry| entry.value)
    }

    /// Lets this key, of which nothing is known, have had so many.
    pub(in super::super) fn set(&mut self, hasher: &KeyHash, number: u32, updates: u32) {
        if updates > 0 {
            self.0.get_or_insert_default().push(hasher.of(&number), number, updates);
        }
    }

    /// The numbers of the keys that have had some, with how many.
    pub(in super::super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().flat_map(|table| table.iter()).map(|entry| (entry.key, entry.value))
    }
}
