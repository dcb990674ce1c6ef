use super::{Ending, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of a checkpoint but the states of operators: what is kept as [`Stored::cut`](super::Stored).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cut {
    /// How the job has ended with this checkpoint, if it has.
    #[serde(default)]
    pub ending: Option<Ending>,
    /// Of how many runs of the job this is the result.
    #[serde(default)]
    pub runs: u64,
    /// How many checkpoints all runs together have completed, this one included.
    #[serde(default)]
    pub checkpoints: u64,
    /// How many runs went on from a checkpoint.
    #[serde(default)]
    pub restored: u64,
    /// The sources, by their names.
    #[serde(default)]
    pub sources: BTreeMap<String, SourceCut>,
    /// What each sink has prepared.
    #[serde(default)]
    pub sinks: BTreeMap<String, Vec<u8>>,
    /// How many records each source has given, over all runs.
    #[serde(default)]
    pub read: BTreeMap<String, u64>,
    /// How many records each sink was given, over all runs.
    #[serde(default)]
    pub written: BTreeMap<String, u64>,
    /// The version of each operator's state, where it is not 1.
    #[serde(default)]
    pub versions: BTreeMap<String, u32>,
}

/// Where a source was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCut {
    /// Where it goes on.
    pub position: Vec<u8>,
    /// It had come to its end.
    pub ended: bool,
}

/// What stands before every cut: what it is, and the version of the format.
const MAGIC: &[u8; 8] = b"SIDEOUT\x01";

impl Cut {
    /// Its serialised form.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let mut bytes = MAGIC.to_vec();
        rmp_serde::encode::write_named(&mut bytes, self).map_err(StoreError::failed)?;
        Ok(bytes)
    }

    /// Reads the serialised form.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if it is not one, or was written by a later version of this library.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |what: String| StoreError::Damaged(what);
        let Some((magic, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(damaged("the checkpoint has no beginning".to_owned()));
        };
        if magic[..7] != MAGIC[..7] {
            return Err(damaged("this is no checkpoint of a job".to_owned()));
        }
        if magic[7] != MAGIC[7] {
            return Err(damaged(format!("format {} is not known, only 1", magic[7])));
        }
        let mut decoder = rmp_serde::Deserializer::from_read_ref(rest);
        serde_path_to_error::deserialize(&mut decoder)
            .map_err(|error| damaged(format!("the checkpoint: {error}")))
    }
}
