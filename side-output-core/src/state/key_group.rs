/// How many key groups there are.
pub const KEY_GROUPS: u8 = 128;

/// A fixed hash of a key's serialised form, which is saved with it: FNV-1a.
///
/// # Examples
///
/// ```
/// use side_output::state::{key_group, saved_hash};
///
/// assert_eq!(saved_hash(b"foobar"), 0xBF9C_F968);
/// assert_eq!(key_group(saved_hash(b"foobar")), 4);
/// ```
#[must_use]
pub fn saved_hash(key: &[u8]) -> u32 {
    let hash = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    key.iter().fold(0x811C_9DC5, hash)
}

/// The group of a key with this hash, as Apache Flink computes it for a key whose `hashCode` it is,
/// with 128 groups. State is saved group by group: another number of partitions loads whole groups.
#[must_use]
pub const fn key_group(hash: u32) -> u8 {
    // MurmurHash3 of the four bytes.
    let mut mixed = hash.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    mixed = mixed.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64) ^ 4;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85EB_CA6B);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xC2B2_AE35);
    mixed ^= mixed >> 16;
    // Flink takes the absolute value, whose low bits are those of the remainder. That of the lowest
    // number, which has none, is zero in both.
    (mixed.cast_signed().unsigned_abs() % KEY_GROUPS as u32).to_le_bytes()[0]
}

/// The slots of a container, sorted by the key groups of their keys: what is saved is walked by
/// group and nothing is copied.
///
/// # Examples
///
/// ```
/// use side_output::state::{ByKeyGroup, Keys, key_group, saved_hash};
///
/// let mut keys: Keys<&str, u32> = Keys::new();
/// for key in ["a", "b", "c"] {
///     keys.slot(key);
/// }
/// let group_of = |key: &str| key_group(saved_hash(key.as_bytes()));
/// let groups = ByKeyGroup::new(keys.iter().map(|kept| (kept.slot, group_of(kept.key))));
/// let slots = groups.slots(group_of("b"));
/// assert_eq!(keys.get(slots[0]).map(|kept| *kept.key), Some("b"));
/// ```
#[derive(Debug)]
pub struct ByKeyGroup {
    slots: Vec<u32>,
    /// Where each group ends.
    ends: [usize; KEY_GROUPS as usize],
}

impl ByKeyGroup {
    /// Sorts slots, which come with their groups; those of one group stay in their order.
    pub fn new(slots: impl Iterator<Item = (u32, u8)>) -> Self {
        let mut slots: Vec<_> = slots.collect();
        slots.sort_by_key(|(_, group)| *group);
        let mut ends = [0; KEY_GROUPS as usize];
        for (group, end) in (0..).zip(&mut ends) {
            *end = slots.partition_point(|(_, other)| *other <= group);
        }
        Self { slots: slots.into_iter().map(|(slot, _)| slot).collect(), ends }
    }

    /// The slots of a group.
    #[must_use]
    pub fn slots(&self, group: u8) -> &[u32] {
        let before = group.checked_sub(1).map_or(0, |before| self.end(before));
        &self.slots[before..self.end(group)]
    }

    fn end(&self, group: u8) -> usize {
        self.ends.get(usize::from(group)).copied().unwrap_or(self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes and their groups, as `KeyGroupRangeAssignment.assignToKeyGroup` of Flink 1.20 gives
    /// them for an `Integer` of that value.
    const GROUPS: &[(i32, u8)] = &[
        (0, 94),
        (1, 86),
        (2, 127),
        (3, 113),
        (4, 7),
        (5, 126),
        (20, 79),
        (i32::MIN, 108),
        (-609_276_344, 54),
        (1_305_165_712, 16),
        (-1_337_699_368, 114),
        (339_118_880, 18),
        (2_120_877_416, 69),
        (-741_154_128, 58),
        (-166_640_904, 27),
        (267_470_400, 61),
        (300_616_840, 39),
        (1_587_721_680, 118),
        (-1_486_331_368, 125),
        (-122_146_464, 49),
        (-155_565_144, 99),
        (1_237_498_096, 116),
        (986_820_920, 127),
    ];

    #[test]
    fn key_groups_are_those_of_flink() {
        for (hash, group) in GROUPS.iter().copied() {
            assert_eq!(key_group(hash.cast_unsigned()), group, "of {hash}");
        }
    }

    #[test]
    fn saved_hashes_are_fixed() {
        let known: [(&[u8], u32); 3] =
            [(b"", 0x811C_9DC5), (b"a", 0xE40C_292C), (b"foobar", 0xBF9C_F968)];
        for (key, hash) in known {
            assert_eq!(saved_hash(key), hash);
        }
    }

    #[test]
    fn slots_are_sorted_by_group() {
        let groups = ByKeyGroup::new([(7, 3), (1, 127), (5, 3), (2, 0)].into_iter());
        let slots = [0, 1, 3, 127].map(|group| groups.slots(group));
        assert_eq!(slots, [&[2][..], &[], &[7, 5], &[1]]);
    }
}
