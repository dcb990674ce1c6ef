use super::BoxError;
use crate::state::{SavedState, StateChanges};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a store has of its newest checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The checkpoint's number. Numbers grow, and are never used twice.
    pub id: u64,
    /// All but the states: positions of sources, what sinks have prepared, counts.
    pub cut: Vec<u8>,
    /// The state of each operator, by its name.
    pub states: BTreeMap<String, SavedState>,
}

/// Keeps the checkpoints of one job.
///
/// # Contract
///
/// - [`open`](Self::open) makes this the one writer, and fails with [`StoreError::InUse`] where
///   another one is alive. It must succeed right after that one was killed.
/// - [`complete`](Self::complete) is one atomic step: after a crash at any point the store has the
///   checkpoint before or this one, whole. When it returns, the checkpoint survives a crash of the
///   machine. A writer that is not the one any more fails with [`StoreError::Fenced`], and changes
///   nothing.
/// - A byte that is missing or wrong is [`StoreError::Damaged`], never other state.
///
/// After an error of `complete` nothing is known about the checkpoint: the job opens the store again.
pub trait Store: Send + 'static {
    /// Opens the store, made if it does not exist, for the job of this name; the newest checkpoint,
    /// if there is one. May be called again after an error.
    fn open(
        &mut self,
        job: &str,
    ) -> impl Future<Output = Result<Option<Stored>, StoreError>> + Send;

    /// Keeps a checkpoint: `changes` are applied to the states of the checkpoint before, and
    /// states that have no changes stay as they are.
    fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Forgets the state of this name, with the next checkpoint.
    fn forget(&mut self, uid: &str);
}

/// Why a store could not be opened, or did not keep a checkpoint.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another job of this one, writes to it; says which where that is known.
    InUse(String),
    /// Another writer has taken over.
    Fenced,
    /// What it has is not what was written; says where.
    Damaged(String),
    /// It belongs to the job of this name.
    OtherJob(String),
    /// Anything else.
    Failed(BoxError),
}

impl StoreError {
    /// Any other error.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(by) => write!(f, "the store is in use: {by}"),
            Self::Fenced => f.write_str("another writer has taken over the store"),
            Self::Damaged(what) => write!(f, "the store is damaged: {what}"),
            Self::OtherJob(name) => write!(f, "the store belongs to the job `{name}`"),
            Self::Failed(error) => write!(f, "the store failed: {error}"),
        }
    }
}

// The cause is a part of the text: it is not returned once more.
impl Error for StoreError {}

/// A store that lives as long as the process: for tests, and for restarts after an error.
///
/// Clones share what is stored.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    /// Which opening this writer is.
    writer: u64,
    forgotten: Vec<String>,
}

#[derive(Debug, Default)]
struct Inner {
    job: Option<String>,
    writers: u64,
    stored: Option<Stored>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest checkpoint.
    #[must_use]
    pub fn stored(&self) -> Option<Stored> {
        self.lock().stored.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    /// There is no other process: whoever opens it last is the writer.
    async fn open(&mut self, job: &str) -> Result<Option<Stored>, StoreError> {
        let (writer, stored) = {
            let mut inner = self.lock();
            let owner = inner.job.get_or_insert_with(|| job.to_owned());
            if owner != job {
                return Err(StoreError::OtherJob(owner.clone()));
            }
            inner.writers += 1;
            (inner.writers, inner.stored.clone())
        };
        self.writer = writer;
        Ok(stored)
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), StoreError> {
        let forgotten = std::mem::take(&mut self.forgotten);
        let mut inner = self.lock();
        if inner.writers != self.writer {
            return Err(StoreError::Fenced);
        }
        let stored = inner.stored.get_or_insert_default();
        (stored.id, stored.cut) = (id, cut);
        for uid in forgotten {
            stored.states.remove(&uid);
        }
        for (uid, changes) in changes {
            stored.states.entry(uid.clone()).or_default().apply(changes);
        }
        Ok(())
    }

    fn forget(&mut self, uid: &str) {
        self.forgotten.push(uid.to_owned());
    }
}
