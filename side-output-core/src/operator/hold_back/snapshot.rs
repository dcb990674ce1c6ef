use super::{Configurable, HoldBack};
use crate::operator::snapshot::values;
use crate::state::{SavedState, SnapshotError, StateChanges};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The name of the value [`Waiting`].
const WAITING: &str = "waiting";

/// What waits beside the records.
#[derive(Serialize, Deserialize)]
struct Waiting {
    watermark: Option<Timestamp>,
    idle: bool,
    /// No configuration comes any more.
    ended: bool,
}

impl<F: Configurable> HoldBack<F> {
    /// Writes the marks that wait.
    pub(in crate::operator) fn save_marks(
        &self,
        to: &mut StateChanges,
    ) -> Result<(), SnapshotError> {
        let Self { watermark, idle, ended, .. } = *self;
        to.value(WAITING, &Waiting { watermark, idle, ended })
    }

    pub(in crate::operator) fn load_marks(
        &mut self,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        let waiting: Vec<Waiting> = values(from, WAITING)?;
        // Where it waits in one partition only, nothing waits in the others, or other records do.
        self.watermark = waiting.iter().filter_map(|waiting| waiting.watermark).min();
        self.idle = waiting.iter().any(|waiting| waiting.idle);
        self.ended = waiting.iter().all(|waiting| waiting.ended);
        Ok(())
    }
}
