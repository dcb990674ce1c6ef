//! How records become bytes: what is written and where are separate.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::{Display, Write as _};

/// Turns records into bytes, one after the other.
///
/// A function `FnMut(&T, &mut Vec<u8>) -> Result<(), E>` is one too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not turn records of type `{T}` into bytes",
    label = "expected a codec for `{T}`, or a function `|record: &{T}, into: &mut Vec<u8>| Result`"
)]
pub trait Encode<T> {
    /// Why a record could not be written.
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Appends the bytes of `record`.
    ///
    /// # Errors
    ///
    /// If it has none. It ends the destination: what cannot be written belongs to another output.
    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), Self::Error>;
}

impl<T, E, F> Encode<T> for F
where
    E: Into<Box<dyn Error + Send + Sync>>,
    F: FnMut(&T, &mut Vec<u8>) -> Result<(), E>,
{
    type Error = E;

    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), E> {
        self(record, into)
    }
}

/// The text of each record, and a line feed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines;

impl<T: Display> Encode<T> for Lines {
    type Error = std::fmt::Error;

    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), std::fmt::Error> {
        let mut text = String::new();
        writeln!(text, "{record}")?;
        into.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The bytes of each record, as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl<T: AsRef<[u8]>> Encode<T> for Bytes {
    type Error = Infallible;

    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), Infallible> {
        into.extend_from_slice(record.as_ref());
        Ok(())
    }
}

/// Each record as JSON, in a line of its own.
#[cfg(feature = "json")]
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonLines;

#[cfg(feature = "json")]
impl<T: serde::Serialize> Encode<T> for JsonLines {
    type Error = serde_json::Error;

    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let start = into.len();
        let written = serde_json::to_writer(&mut *into, record);
        if written.is_err() {
            // Not half a line.
            into.truncate(start);
        } else {
            into.push(b'\n');
        }
        written
    }
}

/// Each record as a row of CSV, with quotes where they are needed; the names of its fields first.
#[cfg(feature = "csv")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv {
    /// The names are written, or not wanted.
    begun: bool,
}

#[cfg(feature = "csv")]
impl Csv {
    /// Without the row of names, as for a file that has one.
    #[must_use]
    pub const fn without_names() -> Self {
        Self { begun: true }
    }
}

#[cfg(feature = "csv")]
impl<T: serde::Serialize> Encode<T> for Csv {
    type Error = csv::Error;

    fn encode(&mut self, record: &T, into: &mut Vec<u8>) -> Result<(), csv::Error> {
        let mut row = csv::WriterBuilder::new().has_headers(!self.begun).from_writer(Vec::new());
        row.serialize(record)?;
        let row = row.into_inner().map_err(|error| std::io::Error::other(error.to_string()))?;
        self.begun = true;
        into.extend_from_slice(&row);
        Ok(())
    }
}
