use super::{Collect, Collector, Splitter, TapTagOf};
use crate::time::Timestamp;
use std::fmt;

/// What a split function knows about the record in its hand, and its way to the taps.
///
/// # Examples
///
/// ```
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Sensors {
///     #[main]
///     Reading(f64),
///     #[tap]
///     Freezing(String),
/// }
///
/// #[splitter(Sensors)]
/// fn split_reading(degrees: f64, cx: &mut Context<Sensors>) -> Sensors {
///     if degrees < 32.0 {
///         cx.output(Sensors::FREEZING_TAG, format!("{degrees} F"));
///     }
///     Sensors::Reading(degrees)
/// }
///
/// let mut cx = Context::new();
/// assert!(matches!(split_reading(30.5, &mut cx), Sensors::Reading(_)));
/// assert_eq!(cx.taps().count(), 1);
/// ```
///
/// # Why there is a second parameter
///
/// What a function is lent is a `Context<S>`, whose size the compiler does not know. So it cannot be
/// replaced or swapped with another one behind its reference, and what is emitted stays with its
/// record. A context that is made for a unit test has a size; a reference to it turns into a `&mut
/// Context<S>` by itself.
pub struct Context<S, Size: ?Sized = [()]> {
    timestamp: Timestamp,
    watermark: Timestamp,
    taps: Vec<S>,
    /// Nothing: an empty array, or a slice of one.
    _size: Size,
}

/// A context that is not lent.
pub(crate) type OwnContext<S> = Context<S, [(); 0]>;

impl<S> Context<S, [(); 0]> {
    /// A context without timestamp and watermark, for calling a split function in a unit test.
    #[must_use]
    pub const fn new() -> Self {
        Self::at(Timestamp::MIN, Timestamp::MIN)
    }

    /// A context of a record at `timestamp` when the watermark is `watermark`.
    #[must_use]
    pub const fn at(timestamp: Timestamp, watermark: Timestamp) -> Self {
        Self { timestamp, watermark, taps: Vec::new(), _size: [] }
    }
}

impl<S, Size: ?Sized> Context<S, Size> {
    /// The record's timestamp, if it has one.
    #[inline]
    #[must_use]
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp.known()
    }

    /// The current watermark; [`Timestamp::MIN`] before the first one.
    #[inline]
    #[must_use]
    pub const fn watermark(&self) -> Timestamp {
        self.watermark
    }

    /// Points the context at the next record.
    #[inline]
    pub(crate) fn set(&mut self, timestamp: Timestamp, watermark: Timestamp) {
        self.timestamp = timestamp;
        self.watermark = watermark;
    }

    /// Hands what the function emitted to `out`.
    #[inline]
    pub(crate) fn flush<C: Collect<S>>(&mut self, at: Timestamp, out: &mut Collector<'_, C>) {
        // The check keeps the loop and its drop glue off the path of splitters without taps.
        if !self.taps.is_empty() {
            out.tap_all(&mut self.taps, at);
        }
    }
}

impl<S: Splitter, Size: ?Sized> Context<S, Size> {
    /// Emits `value` to a tap, beside the route that the function returns.
    ///
    /// Only outputs marked `#[tap]` can be emitted this way; the route through any other output
    /// is returned.
    #[inline]
    pub fn output<G: TapTagOf<S>>(&mut self, tag: G, value: G::Payload) {
        drop(tag);
        self.taps.push(G::wrap(value));
    }

    /// Takes what was emitted to the taps so far: for unit tests of split functions.
    pub fn taps(&mut self) -> impl Iterator<Item = S> + use<'_, S, Size> {
        self.taps.drain(..)
    }
}

impl<S> Default for Context<S, [(); 0]> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S, Size: ?Sized> fmt::Debug for Context<S, Size> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("timestamp", &self.timestamp)
            .field("watermark", &self.watermark)
            .field("taps", &self.taps.len())
            .finish_non_exhaustive()
    }
}
