use super::{AtEnd, KeyedContext};
use crate::output::{Routes, Splitter};
use crate::time::Timestamp;
use std::hash::Hash;
use std::time::Duration;

/// A function on two keyed streams that share state and timers for each key.
///
/// Time is that of both together: the watermark is the lower one. What is said about state at
/// [`KeyedProcess`](super::KeyedProcess) holds here too.
///
/// # Examples
///
/// Orders wait ten minutes for their payment:
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::{KeyedCoProcess, KeyedContext};
/// use std::time::Duration;
///
/// #[splitter]
/// enum Reconciled {
///     #[main]
///     Matched((u32, &'static str)),
///     UnmatchedOrder(u32),
///     UnmatchedPay(&'static str),
/// }
///
/// struct Reconcile;
///
/// impl KeyedCoProcess for Reconcile {
///     type Key = u32;
///     type Left = u32;
///     type Right = (u32, &'static str);
///     type State = Option<u32>;
///     type Out = Reconciled;
///
///     fn on_left(
///         &mut self,
///         order: u32,
///         pending: &mut Option<u32>,
///         cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Reconciled> {
///         cx.set_timer(cx.timestamp().unwrap_or_default() + Duration::from_secs(600));
///         pending.replace(order).map(Reconciled::UnmatchedOrder)
///     }
///
///     fn on_right(
///         &mut self,
///         (_, pay): (u32, &'static str),
///         pending: &mut Option<u32>,
///         _cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Reconciled> {
///         match pending.take() {
///             Some(order) => Reconciled::Matched((order, pay)),
///             None => Reconciled::UnmatchedPay(pay),
///         }
///     }
///
///     fn on_timer(
///         &mut self,
///         _at: Timestamp,
///         pending: &mut Option<u32>,
///         _cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Reconciled> {
///         pending.take().map(Reconciled::UnmatchedOrder)
///     }
///
///     fn is_empty(pending: &Option<u32>) -> bool {
///         pending.is_none()
///     }
/// }
///
/// let orders = DataStream::from_stream(stream::iter([1, 2]));
/// let payments = DataStream::from_stream(stream::iter([(3, "cash")]));
/// let ledger = block_on(
///     orders
///         .key_by(|order: &u32| *order)
///         .connect(payments.key_by(|pay: &(u32, _)| pay.0))
///         .process(Reconcile)
///         .wire()
///         .matched(discard())
///         .unmatched_order(discard())
///         .unmatched_pay(discard())
///         .run(),
/// )?;
/// assert_eq!(ledger["unmatched_order"].routed, 2);
/// assert_eq!(ledger["unmatched_pay"].routed, 1);
/// # Ok::<(), StreamError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on two keyed streams",
    label = "expected a type that implements `KeyedCoProcess`"
)]
pub trait KeyedCoProcess: Sized {
    /// The key that both `key_by` give.
    type Key: Hash + Eq + Clone;
    /// What comes in from the first stream.
    type Left;
    /// What comes in from the second stream.
    type Right;
    /// What is kept for each key.
    type State: Default;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record of the first stream, with the state of its key.
    fn on_left(
        &mut self,
        record: Self::Left,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out>;

    /// Takes a record of the second stream, with the state of its key.
    fn on_right(
        &mut self,
        record: Self::Right,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out>;

    /// Called when a timer fires that was set for `at`, with the state of its key.
    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        let _ = (at, state, cx);
        None::<Self::Out>
    }

    /// Called when a processing-time timer fires that was set for `at`.
    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        let _ = (at, state, cx);
        None::<Self::Out>
    }

    /// Whether nothing is in this state that is worth keeping: the key is forgotten once it has no
    /// timer either. By default only a state without any content is.
    fn is_empty(state: &Self::State) -> bool {
        let _ = state;
        size_of::<Self::State>() == 0
    }

    /// How long, in event time, a key is kept after its last record or timer; by default for ever.
    fn time_to_live(&self) -> Option<Duration> {
        None
    }

    /// How far behind the watermark the timestamps of what the function emits may lie. The outputs'
    /// watermark is held back by as much, so that nothing is late downstream; and as long as there
    /// are keys, they are not idle when the input is.
    fn output_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// What event-time timers do that are still set when the input ends; by default they fire.
    fn timers_at_end(&self) -> AtEnd {
        AtEnd::default()
    }
}
