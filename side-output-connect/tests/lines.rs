//! Lines of files: positions, folders, growth, rotation, and lines that are no text.

use futures::executor::block_on;
use side_output_connect::files::{BadLine, Line, Lines, lines};
use side_output_core::checkpoint::{BoxError, JobSource as _, Read};
use std::fs;
use std::future::Future as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lines-{name}"));
        fs::remove_dir_all(&path).unwrap_or_default();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn open(mut source: Lines, position: Option<&[u8]>) -> Result<Lines, BoxError> {
    block_on(source.open(position))?;
    Ok(source)
}

/// Reads to the end, `most` at a time.
fn rest(source: &mut Lines, most: usize) -> Result<Vec<Line>, BoxError> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        match block_on(source.read(&mut all, most))? {
            Read::End => return Ok(all),
            Read::More => assert!((1..=most).contains(&(all.len() - before))),
        }
    }
}

/// All that a source which follows has now: it waits for more afterwards.
async fn now(source: &mut Lines) -> Result<Vec<Line>, BoxError> {
    let mut all = Vec::new();
    loop {
        let mut portion = Vec::new();
        // Looks once more after it has waited: a file that was left is read again then.
        for _ in 0..3 {
            let mut read = pin!(source.read(&mut portion, 2));
            match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(read) => {
                    assert_eq!(read?, Read::More);
                    break;
                }
                Poll::Pending => tokio::time::advance(Duration::from_secs(1)).await,
            }
        }
        if portion.is_empty() {
            return Ok(all);
        }
        all.append(&mut portion);
    }
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.text().unwrap()).collect()
}

#[test]
fn lines_have_number_and_offset_and_ends_of_both_kinds() {
    let folder = Folder::new("ends");
    let path = folder.file("a.txt", "one\r\n\ntwo\rx\n\r\nthree\r");
    let mut source = open(lines(&path), None).unwrap();
    let all = rest(&mut source, 2).unwrap();
    assert_eq!(texts(&all), ["one", "", "two\rx", "", "three\r"]);
    let places: Vec<_> = all.iter().map(|line| (line.number, line.offset)).collect();
    assert_eq!(places, [(1, 0), (2, 5), (3, 6), (4, 12), (5, 14)]);
    assert!(all.iter().all(|line| &*line.file == "a.txt"));
    assert_eq!(rest(&mut source, 2).unwrap(), []);
}

#[test]
fn a_line_that_is_no_text_or_too_long_is_a_value_with_its_position() {
    let folder = Folder::new("bad");
    let long = "x".repeat(200_000);
    let bytes = [b"ok\nno\xFFtext\n", long.as_bytes(), b"\n12345678\r\n123456789\n"].concat();
    let path = folder.file("a", bytes);
    let all = rest(&mut open(lines(&path).longest(8), None).unwrap(), 10).unwrap();
    let read: Vec<_> = all.iter().map(Line::text).collect();
    let bad = [BadLine::NotUtf8(2), BadLine::TooLong(200_000), BadLine::TooLong(9)];
    assert_eq!(read, [Ok("ok"), Err(bad[0]), Err(bad[1]), Ok("12345678"), Err(bad[2])]);
    assert_eq!((all[1].offset, &*all[1].bytes), (3, &b"no\xFFtext"[..]));
    assert_eq!((all[2].number, &*all[2].bytes), (3, &b"xxxxxxxx"[..]));
    assert_eq!(all[3].offset, 12 + 200_001 - 1);
}

#[test]
fn from_every_position_the_rest_is_the_same() {
    let folder = Folder::new("positions");
    folder.file("b.csv", "3\n4");
    folder.file("a.csv", "1\r\n2\n");
    folder.file("c.csv", "");
    folder.file("d.csv", "5\n\n6\n");
    folder.file(".hidden", "no\n");
    fs::create_dir(folder.0.join("folder")).unwrap();
    let whole = rest(&mut open(lines(&folder.0), None).unwrap(), 100).unwrap();
    assert_eq!(texts(&whole), ["1", "2", "3", "4", "5", "", "6"]);
    for most in 1..4 {
        let mut source = open(lines(&folder.0), None).unwrap();
        let mut done = Vec::new();
        loop {
            let position = source.position();
            let mut again = open(lines(&folder.0), Some(&position)).unwrap();
            assert_eq!(rest(&mut again, most).unwrap(), whole[done.len()..]);
            if block_on(source.read(&mut done, most)).unwrap() == Read::End {
                break;
            }
        }
        assert_eq!(done, whole);
    }
}

#[test]
fn without_follow_a_job_reads_what_was_there_when_it_began() {
    let folder = Folder::new("began");
    let path = folder.file("a", "1\n2");
    let mut source = open(lines(&folder.0), None).unwrap();
    let position = source.position();
    append(&path, "2\n3\n");
    folder.file("b", "4\n");
    assert_eq!(texts(&rest(&mut source, 1).unwrap()), ["1", "2"]);
    let mut again = open(lines(&folder.0), Some(&position)).unwrap();
    assert_eq!(texts(&rest(&mut again, 9).unwrap()), ["1", "2"]);
}

