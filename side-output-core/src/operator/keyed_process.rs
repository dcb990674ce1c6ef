use super::{AtEnd, KeyedCoProcess, KeyedContext};
use crate::output::{Routes, Splitter};
use crate::time::Timestamp;
use std::convert::Infallible;
use std::hash::Hash;
use std::time::Duration;

/// A function on the records of a keyed stream, with state and timers for each key.
///
/// State is made with `State::default()` when a key is seen for the first time, and kept until the
/// function [clears](super::KeyContext::clear) it, until [`is_empty`](Self::is_empty) says that
/// nothing is in it, or until the key's [`time_to_live`](Self::time_to_live) is over.
///
/// # Examples
///
/// Every third reading of a sensor:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{KeyedContext, KeyedProcess};
///
/// #[splitter]
/// enum Sampled {
///     #[main]
///     Kept((char, u32)),
///     Skipped((char, u32)),
/// }
///
/// struct EveryThird;
///
/// impl KeyedProcess for EveryThird {
///     type Key = char;
///     type In = (char, u32);
///     type State = u32;
///     type Out = Sampled;
///
///     fn on_record(
///         &mut self,
///         reading: (char, u32),
///         count: &mut u32,
///         _cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Sampled> {
///         *count += 1;
///         if *count % 3 == 0 { Sampled::Kept(reading) } else { Sampled::Skipped(reading) }
///     }
/// }
///
/// let readings = [('a', 1), ('a', 2), ('b', 3), ('a', 4)];
/// let SampledStreams { kept, skipped } = DataStream::from_stream(stream::iter(readings))
///     .key_by(|reading: &(char, u32)| reading.0)
///     .process(EveryThird);
/// skipped.discard();
/// assert_eq!(block_on(kept.collect::<Vec<_>>()), [('a', 4)]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on a keyed stream",
    label = "expected a type that implements `KeyedProcess`",
    note = "`process_with` takes a closure `|record, state: &mut S, cx: &mut KeyContext<K, Out>| …`"
)]
pub trait KeyedProcess: Sized {
    /// The key that `key_by` gives.
    type Key: Hash + Eq + Clone;
    /// What comes in.
    type In;
    /// What is kept for each key.
    type State: Default;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record, with the state of its key.
    fn on_record(
        &mut self,
        record: Self::In,
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
    ///
    /// The time counts from the record's timestamp, or the watermark if that is higher. When it
    /// is over the key is forgotten as if [cleared](super::KeyContext::clear), pending timers
    /// included, whether or not other records come for it.
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

/// A function of one input is one of two inputs whose second stays silent.
#[diagnostic::do_not_recommend]
impl<F: KeyedProcess> KeyedCoProcess for F {
    type Key = F::Key;
    type Left = F::In;
    type Right = Infallible;
    type State = F::State;
    type Out = F::Out;

    #[inline]
    fn on_left(
        &mut self,
        record: Self::Left,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        self.on_record(record, state, cx)
    }

    fn on_right(
        &mut self,
        record: Infallible,
        _state: &mut Self::State,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        match record {}
        #[expect(unreachable_code, reason = "it names the type of the routes")]
        None::<Self::Out>
    }

    #[inline]
    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        KeyedProcess::on_timer(self, at, state, cx)
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Self::Out> {
        KeyedProcess::on_processing_timer(self, at, state, cx)
    }

    #[inline]
    fn is_empty(state: &Self::State) -> bool {
        <F as KeyedProcess>::is_empty(state)
    }

    fn time_to_live(&self) -> Option<Duration> {
        KeyedProcess::time_to_live(self)
    }

    fn output_delay(&self) -> Duration {
        KeyedProcess::output_delay(self)
    }

    fn timers_at_end(&self) -> AtEnd {
        KeyedProcess::timers_at_end(self)
    }
}
