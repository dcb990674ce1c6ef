use super::*;
use crate::disk::simulated::{Fault, Left, Simulated};
use futures::executor::block_on;
use side_output_core::checkpoint::MemoryStore;

fn store(disk: &Simulated) -> FolderStore {
    let store = FolderStore::new("store");
    store.inner.lock().unwrap().disk = Disk::Simulated(disk.clone());
    store
}

/// What changes with each checkpoint: much at first, then little, so that there are files of both
/// kinds.
fn changes(id: u64) -> Vec<(String, StateChanges)> {
    let mut changes = StateChanges::new(id == 1);
    let key = 50 + id % 7;
    let keys = if id == 1 { 0..20 } else { key..key + 1 };
    for key in keys {
        changes.entry("keys", &key, &(), &format!("value {key} of {id}")).unwrap();
    }
    changes.remove("keys", &(50 + (id + 4) % 7), &()).unwrap();
    changes.value("watermark", &id).unwrap();
    let mut whole = StateChanges::new(true);
    whole.value("count", &(id * 10)).unwrap();
    vec![("visits".to_owned(), changes), ("counter".to_owned(), whole)]
}

fn cut(id: u64) -> Vec<u8> {
    format!("cut {id}").into_bytes()
}

/// What a store has to have after this checkpoint.
fn expected(id: u64) -> Option<Stored> {
    let mut memory = MemoryStore::new();
    block_on(memory.open("job")).unwrap();
    for id in 1..=id {
        block_on(memory.complete(id, cut(id), &changes(id))).unwrap();
    }
    memory.stored()
}

const LAST: u64 = 12;

/// Goes on from what is stored to the last checkpoint; counts those of which the store has said
/// that they are complete.
fn run(disk: &Simulated, complete: &mut u64) -> Result<(), StoreError> {
    let mut store = store(disk);
    let stored = block_on(store.open("job"))?;
    let id = stored.as_ref().map_or(0, |stored| stored.id);
    assert!(id == *complete || id == *complete + 1, "{id} after {complete}");
    assert_eq!(stored, expected(id));
    for id in id + 1..=LAST {
        *complete = id - 1;
        block_on(store.complete(id, cut(id), &changes(id)))?;
        *complete = id;
    }
    Ok(())
}

#[test]
fn the_store_has_this_checkpoint_or_the_one_before_whichever_operation_fails() {
    for fault in [Fault::Error, Fault::Full, Fault::Stop, Fault::Torn] {
        for left in [Left::Everything, Left::Synced, Left::Names] {
            let mut k = 0;
            loop {
                let (disk, mut complete) = (Simulated::default(), 0);
                disk.fail(k, fault);
                let result = run(&disk, &mut complete);
                if !disk.has_failed() {
                    result.unwrap();
                    break;
                }
                disk.restart(fault, left);
                run(&disk, &mut complete)
                    .unwrap_or_else(|error| panic!("{fault:?} at {k}, {left:?}: {error}"));
                k += 1;
            }
            assert!(k > 80, "{k} operations");
        }
    }
}

