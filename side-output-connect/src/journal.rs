use crate::disk::Disk;
use crate::lock::Lock;
use futures_core::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use side_output_core::checkpoint::{BoxError, JobSource, Read};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;

mod segment;

/// Makes any stream one that can be read again.
///
/// See [`Journal`].
pub fn journal<S: Stream>(folder: impl Into<PathBuf>, stream: S) -> Journal<S> {
    Journal {
        stream: Box::pin(stream),
        disk: Disk::default(),
        folder: folder.into(),
        longest: 16 << 20,
        lock: None,
        segments: Vec::new(),
        replayed: 0,
        replay: VecDeque::new(),
        next: 0,
        end: 0,
        length: 0,
        open: false,
    }
}

/// A stream that can be read again; made by [`journal()`].
///
/// Each record is written to a file in the folder of the journal, and is handed on when it is sure
/// to survive a crash of the machine: all records that are ready together are one write and one
/// `fsync`. When the job starts again, it gets those that came after its checkpoint from the
/// journal, and then goes on with the stream, which has to begin with what is new.
///
/// Files are removed when a checkpoint has gone past them.
///
/// # Guarantee
///
/// A record that the stream has given is read exactly once, whatever happens after it was written.
/// One that the stream has given, and the journal could not write, is lost with the process: the
/// other side of the stream has to send it again if it was not told that it came through.
///
/// # Errors
///
/// A byte that is missing or wrong, but in what was being written last, is an error that names the
/// file. So is a journal that another process writes to.
///
/// # Examples
///
/// ```
/// use futures::stream;
/// use side_output::checkpoint::{JobSource as _, Read};
/// use side_output::connect::journal;
///
/// # futures::executor::block_on(async {
/// # let folder = std::env::temp_dir().join(format!("journal-example-{}", std::process::id()));
/// # std::fs::remove_dir_all(&folder).unwrap_or_default();
/// let mut source = journal(&folder, stream::iter([1, 2, 3]));
/// source.open(None).await?;
/// let mut records = Vec::new();
/// source.read(&mut records, 1).await?;
/// let position = source.position();
/// source.read(&mut records, 10).await?;
/// drop(source);
///
/// // After a restart the stream has only what is new.
/// let mut source = journal(&folder, stream::iter([4]));
/// source.open(Some(&position)).await?;
/// let mut records = Vec::new();
/// while source.read(&mut records, 10).await? == Read::More {}
/// assert_eq!(records, [2, 3, 4]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
pub struct Journal<S> {
    stream: Pin<Box<S>>,
    disk: Disk,
    folder: PathBuf,
    /// A file that has as many bytes is followed by another one.
    longest: u64,
    lock: Option<Lock>,
    /// The numbers of the first record in each file.
    segments: Vec<u64>,
    /// How many of the files have been read again.
    replayed: usize,
    /// Records that are to be read again, in their serialised form.
    replay: VecDeque<Vec<u8>>,
    /// The number of the record that is handed on next.
    next: u64,
    /// How many records have been written.
    end: u64,
    /// How many bytes the last file has.
    length: u64,
    open: bool,
}

