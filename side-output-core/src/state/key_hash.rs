use foldhash::fast::RandomState;
use std::hash::{BuildHasher as _, Hash};

/// The hash by which keys are found: keyed at random, since keys come from the network and whoever
/// sends them could send those that collide.
///
/// No result depends on it. What is saved goes by another one.
///
/// # Examples
///
/// ```
/// use side_output::state::KeyHash;
///
/// let (one, other) = (KeyHash::default(), KeyHash::default());
/// assert_eq!(one.of(&"key"), one.of(&"key"));
/// assert_ne!(one.of(&"key"), other.of(&"key"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyHash(RandomState);

impl KeyHash {
    /// The hash of a key.
    #[inline(always)]
    #[must_use]
    pub fn of<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.0.hash_one(key)
    }
}
