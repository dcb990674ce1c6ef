//! A [store](SqliteStore) in a SQLite database, and [sinks](SqliteSink) in the same transactions.

mod session;
mod sink;
mod states;
mod store;
mod table;

pub use self::sink::{Delta, Insert, SqliteSink, Upsert};
pub use self::store::SqliteStore;

#[cfg(test)]
mod tests;
