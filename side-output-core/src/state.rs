//! Keyed state: the containers that keep keys, what belongs to them, and timers.
//!
//! Pure data structures: nothing here calls a function of the user, emits a record or looks at a
//! clock. Hash tables are used for look-up alone; no result depends on their order. No call takes
//! long, however much there is: what grows moves a little with each call, and what is freed is
//! freed in portions.
//!
//! Each can be walked without a copy, and built again from what the walk has shown; what is saved
//! is sorted by key group.

#[cfg(feature = "job")]
mod alignment;
mod changes;
mod index;
mod key_group;
mod key_hash;
mod keys;
mod map;
mod saved;
mod segments;
mod slab;
mod snapshot;
mod table;
mod timers;
mod wheel;

pub use self::changes::{Changes, Unsaved};
pub use self::index::Index;
pub use self::key_group::{ByKeyGroup, KEY_GROUPS, key_group, saved_hash};
pub use self::key_hash::KeyHash;
pub use self::keys::{Due, Kept, Keys, Lent};
pub use self::map::Map;
pub use self::saved::{ChangedEntry, SavedState, StateChanges};
pub use self::segments::{Leaving, Segments};
pub use self::slab::Slab;
pub use self::snapshot::{Snapshot, SnapshotError};
pub use self::table::{Entry, Table};
pub(crate) use self::table::{Pool, RECYCLED};
pub use self::timers::{Timers, Times};
pub use self::wheel::{Next, Ripe, Timer, Wheel};

/// How many entries are moved, put together or freed in one call: as many as a turn takes records.
pub(crate) const WORK: usize = 512;
