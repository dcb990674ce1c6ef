use super::at;
use crate::checksum::Checksum;
use crate::disk::{Disk, folder_of};
use serde::{Deserialize, Serialize};
use side_output_core::checkpoint::BoxError;
use std::path::{Path, PathBuf};

/// A file that grows by what checkpoints complete, and never shows anything else.
///
/// What is appended stays in memory, and beyond a limit in a file beside, until its checkpoint is in
/// the store: then it is written at the recorded length. Written again, it is the same.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) disk: Disk,
    pub(super) path: PathBuf,
    /// How many bytes are kept in memory.
    pub(super) in_memory: usize,
    /// The length that checkpoints have completed.
    length: u64,
    /// What has come since the last barrier.
    pending: Pending,
    /// What was prepared last.
    prepared: Option<Prepared>,
    open: bool,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// How much of it is in a file beside already.
    spilled: u64,
    checksum: Option<Checksum>,
}

/// What is written for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Prepared {
    /// Where it begins in the file.
    offset: u64,
    length: u64,
    checksum: u32,
    /// Whether it is in a file beside.
    spilled: bool,
    /// Otherwise it is here, after the fields.
    #[serde(skip)]
    bytes: Vec<u8>,
}

/// How much is copied in one step.
const PORTION: u64 = 1 << 20;

