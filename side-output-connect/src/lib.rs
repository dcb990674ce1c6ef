//! Sources, sinks and stores of jobs.

#[cfg(any(feature = "files", feature = "sqlite"))]
mod checksum;
#[cfg(feature = "files")]
mod disk;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "files")]
mod folder;
#[cfg(feature = "files")]
mod journal;
#[cfg(any(feature = "files", feature = "sqlite"))]
mod lock;
#[cfg(any(feature = "files", feature = "sqlite"))]
mod row;
mod sink_fn;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "files")]
pub use self::folder::FolderStore;
#[cfg(feature = "files")]
pub use self::journal::{Journal, journal};
pub use self::sink_fn::{SinkFn, sink_fn};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{Delta, Insert, SqliteSink, SqliteStore, Upsert};
