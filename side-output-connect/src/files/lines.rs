use super::at;
use crate::checksum::Checksum;
use serde::{Deserialize, Serialize};
use side_output_core::checkpoint::{BoxError, JobSource, Read};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The lines of a file, or of all files in a folder.
///
/// See [`Lines`].
pub fn lines(path: impl Into<PathBuf>) -> Lines {
    Lines {
        path: path.into(),
        follow: None,
        longest: 1 << 20,
        place: Place::default(),
        reader: None,
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Line {
    /// The name of the file.
    pub file: Arc<str>,
    /// Its number in the file, from 1.
    pub number: u64,
    /// How many bytes of the file stand before it.
    pub offset: u64,
    /// The line, without its end; of a line that is too long, the beginning.
    pub bytes: Vec<u8>,
    /// How many bytes the line has, without its end.
    pub length: u64,
}

/// Why a line is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadLine {
    /// It is not UTF-8 from this byte on.
    NotUtf8(usize),
    /// It has this many bytes, which is more than [`Lines::longest`] allows.
    TooLong(u64),
}

impl Line {
    /// The text of the line.
    ///
    /// # Errors
    ///
    /// If it is not UTF-8, or too long.
    pub fn text(&self) -> Result<&str, BadLine> {
        if self.length > self.bytes.len() as u64 {
            return Err(BadLine::TooLong(self.length));
        }
        std::str::from_utf8(&self.bytes).map_err(|error| BadLine::NotUtf8(error.valid_up_to()))
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8(at) => write!(f, "not UTF-8 from byte {at} on"),
            Self::TooLong(length) => write!(f, "too long: {length} bytes"),
        }
    }
}

impl std::error::Error for BadLine {}

/// Lines of files; made by [`lines()`].
///
/// In a folder, the files are read in the order of their names; those whose names begin with a dot,
/// and folders in it, are left out. Lines end in `\n` or `\r\n`.
///
/// # Guarantee
///
/// From each position the same lines come in the same order. For that the files must not change, but
/// for what is appended:
///
/// | | without [`follow`](Self::follow) | with it |
/// | --- | --- | --- |
/// | end of a file | a last line may lack its end | a line is handed on when its end is there, or the file is over |
/// | grows | what came after the job began is not read | is read |
/// | new file in the folder | is not read | is read, and the one before is over; an error if its name comes before that of a file that was read |
/// | another file takes the name of a single file (rotation) | an error, if the job starts again | the old one is read to its end, then the new one from its beginning; an error if the job starts again in the old one |
/// | becomes shorter (truncated), or is written over | an error | an error |
/// | is removed from the folder | an error, if it was not read to its end | an error, if the job starts again in it; one that was not begun is not read |
/// | a file in a folder gets another name, or another file its name | an error, if the job starts again | an error |
///
/// A file is known again by its first 1024 bytes, as far as they were read. All errors name the file.
///
/// A line that is no UTF-8, or too long, is a value as all others: see [`Line::text`].
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::{JobSource as _, Read};
/// use side_output::connect::files;
///
/// # futures::executor::block_on(async {
/// # let path = std::env::temp_dir().join(format!("lines-{}.txt", std::process::id()));
/// std::fs::write(&path, "one\r\ntwo\nthree")?;
/// let mut source = files::lines(&path);
/// source.open(None).await?;
/// let mut lines = Vec::new();
/// source.read(&mut lines, 1).await?;
/// assert_eq!(lines[0].text(), Ok("one"));
///
/// // A job keeps the position in each checkpoint, and goes on from there.
/// let mut source_again = files::lines(&path);
/// source_again.open(Some(&source.position())).await?;
/// let mut rest = Vec::new();
/// while source_again.read(&mut rest, 100).await? == Read::More {}
/// assert_eq!((rest[0].number, rest[0].offset), (2, 5));
/// # assert_eq!(rest.len(), 2);
/// # std::fs::remove_file(&path)?;
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    follow: Option<Duration>,
    longest: usize,
    /// Where the next line begins.
    place: Place,
    reader: Option<Reader>,
}

