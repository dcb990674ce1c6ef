use super::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::time::Alignment;

/// The name of the whole of it.
const ALIGNMENT: &str = "alignment";

impl Snapshot for Alignment {
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        to.value(ALIGNMENT, self)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        let saved: Vec<Self> = from.read_values(ALIGNMENT)?;
        if saved.iter().any(|saved| !self.is_like(saved)) {
            return Err(SnapshotError::new(ALIGNMENT, "it was saved for other inputs"));
        }
        if let Some(saved) = saved.into_iter().reduce(|one, other| one.lower(&other)) {
            *self = saved;
        } else if !from.is_empty() {
            return Err(SnapshotError::new(ALIGNMENT, "it is missing"));
        }
        Ok(())
    }
}
