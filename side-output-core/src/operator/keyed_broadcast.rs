#[cfg(feature = "job")]
mod snapshot;

use super::key_context::OwnKeyContext;
use super::keyed::{Enter, KeyedCore};
use super::{
    AtEnd, Configurable, Configuration, Configured, HoldBack, KeyContext, KeyedCoProcess,
    KeyedContext, TimerChange,
};
use crate::error::StreamError;
use crate::output::{Collect, Collector, Context, OwnContext, Routes, Splitter, TapTagOf};
use crate::time::{Mark, Timestamp};
use std::convert::Infallible;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::time::Duration;

/// The context of the record side of `F`: key, timers and the configuration's version.
pub type KeyedBroadcastContext<F> =
    Configured<KeyContext<<F as KeyedBroadcastProcess>::Key, <F as KeyedBroadcastProcess>::Out>>;

impl<K, S: Splitter, Size: ?Sized> Configured<KeyContext<K, S, Size>> {
    /// Sets an event-time timer of this key; see [`KeyContext::set_timer`].
    #[inline]
    pub fn set_timer(&mut self, at: Timestamp) {
        self.cx.set_timer(at);
    }

    /// Sets an event-time timer at `at` rounded up to a multiple of `grain`.
    #[inline]
    pub fn set_timer_rounded(&mut self, at: Timestamp, grain: Duration) {
        self.cx.set_timer_rounded(at, grain);
    }

    /// Deletes an event-time timer of this key, if it is set.
    #[inline]
    pub fn delete_timer(&mut self, at: Timestamp) {
        self.cx.delete_timer(at);
    }

    /// Sets a processing-time timer of this key; see [`KeyContext::set_processing_timer`].
    #[inline]
    pub fn set_processing_timer(&mut self, at: Timestamp) {
        self.cx.set_processing_timer(at);
    }

    /// Deletes a processing-time timer of this key, if it is set.
    #[inline]
    pub fn delete_processing_timer(&mut self, at: Timestamp) {
        self.cx.delete_processing_timer(at);
    }

    /// Forgets this key when the function returns: its state and all of its timers.
    #[inline]
    pub const fn clear(&mut self) {
        self.cx.clear();
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
        self.cx.timer_changes()
    }
}

/// A function on a keyed stream, with state and timers for each key, that a second stream, the
/// broadcast, configures.
///
/// State and timers are those of [`KeyedProcess`](super::KeyedProcess), the configuration is that
/// of [`BroadcastProcess`](super::BroadcastProcess). The update side sees no key.
///
/// # Examples
///
/// Alerts for counts above a limit that can change while the stream runs:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Configuration, KeyedBroadcastContext, KeyedBroadcastProcess};
///
/// #[splitter]
/// enum Counted {
///     #[main]
///     Count((char, u32)),
///     Alert(char),
/// }
///
/// struct Limit;
///
/// impl KeyedBroadcastProcess for Limit {
///     type Key = char;
///     type In = char;
///     type Update = u32;
///     type Config = u32;
///     type State = u32;
///     type Out = Counted;
///
///     fn on_record(
///         &mut self,
///         letter: char,
///         limit: &u32,
///         count: &mut u32,
///         _cx: &mut KeyedBroadcastContext<Self>,
///     ) -> impl Routes<Counted> {
///         *count += 1;
///         if *count > *limit { Counted::Alert(letter) } else { Counted::Count((letter, *count)) }
///     }
///
///     fn on_update(
///         &mut self,
///         new: u32,
///         limit: &mut Configuration<u32>,
///         _cx: &mut Context<Counted>,
///     ) -> impl Routes<Counted> {
///         limit.replace(new);
///         None::<Counted>
///     }
///
///     fn on_unconfigured(
///         &mut self,
///         letter: char,
///         _cx: &mut Context<Counted>,
///     ) -> impl Routes<Counted> {
///         Counted::Count((letter, 0))
///     }
/// }
///
/// let CountedStreams { count, alert } = DataStream::from_stream(stream::iter("abaa".chars()))
///     .key_by(|letter: &char| *letter)
///     .connect_broadcast(DataStream::from_stream(stream::iter([2])))
///     .config_first()
///     .process(Limit);
/// count.discard();
/// assert_eq!(block_on(alert.collect::<Vec<_>>()), ['a']);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on a keyed stream with a broadcast configuration",
    label = "expected a type that implements `KeyedBroadcastProcess`"
)]
pub trait KeyedBroadcastProcess: Sized {
    /// The key that `key_by` gives.
    type Key: Hash + Eq + Clone;
    /// The records.
    type In;
    /// What comes in from the broadcast.
    type Update;
    /// The configuration.
    type Config;
    /// What is kept for each key.
    type State: Default;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record while there is a configuration, with the state of its key.
    fn on_record(
        &mut self,
        record: Self::In,
        config: &Self::Config,
        state: &mut Self::State,
        cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Self::Out>;

    /// Takes an update, and replaces or removes the configuration, or leaves it as it is.
    fn on_update(
        &mut self,
        update: Self::Update,
        config: &mut Configuration<Self::Config>,
        cx: &mut Context<Self::Out>,
    ) -> impl Routes<Self::Out>;

    /// Takes a record while there is no configuration, unless it is
    /// [held back](Self::hold_back).
    fn on_unconfigured(
        &mut self,
        record: Self::In,
        cx: &mut Context<Self::Out>,
    ) -> impl Routes<Self::Out>;

    /// Called when a timer fires that was set for `at`, with the state of its key.
    fn on_timer(
        &mut self,
        at: Timestamp,
        config: Option<&Self::Config>,
        state: &mut Self::State,
        cx: &mut KeyContext<Self::Key, Self::Out>,
    ) -> impl Routes<Self::Out> {
        let _ = (at, config, state, cx);
        None::<Self::Out>
    }

    /// Called when a processing-time timer fires that was set for `at`, with the state of its key,
    /// where the function was given a clock with `process_with_clock`.
    ///
    /// What it emits carries no timestamp.
    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        config: Option<&Self::Config>,
        state: &mut Self::State,
        cx: &mut KeyContext<Self::Key, Self::Out>,
    ) -> impl Routes<Self::Out> {
        let _ = (at, config, state, cx);
        None::<Self::Out>
    }

