//! Jobs: a pipeline whose results are those of a run without a crash.

mod core;
mod input;
mod options;
mod output;
mod part;
mod refusals;
mod run;

pub use self::input::JobInput;
pub use self::options::{Every, JobError, JobReport, Restart};
pub use self::part::{JobLink, Part};
pub use self::refusals::Refusals;
pub use self::run::{Job, JobHandle, Pipeline};

/// How many batches of a source one poll takes.
const SHARE: usize = super::source::TURNS;
