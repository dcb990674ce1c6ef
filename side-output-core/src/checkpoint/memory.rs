use super::{BoxError, Failed, Guarantee, JobSink, JobSource, Read};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The records of a `Vec`, as a source of a job. The position is how many were read.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use side_output::checkpoint::{JobSource, MemorySource, Read};
///
/// let mut source = MemorySource::new(vec!['a', 'b', 'c']);
/// let mut read = Vec::new();
/// block_on(source.open(None))?;
/// assert_eq!(block_on(source.read(&mut read, 2))?, Read::More);
/// let position = source.position();
/// let mut again = MemorySource::new(vec!['a', 'b', 'c']);
/// block_on(again.open(Some(&position)))?;
/// assert_eq!(block_on(again.read(&mut read, 2))?, Read::End);
/// assert_eq!(read, ['a', 'b', 'c']);
/// # Ok::<(), side_output::checkpoint::BoxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemorySource<T> {
    records: Vec<T>,
    next: usize,
}

impl<T> MemorySource<T> {
    /// A source of these records.
    #[must_use]
    pub const fn new(records: Vec<T>) -> Self {
        Self { records, next: 0 }
    }
}

impl<T: Clone + Send + 'static> JobSource for MemorySource<T> {
    type Item = T;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.next = match position {
            None => 0,
            Some(position) => usize::try_from(u64::from_le_bytes(position.try_into()?))?,
        };
        if self.next > self.records.len() {
            return Err(format!(
                "record {} was read, and there are only {}",
                self.next,
                self.records.len()
            )
            .into());
        }
        Ok(())
    }

    async fn read(&mut self, into: &mut Vec<T>, most: usize) -> Result<Read, BoxError> {
        let end = self.records.len().min(self.next.saturating_add(most));
        into.extend_from_slice(&self.records[self.next..end]);
        self.next = end;
        Ok(if end == self.records.len() { Read::End } else { Read::More })
    }

    fn position(&self) -> Vec<u8> {
        (self.next as u64).to_le_bytes().to_vec()
    }
}

/// A sink that keeps its records in memory, for tests. Clones share them, so that they outlive a
/// restart of the job, though not the process.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use side_output::checkpoint::{JobSink, MemorySink};
///
/// let mut sink = MemorySink::new();
/// block_on(sink.open(None))?;
/// block_on(sink.write(&mut vec![1, 2], &mut Vec::new()))?;
/// block_on(sink.prepare(1))?;
/// assert!(sink.committed().is_empty());
/// block_on(sink.commit(1))?;
/// assert_eq!(sink.committed(), [1, 2]);
/// # Ok::<(), side_output::checkpoint::BoxError>(())
/// ```
pub struct MemorySink<T>(Arc<Mutex<Shared<T>>>);

struct Shared<T> {
    written: Vec<T>,
    /// For which checkpoint.
    prepared: Option<(u64, Vec<T>)>,
    committed: Vec<T>,
}

impl<T> MemorySink<T> {
    /// An empty sink.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was committed so far.
    #[must_use]
    pub fn committed(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.lock().committed.clone()
    }
}

impl<T: Send + 'static> JobSink<T> for MemorySink<T> {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        let stored = match prepared {
            None | Some([]) => 0,
            Some(id) => u64::from_le_bytes(id.try_into()?),
        };
        self.lock().written.clear();
        self.commit(stored).await?;
        // Of a checkpoint that is not in the store.
        self.lock().prepared = None;
        Ok(())
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        _refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        self.lock().written.append(batch);
        Ok(())
    }

    async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
        let mut shared = self.lock();
        let written = mem::take(&mut shared.written);
        shared.prepared = Some((checkpoint, written));
        Ok(checkpoint.to_le_bytes().to_vec())
    }

    async fn commit(&mut self, checkpoint: u64) -> Result<(), BoxError> {
        let mut shared = self.lock();
        if let Some((_, mut records)) = shared.prepared.take_if(|(id, _)| *id == checkpoint) {
            shared.committed.append(&mut records);
        }
        Ok(())
    }
}

impl<T> Clone for MemorySink<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for MemorySink<T> {
    fn default() -> Self {
        let shared = Shared { written: Vec::new(), prepared: None, committed: Vec::new() };
        Self(Arc::new(Mutex::new(shared)))
    }
}

impl<T> fmt::Debug for MemorySink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySink")
            .field("committed", &self.lock().committed.len())
            .finish_non_exhaustive()
    }
}
