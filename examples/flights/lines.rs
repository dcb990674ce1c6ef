//! A file as a stream of lines, of bytes: what is wrong with one of them is for a record to say.

use futures::{Stream, stream};
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The most that is kept of a line: a file without line ends must not fill the memory.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// A line of a file, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The first line has number 1.
    pub(crate) number: u64,
    /// At most [`MAX_LINE`] bytes.
    pub(crate) bytes: Vec<u8>,
    /// Bytes in the file, with the line's end.
    pub(crate) length: u64,
}

impl Line {
    /// Whether there was more of it than is kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.length > MAX_LINE as u64 + 1
    }
}

/// The lines of `reader`, read as they are asked for.
pub(crate) fn lines<R>(reader: R) -> impl Stream<Item = io::Result<Line>> + Send + 'static
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    stream::try_unfold((reader, 1), |(mut reader, number)| async move {
        let line = next_line(&mut reader, number).await?;
        Ok(line.map(|line| (line, (reader, number + 1))))
    })
}

async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    number: u64,
) -> io::Result<Option<Line>> {
    let mut line = Line { number, bytes: Vec::with_capacity(128), length: 0 };
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            // The last line may lack its end.
            return Ok((line.length > 0).then_some(line));
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let text = &buffer[..end.unwrap_or(buffer.len())];
        let room = MAX_LINE - line.bytes.len();
        line.bytes.extend_from_slice(&text[..text.len().min(room)]);
        let taken = text.len() + usize::from(end.is_some());
        line.length += taken as u64;
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
