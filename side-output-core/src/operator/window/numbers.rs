use super::table::{RECYCLED, hash_of};
use hashbrown::HashTable;
use std::hash::Hash;

/// Numbers for the keys that slices hold, from zero on and used again: what slices keep of a key is
/// put together by its number, without a look-up.
pub(super) struct Numbers<K> {
    index: HashTable<u32>,
    keys: Vec<Option<Held<K>>>,
    free: Vec<u32>,
}

struct Held<K> {
    key: K,
    /// How many slices hold it.
    slices: u32,
}

impl<K> Numbers<K> {
    pub(super) const fn new() -> Self {
        Self { index: HashTable::new(), keys: Vec::new(), free: Vec::new() }
    }

    /// All numbers are below.
    pub(super) fn end(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn key(&self, number: u32) -> Option<&K> {
        self.keys[number as usize].as_ref().map(|held| &held.key)
    }
}

impl<K: Hash + Eq + Clone> Numbers<K> {
    /// One more slice holds the key.
    pub(super) fn enter(&mut self, hash: u64, key: &K) -> u32 {
        let Self { index, keys, free } = self;
        let is_key =
            |number: &u32| matches!(&keys[*number as usize], Some(held) if held.key == *key);
        if let Some(number) = index.find(hash, is_key) {
            if let Some(held) = &mut keys[*number as usize] {
                held.slices += 1;
            }
            return *number;
        }
        let held = Some(Held { key: key.clone(), slices: 1 });
        let number = if let Some(number) = free.pop() {
            keys[number as usize] = held;
            number
        } else {
            keys.push(held);
            u32::try_from(keys.len() - 1).expect("fewer than 2^32 keys in windows")
        };
        index.insert_unique(hash, number, |number| match &keys[*number as usize] {
            Some(held) => hash_of(&held.key),
            None => 0,
        });
        number
    }

    /// One slice less holds it.
    pub(super) fn leave(&mut self, number: u32) {
        let place = &mut self.keys[number as usize];
        let Some(held) = place else { return };
        held.slices -= 1;
        if held.slices > 0 {
            return;
        }
        let hash = hash_of(&held.key);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        *place = None;
        self.free.push(number);
        if self.free.len() == self.keys.len() && self.free.len() > RECYCLED {
            *self = Self::new();
        }
    }
}
