use super::{Part, Slice, Sliced};
use crate::operator::snapshot::MOST;
use crate::operator::window::Parts;
use crate::state::{SavedState, SnapshotError, StateChanges};
use crate::window::{Assigner, Window};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hash;

/// The table of [`Saved`], by key and slice.
const SLICES: &str = "slices";

/// The table of how many late updates a key has had, by key and window.
const UPDATES: &str = "updates";

/// What a slice keeps of one key, to write and to read.
#[derive(Serialize, Deserialize)]
struct Saved<C> {
    contents: C,
    /// The order in which keys came to slices.
    arrival: u64,
}

impl<K, C> Sliced<K, C>
where
    K: Hash + Eq + Clone + Serialize + DeserializeOwned,
    C: Serialize + DeserializeOwned,
{
    pub(in super::super) fn save(&self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        for slice in &self.slices[self.gone..] {
            for entry in slice.table.iter() {
                let Part { contents, arrival, .. } = &entry.value;
                let saved = Saved { contents, arrival: *arrival };
                to.entry(SLICES, &entry.key, &slice.stretch, &saved)?;
            }
        }
        for open in &self.open {
            for (number, updates) in open.updates.iter() {
                if let Some((key, _)) = self.numbers.get(number) {
                    to.entry(UPDATES, key, &open.window, &updates)?;
                }
            }
        }
        Ok(())
    }

    /// Windows and their ends follow from the slices and the watermark.
    pub(in super::super) fn load<A: Assigner, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        let mut slices: BTreeMap<Window, Vec<(K, Saved<C>)>> = BTreeMap::new();
        for entry in from.read_entries(SLICES) {
            let (key, stretch, saved): (K, Window, Saved<C>) = entry?;
            slices.entry(stretch).or_default().push((key, saved));
        }
        for (stretch, mut entries) in slices {
            if parts.assigner.slice(stretch.start()) != stretch {
                let other = format!("{stretch} is not a slice of these windows");
                return Err(SnapshotError::new(SLICES, other));
            }
            let mut windows = parts.assigner.assign(stretch.start()).peekable();
            let (last, mut first_end) = (windows.peek().copied(), None);
            for window in windows.take_while(|window| !parts.is_gone(*window)) {
                first_end = Some(window.max_timestamp());
                self.open(window, window.max_timestamp() <= parts.watermark);
            }
            // It may be gone if the allowed lateness is less than it was.
            let (Some(last), Some(first_end)) = (last, first_end) else { continue };
            entries.sort_by_key(|(_, saved)| saved.arrival);
            let mut table = self.pool.take(entries.len());
            for (key, Saved { contents, arrival }) in entries {
                let hash = parts.hash.of(&key);
                if arrival >= MOST {
                    return Err(SnapshotError::new(SLICES, "the order of keys is out of range"));
                }
                if table.slot(hash, &key).is_some() {
                    return Err(SnapshotError::new(SLICES, "a key is in a slice twice"));
                }
                let number = self.numbers.enter(&key, || 0);
                if let Some(slices) = self.numbers.value_mut(number) {
                    *slices += 1;
                }
                table.push(hash, key, Part { contents, arrival, number });
                self.arrivals = self.arrivals.max(arrival + 1);
                self.kept += 1;
            }
            self.slices.push(Slice { stretch, first_end, last, table });
        }
        for entry in from.read_entries(UPDATES) {
            let (key, window, updates): (K, Window, u32) = entry?;
            let index = self.open.binary_search_by(|open| open.window.cmp(&window));
            let (Ok(index), Some(number)) = (index, self.numbers.find(&key)) else { continue };
            let open = &mut self.open[index];
            if open.updates.of(&parts.hash, number) > 0 {
                return Err(SnapshotError::new(UPDATES, "a key is in a window twice"));
            }
            open.updates.set(&parts.hash, number, updates);
        }
        self.due = self.next_due(parts.lateness);
        Ok(())
    }
}