#[test]
fn a_file_that_was_cut_off_replaced_or_removed_is_an_error_that_names_it() {
    let folder = Folder::new("cut-off");
    let path = folder.file("a", "1\n2\n3\n");
    let mut source = open(lines(&path), None).unwrap();
    let mut first = Vec::new();
    block_on(source.read(&mut first, 2)).unwrap();
    let position = source.position();
    let error = |position: &[u8]| {
        let opened = open(lines(&path), Some(position)).and_then(|mut source| rest(&mut source, 9));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        error
    };
    folder.file("a", "1\n");
    assert!(error(&position).ends_with("it has 2 bytes, and had 4: it was cut off"));
    folder.file("a", "1\n2\n");
    assert!(error(&position).ends_with("it has 4 bytes, and had 6: it was cut off"));
    folder.file("a", "7\n8\n9\n");
    assert!(error(&position).contains("another file has taken the place"));
    fs::remove_file(&path).unwrap();
    error(&position);
    fs::create_dir(&path).unwrap();
    assert!(error(&position).contains("it was a file and is a folder"));
    assert!(open(lines(folder.0.join("nowhere")), None).is_err());
}

#[tokio::test(start_paused = true)]
async fn growth_is_followed_line_by_line_and_files_by_their_names() {
    let folder = Folder::new("follow");
    let path = folder.file("2026-01.log", "1\n2");
    let follow = || lines(&folder.0).follow(Duration::from_secs(1));
    let mut source = follow();
    source.open(None).await.unwrap();
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["1"]);
    let position = source.position();
    append(&path, "2\r\n3");
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["22"]);
    append(&path, "\n4");
    // The next file ends this one, with a last line that has no end.
    let next = folder.file("2026-02.log", "5\n");
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["3", "4", "5"]);
    append(&next, "6\n");
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["6"]);

    let mut again = follow();
    again.open(Some(&position)).await.unwrap();
    let all = now(&mut again).await.unwrap();
    assert_eq!(texts(&all), ["22", "3", "4", "5", "6"]);
    assert_eq!((all[0].number, all[0].offset, &*all[4].file), (2, 2, "2026-02.log"));

    folder.file("2026-01b.log", "too late\n");
    let error = now(&mut source).await.unwrap_err().to_string();
    assert!(error.contains("2026-01b.log: it came after `2026-02.log`"), "{error}");
    fs::remove_file(folder.0.join("2026-01b.log")).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(texts(&now(&mut source).await.unwrap()), [""; 0]);
    append(&next, "7\n");
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["7"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_rotated_is_read_to_its_end_and_then_the_new_one() {
    let folder = Folder::new("rotated");
    let path = folder.file("log", "1\n2\n");
    let mut source = lines(&path).follow(Duration::from_secs(1));
    source.open(None).await.unwrap();
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["1", "2"]);
    let old = source.position();
    append(&path, "3\nlast");
    fs::rename(&path, folder.0.join("log.1")).unwrap();
    assert_eq!(texts(&now(&mut source).await.unwrap()), ["3"]);
    folder.file("log", "4\n");
    let all = now(&mut source).await.unwrap();
    assert_eq!(texts(&all), ["last", "4"]);
    assert_eq!((all[1].number, all[1].offset), (1, 0));

    let mut again = lines(&path).follow(Duration::from_secs(1));
    let error = again.open(Some(&old)).await.unwrap_err().to_string();
    assert!(error.contains("it has 2 bytes, and had 4"), "{error}");
    again.open(Some(&source.position())).await.unwrap();
    append(&path, "5\n");
    assert_eq!(texts(&now(&mut again).await.unwrap()), ["5"]);

    folder.file("log", "");
    let error = now(&mut source).await.unwrap_err().to_string();
    assert!(error.contains("it has 0 bytes, and had 2: it was cut off"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_written_over_or_renamed_in_a_followed_folder_is_an_error() {
    let folder = Folder::new("renamed");
    let path = folder.file("log", "1\n2\n");
    let mut single = lines(&path).follow(Duration::from_secs(1));
    let mut source = lines(&folder.0).follow(Duration::from_secs(1));
    for source in [&mut single, &mut source] {
        source.open(None).await.unwrap();
        assert_eq!(texts(&now(source).await.unwrap()), ["1", "2"]);
    }
    let position = source.position();
    // Cut off, and longer than before when it is looked at again.
    folder.file("log", "7\n8\n9\n");
    assert_eq!(texts(&now(&mut single).await.unwrap_or_default()), [""; 0]);
    let error = now(&mut single).await.unwrap_err().to_string();
    assert!(error.contains("it was cut off or written over, and has grown again"), "{error}");

    folder.file("log", "1\n2\n");
    source.open(Some(&position)).await.unwrap();
    fs::rename(&path, folder.0.join("log.1")).unwrap();
    folder.file("log", "3\n");
    let error = now(&mut source).await.unwrap_err().to_string();
    assert!(error.contains("log.1: it was `log` before, and is read already"), "{error}");

    fs::rename(folder.0.join("log.1"), &path).unwrap();
    source.open(Some(&position)).await.unwrap();
    fs::rename(&path, folder.0.join(".log")).unwrap();
    folder.file("log", "3\n");
    let error = now(&mut source).await.unwrap_err().to_string();
    assert!(error.contains("log: another file has taken the place"), "{error}");
}
