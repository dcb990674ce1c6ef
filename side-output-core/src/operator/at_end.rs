use crate::error::StreamError;
use crate::output::Splitter;
use crate::time::Timestamp;

/// What timers do that are still set when the input ends.
///
/// # Examples
///
/// A heartbeat that goes on as long as its sensor is heard: at the end there is nothing to say.
///
/// ```
/// use side_output::prelude::*;
/// use side_output::{AtEnd, KeyedContext, KeyedProcess};
/// use std::time::Duration;
///
/// #[splitter]
/// enum Beats {
///     #[main]
///     Beat(u32),
/// }
///
/// struct Heartbeat;
///
/// impl KeyedProcess for Heartbeat {
///     type Key = u32;
///     type In = u32;
///     type State = bool;
///     type Out = Beats;
///
///     fn on_record(
///         &mut self,
///         _sensor: u32,
///         beating: &mut bool,
///         cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Beats> {
///         if !std::mem::replace(beating, true) {
///             cx.set_timer(cx.timestamp().unwrap_or_default() + Duration::from_secs(60));
///         }
///         None::<Beats>
///     }
///
///     fn on_timer(
///         &mut self,
///         at: Timestamp,
///         _: &mut bool,
///         cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Beats> {
///         cx.set_timer(at + Duration::from_secs(60));
///         Beats::Beat(*cx.key())
///     }
///
///     fn timers_at_end(&self) -> AtEnd {
///         AtEnd::Drop
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtEnd {
    /// They fire, in order, and so do those that they set then, as in Apache Flink. Timers that set
    /// each other again for ever are an error, and not an end that never comes: when one key (or
    /// one window without an end) has set more than this many at the end of the input.
    Fire {
        /// How many.
        renewals: u32,
    },
    /// Those that the last watermark before the end has not reached are dropped, and counted in the
    /// ledger as [`timers_dropped`](crate::output::Ledger::timers_dropped). Not so one at
    /// [`Timestamp::MAX`], which was set for the end, nor that at the end of a window.
    Drop,
}

const RENEWALS: u32 = 100_000;

impl AtEnd {
    /// They fire, and one key may set up to 100,000 at the end.
    pub const FIRE: Self = Self::Fire { renewals: RENEWALS };

    /// Up to which time timers fire at the end of the input, if the last watermark before it was
    /// `watermark`.
    pub(super) const fn horizon(self, watermark: Timestamp) -> Timestamp {
        match self {
            Self::Fire { .. } => Timestamp::MAX,
            Self::Drop => watermark,
        }
    }

    /// Whether one key must not set so many timers at the end.
    pub(super) const fn forbids(self, renewals: u32) -> bool {
        let most = match self {
            Self::Fire { renewals } => renewals,
            Self::Drop => RENEWALS,
        };
        renewals > most
    }

    /// The error of timers that never stop.
    #[cold]
    pub(super) fn endless<F, S: Splitter>(renewals: u32) -> StreamError {
        StreamError::failed(format!(
            "the timers of `{}`, which routes to `{}`, never stop: at the end of the input, one key \
             has set more than {renewals} timers; stop setting them, let `timers_at_end` be \
             `AtEnd::Drop`, or allow more",
            std::any::type_name::<F>(),
            S::NAME,
        ))
    }
}

impl Default for AtEnd {
    fn default() -> Self {
        Self::FIRE
    }
}
