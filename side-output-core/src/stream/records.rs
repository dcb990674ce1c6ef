use super::{DataStream, LedgerHandle, Source};
use crate::error::StreamError;
use futures_core::{FusedStream, Stream};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Stream for the [`records`](DataStream::records) method.
#[must_use = "streams do nothing unless polled"]
pub struct Records<T, Src: Source<T>> {
    stream: DataStream<T, Src>,
    ended: bool,
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// The records alone: where the stream fails, they end.
    ///
    /// It is the choice of a reader that is content with what came before an error. The error is
    /// [at hand](Records::error), and so it is in the [`Ledger`](crate::output::Ledger) of the
    /// operator and at the other readers; it is not logged. [`results`](Self::results) is the same
    /// stream with the error as its last item.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    ///
    /// let input = stream::iter([Ok(1), Ok(2), Err("connection lost")]);
    /// let mut records = DataStream::from_try_stream(input).records();
    /// let sum = block_on(records.by_ref().fold(0, async |sum, n| sum + n));
    /// assert_eq!(sum, 3);
    /// assert_eq!(records.error().unwrap().to_string(), "the stream failed: connection lost");
    /// ```
    pub const fn records(self) -> Records<T, Src> {
        Records { stream: self, ended: false }
    }
}

impl<T, Src: Source<T>> Records<T, Src> {
    /// The error that ended the records, if it was not their true end.
    #[must_use]
    pub const fn error(&self) -> Option<&StreamError> {
        self.stream.error()
    }

    /// Reads the ledger of the operator whose output this is.
    pub fn ledger_handle(&self) -> Option<LedgerHandle> {
        self.stream.ledger_handle()
    }
}

impl<T, Src: Source<T>> Stream for Records<T, Src> {
    type Item = T;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        let record = ready!(this.stream.poll_record(cx)).ok().flatten();
        this.ended = record.is_none();
        Poll::Ready(record)
    }
}

impl<T, Src: Source<T>> FusedStream for Records<T, Src> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T, Src: Source<T>> fmt::Debug for Records<T, Src> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("stream", &self.stream).finish_non_exhaustive()
    }
}