/// A position: which files have been read, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// Whether the path is that of a folder.
    folder: bool,
    /// All files with their lengths when the job began, unless they are followed.
    found: Option<BTreeMap<String, u64>>,
    /// The files of a followed folder that have been read to their end, as long as they are there.
    done: BTreeSet<String>,
    /// The last file that was read to its end.
    last: Option<String>,
    current: Option<Current>,
}

/// The file that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Current {
    name: String,
    /// Where the next line begins.
    offset: u64,
    /// How many lines were before.
    lines: u64,
    /// What tells it from a file that has taken its name: the checksum of its beginning.
    beginning: u32,
    /// How many bytes that is of.
    known: u64,
}

/// How much of its beginning a file is known again by.
const KNOWN: u64 = 1024;

#[derive(Debug)]
struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    name: Arc<str>,
    /// How many bytes have been taken out.
    at: u64,
    /// Where it ends, if it is not followed.
    end: Option<u64>,
    /// It is known to have no writer any more: what it has now is all.
    closed: bool,
    line: Partial,
}

/// A line, as far as it has been read.
#[derive(Debug, Default)]
struct Partial {
    /// The beginning, as much as may be needed.
    bytes: Vec<u8>,
    /// How much there is.
    length: u64,
    ends_in_return: bool,
}

impl Lines {
    /// Waits for more at the end, and looks for it as often.
    ///
    /// A line is handed on when its end is there. It needs the timer of `tokio`.
    #[must_use]
    pub fn follow(mut self, every: Duration) -> Self {
        self.follow = Some(every);
        self
    }

    /// Lines with more bytes are [too long](BadLine::TooLong); without this, those above 1 MiB.
    #[must_use]
    pub fn longest(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    fn start(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.reader = None;
        let folder = fs::metadata(&self.path)?.is_dir();
        self.place = match position {
            Some(position) => rmp_serde::from_slice(position)?,
            None => Place { folder, ..Place::default() },
        };
        if self.place.folder != folder {
            return Err("it was a file and is a folder, or the other way round".into());
        }
        if self.follow.is_some() {
            self.place.found = None;
        } else if self.place.found.is_none() {
            self.place.found = Some(self.list()?);
        }
        if let Some(current) = &self.place.current {
            self.reader = Some(self.reopen(current)?);
        }
        Ok(())
    }

    /// Opens the file that was being read, if it is that file still.
    fn reopen(&self, current: &Current) -> Result<Reader, BoxError> {
        let path = self.path_of(&current.name);
        let mut file = File::open(&path).map_err(|error| at(&path, error))?;
        let length = file.metadata()?.len();
        if length < current.offset {
            return Err(at(&path, cut_off(length, current.offset)));
        }
        if !current.is_beginning_of(&mut file)? {
            return Err(at(&path, REPLACED));
        }
        file.seek(SeekFrom::Start(current.offset))?;
        Ok(self.reader(file, path, &current.name, current.offset))
    }

    fn reader(&self, file: File, path: PathBuf, name: &str, at: u64) -> Reader {
        let end = self.place.found.as_ref().and_then(|found| found.get(name).copied());
        Reader {
            file: BufReader::with_capacity(1 << 16, file),
            path,
            name: name.into(),
            at,
            end,
            closed: false,
            line: Partial::default(),
        }
    }

    /// The files that there are, with their lengths.
    fn list(&self) -> Result<BTreeMap<String, u64>, BoxError> {
        let mut files = BTreeMap::new();
        if !self.place.folder {
            let name = self.path.file_name().unwrap_or_default();
            files.insert(name.display().to_string(), fs::metadata(&self.path)?.len());
            return Ok(files);
        }
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.into_string().map_err(|name| {
                at(&self.path, format!("the name of {} is not UTF-8", name.display()))
            })?;
            let metadata = fs::metadata(entry.path())?;
            if metadata.is_file() && !name.starts_with('.') {
                files.insert(name, metadata.len());
            }
        }
        Ok(files)
    }

    fn path_of(&self, name: &str) -> PathBuf {
        if self.place.folder { self.path.join(name) } else { self.path.clone() }
    }

