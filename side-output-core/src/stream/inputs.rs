//! Where streams begin: any stream of records, of results, or of records and marks.

use super::source::{CHUNK, TURNS};
use super::{BoxSource, DataStream, Element, Fed, Intake, Source};
use crate::error::StreamError;
use crate::time::Timestamp;
use futures_core::Stream;
use std::error::Error;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How many items one poll hands to an intake that never stops.
const SHARE: usize = CHUNK * TURNS;

/// Hands `take` the items of `stream` until it breaks, or `share` are taken.
#[inline(always)]
fn feed_items<St: Stream + Unpin>(
    stream: &mut St,
    cx: &mut Context<'_>,
    mut share: Option<usize>,
    mut take: impl FnMut(St::Item) -> ControlFlow<Fed>,
) -> Fed {
    loop {
        match Pin::new(&mut *stream).poll_next(cx) {
            Poll::Ready(Some(item)) => {
                if let ControlFlow::Break(fed) = take(item) {
                    return fed;
                }
            }
            Poll::Ready(None) => return Fed::End,
            Poll::Pending => return Fed::Pending,
        }
        if let Some(left) = &mut share {
            *left -= 1;
            if *left == 0 {
                return Fed::More;
            }
        }
    }
}

/// What becomes of the answer of an intake.
#[inline(always)]
fn stopped(flow: ControlFlow<()>) -> ControlFlow<Fed> {
    flow.map_break(|()| Fed::More)
}

/// The items of any stream, without timestamps or marks.
#[derive(Debug)]
pub struct FromStream<St>(pub(super) St);

impl<St: Stream + Unpin> Source<St::Item> for FromStream<St> {
    #[inline]
    fn feed<K: Intake<St::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let share = if K::STOPS { None } else { Some(SHARE) };
        feed_items(&mut self.0, cx, share, |value| stopped(intake.record(value, Timestamp::MIN)))
    }

    fn resumes() -> bool {
        true
    }
}

/// The values of a stream of results; its first error is the stream's error.
#[derive(Debug)]
pub struct FromTryStream<St>(pub(super) St);

impl<St, T, E> Source<T> for FromTryStream<St>
where
    St: Stream<Item = Result<T, E>> + Unpin,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let share = if K::STOPS { None } else { Some(SHARE) };
        feed_items(&mut self.0, cx, share, |result| match result {
            Ok(value) => stopped(intake.record(value, Timestamp::MIN)),
            Err(error) => ControlFlow::Break(Fed::Failed(StreamError::failed(error))),
        })
    }

    fn resumes() -> bool {
        true
    }
}

/// The elements of a stream: records with timestamps, and marks, as they come.
#[derive(Debug)]
pub struct FromElements<St>(pub(super) St);

impl<T, St: Stream<Item = Element<T>> + Unpin> Source<T> for FromElements<St> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        // Marks may be dropped on the way, and so never let the intake stop.
        feed_items(&mut self.0, cx, Some(SHARE), |element| element.hand_to(intake))
    }

    fn resumes() -> bool {
        true
    }
}

/// The elements of a stream of results; its first error is the stream's error.
#[derive(Debug)]
pub struct FromTryElements<St>(pub(super) St);

impl<St, T, E> Source<T> for FromTryElements<St>
where
    St: Stream<Item = Result<Element<T>, E>> + Unpin,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        feed_items(&mut self.0, cx, Some(SHARE), |element| match element {
            Ok(element) => element.hand_to(intake),
            Err(error) => ControlFlow::Break(Fed::Failed(StreamError::failed(error))),
        })
    }

    fn resumes() -> bool {
        true
    }
}

impl<T> Element<T> {
    #[inline]
    fn hand_to(self, intake: &mut impl Intake<T>) -> ControlFlow<Fed> {
        stopped(match self {
            Self::Record { value, at } => intake.record(value, at.unwrap_or(Timestamp::MIN)),
            Self::Mark(mark) => intake.mark(mark),
        })
    }
}

impl<T> DataStream<T> {
    /// The records of any stream, without timestamps.
    pub fn from_stream<St>(stream: St) -> Self
    where
        St: Stream<Item = T> + Send + 'static,
    {
        Self::from_source(FromStream(Box::pin(stream)))
    }

    /// The values of a stream of results; its first error ends the stream at every reader.
    pub fn from_try_stream<St, E>(stream: St) -> Self
    where
        St: Stream<Item = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        Self::from_source(FromTryStream(Box::pin(stream)))
    }

    /// Records with timestamps, and marks, exactly as they come.
    ///
    /// The marks are taken as they are: a watermark that goes back is not filtered here.
    pub fn from_elements<St>(elements: St) -> Self
    where
        St: Stream<Item = Element<T>> + Send + 'static,
    {
        Self::from_source(FromElements(Box::pin(elements)))
    }

    /// Records with timestamps, and marks, as [`from_elements`](Self::from_elements) takes them; the
    /// first error ends the stream at every reader.
    ///
    /// It is the inverse of [`elements`](Self::elements): what goes through both is the same stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::Element;
    /// use side_output::prelude::*;
    ///
    /// let at = Timestamp::from_millis(7);
    /// let input = stream::iter([Ok(Element::record('a', at)), Err("connection lost")]);
    /// let again = DataStream::from_try_elements(DataStream::from_try_elements(input).elements());
    /// let elements: Vec<_> = block_on(again.elements().collect());
    /// assert_eq!(*elements[0].as_ref().unwrap(), Element::record('a', at));
    /// let error = elements[1].as_ref().unwrap_err();
    /// assert_eq!(error.to_string(), "the stream failed: connection lost");
    /// ```
    pub fn from_try_elements<St, E>(elements: St) -> Self
    where
        St: Stream<Item = Result<Element<T>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        Self::from_source(FromTryElements(Box::pin(elements)))
    }

    fn from_source(source: impl Source<T> + Send + 'static) -> Self {
        Self::new(BoxSource::new(source), "stream")
    }
}
