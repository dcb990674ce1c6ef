use super::{Collect, Collector, Routes};
use crate::error::StreamError;
use crate::time::Timestamp;

/// Routes with a timestamp of their own, instead of that of the record or timer in hand.
///
/// # Examples
///
/// An alert from a timer that carries the time of the record it is about:
///
/// ```
/// use side_output::prelude::*;
/// use side_output::{KeyedContext, KeyedProcess, WithTimestamp};
/// use std::time::Duration;
///
/// #[splitter]
/// enum Silence {
///     #[main]
///     Silent(String),
/// }
///
/// struct Watch;
///
/// impl KeyedProcess for Watch {
///     type Key = String;
///     type In = ();
///     type State = Option<Timestamp>;
///     type Out = Silence;
///
///     fn on_record(
///         &mut self,
///         _: (),
///         last: &mut Option<Timestamp>,
///         cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Silence> {
///         *last = cx.timestamp();
///         cx.set_timer(last.unwrap_or_default() + Duration::from_secs(60));
///         None::<Silence>
///     }
///
///     fn on_timer(
///         &mut self,
///         _at: Timestamp,
///         last: &mut Option<Timestamp>,
///         cx: &mut KeyedContext<Self>,
///     ) -> impl Routes<Silence> {
///         let name = cx.key().clone();
///         last.map(|last| WithTimestamp::new(last, Silence::Silent(name)))
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "routes lead nowhere unless they are returned"]
pub struct WithTimestamp<R> {
    at: Timestamp,
    routes: R,
}

impl<R> WithTimestamp<R> {
    /// Gives `routes` the timestamp `at`.
    pub const fn new(at: Timestamp, routes: R) -> Self {
        Self { at, routes }
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>> Routes<S> for WithTimestamp<R> {
    #[inline]
    fn route<C: Collect<S>>(
        self,
        _at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.routes.route(self.at, out)
    }
}
