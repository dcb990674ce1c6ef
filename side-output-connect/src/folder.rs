use crate::checksum::Checksum;
use crate::disk::Disk;
use crate::lock::Lock;
use side_output_core::checkpoint::{Store, StoreError, Stored};
use side_output_core::state::StateChanges;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

mod file;

use self::file::{Contents, States};

/// Keeps the checkpoints of a job as files in a folder.
///
/// Each checkpoint is one file, with its number as name, which is written, synced, and only then
/// given that name; none is ever overwritten. A file has what has changed since the checkpoint
/// before. When the changes outweigh the last file with all states, the next file has all states
/// again. The work is done on a thread of its own.
///
/// # Guarantee
///
/// After a crash at any point the folder has the checkpoint before or this one, whole; after
/// [`complete`](Store::complete) this one. Everything has a checksum: a byte that is missing or
/// wrong is an error that names the file.
///
/// One process writes: it holds a lock of the operating system, which ends with it. Where locks do
/// not work, as on some network disks, a writer finds before each checkpoint that another one has
/// opened the folder since. Two that write in the same moment are not told apart there.
///
/// The file system must have hard links.
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::Store as _;
/// use side_output::connect::FolderStore;
/// use side_output::state::StateChanges;
///
/// # futures::executor::block_on(async {
/// # let folder = std::env::temp_dir().join(format!("folder-store-{}", std::process::id()));
/// // This is what a job does.
/// let mut store = FolderStore::new(&folder).keep(3);
/// assert_eq!(store.open("flights").await?, None);
/// let mut changes = StateChanges::new(true);
/// changes.value("count", &7)?;
/// store.complete(1, b"positions".to_vec(), &[("visits".to_owned(), changes)]).await?;
///
/// let stored = store.open("flights").await?.expect("a checkpoint");
/// assert_eq!((stored.id, &*stored.cut), (1, &b"positions"[..]));
/// assert_eq!(stored.states["visits"].read_value("count")?, Some(7));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct FolderStore {
    inner: Arc<Mutex<Inner>>,
    forgotten: Vec<String>,
}

#[derive(Debug)]
struct Inner {
    disk: Disk,
    folder: PathBuf,
    /// How many checkpoints are kept.
    keep: usize,
    job: String,
    lock: Option<Lock>,
    /// Which writer this is; none before it is open, and after an error.
    epoch: Option<u64>,
    /// All files of checkpoints.
    files: BTreeMap<u64, Known>,
}

/// What is known of a checkpoint's file.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The checkpoint whose states it changes; none if it has all states itself.
    before: Option<u64>,
    size: u64,
}

/// After so many files with changes there is one with all states, however small they are: each of
/// them is read when the store is opened.
const MOST_CHANGES: usize = 256;

impl FolderStore {
    /// A store in this folder, which is made if it does not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let inner = Inner {
            disk: Disk::default(),
            folder: path.into(),
            keep: 2,
            job: String::new(),
            lock: None,
            epoch: None,
            files: BTreeMap::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)), forgotten: Vec::new() }
    }

    /// How many checkpoints are kept, at least the newest; without this, 2.
    #[must_use]
    pub fn keep(self, checkpoints: usize) -> Self {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).keep = checkpoints.max(1);
        self
    }

    /// Does this on a thread of its own: it waits for the disk.
    async fn apart<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Inner) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        let work = move || {
            // Whoever asked may be gone: then the next opening finds what was done.
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            sender.send(work(&mut inner)).unwrap_or_default();
        };
        let builder = std::thread::Builder::new().name("side-output-store".to_owned());
        drop(builder.spawn(work).map_err(StoreError::failed)?);
        receiver.await.map_err(|_| StoreError::failed("the thread of the store panicked"))
    }
}

impl Store for FolderStore {
    async fn open(&mut self, job: &str) -> Result<Option<Stored>, StoreError> {
        let job = job.to_owned();
        self.apart(move |inner| inner.open(job)).await?
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), StoreError> {
        let forgotten = std::mem::take(&mut self.forgotten);
        let changes = file::write_changes(&forgotten, changes);
        self.apart(move |inner| inner.complete(id, cut, changes)).await?
    }

