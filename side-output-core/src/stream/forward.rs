use super::source::{CHUNK, TURNS};
use super::{DataStream, Source};
use crate::error::StreamError;
use futures_sink::Sink;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Feeds every record to `sink`, flushes it whenever no record is ready, and closes it at the
    /// end: also where the stream ends in an error.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end, or the sink's as
    /// [`StreamError::Destination`].
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// let mut written = Vec::new();
    /// block_on(DataStream::from_stream(stream::iter(0..3)).forward(&mut written))?;
    /// assert_eq!(written, [0, 1, 2]);
    /// # Ok::<(), StreamError>(())
    /// ```
    pub async fn forward<K>(mut self, sink: K) -> Result<(), StreamError>
    where
        K: Sink<T>,
        K::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let output = self.name();
        let fail = |error: K::Error| StreamError::destination(output, error);
        let mut sink = pin!(sink);
        let mut end = None;
        poll_fn(|cx| {
            for _ in 0..CHUNK * TURNS {
                if let Some(end) = &end {
                    let closed = ready!(sink.as_mut().poll_close(cx)).map_err(fail);
                    return Poll::Ready(Result::and(Clone::clone(end), closed));
                }
                // Asked before the record is taken: what the sink has no room for stays where it is.
                ready!(sink.as_mut().poll_ready(cx)).map_err(fail)?;
                match self.poll_record(cx) {
                    Poll::Ready(Ok(Some(value))) => {
                        sink.as_mut().start_send(value).map_err(fail)?;
                    }
                    Poll::Ready(ended) => end = Some(ended.map(drop)),
                    Poll::Pending => {
                        ready!(sink.as_mut().poll_flush(cx)).map_err(fail)?;
                        return Poll::Pending;
                    }
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }
}
