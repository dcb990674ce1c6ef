#[cfg(feature = "job")]
mod snapshot;

use super::{Configurable, HoldBack};
use crate::error::StreamError;
use crate::output::{Collect, Collector, Context, OwnContext, Routes, Splitter, TapTagOf};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::ops::Deref;

/// A function on a stream that a second one, the broadcast, configures.
///
/// The record side reads the configuration and cannot change it; the update side replaces it as a
/// whole. Which configuration a record meets is decided by what has come before it, not by
/// timestamps. The watermark is the lower one of both streams: a configuration stream that says
/// nothing about time holds it back until it ends, unless it declares itself idle.
///
/// # Examples
///
/// A configuration decides where the records go. A name that it gets wrong is found when it is
/// parsed, and the previous one stays:
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::{BroadcastContext, BroadcastProcess, Configuration};
///
/// #[splitter]
/// enum Orders {
///     #[main]
///     Regular(u32),
///     Large(u32),
///     BadConfig(&'static str),
/// }
///
/// struct Route;
///
/// impl BroadcastProcess for Route {
///     type In = u32;
///     type Update = &'static str;
///     type Config = u32;
///     type Out = Orders;
///
///     fn on_record(
///         &mut self,
///         amount: u32,
///         limit: &u32,
///         _cx: &mut BroadcastContext<Orders>,
///     ) -> impl Routes<Orders> {
///         if amount > *limit { Orders::Large(amount) } else { Orders::Regular(amount) }
///     }
///
///     fn on_update(
///         &mut self,
///         text: &'static str,
///         limit: &mut Configuration<u32>,
///         _cx: &mut Context<Orders>,
///     ) -> impl Routes<Orders> {
///         match text.parse() {
///             Ok(parsed) => {
///                 limit.replace(parsed);
///                 None
///             }
///             Err(_) => Some(Orders::BadConfig(text)),
///         }
///     }
///
///     fn on_unconfigured(
///         &mut self,
///         amount: u32,
///         _cx: &mut Context<Orders>,
///     ) -> impl Routes<Orders> {
///         Orders::Regular(amount)
///     }
/// }
///
/// let amounts = DataStream::from_stream(stream::iter([5, 50, 500]));
/// let limits = DataStream::from_stream(stream::iter(["100", "many"]));
/// let ledger = block_on(
///     amounts
///         .connect_broadcast(limits)
///         .config_first()
///         .process(Route)
///         .wire()
///         .regular(discard())
///         .large(discard())
///         .bad_config(discard())
///         .run(),
/// )?;
/// assert_eq!(ledger["regular"].routed, 2);
/// assert_eq!(ledger["large"].routed, 1);
/// assert_eq!(ledger["bad_config"].routed, 1);
/// # Ok::<(), StreamError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on a stream with a broadcast configuration",
    label = "expected a type that implements `BroadcastProcess`"
)]
pub trait BroadcastProcess {
    /// The records.
    type In;
    /// What comes in from the broadcast: a configuration, or what one is made of.
    type Update;
    /// The configuration.
    type Config;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record while there is a configuration.
    fn on_record(
        &mut self,
        record: Self::In,
        config: &Self::Config,
        cx: &mut BroadcastContext<Self::Out>,
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

    /// How many records may wait while there is no configuration; by default none.
    ///
    /// When the configuration comes, they are routed by it in their order. The watermark and
    /// idleness wait with them. Records beyond this number go to
    /// [`on_unconfigured`](Self::on_unconfigured), and so do those that still wait when the input of
    /// the configuration ends.
    fn hold_back(&self) -> usize {
        0
    }
}

/// The context of the record side: that of the splitter `S`, and the configuration's version.
pub type BroadcastContext<S> = Configured<Context<S>>;

/// A context together with the version of the configuration in force.
#[derive(Debug)]
pub struct Configured<C: ?Sized> {
    pub(super) version: u64,
    pub(super) cx: C,
}

impl<C> Configured<C> {
    /// The context `cx` under the configuration number `version`: for unit tests.
    #[must_use]
    pub const fn new(cx: C, version: u64) -> Self {
        Self { version, cx }
    }
}

impl<C: ?Sized> Configured<C> {
    /// The version of the configuration that the function was given: 1 for the first one, and one
    /// more with each that replaced it.
    #[inline]
    #[must_use]
    pub const fn config_version(&self) -> u64 {
        self.version
    }
}

impl<C: ?Sized> Deref for Configured<C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.cx
    }
}

