use crate::lock::Lock;
use side_output_core::checkpoint::StoreError;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk in memory: what is not synced may be gone after a crash, and any operation may fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simulated(Arc<Mutex<Inner>>);

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// With an error, and nothing is done.
    Error,
    /// Half of what is written finds room.
    Full,
    /// The machine stops before it.
    Stop,
    /// The machine stops half-way.
    Torn,
    /// What should be synced is not, and nobody is told; the machine stops after so many others.
    LostSync(usize),
}

/// What a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// All that was written.
    Everything,
    /// Only what was synced.
    Synced,
    /// All names, and of what the files had only what was synced.
    Names,
}

#[derive(Debug, Default)]
struct Inner {
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    steps: usize,
    fault: Option<(usize, Fault)>,
    stopped: bool,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    now: Vec<u8>,
    synced: Vec<u8>,
}

/// How an operation goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Whole,
    Half,
    Unsynced,
}

impl Simulated {
    /// From now on the operation after `steps` others fails like this.
    pub(crate) fn fail(&self, steps: usize, fault: Fault) {
        let mut inner = self.inner();
        (inner.steps, inner.fault) = (0, Some((steps, fault)));
    }

    /// Whether the fault has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.inner().fault.is_none()
    }

    /// The machine starts again, and nothing fails any more. With an error alone nothing was lost.
    pub(crate) fn restart(&self, fault: Fault, left: Left) {
        let mut inner = self.inner();
        (inner.stopped, inner.fault) = (false, None);
        if matches!(fault, Fault::Error | Fault::Full) || left == Left::Everything {
            return;
        }
        if left == Left::Synced {
            inner.names = inner.synced_names.clone();
        }
        for file in &mut inner.files {
            file.now.clone_from(&file.synced);
        }
    }

    /// What a file has, if there is one.
    pub(crate) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let inner = self.inner();
        inner.names.get(path).map(|file| inner.files[*file].now.clone())
    }

    /// Puts something else into a file.
    pub(crate) fn replace(&self, path: &Path, bytes: Vec<u8>) {
        let mut inner = self.inner();
        let file = inner.file(path);
        inner.files[file].now = bytes;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        let mut inner = self.inner();
        inner.step()?;
        let file = inner.names.get(path).copied();
        Ok(file.map(|file| inner.files[file].now.len() as u64))
    }

    pub(super) fn read_at(&self, path: &Path, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut inner = self.inner();
        inner.step()?;
        let file = inner.existing(path)?;
        let bytes = inner.files[file].now.iter().copied();
        Ok(bytes.skip(size(offset)).take(size(most)).collect())
    }

    pub(super) fn write_at(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.step_or_half()?;
        let file = inner.file(path);
        let now = &mut inner.files[file].now;
        now.resize(size(offset), 0);
        let written = if step == Step::Half { bytes.len() / 2 } else { bytes.len() };
        now.extend_from_slice(&bytes[..written]);
        end(step)
    }

    pub(super) fn sync(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.step()?;
        let file = inner.existing(path)?;
        if step == Step::Whole {
            let contents = &mut inner.files[file];
            contents.synced.clone_from(&contents.now);
        }
        Ok(())
    }

    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.step()? == Step::Whole {
            let in_folder = |path: &PathBuf| path.parent() == Some(folder);
            let mut synced = inner.synced_names.clone();
            synced.retain(|path, _| !in_folder(path));
            let names = inner.names.iter().filter(|(path, _)| in_folder(path));
            synced.extend(names.map(|(path, file)| (path.clone(), *file)));
            inner.synced_names = synced;
        }
        Ok(())
    }

    pub(super) fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.step_or_half()?;
        let file = inner.existing(from)?;
        if inner.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        inner.names.insert(to.to_owned(), file);
        if step != Step::Half {
            inner.names.remove(from);
        }
        end(step)
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the real one may fail")]
    pub(super) fn lock(&self, _: &Path) -> Result<Option<Lock>, StoreError> {
        Ok(None)
    }

    pub(super) fn create_folder(&self, _: &Path) -> io::Result<()> {
        self.inner().step().map(|_| ())
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        inner.names.remove(path);
        Ok(())
    }

    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut inner = self.inner();
        inner.step()?;
        let names = inner.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(names.filter_map(|path| path.file_name()?.to_str()).map(str::to_owned).collect())
    }
}

impl Inner {
    /// An operation that is done, or not.
    fn step(&mut self) -> io::Result<Step> {
        match self.step_or_half()? {
            Step::Half => {
                end(Step::Half)?;
                Ok(Step::Whole)
            }
            step => Ok(step),
        }
    }

    fn step_or_half(&mut self) -> io::Result<Step> {
        if self.stopped {
            return Err(io::Error::other("the machine has stopped"));
        }
        let step = self.steps;
        self.steps += 1;
        let Some((at, fault)) = self.fault else { return Ok(Step::Whole) };
        if step < at {
            return Ok(Step::Whole);
        }
        self.fault = None;
        match fault {
            Fault::Error => Err(io::Error::other("the test wants it")),
            Fault::Stop => {
                self.stopped = true;
                Err(io::Error::other("the machine has stopped"))
            }
            Fault::Full => Ok(Step::Half),
            Fault::Torn => {
                self.stopped = true;
                Ok(Step::Half)
            }
            Fault::LostSync(others) => {
                self.fault = Some((step + 1 + others, Fault::Stop));
                Ok(Step::Unsynced)
            }
        }
    }

    fn existing(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn file(&mut self, path: &Path) -> usize {
        if let Ok(file) = self.existing(path) {
            return file;
        }
        self.files.push(Contents::default());
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }
}

fn end(step: Step) -> io::Result<()> {
    if step == Step::Half { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