impl<S> fmt::Debug for Journal<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("folder", &self.folder)
            .field("next", &self.next)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl<S> Journal<S> {
    fn start(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        (self.open, self.replay) = (false, VecDeque::new());
        self.next = match position {
            Some(position) => rmp_serde::from_slice(position)?,
            None => 0,
        };
        self.disk.create_folder(&self.folder)?;
        if self.lock.is_none() {
            self.lock = self.disk.lock(&self.folder.join("lock"))?;
        }
        let names = self.disk.list(&self.folder)?;
        let first = |name: &String| name.strip_suffix(".journal")?.parse::<u64>().ok();
        self.segments = names.iter().filter_map(first).collect();
        (self.end, self.length) = (0, 0);
        if let Some(last) = self.segments.last() {
            let path = self.path_of(*last);
            let read = self.disk.read_at(&path, 0, u64::MAX)?;
            let segment = segment::read(&read, true).map_err(|what| at(&path, what))?;
            // What was being written when the process ended was never handed on.
            if segment.length < read.len() {
                self.disk.write_at(&path, segment.length as u64, &[])?;
                self.disk.sync(&path)?;
            }
            (self.end, self.length) = (last + segment.records.len() as u64, segment.length as u64);
            if self.length > 0 && !segment.is_synced {
                self.disk.sync(&path)?;
                self.mark(&path)?;
            }
        }
        if self.segments.first().is_some_and(|first| self.next < *first) || self.next > self.end {
            let first = self.segments.first().unwrap_or(&0);
            let has = format!("it has the records from {first} to {}", self.end);
            return Err(format!("{has}, and record {} comes next", self.next).into());
        }
        self.replayed = self.segments.partition_point(|first| *first <= self.next);
        self.replayed = self.replayed.saturating_sub(1);
        self.load()?;
        self.open = true;
        Ok(())
    }

    /// Loads what is to be read again of the next file.
    fn load(&mut self) -> Result<(), BoxError> {
        let Some(first) = self.segments.get(self.replayed) else { return Ok(()) };
        let path = self.path_of(*first);
        let read = self.disk.read_at(&path, 0, u64::MAX)?;
        let is_last = self.replayed + 1 == self.segments.len();
        let segment = segment::read(&read, is_last).map_err(|what| at(&path, what))?;
        let end = self.segments.get(self.replayed + 1).unwrap_or(&self.end);
        if first + segment.records.len() as u64 != *end {
            return Err(at(&path, "records are missing"));
        }
        let skip = usize::try_from(self.next - first)?;
        self.replay = segment.records.into_iter().skip(skip).collect();
        self.replayed += 1;
        Ok(())
    }

    /// Writes records: when this returns, they survive a crash of the machine.
    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), BoxError> {
        let is_new = self.segments.is_empty() || self.length >= self.longest;
        if is_new {
            self.segments.push(self.end);
            self.replayed = self.segments.len();
            self.length = 0;
        }
        let path = self.path_of(self.segments.last().copied().unwrap_or_default());
        let frame = segment::frame(records)?;
        self.disk.write_at(&path, self.length, &frame)?;
        self.disk.sync(&path)?;
        if is_new {
            self.disk.sync_folder(&self.folder)?;
        }
        self.length += frame.len() as u64;
        self.mark(&path)?;
        self.end += records.len() as u64;
        Ok(())
    }

    /// From now on a damage of what was written is told from a write that was cut short.
    fn mark(&mut self, path: &Path) -> Result<(), BoxError> {
        self.disk.write_at(path, self.length, &[segment::SYNCED])?;
        self.length += 1;
        Ok(())
    }

    fn path_of(&self, first: u64) -> PathBuf {
        self.folder.join(format!("{first:020}.journal"))
    }
}

fn at(path: &Path, error: impl fmt::Display) -> BoxError {
    format!("{}: {error}", path.display()).into()
}

impl<S> JobSource for Journal<S>
where
    S: Stream + Send + 'static,
    S::Item: Serialize + DeserializeOwned + Send + 'static,
{
    type Item = S::Item;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.start(position).map_err(|error| at(&self.folder, error))
    }

    async fn read(&mut self, into: &mut Vec<S::Item>, most: usize) -> Result<Read, BoxError> {
        if !self.open {
            return Err(at(&self.folder, "the journal is not open"));
        }
        while self.replay.is_empty() && self.next < self.end {
            self.load().map_err(|error| at(&self.folder, error))?;
        }
        if !self.replay.is_empty() {
            let portion = most.min(self.replay.len());
            for record in self.replay.drain(..portion) {
                into.push(rmp_serde::from_slice(&record).map_err(|error| at(&self.folder, error))?);
            }
            self.next += portion as u64;
            return Ok(Read::More);
        }
        // What the stream has given is written before anything waits again.
        let mut records = Vec::new();
        poll_fn(|cx| {
            while records.len() < most {
                match self.stream.as_mut().poll_next(cx) {
                    Poll::Ready(Some(record)) => records.push(record),
                    Poll::Pending if records.is_empty() => return Poll::Pending,
                    Poll::Ready(None) | Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        if records.is_empty() {
            return Ok(Read::End);
        }
        // After an error the journal has to be opened again.
        self.open = false;
        let written: Result<Vec<_>, _> = records.iter().map(rmp_serde::to_vec_named).collect();
        self.append(&written?).map_err(|error| at(&self.folder, error))?;
        self.open = true;
        self.next = self.end;
        into.append(&mut records);
        Ok(Read::More)
    }

    fn position(&self) -> Vec<u8> {
        rmp_serde::to_vec(&self.next).unwrap_or_default()
    }

    async fn completed(&mut self, position: &[u8]) -> Result<(), BoxError> {
        let position: u64 = rmp_serde::from_slice(position)?;
        while let [first, second, ..] = self.segments[..]
            && second <= position
        {
            self.disk.remove(&self.path_of(first))?;
            self.segments.remove(0);
            self.replayed = self.replayed.saturating_sub(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
