use super::BoxError;

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// There may be more.
    More,
    /// That was all.
    End,
}

/// A source that can be read again from a position: the input of a job.
///
/// Two readings from the same position give the same records in the same order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job's source",
    label = "expected a source that can be read again from a position",
    note = "files are in `side_output::connect`, and its `journal` makes any stream replayable; \
            `MemorySource` is for tests"
)]
pub trait JobSource: Send + 'static {
    /// The records.
    type Item: Send + 'static;

    /// Opens the source: at its beginning, or at a position that was saved.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or what it has does not match the position.
    fn open(
        &mut self,
        position: Option<&[u8]>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Waits for the next records and appends them to `into`, at most `most` of them, at least one
    /// unless it is the end.
    ///
    /// Must lose nothing when the future is dropped before it is ready: the next call goes on from
    /// [`position`](Self::position), and `into` is dropped with it.
    ///
    /// # Errors
    ///
    /// If it cannot be read. A record that is damaged is no error but a value with its position.
    fn read(
        &mut self,
        into: &mut Vec<Self::Item>,
        most: usize,
    ) -> impl Future<Output = Result<Read, BoxError>> + Send;

    /// Where the next read begins.
    fn position(&self) -> Vec<u8>;

    /// A checkpoint with this position is in the store: nothing before it will be read again. This
    /// is where a broker is told.
    ///
    /// # Errors
    ///
    /// If it could not be told.
    fn completed(&mut self, position: &[u8]) -> impl Future<Output = Result<(), BoxError>> + Send {
        _ = position;
        async { Ok(()) }
    }
}