    /// How many records may wait while there is no configuration; by default none.
    fn hold_back(&self) -> usize {
        0
    }

    /// Whether nothing is in this state that is worth keeping.
    fn is_empty(state: &Self::State) -> bool {
        let _ = state;
        size_of::<Self::State>() == 0
    }

    /// How long, in event time, a key is kept after its last record or timer; by default for ever.
    fn time_to_live(&self) -> Option<Duration> {
        None
    }

    /// What event-time timers do that are still set when the input ends; by default they fire.
    fn timers_at_end(&self) -> AtEnd {
        AtEnd::default()
    }
}

/// Function and configuration, as the keyed core sees them.
struct WithConfig<F: KeyedBroadcastProcess> {
    function: F,
    config: Configuration<F::Config>,
}

impl<F: KeyedBroadcastProcess> KeyedCoProcess for WithConfig<F> {
    type Key = F::Key;
    // Records come in by `Routed`, which has the context that the function wants.
    type Left = Infallible;
    type Right = Infallible;
    type State = F::State;
    type Out = F::Out;

    fn on_left(
        &mut self,
        record: Infallible,
        _state: &mut F::State,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<F::Out> {
        match record {}
        #[expect(unreachable_code, reason = "it names the type of the routes")]
        None::<F::Out>
    }

    fn on_right(
        &mut self,
        record: Infallible,
        _state: &mut F::State,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<F::Out> {
        match record {}
        #[expect(unreachable_code, reason = "it names the type of the routes")]
        None::<F::Out>
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut F::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<F::Out> {
        self.function.on_timer(at, self.config.current(), state, cx)
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        state: &mut F::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<F::Out> {
        self.function.on_processing_timer(at, self.config.current(), state, cx)
    }

    fn is_empty(state: &F::State) -> bool {
        F::is_empty(state)
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.function.time_to_live()
    }

    fn timers_at_end(&self) -> AtEnd {
        self.function.timers_at_end()
    }
}

/// A record for which there is a configuration.
struct Routed<T>(T);

impl<F: KeyedBroadcastProcess> Enter<WithConfig<F>> for Routed<F::In> {
    #[inline]
    fn enter<C: Collect<F::Out>>(
        self,
        inner: &mut WithConfig<F>,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let WithConfig { function, config } = inner;
        let version = config.version();
        let Some(config) = config.current() else { return Ok(()) };
        let mut configured = Configured::new(mem::replace(cx, OwnKeyContext::new()), version);
        let routes = function.on_record(self.0, config, state, &mut configured).route(at, out);
        *cx = configured.cx;
        routes
    }
}

/// The operator of a [`KeyedBroadcastProcess`]; `By` gives the key of a record.
pub type KeyedBroadcast<F, By> = HoldBack<ByKey<F, By>>;

/// A [`KeyedBroadcastProcess`] with its configuration, and the key of a record.
pub struct ByKey<F: KeyedBroadcastProcess, By> {
    core: KeyedCore<WithConfig<F>>,
    key: By,
    /// For the update side and for records without a configuration.
    cx: OwnContext<F::Out>,
}

impl<F: KeyedBroadcastProcess, By: FnMut(&F::In) -> F::Key> KeyedBroadcast<F, By> {
    /// An operator that calls `function` for records with the key that `key` gives.
    pub fn new(key: By, function: F) -> Self {
        let capacity = function.hold_back();
        let core = KeyedCore::new(WithConfig { function, config: Configuration::new() });
        Self::up_to(capacity, ByKey { core, key, cx: OwnContext::new() })
    }
}

impl<F, By> Configurable for ByKey<F, By>
where
    F: KeyedBroadcastProcess,
    By: FnMut(&F::In) -> F::Key,
{
    type In = F::In;
    type Update = F::Update;
    type Out = F::Out;

    #[inline]
    fn is_configured(&self) -> bool {
        self.core.function.config.current().is_some()
    }

    fn route<C: Collect<F::Out>>(
        &mut self,
        record: F::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if self.is_configured() {
            let key = (self.key)(&record);
            return self.core.on_record(key, Routed(record), at, out);
        }
        self.cx.set(at, self.core.watermark());
        let function = &mut self.core.function.function;
        let routes = function.on_unconfigured(record, &mut self.cx).route(at, out);
        self.cx.flush(at, out);
        routes
    }

    fn update<C: Collect<F::Out>>(
        &mut self,
        update: F::Update,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.set(at, self.core.watermark());
        let WithConfig { function, config } = &mut self.core.function;
        let routes = function.on_update(update, config, &mut self.cx).route(at, out);
        self.cx.flush(at, out);
        routes
    }

    fn pass<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_mark(mark, out)
    }

    fn on_clock<C: Collect<F::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_clock(now, out)
    }

    fn held(&self) -> u64 {
        self.core.keys() as u64
    }

    fn alarm(&self) -> Option<Timestamp> {
        self.core.alarm()
    }
}

impl<F: KeyedBroadcastProcess, By> fmt::Debug for ByKey<F, By> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey").field("core", &self.core).finish_non_exhaustive()
    }
}
