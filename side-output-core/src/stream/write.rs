use super::codec::Encode;
use futures_sink::Sink;
use pin_project_lite::pin_project;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// How many bytes wait until they are written, unless they are flushed before.
const BUFFER: usize = 8 * 1024;

/// Writes records with a codec: a file, a socket, whatever is an [`AsyncWrite`].
///
/// It is a `Sink`, and so a destination. Bytes are written when there are many, and flushed whenever no
/// record is ready; a record counts as delivered once it is flushed.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::codec::Lines;
/// use side_output::prelude::*;
/// use side_output::write_to;
///
/// #[splitter]
/// enum Numbers {
///     #[main]
///     Any(u32),
/// }
///
/// let mut file = Vec::new(); // or a `tokio::fs::File`
/// let ledger = block_on(
///     stream::iter([1, 2]).split_with(Numbers::Any).wire().any(write_to(&mut file, Lines)).run(),
/// )?;
/// assert_eq!(file, b"1\n2\n");
/// assert_eq!(ledger["any"].delivered, 2);
/// # Ok::<(), StreamError>(())
/// ```
pub fn write_to<T, W, C>(writer: W, codec: C) -> WriteTo<T, W, C>
where
    W: AsyncWrite,
    C: Encode<T>,
{
    WriteTo { writer, codec, buffer: Vec::new(), written: 0, records: PhantomData }
}

pin_project! {
    /// Destination for the [`write_to`] function.
    #[must_use = "a destination does nothing unless it is wired"]
    pub struct WriteTo<T, W, C> {
        #[pin]
        writer: W,
        codec: C,
        buffer: Vec<u8>,
        // How much of the buffer is written.
        written: usize,
        records: PhantomData<fn(T)>,
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl<T, W: AsyncWrite, C> WriteTo<T, W, C> {
    /// Writes what is in the buffer.
    fn poll_empty(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let mut this = self.project();
        while *this.written < this.buffer.len() {
            let rest = &this.buffer[*this.written..];
            match ready!(this.writer.as_mut().poll_write(cx, rest))? {
                0 => return Poll::Ready(Err("nothing more can be written".into())),
                written => *this.written += written,
            }
        }
        this.buffer.clear();
        *this.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<T, W: AsyncWrite, C: Encode<T>> Sink<T> for WriteTo<T, W, C> {
    type Error = BoxError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.buffer.len() < BUFFER { Poll::Ready(Ok(())) } else { self.poll_empty(cx) }
    }

    fn start_send(self: Pin<&mut Self>, record: T) -> Result<(), BoxError> {
        let this = self.project();
        this.codec.encode(&record, this.buffer).map_err(Into::into)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.project().writer.poll_flush(cx).map_err(Into::into)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.project().writer.poll_shutdown(cx).map_err(Into::into)
    }
}

impl<T, W, C> fmt::Debug for WriteTo<T, W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTo").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}