/// A disk that loses what it has promised to keep: the checkpoint is there, or an error.
#[test]
fn a_lost_sync_never_gives_another_state() {
    let mut found = 0;
    for k in 0..60 {
        for stop in [0, 1, 2, 3, 5, 8, 13] {
            let (disk, mut complete) = (Simulated::default(), 0);
            disk.fail(k, Fault::LostSync(stop));
            run(&disk, &mut complete).unwrap_or_default();
            for left in [Left::Names, Left::Synced] {
                disk.restart(Fault::LostSync(stop), left);
                match block_on(store(&disk).open("job")) {
                    Ok(stored) => assert_eq!(stored, expected(stored.as_ref().map_or(0, |s| s.id))),
                    Err(StoreError::Damaged(_)) => found += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert!(found > 0);
}

/// The names of the checkpoints' files.
fn files(disk: &Simulated) -> Vec<PathBuf> {
    let names = Disk::Simulated(disk.clone()).list(Path::new("store")).unwrap();
    let names = names.into_iter().filter(|name| name.ends_with(".checkpoint"));
    names.map(|name| Path::new("store").join(name)).collect()
}

#[test]
fn every_flipped_or_missing_byte_is_an_error() {
    let (disk, mut complete) = (Simulated::default(), 0);
    run(&disk, &mut complete).unwrap();
    let needed = {
        let mut store = store(&disk);
        block_on(store.open("job")).unwrap();
        let inner = store.inner.lock().unwrap();
        inner.chain(LAST).into_iter().map(|id| inner.path_of(id)).collect::<Vec<_>>()
    };
    assert!(needed.len() > 1, "{needed:?}");
    for path in needed {
        let good = disk.contents(&path).unwrap();
        let check = |bytes: Vec<u8>| {
            disk.replace(&path, bytes);
            match block_on(store(&disk).open("job")) {
                Err(StoreError::Damaged(what)) => assert!(what.contains(".checkpoint"), "{what}"),
                other => panic!("{other:?}"),
            }
        };
        for end in 0..good.len() {
            check(good[..end].to_owned());
        }
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            check(flipped);
        }
        let mut longer = good.clone();
        longer.push(0);
        check(longer);
        disk.replace(&path, good);
    }
    assert_eq!(block_on(store(&disk).open("job")).unwrap(), expected(LAST));
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let (disk, mut complete) = (Simulated::default(), 0);
    run(&disk, &mut complete).unwrap();
    let files = files(&disk);
    Disk::Simulated(disk.clone()).remove(&files[0]).unwrap();
    let error = block_on(store(&disk).open("job")).unwrap_err().to_string();
    assert!(error.contains(&format!("{}: it is missing", files[0].display())), "{error}");
}

#[test]
fn the_last_checkpoints_are_kept_and_changes_are_merged_when_they_outweigh_the_rest() {
    for keep in [1, 3] {
        let disk = Simulated::default();
        let mut store = store(&disk).keep(keep);
        block_on(store.open("job")).unwrap();
        let (mut merged, mut with_changes) = (0, 0);
        for id in 1..=60 {
            block_on(store.complete(id, cut(id), &changes(id))).unwrap();
            let inner = store.inner.lock().unwrap();
            match inner.files[&id].before {
                None => merged += 1,
                Some(_) => with_changes += 1,
            }
            for id in id.saturating_sub(keep as u64 - 1).max(1)..=id {
                let (contents, states) = inner.load(id).unwrap();
                let expected = expected(id).unwrap();
                assert_eq!((contents.cut, states.into_saved()), (expected.cut, expected.states));
            }
            let size: u64 = inner.files.values().map(|known| known.size).sum();
            assert!(size < 20_000, "{size}");
        }
        assert!(merged > 2 && with_changes > merged, "{merged} {with_changes}");
        assert!(files(&disk).len() < 30);
    }
}

#[test]
fn a_stale_writer_is_fenced_and_changes_nothing() {
    let disk = Simulated::default();
    let (mut stale, mut new) = (store(&disk), store(&disk));
    block_on(stale.open("job")).unwrap();
    block_on(stale.complete(1, cut(1), &changes(1))).unwrap();
    assert_eq!(block_on(new.open("job")).unwrap(), expected(1));
    let before = files(&disk);
    let fenced = block_on(stale.complete(2, cut(2), &changes(2)));
    assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    assert_eq!(files(&disk), before);
    block_on(new.complete(2, cut(2), &changes(2))).unwrap();
    assert_eq!(block_on(stale.open("job")).unwrap(), expected(2));
}

#[test]
fn it_belongs_to_one_job_and_a_number_is_used_once() {
    let disk = Simulated::default();
    let mut store = store(&disk);
    block_on(store.open("job")).unwrap();
    block_on(store.complete(4, cut(4), &[])).unwrap();
    let other = block_on(self::store(&disk).open("other"));
    assert!(matches!(other, Err(StoreError::OtherJob(job)) if job == "job"));
    assert!(block_on(store.complete(4, cut(5), &[])).is_err());
    // Another writer has opened it meanwhile, and was refused: it is still this one's.
    assert_eq!(block_on(store.open("job")).unwrap().unwrap().cut, cut(4));
    block_on(store.complete(5, cut(5), &[])).unwrap();
}

#[test]
fn what_is_forgotten_is_gone_with_the_next_checkpoint() {
    let disk = Simulated::default();
    let mut store = store(&disk);
    block_on(store.open("job")).unwrap();
    block_on(store.complete(1, cut(1), &changes(1))).unwrap();
    store.forget("visits");
    assert_eq!(block_on(self::store(&disk).open("job")).unwrap(), expected(1));
    block_on(store.open("job")).unwrap();
    block_on(store.complete(2, cut(2), &[])).unwrap();
    let states = block_on(store.open("job")).unwrap().unwrap().states;
    assert_eq!(states.into_keys().collect::<Vec<_>>(), ["counter"]);
}
