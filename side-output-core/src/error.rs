//! Public error types.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a stream stopped before its true end. Every reader of an operator gets the same one.
///
/// Cheap to clone: the cause is shared.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Parsed {
///     #[main]
///     Number(i64),
/// }
///
/// fn parse(text: &str) -> Result<Parsed, std::num::ParseIntError> {
///     Ok(Parsed::Number(text.parse()?))
/// }
///
/// let ParsedStreams { number } = stream::iter(["1", "x"]).split_with(parse);
/// let error = block_on(number.for_each(drop)).unwrap_err();
/// assert_eq!(error.to_string(), "the stream failed: invalid digit found in string");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// A function or a source returned this error.
    Failed(Arc<dyn Error + Send + Sync>),
    /// A function panicked with this message.
    Panicked(Arc<str>),
    /// The reader waits because this output is full and nobody reads it.
    Stalled {
        /// Name of the output that is full.
        output: &'static str,
    },
    /// The output's stream had been taken before.
    Taken {
        /// Name of the output.
        output: &'static str,
    },
    /// A destination refused the records of this output, or panicked.
    Destination {
        /// Name of the output.
        output: &'static str,
        /// The error of the destination.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The input was [stopped](crate::stream::Shutdown::stop) on request.
    Stopped,
    /// The operator was cancelled before the end of its input.
    Cancelled,
}

impl StreamError {
    /// An error of a function or a source. One that came out of a stream stays what it is.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::unwrap(error.into()).unwrap_or_else(|error| Self::Failed(Arc::from(error)))
    }

    /// What came out of a stream, also where it went through a function of `io`.
    fn unwrap(error: Box<dyn Error + Send + Sync>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        match error.downcast::<Self>() {
            Ok(error) => Ok(*error),
            Err(error) => Ok(error.downcast::<io::Error>()?.downcast::<Self>()?),
        }
    }

    /// An error of the destination of `output`.
    pub(crate) fn destination(
        output: &'static str,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Destination { output, source: Arc::from(error.into()) }
    }

    /// The error for what a panic left behind.
    pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self::Panicked(Arc::from(message))
    }

    /// A panic, as one of the destination of `output`.
    pub(crate) fn in_destination(self, output: &'static str) -> Self {
        match self {
            Self::Panicked(message) => {
                Self::Destination { output, source: Arc::new(Panic(message)) }
            }
            other => other,
        }
    }
}

impl From<io::Error> for StreamError {
    /// So that `?` works on files and sockets beside streams.
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

/// A destination's panic, with its message.
#[derive(Debug)]
struct Panic(Arc<str>);

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it panicked: {}", self.0)
    }
}

impl Error for Panic {}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the stream failed: {error}"),
            Self::Panicked(message) => write!(f, "a function of the stream panicked: {message}"),
            Self::Stalled { output } => {
                write!(f, "output `{output}` is full and nobody reads it; read or discard it")
            }
            Self::Taken { output } => {
                write!(f, "the stream of output `{output}` was already taken")
            }
            Self::Destination { output, source } => {
                write!(f, "the destination of output `{output}` failed: {source}")
            }
            Self::Stopped => f.write_str("the input was stopped on request"),
            Self::Cancelled => {
                f.write_str("the operator was cancelled before the end of its input")
            }
        }
    }
}

impl Error for StreamError {
    /// What lies behind the cause. The cause itself is part of the message, so that `{error}` is
    /// enough to read it; a program finds it in the variant.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) | Self::Destination { source: error, .. } => error.source(),
            _ => None,
        }
    }
}