    /// The name of the file after the last one, if there is one.
    fn find_next(&mut self) -> Result<Option<String>, BoxError> {
        if !self.place.folder && self.place.last.is_some() {
            return Ok(None);
        }
        let current = self.place.current.as_ref().map(|current| &current.name);
        let last = current.or(self.place.last.as_ref()).cloned();
        if let Some(found) = &self.place.found {
            let next = found.keys().find(|name| last.as_ref().is_none_or(|last| *name > last));
            return Ok(next.cloned());
        }
        let files = self.list()?;
        let done = &mut self.place.done;
        done.retain(|name| files.contains_key(name));
        let is_new = |name: &&String| !done.contains(*name) && Some(*name) != last.as_ref();
        let next = files.keys().find(is_new).cloned();
        match (next, last) {
            // In which order it is read would depend on when it was found.
            (Some(next), Some(last)) if next < last => {
                let path = self.path_of(&next);
                let text =
                    format!("it came after `{last}` was read: files are read by their names");
                Err(at(&path, text))
            }
            (next, _) => Ok(next),
        }
    }

    /// Opens the next file, if there is one.
    fn open_next(&mut self) -> Result<bool, BoxError> {
        let Some(name) = self.find_next()? else { return Ok(false) };
        let path = self.path_of(&name);
        let file = File::open(&path).map_err(|error| at(&path, error))?;
        self.reader = Some(self.reader(file, path, &name, 0));
        let beginning = Checksum::new().value();
        self.place.current = Some(Current { name, offset: 0, lines: 0, beginning, known: 0 });
        Ok(true)
    }

    /// Appends lines until there are `most`, or no more in this file.
    fn read_lines(&mut self, into: &mut Vec<Line>, most: usize) -> Result<(), BoxError> {
        let (Some(reader), Some(current)) = (&mut self.reader, &mut self.place.current) else {
            return Ok(());
        };
        while into.len() < most
            && reader.read_line(current, self.longest).map_err(|error| at(&reader.path, error))?
        {
            into.push(reader.take_line(current, self.longest));
        }
        Ok(())
    }

    /// At the end of what the file has: whether nothing more can come.
    fn is_over(&mut self) -> Result<bool, BoxError> {
        let is_followed_folder = self.follow.is_some() && self.place.folder;
        let next = if is_followed_folder { self.find_next()? } else { None };
        let next = next.map(|name| self.path_of(&name));
        let (Some(reader), Some(current)) = (&mut self.reader, &self.place.current) else {
            return Ok(true);
        };
        if let Some(end) = reader.end {
            return if reader.at == end {
                Ok(true)
            } else {
                Err(at(&reader.path, cut_off(reader.at, end)))
            };
        }
        if reader.closed {
            return Ok(true);
        }
        let ours = reader.file.get_ref().metadata()?;
        if ours.len() < reader.at {
            return Err(at(&reader.path, cut_off(ours.len(), reader.at)));
        }
        if let Some(next) = &next
            && !is_other(&ours, &fs::metadata(next)?)
        {
            let text = format!("it was `{}` before, and is read already", current.name);
            return Err(at(next, text));
        }
        let was_replaced = reader.was_replaced(&ours, current)?;
        if was_replaced && self.place.folder {
            return Err(at(&reader.path, REPLACED));
        }
        // What was written before it was left is read once more.
        reader.closed = next.is_some() || was_replaced;
        Ok(false)
    }

    /// Ends the file: its last line may have no end.
    fn finish_file(&mut self, into: &mut Vec<Line>) {
        let (Some(mut reader), Some(mut current)) = (self.reader.take(), self.place.current.take())
        else {
            return;
        };
        if reader.line.length > 0 {
            into.push(reader.take_line(&mut current, self.longest));
        }
        if self.place.folder && self.follow.is_some() {
            self.place.done.insert(current.name.clone());
        }
        // A file that was replaced is followed by another of the same name.
        self.place.last = (self.place.folder || self.follow.is_none()).then_some(current.name);
    }
}

