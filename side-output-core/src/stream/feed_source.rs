use super::source::CHUNK;
use super::{
    BoxSource, DataStream, Element, ElementFeed, Fed, Feed, Intake, Source, StreamFeed,
    TryStreamFeed,
};
use crate::error::StreamError;
use crate::output::Lane;
use crate::time::{Mark, Timestamp};
use futures_core::Stream;
use std::error::Error;
use std::ops::ControlFlow;
use std::task::{Context, Poll};

/// Reads a feed without an operator in between.
#[derive(Debug)]
pub struct FeedSource<Fd> {
    feed: Fd,
    closed: bool,
    end: Option<Result<(), StreamError>>,
}

impl<Fd> FeedSource<Fd> {
    /// A source of what `feed` delivers.
    pub const fn new(feed: Fd) -> Self {
        Self { feed, closed: false, end: None }
    }
}

impl<Fd: Feed> Source<Fd::Item> for FeedSource<Fd> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<Fd::Item>,
    ) -> Poll<Result<bool, StreamError>> {
        if self.end.is_none() {
            let mut filling = Filling { lane: into, room: CHUNK, closed: &mut self.closed };
            match self.feed.feed(cx, &mut filling) {
                Fed::Pending if into.is_empty() => return Poll::Pending,
                Fed::More | Fed::Pending => {}
                Fed::End => {
                    self.end = Some(Ok(()));
                    if !self.closed {
                        into.mark(Mark::Watermark(Timestamp::MAX));
                    }
                }
                Fed::Failed(error) => self.end = Some(Err(error)),
            }
            if !into.is_empty() {
                return Poll::Ready(Ok(true));
            }
        }
        match &self.end {
            Some(end) => Poll::Ready(end.clone().map(|()| false)),
            None => Poll::Ready(Ok(true)),
        }
    }

    #[inline]
    fn feed_into<K: Intake<Fd::Item>>(
        &mut self,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> Option<Fed> {
        let fed = match &self.end {
            None => self.feed.feed(cx, intake),
            Some(Ok(())) => Fed::End,
            Some(Err(error)) => Fed::Failed(error.clone()),
        };
        match &fed {
            Fed::End => self.end = Some(Ok(())),
            Fed::Failed(error) => self.end = Some(Err(error.clone())),
            Fed::More | Fed::Pending => {}
        }
        Some(fed)
    }

    fn fail_on_stall(&mut self) {
        self.feed.fail_on_stall();
    }

    #[inline]
    fn resumes() -> bool {
        Fd::resumes()
    }
}

struct Filling<'a, T> {
    lane: &'a mut Lane<T>,
    room: usize,
    closed: &'a mut bool,
}

impl<T> Filling<'_, T> {
    #[inline(always)]
    fn go_on(&mut self) -> ControlFlow<()> {
        self.room -= 1;
        if self.room == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<T> Intake<T> for Filling<'_, T> {
    #[inline(always)]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.lane.push(value, at);
        self.go_on()
    }

    #[inline(always)]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        *self.closed |= mark == Mark::Watermark(Timestamp::MAX);
        self.lane.mark(mark);
        self.go_on()
    }
}

impl<T> DataStream<T> {
    /// The records of any stream, without timestamps.
    pub fn from_stream<St>(stream: St) -> Self
    where
        St: Stream<Item = T> + Send + 'static,
    {
        Self::from_feed(StreamFeed(Box::pin(stream)))
    }

    /// The values of a stream of results; its first error ends the stream at every reader.
    pub fn from_try_stream<St, E>(stream: St) -> Self
    where
        St: Stream<Item = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        Self::from_feed(TryStreamFeed(Box::pin(stream)))
    }

    /// Records with timestamps, and marks, exactly as they come.
    ///
    /// The marks are taken as they are: a watermark that goes back is not filtered here.
    pub fn from_elements<St>(elements: St) -> Self
    where
        St: Stream<Item = Element<T>> + Send + 'static,
    {
        Self::from_feed(ElementFeed(Box::pin(elements)))
    }

    fn from_feed(feed: impl Feed<Item = T> + Send + 'static) -> Self {
        Self::new(BoxSource::new(FeedSource::new(feed)), "stream")
    }
}
