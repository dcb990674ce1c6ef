use super::{
    BoxSource, Drive, Driver, Fed, Feed, Hub, HubDriver, Intake, LedgerHandle, Port, Source, Typed,
};
use crate::error::StreamError;
use crate::operator::{Operator, Process, Processing, Split, SplitFn};
use crate::output::{Lane, OutputAt, Splitter};
use crate::time::{Mark, Timestamp};
use futures_core::{FusedStream, Stream};
use std::convert;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::vec;

/// A stream of records in which timestamps, watermarks and barriers travel along.
///
/// It is a [`futures::Stream`](futures_core::Stream) of the records alone, so it composes with
/// everything that takes one. The inherent [`for_each`](Self::for_each), [`fold`](Self::fold) and
/// [`for_each_chunk`](Self::for_each_chunk) take records in batches and are faster than the
/// methods of the same names on `StreamExt`, which they shadow.
///
/// The second parameter says what the stream reads. It is inferred, and [`boxed`](Self::boxed)
/// makes a plain `DataStream<T>` of any of them, for a struct's field or a function's signature.
///
/// # Errors
///
/// An error of the input or of a function ends the stream. The inherent methods return it,
/// [`results`](Self::results) delivers it as an item.
///
/// # Panics
///
/// As a plain `Stream` of records it has no other way to tell an error from the true end: polling
/// it panics with the error's text. Use one of the above where the input can fail. In a closure
/// that is the destination of a wiring the records just end: `run` returns the error.
pub struct DataStream<T, Src = BoxSource<T>>
where
    Src: Source<T>,
{
    /// `None` once the stream was taken.
    source: Option<Src>,
    name: &'static str,
    local: Local<T>,
    ended: bool,
    /// Stays behind when the stream is taken.
    ledger: Option<LedgerHandle>,
}

/// A chunk in the hands of its reader.
struct Local<T> {
    /// The records not yet taken. An iterator over what was a vector is the cheapest to take from:
    /// the front of a ring costs a third more of all that reading costs, and the end of a vector
    /// that was reversed a fifth.
    rest: vec::IntoIter<T>,
    /// Number of records that the chunk had.
    total: usize,
    /// Timestamps and marks of the whole chunk.
    lane: Lane<T>,
    marked: usize,
}

impl<T> Local<T> {
    fn new() -> Self {
        Self { rest: Vec::new().into_iter(), total: 0, lane: Lane::new(), marked: 0 }
    }

    fn is_empty(&self) -> bool {
        !self.has_record() && self.marked == self.lane.marks.len()
    }

    #[inline]
    fn has_record(&self) -> bool {
        !self.rest.as_slice().is_empty()
    }

    /// The records not yet taken, as a vector again.
    #[expect(clippy::map_identity, reason = "without it a chunk that was read in part is copied")]
    fn take_rest(&mut self) -> Vec<T> {
        // Collecting what a vector was made into and mapped reuses its memory.
        mem::take(&mut self.rest).map(convert::identity).collect()
    }

    /// Empties the chunk for the next one and lends it out as a lane.
    fn recycle(&mut self) -> &mut Lane<T> {
        self.lane.clear();
        let mut values = self.take_rest();
        if self.lane.values.capacity() == 0 {
            values.clear();
            self.lane.values = values;
        }
        self.total = 0;
        self.marked = 0;
        &mut self.lane
    }

    /// Takes up the chunk that was put into the lane.
    fn load(&mut self) {
        self.total = self.lane.values.len();
        if !(self.lane.times.is_empty() && self.lane.marks.is_empty()) {
            // One for each record, also for the last ones without.
            self.lane.times.resize(self.total, Timestamp::MIN);
        }
        self.rest = mem::take(&mut self.lane.values).into_iter();
    }

