//! Checkpoints: the cut of a whole pipeline, the stores that keep it, and the traits of sources and
//! sinks that take part.
//!
//! Nothing here runs anything: the [`Coordinator`] is a state machine without I/O, and a job drives
//! it, the [`Store`], the [sources](JobSource) and the [sinks](JobSink).

mod coordinator;
#[cfg(feature = "job")]
mod cut;
mod memory;
mod sink;
mod source;
mod store;

pub use self::coordinator::{Action, Coordinator, Ending, Event, Participants};
#[cfg(feature = "job")]
pub use self::cut::{Cut, SourceCut};
pub use self::memory::{MemorySink, MemorySource};
pub use self::sink::{Failed, Guarantee, JobSink};
pub use self::source::{JobSource, Read};
pub use self::store::{MemoryStore, Store, StoreError, Stored};

/// Any error, of a source, a sink or a store.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