impl JobSource for Lines {
    type Item = Line;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.start(position).map_err(|error| at(&self.path, error))
    }

    async fn read(&mut self, into: &mut Vec<Line>, most: usize) -> Result<Read, BoxError> {
        let before = into.len();
        let most = before.saturating_add(most);
        loop {
            if self.reader.is_none() && !self.open_next()? && self.follow.is_none() {
                return Ok(Read::End);
            }
            self.read_lines(into, most)?;
            if into.len() > before {
                return Ok(Read::More);
            }
            if self.reader.is_some() && self.is_over()? {
                self.finish_file(into);
                if into.len() > before {
                    return Ok(Read::More);
                }
                continue;
            }
            let was_closed = self.reader.as_ref().is_some_and(|reader| reader.closed);
            if let Some(every) = self.follow
                && !was_closed
            {
                tokio::time::sleep(every).await;
            }
        }
    }

    fn position(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(&self.place).unwrap_or_default()
    }
}

const REPLACED: &str = "another file has taken the place of the one that was read";

fn cut_off(length: u64, read: u64) -> String {
    format!("it has {length} bytes, and had {read}: it was cut off")
}

impl Reader {
    /// Reads up to the end of a line; `false` if it is not there.
    fn read_line(&mut self, current: &mut Current, longest: usize) -> std::io::Result<bool> {
        loop {
            let mut bytes = self.file.fill_buf()?;
            if let Some(end) = self.end {
                let left = usize::try_from(end - self.at).unwrap_or(usize::MAX);
                bytes = &bytes[..bytes.len().min(left)];
            }
            if bytes.is_empty() {
                return Ok(false);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            current.learn(self.at, &bytes[..taken]);
            self.line.push(&bytes[..end.unwrap_or(taken)], longest);
            self.file.consume(taken);
            self.at += taken as u64;
            if end.is_some() {
                self.line.drop_return();
                return Ok(true);
            }
        }
    }

    fn take_line(&mut self, current: &mut Current, longest: usize) -> Line {
        let Partial { mut bytes, length, .. } = std::mem::take(&mut self.line);
        bytes.truncate(longest);
        let offset = std::mem::replace(&mut current.offset, self.at);
        current.lines += 1;
        Line { file: Arc::clone(&self.name), number: current.lines, offset, bytes, length }
    }

    /// Whether there is another file under its path.
    fn was_replaced(&self, ours: &fs::Metadata, current: &Current) -> Result<bool, BoxError> {
        let Ok(there) = File::open(&self.path) else {
            return Ok(false); // there is none, until the next one is made
        };
        if is_other(ours, &there.metadata()?) {
            return Ok(true);
        }
        if current.is_beginning_of(there)? {
            Ok(false)
        } else {
            Err(at(&self.path, "it was cut off or written over, and has grown again"))
        }
    }
}

#[cfg(unix)]
fn is_other(ours: &fs::Metadata, there: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (ours.dev(), ours.ino()) != (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_other(ours: &fs::Metadata, there: &fs::Metadata) -> bool {
    there.created().ok() != ours.created().ok()
}

impl Partial {
    fn push(&mut self, piece: &[u8], longest: usize) {
        // One more than the longest line has: that may be the `\r` of its end.
        let room = longest.saturating_add(1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        self.length += piece.len() as u64;
        if let Some(last) = piece.last() {
            self.ends_in_return = *last == b'\r';
        }
    }

    fn drop_return(&mut self) {
        if self.ends_in_return {
            self.length -= 1;
            self.bytes.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        }
    }
}

impl Current {
    fn is_beginning_of(&self, file: impl std::io::Read) -> std::io::Result<bool> {
        let mut beginning = Vec::new();
        file.take(self.known).read_to_end(&mut beginning)?;
        Ok(Checksum::new().add(&beginning).value() == self.beginning)
    }

    /// Remembers the beginning of the file; `bytes` are those from `at` on.
    fn learn(&mut self, at: u64, bytes: &[u8]) {
        let end = KNOWN.min(at + bytes.len() as u64);
        if self.known < end {
            let [from, to] = [self.known - at, end - at].map(|at| usize::try_from(at).unwrap_or(0));
            self.beginning = Checksum::resume(self.beginning).add(&bytes[from..to]).value();
            self.known = end;
        }
    }
}
