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
        feed_items(&mut self.0, cx, Some(SHARE), |element| {
            stopped(match element {
                Element::Record { value, at } => intake.record(value, at.unwrap_or(Timestamp::MIN)),
                Element::Mark(mark) => intake.mark(mark),
            })
        })
    }

    fn resumes() -> bool {
        true
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

    fn from_source(source: impl Source<T> + Send + 'static) -> Self {
        Self::new(BoxSource::new(source), "stream")
    }
}
