use crate::checkpoint::{BoxError, Ending, StoreError};
use crate::error::StreamError;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// When checkpoints are made.
///
/// However often that is, results are the same; what changes is how much is read again after a
/// crash, and how long results wait until they become visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Every {
    pub(super) records: Option<u64>,
    pub(super) elapsed: Option<Duration>,
}

impl Every {
    /// After so many records of all sources together.
    pub const fn records(records: u64) -> Self {
        Self { records: Some(records), elapsed: None }
    }

    /// When so much time has passed since the last one.
    pub const fn elapsed(elapsed: Duration) -> Self {
        Self { records: None, elapsed: Some(elapsed) }
    }

    /// The same, and also when so much time has passed since the last one.
    pub const fn or_elapsed(mut self, elapsed: Duration) -> Self {
        self.elapsed = Some(elapsed);
        self
    }
}

/// What a job does after an error: builds its pipeline again and goes on from the last checkpoint,
/// or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Restart {
    pub(super) most: u32,
    pub(super) backoff: Duration,
}

impl Restart {
    /// The first error ends the job. It can be started again by hand.
    pub const fn never() -> Self {
        Self::at_most(0)
    }

    /// Starts again at most so often without a checkpoint in between.
    pub const fn at_most(times: u32) -> Self {
        Self { most: times, backoff: Duration::from_millis(100) }
    }

    /// Waits that long before the first start after an error, and twice as long before each
    /// further one, up to a minute.
    pub const fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// How long to wait after so many failures; `None` if that was one too many.
    pub(super) fn delay(&self, failures: u32) -> Option<Duration> {
        if failures > self.most {
            return None;
        }
        let doubled = self.backoff.saturating_mul(1 << failures.saturating_sub(1).min(16));
        Some(doubled.min(Duration::from_mins(1)))
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self::never()
    }
}

/// What came of a job, over all of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobReport {
    /// How it ended.
    pub ending: Ending,
    /// It had finished in an earlier run, and there was nothing to do.
    pub had_finished: bool,
    /// How often it was started, in this process or another one.
    pub runs: u64,
    /// How many checkpoints were completed.
    pub checkpoints: u64,
    /// How many runs went on from a checkpoint.
    pub restored: u64,
    /// How many records each source has given.
    pub read: BTreeMap<String, u64>,
    /// How many records each sink was given.
    pub written: BTreeMap<String, u64>,
}

/// Why a job did not run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The pipeline cannot be run as a job, or not on what the store has; says all that is wrong,
    /// and where in the program. Nothing was read.
    Refused(Vec<String>),
    /// The function that builds the pipeline failed.
    Building(BoxError),
    /// The store failed.
    Store(StoreError),
    /// A source failed.
    Source {
        /// Its name.
        name: String,
        /// Its error.
        error: BoxError,
    },
    /// A sink failed.
    Sink {
        /// Its name.
        name: String,
        /// Its error.
        error: BoxError,
    },
    /// The input of a sink failed: an operator, or a function.
    Stream {
        /// The name of the sink.
        sink: String,
        /// The error.
        error: StreamError,
    },
}

impl JobError {
    /// Whether it would be the same after another start.
    pub(super) const fn is_lasting(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Store(error) => !matches!(error, StoreError::Failed(_)),
            Self::Building(_) | Self::Source { .. } | Self::Sink { .. } | Self::Stream { .. } => {
                false
            }
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reasons) => {
                f.write_str("the pipeline is no job")?;
                reasons.iter().try_for_each(|reason| write!(f, "\n- {reason}"))
            }
            Self::Building(error) => write!(f, "the pipeline was not built: {error}"),
            Self::Store(error) => error.fmt(f),
            Self::Source { name, error } => write!(f, "source `{name}`: {error}"),
            Self::Sink { name, error } => write!(f, "sink `{name}`: {error}"),
            Self::Stream { sink, error } => write!(f, "the input of sink `{sink}`: {error}"),
        }
    }
}

// The cause is a part of the text: it is not returned once more.
impl Error for JobError {}