    fn forget(&mut self, uid: &str) {
        self.forgotten.push(uid.to_owned());
    }
}

impl Inner {
    fn open(&mut self, job: String) -> Result<Option<Stored>, StoreError> {
        let opened = self.open_as_writer(job);
        if opened.is_err() {
            self.lock = None;
        }
        opened
    }

    fn open_as_writer(&mut self, job: String) -> Result<Option<Stored>, StoreError> {
        self.epoch = None;
        self.files.clear();
        self.job = job;
        self.disk.create_folder(&self.folder).map_err(|error| failed(&self.folder, error))?;
        if self.lock.is_none() {
            self.lock = self.disk.lock(&self.folder.join("lock"))?;
        }
        let names = self.list()?;
        for name in &names {
            if let Some(id) = name.strip_suffix(".checkpoint").and_then(|id| id.parse().ok()) {
                self.files.insert(id, self.look_at(id)?);
            } else if name.strip_suffix(".new").is_some() {
                self.remove(&self.folder.join(name))?; // it was never complete
            }
        }
        let stored = match self.files.last_key_value() {
            Some((newest, _)) => Some(self.load(*newest)?),
            None => None,
        };
        // Nothing is written before it is known that all of this may be.
        self.begin(&names)?;
        Ok(stored.map(|(contents, states)| Stored {
            id: contents.id,
            cut: contents.cut,
            states: states.into_saved(),
        }))
    }

    /// Becomes the writer: those before find the file with a higher number.
    fn begin(&mut self, names: &[String]) -> Result<(), StoreError> {
        let epoch = newest_epoch(names).map_or(1, |epoch| epoch + 1);
        let path = self.folder.join(format!("epoch-{epoch}"));
        let made = self.disk.write_at(&path, 0, &[]).and_then(|()| self.disk.sync(&path));
        made.map_err(|error| failed(&path, error))?;
        self.sync_folder()?;
        for name in names.iter().filter(|name| epoch_of(name).is_some()) {
            self.remove(&self.folder.join(name))?;
        }
        let is_new =
            |name: &String| name.strip_suffix(".checkpoint").is_some() && !names.contains(name);
        if self.list()?.iter().any(is_new) {
            let text = format!("{}: another writer has just written", self.folder.display());
            return Err(StoreError::InUse(text));
        }
        self.epoch = Some(epoch);
        Ok(())
    }

