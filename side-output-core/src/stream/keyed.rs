use super::{DataStream, Source};
use std::fmt;
use std::hash::Hash;

/// A stream whose records belong to keys: state, timers and windows are kept for each.
///
/// Made by [`DataStream::key_by`].
pub struct KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    pub(super) stream: DataStream<T, Src>,
    pub(super) key: F,
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Groups the records by the key that `key` gives.
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<T, K, F, Src>
    where
        K: Hash + Eq + Clone,
        F: FnMut(&T) -> K,
    {
        KeyedStream { stream: self, key }
    }
}

impl<T, K, F, Src> fmt::Debug for KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}
