use super::{Broadcast, BroadcastProcess, Configuration};
use crate::operator::snapshot::{MOST, values, watermark};
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The name of the value [`Saved`].
const CONFIG: &str = "config";

/// The name of the records that wait for a configuration, with their timestamps.
const HELD: &str = "held";

#[derive(Serialize, Deserialize)]
struct Saved<C> {
    /// In a tuple, since a configuration may be an option itself.
    current: Option<(C,)>,
    version: u64,
}

impl<C: Serialize + DeserializeOwned> Configuration<C> {
    pub(in crate::operator) fn save(&self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        let current = self.current().map(|config| (config,));
        to.value(CONFIG, &Saved { current, version: self.version })
    }

    /// All partitions have the same one, but for those that are behind.
    pub(in crate::operator) fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        let saved: Vec<Saved<C>> = values(from, CONFIG)?;
        let Some(saved) = saved.into_iter().max_by_key(|saved| saved.version) else {
            return Ok(());
        };
        if saved.version >= MOST {
            return Err(SnapshotError::new(CONFIG, "the version is out of range"));
        }
        self.current = saved.current.map(|(config,)| config);
        self.version = saved.version;
        Ok(())
    }
}

impl<F: BroadcastProcess> Snapshot for Broadcast<F>
where
    F::In: Serialize + DeserializeOwned,
    F::Config: Serialize + DeserializeOwned,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        watermark::save(self.function.watermark, to)?;
        self.function.config.save(to)?;
        self.save_marks(to)?;
        to.value(HELD, &self.records)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        if from.is_empty() {
            return Ok(());
        }
        watermark::load(&mut self.function.watermark, from)?;
        self.function.config.load(from)?;
        self.load_marks(from)?;
        let held: Vec<VecDeque<(F::In, Timestamp)>> = values(from, HELD)?;
        self.records = held.into_iter().flatten().collect();
        Ok(())
    }
}