// What changes the context stands here once more: behind a `DerefMut`, the compiler would not let
// `cx.output(TAG, cx.watermark())` pass.
impl<S: Splitter, Size: ?Sized> Configured<Context<S, Size>> {
    /// Emits `value` to a tap, beside the route that the function returns.
    #[inline]
    pub fn output<G: TapTagOf<S>>(&mut self, tag: G, value: G::Payload) {
        self.cx.output(tag, value);
    }

    /// Takes what was emitted to the taps so far: for unit tests.
    pub fn taps(&mut self) -> impl Iterator<Item = S> + use<'_, S, Size> {
        self.cx.taps()
    }
}

/// The configuration in the hands of the update side: it can be replaced, but not changed.
///
/// # Examples
///
/// ```
/// use side_output::Configuration;
///
/// let mut limit = Configuration::new();
/// assert_eq!((limit.current(), limit.version()), (None, 0));
/// limit.replace(100);
/// limit.replace(200);
/// assert_eq!((limit.current(), limit.version()), (Some(&200), 2));
/// limit.remove();
/// assert_eq!(limit.current(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration<C> {
    current: Option<C>,
    version: u64,
}

impl<C> Configuration<C> {
    /// No configuration yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { current: None, version: 0 }
    }

    /// The configuration in force.
    #[inline]
    #[must_use]
    pub const fn current(&self) -> Option<&C> {
        self.current.as_ref()
    }

    /// How many configurations there have been.
    #[inline]
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Puts `config` in force as a whole, with the next version.
    pub fn replace(&mut self, config: C) {
        self.current = Some(config);
        self.version += 1;
    }

    /// Leaves no configuration in force. The next one has the next version.
    pub fn remove(&mut self) {
        self.current = None;
    }
}

impl<C> Default for Configuration<C> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operator of a [`BroadcastProcess`].
pub type Broadcast<F> = HoldBack<Unkeyed<F>>;

/// A [`BroadcastProcess`] with its configuration.
pub struct Unkeyed<F: BroadcastProcess> {
    function: F,
    config: Configuration<F::Config>,
    cx: Configured<OwnContext<F::Out>>,
    watermark: Timestamp,
}

impl<F: BroadcastProcess> Broadcast<F> {
    /// An operator that calls `function`.
    pub fn new(function: F) -> Self {
        let (config, cx) = (Configuration::new(), Configured::new(OwnContext::new(), 0));
        let capacity = function.hold_back();
        Self::up_to(capacity, Unkeyed { function, config, cx, watermark: Timestamp::MIN })
    }
}

impl<F: BroadcastProcess> Configurable for Unkeyed<F> {
    type In = F::In;
    type Update = F::Update;
    type Out = F::Out;

    #[inline]
    fn is_configured(&self) -> bool {
        self.config.current().is_some()
    }

    fn route<C: Collect<F::Out>>(
        &mut self,
        record: F::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.version = self.config.version();
        self.cx.cx.set(at, self.watermark);
        let routes = match self.config.current() {
            Some(config) => self.function.on_record(record, config, &mut self.cx).route(at, out),
            None => self.function.on_unconfigured(record, &mut self.cx.cx).route(at, out),
        };
        self.cx.cx.flush(at, out);
        routes
    }

    fn update<C: Collect<F::Out>>(
        &mut self,
        update: F::Update,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let Self { function, config, cx, watermark } = self;
        cx.cx.set(at, *watermark);
        let routes = function.on_update(update, config, &mut cx.cx).route(at, out);
        cx.cx.flush(at, out);
        routes
    }

    fn pass<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if let Mark::Watermark(watermark) = mark {
            self.watermark = watermark;
        }
        out.mark(mark);
        Ok(())
    }

    fn held(&self) -> u64 {
        0
    }
}

impl<F: BroadcastProcess> fmt::Debug for Unkeyed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unkeyed")
            .field("version", &self.config.version())
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}
