//! Sources, sinks and stores of jobs.

#[cfg(any(feature = "files", feature = "sqlite"))]
mod checksum;
#[cfg(feature = "files")]
mod disk;
#[cfg(feature = "files")]
pub mod files;
#[cfg(any(feature = "files", feature = "sqlite"))]
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use self::sqlite::{Delta, Insert, SqliteSink, SqliteStore, Upsert};