impl Committed {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            disk: Disk::default(),
            path,
            in_memory: 4 << 20,
            length: 0,
            pending: Pending::default(),
            prepared: None,
            open: false,
        }
    }

    /// How long the file will be with all that was appended.
    pub(super) fn end(&self) -> u64 {
        let prepared = self.prepared.as_ref().filter(|prepared| prepared.offset == self.length);
        let prepared = prepared.map_or(0, |prepared| prepared.length);
        self.length + prepared + self.pending.spilled + self.pending.bytes.len() as u64
    }

    pub(super) fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        self.open = false;
        (self.pending, self.prepared) = (Pending::default(), None);
        self.recover(prepared).map_err(|error| at(&self.path, error))?;
        self.open = true;
        Ok(())
    }

    fn recover(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        let there = self.disk.length(&self.path)?;
        let Some(prepared) = prepared else {
            if there.is_some_and(|length| length > 0) {
                return Err("the job begins, and there is a file that it has not written: \
                            move it away, or start the job with the store that belongs to it"
                    .into());
            }
            self.length = 0;
            return self.remove_spilled();
        };
        let prepared = Prepared::from_bytes(prepared)?;
        if there.unwrap_or(0) < prepared.offset {
            let there = there.unwrap_or(0);
            let text = format!(
                "the file has {there} bytes, and checkpoints have completed {}: it was cut off \
                 or removed since",
                prepared.offset
            );
            return Err(text.into());
        }
        let end = prepared.offset + prepared.length;
        let beside = self.beside(prepared.offset);
        let is_written = there.is_some_and(|there| there >= end)
            && self.checksum(&self.path, prepared.offset, prepared.length)? == prepared.checksum;
        if is_written {
            // What readers have seen stays where it is; only what came later goes.
            if there != Some(end) {
                self.disk.write_at(&self.path, end, &[])?;
            }
            self.disk.sync(&self.path)?;
            self.length = end;
        } else if prepared.spilled && self.disk.length(&beside)?.is_none() {
            return Err(format!("{} is gone", beside.display()).into());
        } else {
            self.length = prepared.offset;
            self.prepared = Some(prepared);
            self.write_prepared()?;
        }
        self.remove_spilled()
    }

    /// Appends what becomes visible with the next checkpoint.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        if !self.open {
            return Err(at(&self.path, "the sink is not open"));
        }
        let checksum = self.pending.checksum.get_or_insert(Checksum::new());
        *checksum = checksum.add(bytes);
        self.pending.bytes.extend_from_slice(bytes);
        if self.pending.bytes.len() > self.in_memory {
            self.spill().map_err(|error| at(&self.path, error))?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), BoxError> {
        let beside = self.beside(self.start());
        self.disk.write_at(&beside, self.pending.spilled, &self.pending.bytes)?;
        self.pending.spilled += self.pending.bytes.len() as u64;
        self.pending.bytes.clear();
        Ok(())
    }

    /// Where in the file the pending bytes begin.
    fn start(&self) -> u64 {
        self.end() - self.pending.spilled - self.pending.bytes.len() as u64
    }

    pub(super) fn prepare(&mut self) -> Result<Vec<u8>, BoxError> {
        self.prepare_pending().map_err(|error| at(&self.path, error))
    }

    fn prepare_pending(&mut self) -> Result<Vec<u8>, BoxError> {
        if self.start() != self.length {
            return Err("the checkpoint before is not committed".into());
        }
        if self.pending.spilled > 0 {
            self.spill()?;
            self.disk.sync(&self.beside(self.length))?;
            self.disk.sync_folder(&folder_of(&self.path))?;
        }
        let pending = std::mem::take(&mut self.pending);
        let prepared = Prepared {
            offset: self.length,
            length: pending.spilled + pending.bytes.len() as u64,
            checksum: pending.checksum.unwrap_or(Checksum::new()).value(),
            spilled: pending.spilled > 0,
            bytes: pending.bytes,
        };
        let bytes = prepared.to_bytes()?;
        self.prepared = Some(prepared);
        Ok(bytes)
    }

    pub(super) fn commit(&mut self) -> Result<(), BoxError> {
        if self.prepared.as_ref().is_some_and(|prepared| prepared.offset < self.length) {
            return Ok(()); // it was committed before
        }
        self.write_prepared().map_err(|error| at(&self.path, error))
    }

    fn write_prepared(&mut self) -> Result<(), BoxError> {
        let Some(prepared) = &self.prepared else { return Ok(()) };
        let (offset, end) = (prepared.offset, prepared.offset + prepared.length);
        let there = self.disk.length(&self.path)?;
        if there == Some(end) && prepared.length == 0 {
            return Ok(());
        }
        if prepared.spilled {
            let beside = self.beside(offset);
            // Nothing that is not what was prepared becomes visible.
            if self.checksum(&beside, 0, prepared.length)? != prepared.checksum {
                return Err(format!("{} is damaged", beside.display()).into());
            }
            let mut done = 0;
            while done < prepared.length {
                let most = PORTION.min(prepared.length - done);
                let portion = self.disk.read_at(&beside, done, most)?;
                self.disk.write_at(&self.path, offset + done, &portion)?;
                done += portion.len() as u64;
            }
        } else {
            self.disk.write_at(&self.path, offset, &prepared.bytes)?;
        }
        self.disk.sync(&self.path)?;
        if there.is_none() {
            self.disk.sync_folder(&folder_of(&self.path))?;
        }
        if prepared.spilled {
            self.disk.remove(&self.beside(offset))?;
        }
        self.length = end;
        Ok(())
    }

    /// The checksum of `length` bytes; another one if they are not there.
    fn checksum(&self, path: &Path, offset: u64, length: u64) -> Result<u32, BoxError> {
        let (mut checksum, mut done) = (Checksum::new(), 0);
        while done < length {
            let portion = self.disk.read_at(path, offset + done, PORTION.min(length - done))?;
            if portion.is_empty() {
                return Ok(!checksum.value());
            }
            checksum = checksum.add(&portion);
            done += portion.len() as u64;
        }
        Ok(checksum.value())
    }

    /// Where bytes are kept that begin at `offset`. The name depends on nothing else, so that a job
    /// which is started again finds it, and never takes that of another checkpoint.
    fn beside(&self, offset: u64) -> PathBuf {
        self.path.with_file_name(format!("{}{offset}", self.beside_prefix()))
    }

    fn beside_prefix(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!(".{}.pending-", name.display())
    }

    /// Removes what no checkpoint has, or is in the file.
    fn remove_spilled(&self) -> Result<(), BoxError> {
        let (folder, prefix) = (folder_of(&self.path), self.beside_prefix());
        for name in self.disk.list(&folder)? {
            if name.starts_with(&prefix) {
                self.disk.remove(&self.path.with_file_name(&name))?;
            }
        }
        Ok(())
    }
}

impl Prepared {
    fn to_bytes(&self) -> Result<Vec<u8>, BoxError> {
        let mut bytes = rmp_serde::to_vec_named(self)?;
        bytes.extend_from_slice(&self.bytes);
        Ok(bytes)
    }

    fn from_bytes(mut bytes: &[u8]) -> Result<Self, BoxError> {
        let mut decoder = rmp_serde::Deserializer::new(&mut bytes);
        let mut prepared = Self::deserialize(&mut decoder)?;
        prepared.bytes.extend_from_slice(bytes);
        let is_whole = prepared.bytes.len() as u64 == prepared.length
            && Checksum::new().add(&prepared.bytes).value() == prepared.checksum;
        if prepared.spilled || is_whole {
            Ok(prepared)
        } else {
            Err("what the checkpoint has of this file is damaged".into())
        }
    }
}

#[cfg(test)]
mod tests;
