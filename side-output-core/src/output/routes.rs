use super::{Account, Collect, Collector, Splitter};
use crate::error::StreamError;
use crate::time::{Mark, Timestamp};
use std::error::Error;

/// What a split function may return: the routes of one record.
///
/// The enum itself is the usual one. `Option` allows an explicit drop, which is counted; arrays
/// and `Vec` allow several routes; an `Err` ends the stream with that error at every reader. A
/// function that never routes says whose route it is that it does not return: `None::<Orders>`.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Words {
///     #[main]
///     Word(String),
/// }
///
/// fn split_line(line: &str) -> Vec<Words> {
///     line.split_whitespace().map(|word| Words::Word(word.to_owned())).collect()
/// }
///
/// let WordsStreams { word } = stream::iter(["to be", "", "or not"]).split_with(split_line);
/// assert_eq!(block_on(word.collect::<Vec<_>>()), ["to", "be", "or", "not"]);
/// ```
#[diagnostic::on_unimplemented(
    message = "a split function must evaluate to routes of `{S}`, not `{Self}`",
    label = "expected `{S}`, or an `Option`, array, `Vec` or `Result` of it",
    note = "a branch that ends in `;` evaluates to `()`; drop the `;` or write `return`"
)]
pub trait Routes<S> {
    /// Whether there is one route at most, and so nothing left to do once it is emitted.
    const SINGLE: bool = false;

    /// Emits the routes.
    ///
    /// # Errors
    ///
    /// The error that the function returned in place of a route.
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// The routes as values, for unit tests of functions that return `impl Routes`.
    ///
    /// # Errors
    ///
    /// The error that the function returned.
    fn into_vec(self) -> Result<Vec<S>, StreamError>
    where
        Self: Sized,
    {
        let (mut list, mut account) = (List(Vec::new()), Account::new());
        self.route(Timestamp::MIN, &mut Collector::new(&mut list, &mut account))?;
        Ok(list.0)
    }
}

struct List<S>(Vec<S>);

impl<S> Collect<S> for List<S> {
    fn emit(&mut self, route: S, _at: Timestamp) {
        self.0.push(route);
    }

    fn mark(&mut self, _mark: Mark) {}
}

impl<S: Splitter> Routes<S> for S {
    const SINGLE: bool = true;

    #[inline]
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        out.emit(self, at);
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>> Routes<S> for Option<R> {
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        match self {
            Some(routes) => routes.route(at, out),
            None => Ok(()),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>, E: Into<Box<dyn Error + Send + Sync>>> Routes<S> for Result<R, E> {
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        match self {
            Ok(routes) => routes.route(at, out),
            Err(error) => Err(StreamError::failed(error)),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>> Routes<S> for Vec<R> {
    #[inline]
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.into_iter().try_for_each(|routes| routes.route(at, out))
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>, const N: usize> Routes<S> for [R; N] {
    #[inline]
    fn route<C: Collect<S>>(
        self,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.into_iter().try_for_each(|routes| routes.route(at, out))
    }
}