    /// Number of records taken so far.
    #[inline]
    fn taken(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Passes over all marks, for a reader that does not see them.
    #[inline]
    fn skip_marks(&mut self) {
        self.marked = self.lane.marks.len();
    }

    /// The mark that stands before the next record.
    #[inline]
    fn next_mark(&mut self) -> Option<Mark> {
        let &(at, mark) = self.lane.marks.get(self.marked)?;
        if at > self.taken() {
            return None;
        }
        self.marked += 1;
        Some(mark)
    }

    /// Moves what was not read to `into`.
    fn unload(&mut self, into: &mut Lane<T>) {
        while !self.is_empty() {
            if let Some(mark) = self.next_mark() {
                into.mark(mark);
            } else if let Some((value, at)) = self.next_record() {
                into.push(value, at);
            }
        }
    }

    #[inline]
    fn next_record(&mut self) -> Option<(T, Timestamp)> {
        let taken = self.taken();
        let value = self.rest.next()?;
        let at = self.lane.times.get(taken).copied().unwrap_or(Timestamp::MIN);
        Some((value, at))
    }

    /// Hands on what there is, from mark to mark, until `intake` asks to stop.
    #[inline(always)]
    fn feed<K: Intake<T>>(&mut self, intake: &mut K) -> ControlFlow<()> {
        if self.lane.times.is_empty() && self.lane.marks.is_empty() {
            for value in self.rest.by_ref() {
                intake.record(value, Timestamp::MIN)?;
            }
            return ControlFlow::Continue(());
        }
        loop {
            let taken = self.taken();
            let end = match self.lane.marks.get(self.marked) {
                Some(&(at, mark)) if at <= taken => {
                    self.marked += 1;
                    intake.mark(mark)?;
                    continue;
                }
                Some(&(at, _)) => at,
                None if taken == self.total => return ControlFlow::Continue(()),
                None => self.total,
            };
            for (at, value) in self.lane.times[taken..end].iter().zip(self.rest.by_ref()) {
                intake.record(value, *at)?;
            }
        }
    }
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// A stream that reads `source`.
    #[doc(hidden)]
    pub fn new(source: Src, name: &'static str) -> Self {
        Self { source: Some(source), name, local: Local::new(), ended: false, ledger: None }
    }

    /// Takes the stream out; what stays behind fails with [`StreamError::Taken`].
    #[doc(hidden)]
    #[must_use]
    pub fn take(&mut self) -> Self {
        self.ledger = self.ledger_handle();
        let source = self.source.take();
        let local = mem::replace(&mut self.local, Local::new());
        Self { source, name: self.name, local, ended: self.ended, ledger: None }
    }

    /// Reads the ledger of the operator whose output this is, also when the stream is gone.
    pub fn ledger_handle(&self) -> Option<LedgerHandle> {
        self.source.as_ref().map_or_else(|| self.ledger.clone(), Source::ledger)
    }

    /// The same stream, with a type that names only what it carries.
    #[must_use]
    pub fn boxed(mut self) -> DataStream<T>
    where
        T: Send + 'static,
        Src: Send + 'static,
    {
        let name = self.name;
        DataStream::new(BoxSource::new(self.take()), name)
    }

    /// Says that the records of this stream are not needed: they are counted as discarded.
    pub fn discard(mut self) {
        if let Some(source) = &mut self.source {
            source.discard();
        }
    }

    /// Asks for [`StreamError::Stalled`] where this stream would wait for ever because another
    /// output is full and nobody reads that one. Without it a warning is logged, and it waits.
    #[must_use]
    pub fn fail_on_stall(mut self) -> Self {
        if let Some(source) = &mut self.source {
            source.fail_on_stall();
        }
        self
    }

    /// Calls `f` with every record.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end.
    pub async fn for_each(mut self, mut f: impl FnMut(T)) -> Result<(), StreamError> {
        poll_fn(move |cx| self.poll_records(cx, &mut |value| f(value))).await
    }

    /// Folds every record into `accumulator`.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end.
    pub async fn fold<A>(
        mut self,
        mut accumulator: A,
        mut f: impl FnMut(&mut A, T),
    ) -> Result<A, StreamError> {
        poll_fn(|cx| self.poll_records(cx, &mut |value| f(&mut accumulator, value))).await?;
        Ok(accumulator)
    }

    #[inline]
    fn poll_records(
        &mut self,
        cx: &mut Context<'_>,
        f: &mut impl FnMut(T),
    ) -> Poll<Result<(), StreamError>> {
        self.local.rest.by_ref().for_each(&mut *f);
        match &mut self.source {
            Some(source) => source.poll_each(cx, self.local.recycle(), f),
            None => Poll::Ready(Err(StreamError::Taken { output: self.name })),
        }
    }

    /// Calls `f` with the records in batches, as they become ready.
    ///
    /// How many there are in a batch depends on how the tasks run; nothing else does.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end.
    pub async fn for_each_chunk(
        mut self,
        mut f: impl FnMut(vec::Drain<'_, T>),
    ) -> Result<(), StreamError> {
        while poll_fn(|cx| self.poll_local(cx)).await? {
            if self.local.has_record() {
                let mut values = self.local.take_rest();
                f(values.drain(..));
                self.local.lane.values = values;
            }
            self.local.skip_marks();
        }
        Ok(())
    }

    /// Every record as `Ok`, and the error that ended the stream, if there was one, as the last
    /// item.
    pub const fn results(self) -> Results<T, Src> {
        Results { stream: self, failed: false }
    }

    /// Every record with its timestamp, and the marks between them.
    pub const fn elements(self) -> Elements<T, Src> {
        Elements { stream: self, failed: false }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn has_record(&self) -> bool {
        self.local.has_record()
    }

    pub(super) fn next_value(&mut self) -> Option<T> {
        self.local.rest.next()
    }

    pub(super) fn skip_marks(&mut self) {
        self.local.skip_marks();
    }

    /// Makes sure that `local` holds a record or a mark; `false` at the end of the stream.
    #[inline]
    pub(super) fn poll_local(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, StreamError>> {
        if !self.local.is_empty() {
            return Poll::Ready(Ok(true));
        }
        self.refill(cx)
    }

    #[inline(never)]
    fn refill(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, StreamError>> {
        if self.ended {
            return Poll::Ready(Ok(false));
        }
        let Some(source) = &mut self.source else {
            return Poll::Ready(Err(StreamError::Taken { output: self.name }));
        };
        let more = ready!(source.poll_chunk(cx, self.local.recycle()));
        self.local.load();
        self.ended = matches!(more, Ok(false));
        Poll::Ready(more)
    }

    /// The next record or mark.
    fn poll_element(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Element<T>, StreamError>>> {
        match ready!(self.poll_local(cx)) {
            Ok(true) => {}
            Ok(false) => return Poll::Ready(None),
            Err(error) => return Poll::Ready(Some(Err(error))),
        }
        let local = &mut self.local;
        if let Some(mark) = local.next_mark() {
            return Poll::Ready(Some(Ok(Element::Mark(mark))));
        }
        let (value, at) = local.next_record().expect("neither a mark nor the end");
        Poll::Ready(Some(Ok(Element::Record { value, at: at.known() })))
    }

    /// Routes each record by `function`, with its timestamp and the watermark in the context.
    pub fn split_with<S, M, F>(
        self,
        function: F,
    ) -> OperatorStreams<DataFeed<T, Src>, Split<T, S, F, M>>
    where
        S: Splitter,
        F: SplitFn<T, S, M>,
    {
        self.drive(Split::new(function))
    }

    /// Routes each record by `function`, a [`Process`].
    pub fn process<P>(self, function: P) -> OperatorStreams<DataFeed<T, Src>, Processing<P>>
    where
        P: Process<In = T>,
    {
        self.drive(Processing::new(function))
    }

    /// Drives an operator with this stream.
    pub fn drive<Op>(self, operator: Op) -> OperatorStreams<DataFeed<T, Src>, Op>
    where
        Op: Operator<In = T>,
    {
        Hub::open(Drive::new(DataFeed(self), operator))
    }
}

impl<S: OutputAt<I>, D: Driver<S>, const I: usize> DataStream<S::Payload, Port<S, D, I>> {
    /// The port, with all that it had handed out and was not read; or the name if it was taken.
    pub(super) fn into_port(mut self) -> Result<Port<S, D, I>, &'static str> {
        let port = self.source.take().ok_or(self.name)?;
        let mut unread = Lane::new();
        self.local.unload(&mut unread);
        port.take_back(unread);
        Ok(port)
    }

    /// A future that drives the operator without reading, until the buffers are full.
    ///
    /// Readers drive as well; spawn this where the input must go on while all of them are busy.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end; readers get it too.
    ///
    /// # Panics
    ///
    /// If the stream was taken.
    pub fn driver(&self) -> HubDriver<S, D> {
        match &self.source {
            Some(port) => HubDriver::new(Arc::clone(port.hub())),
            None => raise(&StreamError::Taken { output: self.name }),
        }
    }

    pub(super) fn boxed_port(self) -> DataStream<S::Payload>
    where
        S: 'static,
        S::Lanes: Send,
        D: Send + 'static,
    {
        match self.into_port() {
            Ok(port) => DataStream::new(BoxSource::new(port), S::SPEC.name),
            Err(name) => DataStream::taken(name),
        }
    }
}

impl<T> DataStream<T> {
    fn taken(name: &'static str) -> Self {
        Self { source: None, name, local: Local::new(), ended: false, ledger: None }
    }
}

/// The streams of the operator `Op`, which `Fd` feeds.
pub type OperatorStreams<Fd, Op> =
    <<Op as Operator>::Out as Splitter>::Streams<Typed<Drive<Fd, Op>>>;

/// The streams of the operator `Op`, which `Fd` feeds, with a clock.
pub type ClockedStreams<Fd, Op, Ck> =
    <<Op as Operator>::Out as Splitter>::Streams<Typed<super::Clocked<Fd, Op, Ck>>>;

/// A stream's records and marks are an operator's input.
#[derive(Debug)]
pub struct DataFeed<T, Src: Source<T>>(pub(super) DataStream<T, Src>);

impl<T, Src: Source<T>> Feed for DataFeed<T, Src> {
    type Item = T;

    fn fail_on_stall(&mut self) {
        Source::fail_on_stall(&mut self.0);
    }

    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let stream = &mut self.0;
        loop {
            if stream.local.is_empty()
                && !stream.ended
                && let Some(source) = &mut stream.source
                && let Some(fed) = source.feed_into(cx, intake)
            {
                stream.ended = matches!(fed, Fed::End | Fed::Failed(_));
                return fed;
            }
            match stream.poll_local(cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Fed::End,
                Poll::Ready(Err(error)) => return Fed::Failed(error),
                Poll::Pending => return Fed::Pending,
            }
            if stream.local.feed(intake).is_break() {
                return Fed::More;
            }
        }
    }

    #[inline]
    fn resumes() -> bool {
        // The records of a chunk are taken one by one from where they stay.
        Src::resumes()
    }
}

/// A stream that was read in part is a source too: what its reader holds comes first.
impl<T, Src: Source<T>> Source<T> for DataStream<T, Src> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<T>,
    ) -> Poll<Result<bool, StreamError>> {
        if !self.local.is_empty() {
            self.local.unload(into);
            return Poll::Ready(Ok(true));
        }
        match &mut self.source {
            _ if self.ended => Poll::Ready(Ok(false)),
            Some(source) => {
                let more = ready!(source.poll_chunk(cx, into));
                self.ended = matches!(more, Ok(false));
                Poll::Ready(more)
            }
            None => Poll::Ready(Err(StreamError::Taken { output: self.name })),
        }
    }

    fn poll_each<F: FnMut(T)>(
        &mut self,
        cx: &mut Context<'_>,
        local: &mut Lane<T>,
        f: &mut F,
    ) -> Poll<Result<(), StreamError>> {
        self.local.rest.by_ref().for_each(&mut *f);
        match &mut self.source {
            Some(source) => source.poll_each(cx, local, f),
            None => Poll::Ready(Err(StreamError::Taken { output: self.name })),
        }
    }

    fn unread(&mut self, records: usize) {
        if let Some(source) = &mut self.source {
            source.unread(records);
        }
    }

    fn discard(&mut self) {
        if let Some(source) = &mut self.source {
            source.discard();
        }
    }

    fn fail_on_stall(&mut self) {
        if let Some(source) = &mut self.source {
            source.fail_on_stall();
        }
    }

    fn is_reported(&self) -> bool {
        self.source.as_ref().is_some_and(Source::is_reported)
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.ledger_handle()
    }
}

// Neither the source nor the records are ever pinned.
impl<T, Src: Source<T>> Unpin for DataStream<T, Src> {}

impl<T, Src: Source<T>> Stream for DataStream<T, Src> {
    type Item = T;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        loop {
            if let Some(value) = this.local.rest.next() {
                return Poll::Ready(Some(value));
            }
            // A plain reader does not see the marks.
            this.local.skip_marks();
            match ready!(this.refill(cx)) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(None),
                Err(_) if this.is_reported() => {
                    this.ended = true;
                    return Poll::Ready(None);
                }
                Err(error) => raise(&error),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let known = self.local.rest.len();
        (known, self.ended.then_some(known))
    }
}

impl<T, Src: Source<T>> FusedStream for DataStream<T, Src> {
    fn is_terminated(&self) -> bool {
        self.ended && !self.local.has_record()
    }
}

#[cold]
fn raise(error: &StreamError) -> ! {
    panic!("{error}")
}

impl<T, Src: Source<T>> Drop for DataStream<T, Src> {
    fn drop(&mut self) {
        let records = self.local.rest.len();
        if records > 0
            && let Some(source) = &mut self.source
        {
            source.unread(records);
        }
    }
}

impl<T, Src: Source<T>> fmt::Debug for DataStream<T, Src> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataStream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A record with its timestamp, or a mark.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Element, Mark};
///
/// let numbers = DataStream::from_elements(stream::iter([
///     Element::record('a', Timestamp::from_millis(7)),
///     Element::watermark(Timestamp::from_millis(9)),
/// ]));
/// let elements: Vec<_> = block_on(numbers.elements().map(Result::unwrap).collect());
/// assert_eq!(elements[1], Element::Mark(Mark::Watermark(Timestamp::from_millis(9))));
/// // The end of the input is the end of time.
/// assert_eq!(elements[2], Element::watermark(Timestamp::MAX));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<T> {
    /// A record.
    Record {
        /// The record.
        value: T,
        /// Its timestamp, if it has one.
        at: Option<Timestamp>,
    },
    /// A mark.
    Mark(Mark),
}