    fn complete(&mut self, id: u64, cut: Vec<u8>, changes: Vec<u8>) -> Result<(), StoreError> {
        // After an error nothing is known: it has to be opened again.
        let epoch = self.epoch.take().ok_or_else(|| StoreError::failed("the store is not open"))?;
        if newest_epoch(&self.list()?) != Some(epoch) {
            return Err(StoreError::Fenced);
        }
        let newest = self.files.last_key_value().map(|(newest, _)| *newest);
        if newest.is_some_and(|newest| newest >= id) {
            return Err(StoreError::failed(format!("checkpoint {id} comes after a later one")));
        }
        let mut before = newest;
        let mut changes = changes;
        if let Some(newest) = newest
            && self.is_outweighed(newest, changes.len() as u64)
        {
            let (_, mut states) = self.load(newest)?;
            let path = self.path_of(id);
            states.apply(&changes).ok_or_else(|| damaged(&path, "what is to be written"))?;
            changes = states.write();
            before = None;
        }
        let bytes = Contents { id, before, job: self.job.clone(), cut, changes }.to_bytes();
        let new = self.folder.join(format!("{id:020}.new"));
        let written = self.disk.write_at(&new, 0, &bytes).and_then(|()| self.disk.sync(&new));
        written.map_err(|error| failed(&new, error))?;
        let path = self.path_of(id);
        match self.disk.publish(&new, &path) {
            Ok(()) => {}
            // It is another writer's.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(StoreError::Fenced);
            }
            Err(error) => return Err(failed(&path, error)),
        }
        self.sync_folder()?;
        self.files.insert(id, Known { before, size: bytes.len() as u64 });
        // The checkpoint is complete: what cannot be removed now is removed after the next one.
        self.clean_up().unwrap_or_default();
        self.epoch = Some(epoch);
        Ok(())
    }

    /// Whether the changes since the last file with all states, with these, are more than it has.
    fn is_outweighed(&self, newest: u64, more: u64) -> bool {
        let chain = self.chain(newest);
        let size = |id: &u64| self.files[id].size;
        let Some((base, changes)) = chain.split_last() else { return false };
        changes.len() >= MOST_CHANGES || changes.iter().map(size).sum::<u64>() + more > size(base)
    }

    /// The files that a checkpoint consists of, from the newest to the one with all states.
    fn chain(&self, newest: u64) -> Vec<u64> {
        let before = |id: &u64| self.files.get(id).and_then(|known| known.before);
        std::iter::successors(Some(newest), before).collect()
    }

    /// Removes the files that no checkpoint needs which is to be kept.
    fn clean_up(&mut self) -> Result<(), StoreError> {
        let kept = self.files.keys().rev().take(self.keep);
        let needed: BTreeSet<_> = kept.flat_map(|id| self.chain(*id)).collect();
        let old: Vec<_> = self.files.keys().filter(|id| !needed.contains(id)).copied().collect();
        for id in old {
            self.remove(&self.path_of(id))?;
            self.files.remove(&id);
        }
        Ok(())
    }

    fn load(&self, newest: u64) -> Result<(Contents, States), StoreError> {
        let mut chain = Vec::new();
        let mut next = Some(newest);
        while let Some(id) = next {
            let path = self.path_of(id);
            let bytes = self.disk.read_at(&path, 0, u64::MAX);
            let bytes = bytes.map_err(|error| match error.kind() {
                ErrorKind::NotFound => damaged(&path, "it is missing"),
                _ => failed(&path, error),
            })?;
            let contents = Contents::from_bytes(&bytes).map_err(|what| damaged(&path, what))?;
            if contents.id != id || contents.before.is_some_and(|before| before >= id) {
                return Err(damaged(&path, "it is another checkpoint"));
            }
            if contents.job != self.job {
                return Err(StoreError::OtherJob(contents.job));
            }
            next = contents.before;
            chain.push(contents);
        }
        let mut states = States::default();
        for contents in chain.iter().rev() {
            let path = self.path_of(contents.id);
            let applied = states.apply(&contents.changes);
            applied.ok_or_else(|| damaged(&path, "its states"))?;
        }
        Ok((chain.swap_remove(0), states))
    }

    /// What a file says of itself at its beginning.
    fn look_at(&self, id: u64) -> Result<Known, StoreError> {
        let path = self.path_of(id);
        let size = self.disk.length(&path).map_err(|error| failed(&path, error))?;
        let head = self.disk.read_at(&path, 0, file::HEAD as u64);
        let head = head.map_err(|error| failed(&path, error))?;
        let before = file::before(&head).map_err(|what| damaged(&path, what))?;
        Ok(Known { before, size: size.unwrap_or_default() })
    }

    fn path_of(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id:020}.checkpoint"))
    }

    fn list(&self) -> Result<Vec<String>, StoreError> {
        self.disk.list(&self.folder).map_err(|error| failed(&self.folder, error))
    }

    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        self.disk.remove(path).map_err(|error| failed(path, error))
    }

    fn sync_folder(&self) -> Result<(), StoreError> {
        self.disk.sync_folder(&self.folder).map_err(|error| failed(&self.folder, error))
    }
}

fn epoch_of(name: &str) -> Option<u64> {
    name.strip_prefix("epoch-")?.parse().ok()
}

fn newest_epoch(names: &[String]) -> Option<u64> {
    names.iter().filter_map(|name| epoch_of(name)).max()
}

fn failed(path: &Path, error: impl Display) -> StoreError {
    StoreError::failed(format!("{}: {error}", path.display()))
}

fn damaged(path: &Path, what: impl Display) -> StoreError {
    StoreError::Damaged(format!("{}: {what}", path.display()))
}

/// The checksum of a file, after its first bytes.
fn checksum(bytes: &[u8]) -> u32 {
    Checksum::new().add(bytes).value()
}

#[cfg(test)]
mod tests;
