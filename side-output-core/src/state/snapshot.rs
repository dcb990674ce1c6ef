use super::{SavedState, StateChanges};
use std::error::Error;
use std::fmt;

/// State that can be saved, and loaded into a new operator of the same kind.
///
/// Operators implement it where what their function keeps can be serialized. What a function or a
/// closure holds itself is not saved.
#[diagnostic::on_unimplemented(
    message = "the state of `{Self}` cannot be saved",
    label = "a `uid` asks for state that can be saved",
    note = "derive `Serialize` and `Deserialize` for the key and the state of the function"
)]
pub trait Snapshot {
    /// Writes the state, as it is between two calls of the operator.
    ///
    /// Where `to` [asks for everything](StateChanges::is_full), everything is written; elsewhere
    /// what has changed since the last call, or since the state was loaded, is enough. An operator
    /// that does not keep track of its changes [writes everything](StateChanges::write_all)
    /// instead, and `to` is full afterwards.
    ///
    /// # Errors
    ///
    /// If a value cannot be serialized, or a watermark has begun and is not forwarded yet.
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError>;

    /// Takes the state that was saved. The operator is new: it has not been called yet.
    ///
    /// Where the state comes from several partitions, each value is there once for each of them.
    ///
    /// # Errors
    ///
    /// If what was saved is not what is expected here. The operator must not be used then.
    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError>;
}

/// Why state could not be saved or loaded: names where it stands.
#[derive(Debug)]
pub struct SnapshotError {
    uid: Option<String>,
    /// The name of the value or table.
    part: &'static str,
    key_group: Option<u8>,
    source: Box<dyn Error + Send + Sync>,
}

impl SnapshotError {
    /// An error in the value or table `part`.
    pub fn new(part: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { uid: None, part, key_group: None, source: source.into() }
    }

    /// The same error, in this key group.
    #[must_use]
    pub fn in_key_group(mut self, group: u8) -> Self {
        self.key_group = Some(group);
        self
    }

    /// The same error, of the state with this name.
    #[must_use]
    pub fn of(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state")?;
        if let Some(uid) = &self.uid {
            write!(f, " of `{uid}`")?;
        }
        write!(f, ", `{}`", self.part)?;
        if let Some(group) = self.key_group {
            write!(f, " in key group {group}")?;
        }
        write!(f, ": {}", self.source)
    }
}

// The source is a part of the text: it is not returned once more.
impl Error for SnapshotError {}
