use foldhash::quality::RandomState;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn fault_39_whoever_sends_keys_cannot_know_which_collide() {
        let first = KeyHash::default();
        // What collides in the lower bits of one hash is spread by another.
        let mask = (1 << 10) - 1;
        let colliding: Vec<u64> =
            (0..1 << 16).filter(|key| first.of(key) & mask == first.of(&0_u64) & mask).collect();
        assert!(colliding.len() > 30);
        let other = KeyHash::default();
        let buckets: HashSet<_> = colliding.iter().map(|key| other.of(key) & mask).collect();
        assert!(buckets.len() > colliding.len() / 2, "{} of {}", buckets.len(), colliding.len());
    }
}
