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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_when_no_slice_holds_their_key() {
        let mut numbers = Numbers::new();
        let enter = |numbers: &mut Numbers<&str>, key| numbers.enter(hash_of(&key), &key);
        assert_eq!(["a", "b", "a"].map(|key| enter(&mut numbers, key)), [0, 1, 0]);
        numbers.leave(0);
        assert_eq!(numbers.key(0), Some(&"a"), "another slice holds it");
        numbers.leave(0);
        assert_eq!((numbers.key(0), numbers.index.len()), (None, 1));
        assert_eq!(["c", "a", "b"].map(|key| enter(&mut numbers, key)), [0, 2, 1]);
        assert_eq!((numbers.end(), numbers.index.len()), (3, 3));
    }

    #[test]
    #[cfg_attr(miri, ignore = "that many keys take minutes there, and nothing else is tried")]
    fn after_many_keys_memory_is_given_back() {
        let mut numbers = Numbers::new();
        let many = 0..2 * u32::try_from(RECYCLED).expect("a small number");
        for key in many.clone() {
            assert_eq!(numbers.enter(hash_of(&key), &key), key);
        }
        many.for_each(|key| numbers.leave(key));
        assert_eq!((numbers.end(), numbers.keys.capacity(), numbers.index.capacity()), (0, 0, 0));
    }
}
