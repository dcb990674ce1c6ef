use super::{Splitter, Tally};
use crate::error::StreamError;
use crate::time::{Mark, Timestamp};
use std::error::Error;

/// Where routes and marks go: lanes, destinations, or a test's list.
///
/// Operators are generic over it, so that the same state machine serves the futures runtime, the
/// wiring and a test.
pub trait Collect<S> {
    /// Takes one route; `at` is the record's timestamp, [`Timestamp::MIN`] if it has none.
    fn emit(&mut self, route: S, at: Timestamp);

    /// Takes a mark for every output.
    fn mark(&mut self, mark: Mark);

    /// The operator's part of the ledger.
    fn tally(&mut self) -> &mut Tally;

    /// Whether whoever takes the routes had better be asked how it is before more comes.
    #[inline]
    fn wants_rest(&self) -> bool {
        false
    }
}

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

    /// Emits the routes and says how many there were.
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError>;

    /// The routes as values, for unit tests of functions that return `impl Routes`.
    ///
    /// # Errors
    ///
    /// The error that the function returned.
    fn into_vec(self) -> Result<Vec<S>, StreamError>
    where
        Self: Sized,
    {
        let mut list = List { routes: Vec::new(), tally: Tally::default() };
        self.route(Timestamp::MIN, &mut list)?;
        Ok(list.routes)
    }
}

struct List<S> {
    routes: Vec<S>,
    tally: Tally,
}

impl<S> Collect<S> for List<S> {
    fn emit(&mut self, route: S, _at: Timestamp) {
        self.routes.push(route);
    }

    fn mark(&mut self, _mark: Mark) {}

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

impl<S: Splitter> Routes<S> for S {
    const SINGLE: bool = true;

    #[inline]
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError> {
        out.emit(self, at);
        Ok(1)
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>> Routes<S> for Option<R> {
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError> {
        match self {
            Some(routes) => routes.route(at, out),
            None => Ok(0),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>, E: Into<Box<dyn Error + Send + Sync>>> Routes<S> for Result<R, E> {
    const SINGLE: bool = R::SINGLE;

    #[inline]
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError> {
        match self {
            Ok(routes) => routes.route(at, out),
            Err(error) => Err(StreamError::failed(error)),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>> Routes<S> for Vec<R> {
    #[inline]
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError> {
        route_all(self, at, out)
    }
}

#[diagnostic::do_not_recommend]
impl<S, R: Routes<S>, const N: usize> Routes<S> for [R; N] {
    #[inline]
    fn route<C: Collect<S>>(self, at: Timestamp, out: &mut C) -> Result<usize, StreamError> {
        route_all(self, at, out)
    }
}

#[inline]
fn route_all<S, R: Routes<S>, C: Collect<S>>(
    routes: impl IntoIterator<Item = R>,
    at: Timestamp,
    out: &mut C,
) -> Result<usize, StreamError> {
    let mut count = 0;
    for routes in routes {
        match routes.route(at, out) {
            Ok(more) => count += more,
            Err(error) => {
                // The record counts as failed; what was emitted for it before is beside that.
                out.tally().extra += count as u64;
                return Err(error);
            }
        }
    }
    Ok(count)
}
