use super::KeyedCoProcess;
use crate::output::{Collect, Collector, Context, OwnContext, Splitter, TapTagOf};
use crate::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// The context of the keyed function `F`: a [`KeyContext`] of its key and its outputs.
pub type KeyedContext<F> = KeyContext<<F as KeyedCoProcess>::Key, <F as KeyedCoProcess>::Out>;

/// What a keyed function knows about the record or timer in its hand: time and key; and what it
/// may do beside returning a route: timers, taps, forgetting the key.
///
/// What it asks for is done when the function returns, before anything else happens: a timer that
/// it deletes does not fire, even if the watermark has passed it already.
///
/// # Examples
///
/// A function can be called in a unit test without any stream:
///
/// ```
/// use side_output::prelude::*;
/// use side_output::{KeyContext, TimerChange};
/// use std::time::Duration;
///
/// #[splitter]
/// enum Orders {
///     #[main]
///     Order(u32),
/// }
///
/// let mut cx = KeyContext::<_, Orders, _>::at("a", Timestamp::from_secs(1));
/// cx.set_timer(cx.timestamp().unwrap() + Duration::from_secs(60));
/// cx.delete_timer(Timestamp::from_secs(5));
/// assert_eq!(*cx.key(), "a");
/// assert_eq!(
///     cx.timer_changes().collect::<Vec<_>>(),
///     [TimerChange::Set(Timestamp::from_secs(61)), TimerChange::Delete(Timestamp::from_secs(5))],
/// );
/// ```
///
/// Like a [`Context`], what a function is lent has no known size, so that neither its key nor what it
/// was asked for can be moved to another record.
pub struct KeyContext<K, S, Size: ?Sized = [()]> {
    pub(super) key: Option<K>,
    pub(super) changes: Vec<TimerChange>,
    pub(super) now: Option<Timestamp>,
    pub(super) clear: bool,
    pub(super) cx: Context<S, Size>,
}

/// A context that is not lent.
pub(super) type OwnKeyContext<K, S> = KeyContext<K, S, [(); 0]>;

/// What a function asks of its timers.
///
/// # Examples
///
/// ```
/// use side_output::output::Single;
/// use side_output::{KeyContext, TimerChange, Timestamp};
///
/// let mut cx = KeyContext::<_, Single<()>, _>::at("key", Timestamp::EPOCH);
/// cx.set_processing_timer(Timestamp::from_secs(9));
/// assert!(cx.timer_changes().eq([TimerChange::SetAlarm(Timestamp::from_secs(9))]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerChange {
    /// Set the event-time timer.
    Set(Timestamp),
    /// Delete the event-time timer.
    Delete(Timestamp),
    /// Set the processing-time timer.
    SetAlarm(Timestamp),
    /// Delete the processing-time timer.
    DeleteAlarm(Timestamp),
}

impl<K, S: Splitter> KeyContext<K, S, [(); 0]> {
    /// A context of a record of `key` at `timestamp`, before the first watermark, for calling a
    /// function in a unit test.
    #[must_use]
    pub const fn at(key: K, timestamp: Timestamp) -> Self {
        let cx = OwnContext::at(timestamp, Timestamp::MIN);
        Self { key: Some(key), changes: Vec::new(), now: None, clear: false, cx }
    }

    /// A context without a key, for the operator that will set one.
    pub(super) const fn new() -> Self {
        Self { key: None, changes: Vec::new(), now: None, clear: false, cx: OwnContext::new() }
    }
}

impl<K, S: Splitter, Size: ?Sized> KeyContext<K, S, Size> {
    /// The key whose state the function was given.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &K {
        self.key.as_ref().unwrap_or_else(|| no_key())
    }

    /// The record's timestamp, if it has one; in a timer's callback, the time of the timer.
    #[inline]
    #[must_use]
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.cx.timestamp()
    }

    /// The current watermark; [`Timestamp::MIN`] before the first one.
    #[inline]
    #[must_use]
    pub const fn watermark(&self) -> Timestamp {
        self.cx.watermark()
    }

    /// The time of the clock, if the function was given one with `process_with_clock`.
    #[inline]
    #[must_use]
    pub const fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// Sets an event-time timer of this key. It fires at the first watermark at or above `at`.
    ///
    /// A key has a timer at a time once, however often it is set. All that are due fire in order
    /// of their time, those of the same time in the order in which they were set. A timer that is
    /// set at or below the current watermark fires with the next watermark, or in the same round
    /// if a timer's callback sets it. The end of the input fires what is left, and what the
    /// callbacks set then, or [drops](super::AtEnd) it; only one that is set at [`Timestamp::MAX`]
    /// by a timer at [`Timestamp::MAX`] is ignored.
    #[inline]
    pub fn set_timer(&mut self, at: Timestamp) {
        self.changes.push(TimerChange::Set(at));
    }

    /// Sets an event-time timer at `at` rounded up to a multiple of `grain`: many timers of one
    /// key become few, none fires too early and none more than `grain` later.
    #[inline]
    pub fn set_timer_rounded(&mut self, at: Timestamp, grain: Duration) {
        self.set_timer(round_up(at, grain));
    }

    /// Deletes an event-time timer of this key, if it is set.
    #[inline]
    pub fn delete_timer(&mut self, at: Timestamp) {
        self.changes.push(TimerChange::Delete(at));
    }

    /// Sets a timer of this key by the clock that the function was given with
    /// `process_with_clock`; without one, it is an error that ends the stream.
    ///
    /// It fires at the first look at the clock at or after `at`. Those left at the end of the
    /// input do not fire, and are counted in the ledger as
    /// [`timers_left`](crate::output::Ledger::timers_left).
    #[inline]
    pub fn set_processing_timer(&mut self, at: Timestamp) {
        self.changes.push(TimerChange::SetAlarm(at));
    }

    /// Deletes a processing-time timer of this key, if it is set.
    #[inline]
    pub fn delete_processing_timer(&mut self, at: Timestamp) {
        self.changes.push(TimerChange::DeleteAlarm(at));
    }

    /// Forgets this key when the function returns: its state and all of its timers, also those
    /// that were set in this call.
    #[inline]
    pub const fn clear(&mut self) {
        self.clear = true;
    }

    /// Emits `value` to a tap, beside the route that the function returns.
    #[inline]
    pub fn output<G: TapTagOf<S>>(&mut self, tag: G, value: G::Payload) {
        self.cx.output(tag, value);
    }

    /// Takes what was emitted to the taps so far: for unit tests.
    pub fn taps(&mut self) -> impl Iterator<Item = S> + use<'_, K, S, Size> {
        self.cx.taps()
    }

    /// Takes what was asked of the timers so far: for unit tests.
    pub fn timer_changes(&mut self) -> impl Iterator<Item = TimerChange> + use<'_, K, S, Size> {
        self.changes.drain(..)
    }

    #[inline]
    pub(super) fn flush<C: Collect<S>>(&mut self, at: Timestamp, out: &mut Collector<'_, C>) {
        self.cx.flush(at, out);
    }
}

fn round_up(at: Timestamp, grain: Duration) -> Timestamp {
    let grain = crate::time::saturating_millis(grain).max(1);
    let over = at.as_millis().rem_euclid(grain);
    if over == 0 { at } else { at.saturating_add_millis(grain - over) }
}

#[cold]
fn no_key() -> ! {
    panic!("the context of a keyed function has a key while the function runs")
}

impl<K: fmt::Debug, S, Size: ?Sized> fmt::Debug for KeyContext<K, S, Size> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyContext")
            .field("key", &self.key)
            .field("cx", &&self.cx)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}
