//! The few file operations that stores and sinks are made of: in one place, so that a test can make
//! any one of them fail.

use crate::lock::Lock;
use side_output_core::checkpoint::StoreError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Where files are.
#[derive(Clone, Debug, Default)]
pub(crate) enum Disk {
    /// The disk.
    #[default]
    Real,
    /// One that fails where the test wants it.
    #[cfg(test)]
    Simulated(simulated::Simulated),
}

/// Runs the operation on whichever disk it is.
macro_rules! on {
    ($disk:expr, $operation:ident($($argument:expr),*), $real:expr) => {
        match $disk {
            Disk::Real => $real,
            #[cfg(test)]
            Disk::Simulated(disk) => disk.$operation($($argument),*),
        }
    };
}

impl Disk {
    /// The length of a file; `None` if there is none.
    pub(crate) fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        on!(self, length(path), {
            match fs::metadata(path) {
                Ok(metadata) => Ok(Some(metadata.len())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// Reads from `offset`, at most `most` bytes.
    pub(crate) fn read_at(&self, path: &Path, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        on!(self, read_at(path, offset, most), {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    /// Cuts a file off at `offset`, and writes `bytes` there. The file is made if there is none.
    pub(crate) fn write_at(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        on!(self, write_at(path, offset, bytes), {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            file.set_len(offset)?;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        })
    }

    /// What the file has survives a crash of the machine.
    pub(crate) fn sync(&self, path: &Path) -> io::Result<()> {
        on!(self, sync(path), { OpenOptions::new().write(true).open(path)?.sync_all() })
    }

    /// Which files the folder has survives a crash of the machine.
    pub(crate) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        on!(self, sync_folder(folder), {
            // Elsewhere a folder cannot be opened, and needs no such call.
            if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
        })
    }

    /// Gives a complete file its name; an error if there is one of that name.
    pub(crate) fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        on!(self, publish(from, to), {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        })
    }

    /// Makes a folder, unless it exists.
    pub(crate) fn create_folder(&self, folder: &Path) -> io::Result<()> {
        on!(self, create_folder(folder), {
            fs::create_dir_all(folder)?;
            self.sync_folder(&folder_of(folder))
        })
    }

    /// Takes the lock in this file; a simulated disk has none, since it has one process.
    pub(crate) fn lock(&self, path: &Path) -> Result<Option<Lock>, StoreError> {
        on!(self, lock(path), Lock::take(path).map(Some))
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        on!(self, remove(path), {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        })
    }

    /// The names of the files in a folder, sorted.
    pub(crate) fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        on!(self, list(folder), {
            let mut names = Vec::new();
            for entry in fs::read_dir(folder)? {
                // A name that is no text is none of ours.
                names.extend(entry?.file_name().into_string());
            }
            names.sort_unstable();
            Ok(names)
        })
    }
}

/// The folder in which a file is.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
pub(crate) mod simulated;
