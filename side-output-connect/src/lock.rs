//! One writer: its lock ends with its process, however that comes about.

use side_output_core::checkpoint::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// A lock of the operating system, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, whose file is made if it does not exist.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::failed(format!("{}: {error}", path.display()));
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::InUse(format!("{} is locked", path.display())))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
