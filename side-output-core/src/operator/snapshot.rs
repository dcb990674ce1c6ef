//! What the operators need to write down and read their state.

use crate::state::{SavedState, SnapshotError};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;

/// Places in an order that were saved are below this, so that counting on from them is safe.
pub(super) const MOST: u64 = 1 << 62;

/// The values of this name, one for each partition. That there is none is an error.
pub(super) fn values<V: DeserializeOwned>(
    from: &SavedState,
    name: &'static str,
) -> Result<Vec<V>, SnapshotError> {
    let values = from.read_values(name)?;
    if values.is_empty() { Err(SnapshotError::new(name, "it is missing")) } else { Ok(values) }
}

/// What several partitions have saved of a watermark: none of them may be ahead.
pub(super) fn lowest<V>(values: &[V], watermark: impl Fn(&V) -> Timestamp) -> Timestamp {
    values.iter().map(watermark).min().unwrap_or(Timestamp::MIN)
}

/// Barriers travel between marks, so that none is half done.
pub(super) fn within_a_firing(name: &'static str) -> SnapshotError {
    SnapshotError::new(name, "a watermark is not forwarded yet, and what it causes is half done")
}

/// What is kept of the context of a function that keeps nothing else.
pub(super) mod watermark {
    use super::{lowest, values};
    use crate::state::{SavedState, SnapshotError, StateChanges};
    use crate::time::Timestamp;

    const WATERMARK: &str = "watermark";

    pub(in super::super) fn save(
        watermark: Timestamp,
        to: &mut StateChanges,
    ) -> Result<(), SnapshotError> {
        to.value(WATERMARK, &watermark)
    }

    pub(in super::super) fn load(
        watermark: &mut Timestamp,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        if !from.is_empty() {
            *watermark = lowest(&values(from, WATERMARK)?, |watermark| *watermark);
        }
        Ok(())
    }
}
