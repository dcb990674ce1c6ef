//! A sink's file on a disk that fails at every single operation.

use super::*;
use crate::disk::simulated::{Fault, Left, Simulated};

/// What each checkpoint appends: little, nothing, and more than is kept in memory.
const APPENDED: [&[&str]; 5] = [
    &["a\n", "b\n"],
    &[],
    &["0123456789\n", "abcdefghij\n", "ABCDEFGHIJ\n", "0\n"],
    &["c\n"],
    &["klmnopqrst\n", "KLMNOPQRST\n"],
];

fn whole() -> String {
    APPENDED.concat().concat()
}

fn file(disk: &Simulated) -> Committed {
    let disk = Disk::Simulated(disk.clone());
    Committed { disk, in_memory: 15, ..Committed::new("out/file".into()) }
}

/// What the store has: that checkpoint, and what was prepared for it.
type Stored = Option<(usize, Vec<u8>)>;

/// One run of a job: from the checkpoint that is stored to the end.
fn run(disk: &Simulated, stored: &mut Stored) -> Result<(), BoxError> {
    let mut file = file(disk);
    let done = stored.as_ref().map_or(0, |(id, _)| *id);
    file.open(stored.as_ref().map(|(_, prepared)| prepared.as_slice()))?;
    for (at, lines) in APPENDED.iter().enumerate().skip(done) {
        for line in *lines {
            file.append(line.as_bytes())?;
        }
        let prepared = file.prepare()?;
        *stored = Some((at + 1, prepared));
        file.commit()?;
    }
    Ok(())
}

#[test]
fn what_is_committed_is_exact_whichever_operation_fails() {
    let faults = [Fault::Error, Fault::Full, Fault::Stop, Fault::Torn];
    for fault in faults {
        for left in [Left::Everything, Left::Synced, Left::Names] {
            let mut k = 0;
            loop {
                let (disk, mut stored) = (Simulated::default(), None);
                disk.fail(k, fault);
                let failed = run(&disk, &mut stored);
                if !disk.has_failed() {
                    failed.unwrap();
                    break;
                }
                disk.restart(fault, left);
                let seen = disk.contents(Path::new("out/file")).unwrap_or_default();
                assert!(whole().as_bytes().starts_with(&seen), "{fault:?} at {k}");
                run(&disk, &mut stored).unwrap_or_else(|error| {
                    panic!("{fault:?} at {k}, left {left:?}: {error}");
                });
                assert_exact(&disk);
                k += 1;
            }
            assert!(k >= 30, "{k} operations");
        }
    }
}

/// A second failure hits the recovery from the first.
#[test]
fn what_is_committed_is_exact_when_the_recovery_fails_too() {
    for fault in [Fault::Stop, Fault::Torn] {
        for first in 0..60 {
            for second in 0..12 {
                let (disk, mut stored) = (Simulated::default(), None);
                for k in [first, second] {
                    disk.fail(k, fault);
                    run(&disk, &mut stored).unwrap_or_default();
                    disk.restart(fault, Left::Synced);
                }
                run(&disk, &mut stored).unwrap();
                assert_exact(&disk);
            }
        }
    }
}

/// A disk that loses what it has promised to keep: an error, or everything, never something else.
#[test]
fn a_lost_sync_is_found_or_does_no_harm() {
    let mut found = 0;
    for k in 0..30 {
        for stop in 0..30 {
            let (disk, mut stored) = (Simulated::default(), None);
            let fault = Fault::LostSync(stop);
            disk.fail(k, fault);
            run(&disk, &mut stored).unwrap_or_default();
            disk.restart(fault, Left::Synced);
            match run(&disk, &mut stored) {
                Ok(()) => assert_exact(&disk),
                Err(error) => {
                    assert!(error.to_string().starts_with("out/file: "), "{error}");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 0);
}

fn assert_exact(disk: &Simulated) {
    let file = disk.contents(Path::new("out/file")).unwrap();
    assert_eq!(String::from_utf8(file).unwrap(), whole());
    assert_eq!(Disk::Simulated(disk.clone()).list(Path::new("out")).unwrap(), ["file"]);
}

#[test]
fn readers_see_what_is_committed_and_nothing_else() {
    let disk = Simulated::default();
    let mut file = file(&disk);
    file.open(None).unwrap();
    file.append(b"1\n").unwrap();
    let path = Path::new("out/file");
    assert_eq!(disk.contents(path), None);
    file.prepare().unwrap();
    file.append(b"later, and more than is kept in memory\n").unwrap();
    assert_eq!(disk.contents(path), None);
    file.commit().unwrap();
    file.commit().unwrap();
    assert_eq!(disk.contents(path).unwrap(), b"1\n");
    file.prepare().unwrap();
    file.commit().unwrap();
    assert_eq!(disk.contents(path).unwrap(), b"1\nlater, and more than is kept in memory\n");
}

#[test]
fn files_that_do_not_belong_to_the_job_are_left_alone() {
    let disk = Simulated::default();
    let path = Path::new("out/file");
    disk.replace(path, b"not ours".to_vec());
    let error = file(&disk).open(None).unwrap_err().to_string();
    assert!(error.contains("there is a file that it has not written"), "{error}");
    assert_eq!(disk.contents(path).unwrap(), b"not ours");
}

#[test]
fn a_file_that_was_cut_off_is_an_error_that_names_it() {
    let (disk, mut stored) = (Simulated::default(), None);
    run(&disk, &mut stored).unwrap();
    disk.replace(Path::new("out/file"), b"a\n".to_vec());
    let error = run(&disk, &mut stored).unwrap_err().to_string();
    assert!(error.starts_with("out/file: the file has 2 bytes"), "{error}");
}

#[test]
fn every_damage_of_what_the_checkpoint_has_is_an_error_or_changes_nothing() {
    let disk = Simulated::default();
    let mut first = file(&disk);
    first.open(None).unwrap();
    first.append(b"some\n").unwrap();
    let prepared = first.prepare().unwrap();
    let open = |prepared: &[u8]| {
        let disk = Simulated::default();
        let opened = file(&disk).open(Some(prepared));
        opened.map(|()| disk.contents(Path::new("out/file")).unwrap())
    };
    assert_eq!(open(&prepared).unwrap(), b"some\n");
    for end in 0..prepared.len() {
        open(&prepared[..end]).unwrap_err();
    }
    for at in 0..prepared.len() {
        for bit in 0..8 {
            let mut damaged = prepared.clone();
            damaged[at] ^= 1 << bit;
            // A name of a field that is not known any more is one that is missing.
            if let Ok(contents) = open(&damaged) {
                assert_eq!(contents, b"some\n", "byte {at}, bit {bit}");
            }
        }
    }
}
