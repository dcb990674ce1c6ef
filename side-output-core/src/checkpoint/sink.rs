use super::BoxError;

/// How often a record is in what a sink writes, after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarantee {
    /// At least once: what came after the last checkpoint is written again.
    AtLeastOnce,
    /// Once: what is written becomes visible with the checkpoint that it belongs to.
    ExactlyOnce,
    /// As if once: what is written again replaces itself.
    Idempotent,
}

/// A record that a sink has refused, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed<T> {
    /// The record.
    pub record: T,
    /// Why.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
}

impl<T> Failed<T> {
    /// A record that was refused at its first attempt.
    pub fn new(record: T, error: impl Into<String>) -> Self {
        Self { record, error: error.into(), attempts: 1 }
    }

    /// The same after so many attempts.
    #[must_use]
    pub fn after(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }
}

/// Where an output of a job ends.
///
/// Written in two phases: what came before a checkpoint's barrier is [prepared](Self::prepare), and
/// [committed](Self::commit) when the checkpoint is in the store. After a crash the sink is
/// [opened](Self::open) with what the last checkpoint has of it: that is committed again, and
/// whatever else is there of later records is removed. So both must change nothing when repeated.
///
/// The calls come one at a time. Records come while a checkpoint is on its way to the store: those
/// belong to the next one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job's sink for records of `{T}`",
    label = "expected a sink that takes part in checkpoints",
    note = "files and databases are in `side_output::connect`; `MemorySink` is for tests"
)]
pub trait JobSink<T>: Send + 'static {
    /// What holds after a crash.
    const GUARANTEE: Guarantee;

    /// Opens the sink: for the first time, or with what it had prepared for the checkpoint that the
    /// job goes on from.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or what is there does not match.
    fn open(
        &mut self,
        prepared: Option<&[u8]>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Takes records, in their order, and leaves `batch` empty. Those that it refuses for good go to
    /// `refused`; one of them must not fail the others.
    ///
    /// Before each [`prepare`](Self::prepare) it is called once more, with an empty batch: a sink may
    /// have held records back, and this is the last time that it can refuse one of them before the barrier goes on.
    ///
    /// # Errors
    ///
    /// If it cannot be written to: the job fails.
    fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Makes everything so far ready to be committed with this checkpoint; what is returned is kept
    /// in it.
    ///
    /// # Errors
    ///
    /// If that is not possible: the job fails.
    fn prepare(
        &mut self,
        checkpoint: u64,
    ) -> impl Future<Output = Result<Vec<u8>, BoxError>> + Send;

    /// The checkpoint is in the store: makes visible what was prepared for it.
    ///
    /// # Errors
    ///
    /// If that is not possible: the job fails, and commits it when it is started again.
    fn commit(&mut self, checkpoint: u64) -> impl Future<Output = Result<(), BoxError>> + Send;
}
