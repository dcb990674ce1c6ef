use super::{KeyedBroadcast, KeyedBroadcastProcess};
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The table of records that wait for a configuration, with their timestamps, by key and place.
const HELD: &str = "held";

impl<F, By> Snapshot for KeyedBroadcast<F, By>
where
    F: KeyedBroadcastProcess,
    F::Key: Serialize + DeserializeOwned,
    F::State: Serialize + DeserializeOwned,
    F::In: Serialize + DeserializeOwned,
    F::Config: Serialize + DeserializeOwned,
    By: FnMut(&F::In) -> F::Key,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        // Records that wait come and go all at once, and that is rare.
        if !self.records.is_empty() || self.held_was_saved {
            to.write_all();
        }
        self.held_was_saved = !self.records.is_empty();
        self.function.core.save(to)?;
        self.function.core.function.config.save(to)?;
        self.save_marks(to)?;
        for (place, held) in (0_u64..).zip(&self.records) {
            to.entry(HELD, &(self.function.key)(&held.0), &place, held)?;
        }
        Ok(())
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        if from.is_empty() {
            return Ok(());
        }
        self.function.core.load(from)?;
        self.function.core.function.config.load(from)?;
        self.load_marks(from)?;
        let mut held: Vec<(u64, (F::In, Timestamp))> = Vec::new();
        for entry in from.read_entries(HELD) {
            let (_, place, record): (F::Key, u64, _) = entry?;
            held.push((place, record));
        }
        held.sort_by_key(|(place, _)| *place);
        self.records = held.into_iter().map(|(_, record)| record).collect();
        self.held_was_saved = !self.records.is_empty();
        Ok(())
    }
}
