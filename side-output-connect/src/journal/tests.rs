use super::*;
use crate::disk::simulated::{Fault, Left, Simulated};
use futures::executor::block_on;
use futures::stream;

const RECORDS: u64 = 12;

type Numbers = stream::Iter<std::ops::Range<u64>>;

fn source(disk: &Simulated) -> Journal<Numbers> {
    let mut journal = journal("journal", stream::iter(0..0));
    (journal.disk, journal.longest) = (Disk::Simulated(disk.clone()), 60);
    journal
}

/// What is outside: records that a checkpoint has, and where it was.
#[derive(Default)]
struct Job {
    committed: Vec<u64>,
    position: Option<Vec<u8>>,
    /// How many records have come out of the journal.
    handed_on: u64,
}

/// A run with a checkpoint after each third read.
fn run(disk: &Simulated, job: &mut Job) -> Result<(), BoxError> {
    let mut source = source(disk);
    block_on(source.open(job.position.as_deref()))?;
    assert!(source.end >= job.handed_on, "what was handed on is there");
    // The other side sends what it has not been told about.
    source.stream = Box::pin(stream::iter(source.end..RECORDS));
    let mut pending = Vec::new();
    loop {
        for _ in 0..3 {
            let read = block_on(source.read(&mut pending, 2))?;
            if read == Read::End {
                job.committed.append(&mut pending);
                return Ok(());
            }
            job.handed_on = job.handed_on.max(source.next);
        }
        job.committed.append(&mut pending);
        job.position = Some(source.position());
        block_on(source.completed(&source.position()))?;
    }
}

fn all() -> Vec<u64> {
    (0..RECORDS).collect()
}

#[test]
fn every_record_is_read_once_whichever_operation_fails() {
    for fault in [Fault::Error, Fault::Full, Fault::Stop, Fault::Torn] {
        for left in [Left::Everything, Left::Synced, Left::Names] {
            let mut k = 0;
            loop {
                let (disk, mut job) = (Simulated::default(), Job::default());
                disk.fail(k, fault);
                let result = run(&disk, &mut job);
                if !disk.has_failed() {
                    result.unwrap();
                    break;
                }
                disk.restart(fault, left);
                run(&disk, &mut job)
                    .unwrap_or_else(|error| panic!("{fault:?} at {k}, {left:?}: {error}"));
                assert_eq!(job.committed, all(), "{fault:?} at {k}, {left:?}");
                // And all of it can be read once more.
                run(&disk, &mut job)
                    .unwrap_or_else(|error| panic!("{fault:?} at {k}, {left:?}: {error}"));
                k += 1;
            }
            assert!(k > 20, "{k} operations");
        }
    }
}

#[test]
fn files_that_a_checkpoint_has_gone_past_are_removed() {
    let (disk, mut job) = (Simulated::default(), Job::default());
    run(&disk, &mut job).unwrap();
    assert_eq!(job.committed, all());
    let files = Disk::Simulated(disk.clone()).list(Path::new("journal")).unwrap();
    assert!(files.len() <= 2, "{files:?}");
    assert!(!files.contains(&format!("{:020}.journal", 0)), "{files:?}");
    let error = block_on(source(&disk).open(None)).unwrap_err().to_string();
    assert!(error.contains("and record 0 comes next"), "{error}");
}

#[test]
fn every_flipped_byte_is_an_error_and_so_is_a_missing_one_before_the_last_write() {
    let disk = Simulated::default();
    let mut first = source(&disk);
    block_on(first.open(None)).unwrap();
    first.stream = Box::pin(stream::iter(0..RECORDS));
    let mut records = Vec::new();
    while block_on(first.read(&mut records, 2)).unwrap() == Read::More {}
    let files: Vec<_> = first.segments.iter().map(|first_in| first.path_of(*first_in)).collect();
    assert!(files.len() >= 2);
    let read = || {
        let mut source = source(&disk);
        block_on(source.open(None))?;
        let mut records: Vec<u64> = Vec::new();
        while block_on(source.read(&mut records, 5))? == Read::More {}
        Ok::<_, BoxError>(records)
    };
    assert_eq!(read().unwrap(), all());
    for (number, path) in files.iter().enumerate() {
        let good = disk.contents(path).unwrap();
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            disk.replace(path, flipped);
            let error = read().unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        for end in 0..good.len() {
            disk.replace(path, good[..end].to_owned());
            match read() {
                // The last write may have been cut short; what was before it is there.
                Ok(read) => assert!(
                    read == all() || number + 1 == files.len() && all().starts_with(&read),
                    "{read:?}"
                ),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(path.to_str().unwrap()), "{error}");
                }
            }
        }
        disk.replace(path, good);
    }
}

#[test]
fn a_journal_has_one_writer() {
    let folder = std::env::temp_dir().join(format!("side-output-journal-{}", std::process::id()));
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    let mut first = journal(&folder, stream::iter(0..1));
    let mut second = journal(&folder, stream::iter(0..1));
    block_on(first.open(None)).unwrap();
    let error = block_on(second.open(None)).unwrap_err().to_string();
    assert!(error.contains("lock is locked"), "{error}");
    drop(first);
    block_on(second.open(None)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