impl<T> Element<T> {
    /// A record with a timestamp.
    pub const fn record(value: T, at: Timestamp) -> Self {
        Self::Record { value, at: Some(at) }
    }

    /// A watermark.
    #[must_use]
    pub const fn watermark(at: Timestamp) -> Self {
        Self::Mark(Mark::Watermark(at))
    }
}

/// Stream for the [`results`](DataStream::results) method.
#[must_use = "streams do nothing unless polled"]
#[derive(Debug)]
pub struct Results<T, Src: Source<T>> {
    stream: DataStream<T, Src>,
    failed: bool,
}

impl<T, Src: Source<T>> Stream for Results<T, Src> {
    type Item = Result<T, StreamError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(value) = this.stream.local.rest.next() {
                return Poll::Ready(Some(Ok(value)));
            }
            if this.failed {
                return Poll::Ready(None);
            }
            this.stream.local.skip_marks();
            match ready!(this.stream.refill(cx)) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(None),
                Err(error) => {
                    this.failed = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

/// Stream for the [`elements`](DataStream::elements) method.
#[must_use = "streams do nothing unless polled"]
#[derive(Debug)]
pub struct Elements<T, Src: Source<T>> {
    stream: DataStream<T, Src>,
    failed: bool,
}

impl<T, Src: Source<T>> Stream for Elements<T, Src> {
    type Item = Result<Element<T>, StreamError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.failed {
            return Poll::Ready(None);
        }
        let element = ready!(this.stream.poll_element(cx));
        this.failed = matches!(element, Some(Err(_)));
        Poll::Ready(element)
    }
}

/// Feeds the elements of a stream: records with timestamps, and marks, as they come.
#[derive(Debug)]
pub struct ElementFeed<St>(pub(super) St);

impl<T, St: Stream<Item = Element<T>> + Unpin> Feed for ElementFeed<St> {
    type Item = T;

    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        loop {
            let stop = match Pin::new(&mut self.0).poll_next(cx) {
                Poll::Ready(Some(Element::Record { value, at })) => {
                    intake.record(value, at.unwrap_or(Timestamp::MIN))
                }
                Poll::Ready(Some(Element::Mark(mark))) => intake.mark(mark),
                Poll::Ready(None) => return Fed::End,
                Poll::Pending => return Fed::Pending,
            };
            if stop.is_break() {
                return Fed::More;
            }
        }
    }

    fn resumes() -> bool {
        true
    }
}
