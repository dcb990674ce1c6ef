//! Wiring: every output has a destination, and one future drives them all.
//!
//! Records go straight from the function into the destinations; there is no lane in between, and
//! nothing can deadlock, because whoever drives the input drives the destinations too.
//!
//! # How a run ends
//!
//! | cause | the others | `run` returns |
//! | --- | --- | --- |
//! | the input ends | are flushed and closed | the ledger, or the first error of closing |
//! | the input or the function fails | are flushed and closed; streams get the error | it |
//! | a destination fails or panics | are flushed and closed; streams get the error | it, with the output |
//! | a stall, where an error was asked for | are flushed and closed, unless they stall too | [`StreamError::Stalled`] |
//! | the run is dropped | are dropped at once; streams get [`StreamError::Cancelled`] | |
//!
//! A stream that is read as plain records ends without the error that `run` returns.

#[cfg(feature = "tokio")]
mod channel;
mod destination;
mod overflow;
mod refused;
mod run;
mod sink;
mod slot;
mod through;

#[cfg(feature = "tokio")]
pub use self::channel::{IntoChannel, ToChannel, ToUnbounded};
pub use self::destination::{
    Counts, Destination, DestinationVisitor, Destinations, Discard, Each, InputState,
    IntoDestination, IntoTrying, Itself, Line, TryEach, Trying, discard, each, try_each,
};
pub use self::overflow::{
    DiscardNoting, Discarded, IntoOverflowing, OverflowInto, Overflowing, discard_noting,
    overflow_into,
};
pub use self::refused::{LendItAsMutableReference, OwnedCollection};
pub use self::run::Run;
pub use self::sink::{IntoSink, ToSink};
pub use self::slot::{Absent, NotWired, Slot};
pub use self::through::{IntoThrough, Outcome, Through};

use super::{DataStream, Hub, LedgerHandle, Port};
use crate::error::StreamError;
use crate::output::OutputSpec;
use crate::stream::{StreamAt, Streamed};
use std::fmt;
use std::sync::Arc;

/// In place of a destination, as long as an output has none.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unwired;

impl Unwired {
    /// The placeholder; only generated code needs it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Default for Unwired {
    fn default() -> Self {
        Self::new()
    }
}

/// The operator whose outputs are being wired.
pub struct Wiring<S: Streamed, D> {
    hub: Option<Arc<Hub<S, D>>>,
    /// The outputs whose streams were taken over.
    attached: Vec<usize>,
    /// An output whose stream somebody else has.
    taken: Option<&'static str>,
}

impl<S: Streamed, D> Wiring<S, D> {
    /// A wiring without streams.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self { hub: None, attached: Vec::new(), taken: None }
    }

    /// Takes the stream of one output over.
    #[doc(hidden)]
    pub fn attach<const I: usize>(&mut self, stream: DataStream<S::Payload, Port<S, D, I>>)
    where
        S: StreamAt<I>,
        D: super::Driver<S>,
    {
        match stream.into_port() {
            Ok(port) => {
                self.hub = Some(port.into_output().detach());
                self.attached.push(I);
            }
            Err(name) => self.taken = Some(name),
        }
    }

    /// The declaration of output `I`, as it was changed at run time.
    #[doc(hidden)]
    #[must_use]
    pub fn spec<const I: usize>(&self) -> OutputSpec
    where
        S: StreamAt<I>,
    {
        self.hub.as_ref().map_or(S::SPEC, |hub| hub.spec::<I>())
    }

    /// The ledger, also while the wiring runs and after it.
    #[must_use]
    pub fn ledger_handle(&self) -> Option<LedgerHandle> {
        self.hub.as_ref().map(|hub| LedgerHandle::new(Arc::clone(&hub.board)))
    }

    /// Drives the operator into `destinations`.
    #[doc(hidden)]
    pub fn run<K: Destinations<S>>(mut self, destinations: K) -> Run<S, D, K> {
        let start = match self.taken {
            // The hub stays here, and is let go of.
            Some(output) => Err(StreamError::Taken { output }),
            None => self.hub.take().ok_or(StreamError::Cancelled),
        };
        Run::new(start, destinations)
    }
}

impl<S: Streamed, D> Drop for Wiring<S, D> {
    fn drop(&mut self) {
        // Without a run nobody reads these outputs any more.
        if let Some(hub) = &self.hub {
            hub.close(&self.attached, 0);
        }
    }
}

impl<S: Streamed, D> Default for Wiring<S, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Streamed, D> fmt::Debug for Wiring<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring").field("splitter", &S::NAME).finish_non_exhaustive()
    }
}
