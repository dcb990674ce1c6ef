use super::{Index, KeyHash, Slab};
use std::fmt;
use std::hash::Hash;

/// Something for each key, in a numbered slot.
///
/// # Examples
///
/// ```
/// use side_output::state::Map;
///
/// let mut map = Map::new();
/// let slot = map.enter(&"a", || 1);
/// assert_eq!(map.enter(&"a", || 2), slot);
/// assert_eq!(map.get(slot), Some(&("a", 1)));
/// assert_eq!(map.remove(slot), Some(("a", 1)));
/// assert!(map.is_empty());
/// ```
pub struct Map<K, V> {
    index: Index,
    slots: Slab<(K, V)>,
    hash: KeyHash,
}

impl<K, V> Map<K, V> {
    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All slots are below.
    #[must_use]
    pub fn end(&self) -> usize {
        self.slots.end()
    }

    /// What is in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&(K, V)> {
        self.slots.get(slot)
    }

    /// What belongs to the key in a slot.
    #[inline]
    #[must_use]
    pub fn value_mut(&mut self, slot: u32) -> Option<&mut V> {
        self.slots.get_mut(slot).map(|(_, value)| value)
    }

    /// The slots with what is in them, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &(K, V))> {
        self.slots.iter()
    }
}

impl<K: Hash + Eq, V> Map<K, V> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self { index: Index::new(), slots: Slab::new(), hash: KeyHash::default() }
    }

    /// The slot of `key`, if it is here.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &K) -> Option<u32> {
        self.find_hashed(self.hash.of(key), key)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, key: &K) -> Option<u32> {
        self.index.find(hash, |slot| self.slots.get(slot).is_some_and(|(other, _)| other == key))
    }

    /// The slot of `key`, with what `value` gives if it is new.
    ///
    /// # Panics
    ///
    /// With the key number 2^32.
    #[inline]
    pub fn enter(&mut self, key: &K, value: impl FnOnce() -> V) -> u32
    where
        K: Clone,
    {
        let hash = self.hash.of(key);
        if let Some(slot) = self.find_hashed(hash, key) {
            return slot;
        }
        let slot = self.slots.insert((key.clone(), value()));
        self.index.insert(hash, slot);
        slot
    }

    /// Takes a key out.
    pub fn remove(&mut self, slot: u32) -> Option<(K, V)> {
        let entry = self.slots.remove(slot)?;
        self.index.remove(self.hash.of(&entry.0), slot);
        Some(entry)
    }
}

impl<K: Hash + Eq, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len()).finish_non_exhaustive()
    }
}
