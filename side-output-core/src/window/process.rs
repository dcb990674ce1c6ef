use super::{Late, Pane, Window};
use crate::output::{Context, Routes, Splitter, TapTagOf};
use crate::time::Timestamp;
use std::fmt;

/// A function of all records of a window, with outputs of its own.
///
/// Where late records go to an output, it says to which: see [`RouteLate`].
///
/// # Examples
///
/// Visits in which nothing was bought go their own way, and so do late clicks:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, future, stream};
/// use side_output::prelude::*;
/// use side_output::Element;
/// use std::time::Duration;
///
/// #[splitter]
/// enum Visits {
///     #[main]
///     Bought(u32),
///     Looked(usize),
///     Late(u32),
/// }
///
/// struct Visit;
///
/// impl WindowProcess for Visit {
///     type Key = ();
///     type In = u32;
///     type State = ();
///     type KeyState = ();
///     type Out = Visits;
///
///     fn process(
///         &mut self,
///         (): &(),
///         prices: &[u32],
///         _: &mut WindowContext<'_, Self>,
///     ) -> impl Routes<Visits> {
///         match prices.iter().sum() {
///             0 => Visits::Looked(prices.len()),
///             sum => Visits::Bought(sum),
///         }
///     }
/// }
///
/// impl RouteLate for Visit {
///     fn on_late(&mut self, late: Late<u32>) -> impl Routes<Visits> {
///         Visits::Late(late.value)
///     }
/// }
///
/// let at = Timestamp::from_secs;
/// let clicks = stream::iter([
///     Element::record(0, at(0)),
///     Element::record(5, at(60)),
///     Element::record(0, at(3600)),
///     Element::watermark(at(9000)),
///     Element::record(7, at(100)),
/// ]);
/// let VisitsStreams { bought, looked, late } = DataStream::from_elements(clicks)
///     .window_all(Session::with_gap(Duration::from_secs(1800)))
///     .side_output_late_data()
///     .process(Visit);
/// let (bought, looked, late) = block_on(future::join3(
///     bought.collect::<Vec<_>>(),
///     looked.collect::<Vec<_>>(),
///     late.collect::<Vec<_>>(),
/// ));
/// assert_eq!((bought, looked, late), (vec![5], vec![1], vec![7]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of windows",
    label = "expected an implementation of `WindowProcess`",
    note = "`.apply(|key, window, records| …)` takes a closure"
)]
pub trait WindowProcess {
    /// The key; `()` where the stream has none.
    type Key;

    /// The records.
    type In;

    /// What is kept of one window of one key between its firings; gone when the window is.
    type State: Default;

    /// What is kept of one key across its windows, until it is set to `None`.
    type KeyState;

    /// The outputs.
    type Out: Splitter;

    /// The window fires: `records` are all it holds, in the order in which they came. Where
    /// sessions merged, those of the earlier session come first.
    fn process(
        &mut self,
        key: &Self::Key,
        records: &[Self::In],
        cx: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Self::Out>;

    /// Merges the state of a window that merges with this one; only sessions do.
    fn merge(&mut self, state: &mut Self::State, other: Self::State) {
        drop((state, other));
    }
}

/// Says through which output late records leave; [`WindowProcess`] shows one.
///
/// # Examples
///
/// ```
/// use side_output::output::Single;
/// use side_output::prelude::*;
/// use side_output::{Late, RouteLate};
///
/// #[splitter]
/// enum Totals {
///     #[main]
///     Total(f64),
///     Late(f64),
/// }
///
/// struct Sum;
///
/// impl WindowProcess for Sum {
///     type Key = ();
///     type In = f64;
///     type State = ();
///     type KeyState = ();
///     type Out = Totals;
///
///     fn process(
///         &mut self,
///         (): &(),
///         amounts: &[f64],
///         _: &mut WindowContext<'_, Self>,
///     ) -> impl Routes<Totals> {
///         Totals::Total(amounts.iter().sum())
///     }
/// }
///
/// impl RouteLate for Sum {
///     fn on_late(&mut self, late: Late<f64>) -> impl Routes<Totals> {
///         Totals::Late(late.value)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where late records go",
    label = "`side_output_late_data()` needs `impl RouteLate for {Self}`",
    note = "or say `drop_late_data()` to drop and count them"
)]
pub trait RouteLate: WindowProcess {
    /// Takes a record whose windows are gone.
    fn on_late(&mut self, late: Late<Self::In>) -> impl Routes<Self::Out>;
}

/// What a function knows about the window that fires, and its way to state and taps.
///
/// # Examples
///
/// A function that says how a window differs from the key's last one:
///
/// ```
/// use side_output::output::Single;
/// use side_output::prelude::*;
///
/// struct Change;
///
/// impl WindowProcess for Change {
///     type Key = String;
///     type In = f64;
///     type State = ();
///     type KeyState = f64;
///     type Out = Single<(String, f64)>;
///
///     fn process(
///         &mut self,
///         key: &String,
///         values: &[f64],
///         cx: &mut WindowContext<'_, Self>,
///     ) -> impl Routes<Self::Out> {
///         let highest = values.iter().copied().fold(f64::MIN, f64::max);
///         let before = cx.key_state().replace(highest)?;
///         Some(Single((key.clone(), highest - before)))
///     }
/// }
/// ```
pub struct WindowContext<'a, P: WindowProcess + ?Sized> {
    pub(crate) window: Window,
    pub(crate) pane: Pane,
    pub(crate) watermark: Timestamp,
    pub(crate) state: &'a mut P::State,
    pub(crate) key_state: &'a mut Option<P::KeyState>,
    pub(crate) taps: &'a mut Context<P::Out>,
}

impl<P: WindowProcess + ?Sized> WindowContext<'_, P> {
    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Which of the window's results this is.
    #[must_use]
    pub const fn pane(&self) -> Pane {
        self.pane
    }

    /// The current watermark: the one that made the window fire, or, for a late update, the one
    /// that the late record was behind.
    #[must_use]
    pub const fn watermark(&self) -> Timestamp {
        self.watermark
    }

    /// What is kept of this window of this key.
    pub const fn state(&mut self) -> &mut P::State {
        self.state
    }

    /// What is kept of this key across its windows. `None` takes no memory.
    pub const fn key_state(&mut self) -> &mut Option<P::KeyState> {
        self.key_state
    }

    /// Emits `value` to a tap, beside the routes that the function returns.
    pub fn output<G: TapTagOf<P::Out>>(&mut self, tag: G, value: G::Payload) {
        self.taps.output(tag, value);
    }
}

impl<P: WindowProcess + ?Sized> fmt::Debug for WindowContext<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowContext")
            .field("window", &self.window)
            .field("pane", &self.pane)
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}
