use super::saving::ByPlace;
use super::source::{CHUNK, TURNS};
use super::{
    Behind, BoxSource, Drive, Driver, Fed, Hub, HubDriver, Intake, JobLink, LedgerHandle, Naming,
    Port, Saving, Source, Typed, Unnamed,
};
use crate::error::StreamError;
use crate::operator::{Operator, Process, Processing, Split, SplitFn};
use crate::output::{OutputSpec, Overflow};
use crate::stream::{StreamAt, Streamed};
use crate::time::{Mark, Timestamp};
use futures_core::{FusedStream, Stream};
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::Location;
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
/// [`results`](Self::results) delivers it as an item, and after it [`error`](Self::error) has it.
///
/// A plain `Stream` of records has no room for an error: the records end there as well. That an
/// error ended them is logged, unless `run` returns it; [`records`](Self::records) is for the reader
/// who is content with the records, and is not logged. In any case the error is in the
/// [`Ledger`](crate::output::Ledger) of the operator.
///
/// # Panics
///
/// As a plain `Stream`, where it had been taken before: that is a mistake of the program, and no
/// end of the input.
pub struct DataStream<T, Src = BoxSource<T>>
where
    Src: Source<T>,
{
    /// `None` once the stream was taken.
    source: Option<Src>,
    name: &'static str,
    /// How it ended.
    end: Option<Result<(), StreamError>>,
    /// Stays behind when the stream is taken.
    ledger: Option<LedgerHandle>,
    records: PhantomData<fn() -> T>,
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// A stream that reads `source`.
    #[doc(hidden)]
    pub fn new(source: Src, name: &'static str) -> Self {
        Self { source: Some(source), name, end: None, ledger: None, records: PhantomData }
    }

    /// Takes the stream out; what stays behind fails with [`StreamError::Taken`].
    #[doc(hidden)]
    #[must_use]
    pub fn take(&mut self) -> Self {
        self.ledger = self.ledger_handle();
        let source = self.source.take();
        Self { source, name: self.name, end: self.end.clone(), ledger: None, records: PhantomData }
    }

    /// Reads the ledger of the operator whose output this is, also when the stream is gone.
    pub fn ledger_handle(&self) -> Option<LedgerHandle> {
        self.source.as_ref().map_or_else(|| self.ledger.clone(), Source::ledger)
    }

    /// The error that ended the stream before its true end, once a reader has met it.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    ///
    /// let mut lines = DataStream::from_try_stream(stream::iter([Ok("to be"), Err("unplugged")]));
    /// block_on(async {
    ///     while let Some(line) = lines.next().await {
    ///         assert_eq!(line, "to be");
    ///     }
    /// });
    /// assert_eq!(lines.error().unwrap().to_string(), "the stream failed: unplugged");
    /// ```
    pub const fn error(&self) -> Option<&StreamError> {
        match &self.end {
            Some(Err(error)) => Some(error),
            _ => None,
        }
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
    pub async fn for_each(mut self, f: impl FnMut(T)) -> Result<(), StreamError> {
        let mut calling = Calling(f);
        poll_fn(move |cx| self.poll_into(cx, &mut calling)).await
    }

    /// Folds every record into `accumulator`.
    ///
    /// # Errors
    ///
    /// The error that ended the stream before its true end.
    pub async fn fold<A>(
        self,
        mut accumulator: A,
        mut f: impl FnMut(&mut A, T),
    ) -> Result<A, StreamError> {
        self.for_each(|value| f(&mut accumulator, value)).await?;
        Ok(accumulator)
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
        let mut batch = Vec::new();
        poll_fn(move |cx| {
            for _ in 0..TURNS {
                let fed = self.feed(cx, &mut Batching(&mut batch));
                if !batch.is_empty() {
                    f(batch.drain(..));
                }
                match fed {
                    Fed::More => {}
                    fed => return poll_of(fed, cx),
                }
            }
            poll_of(Fed::More, cx)
        })
        .await
    }

    /// Hands everything to an intake, up to the end.
    #[inline]
    fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        intake: &mut impl Intake<T>,
    ) -> Poll<Result<(), StreamError>> {
        let fed = self.feed(cx, intake);
        poll_of(fed, cx)
    }

    /// The next record; none at the true end.
    #[inline]
    pub(super) fn poll_record(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<T>, StreamError>> {
        if let Some(value) = self.pop() {
            return Poll::Ready(Ok(Some(value)));
        }
        self.poll_more(cx)
    }

    #[inline(never)]
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, StreamError>> {
        let mut one = One(None);
        // What came may have been marks alone.
        for _ in 0..TURNS {
            let fed = self.feed(cx, &mut one);
            if let Some(value) = one.0 {
                return Poll::Ready(Ok(Some(value)));
            }
            if !matches!(fed, Fed::More) {
                return poll_of(fed, cx).map_ok(|()| None);
            }
        }
        poll_of(Fed::More, cx).map_ok(|()| None)
    }

    /// What a plain reader gets when it has nothing in hand. Not inlined: what is between two records
    /// of a chunk must stay short.
    #[inline(never)]
    fn poll_plain(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let ended = self.end.is_some();
        Poll::Ready(ready!(self.poll_more(cx)).unwrap_or_else(|error| {
            match error {
                StreamError::Taken { .. } => raise(&error),
                // Somebody asked for it.
                StreamError::Stopped => {}
                _ if ended || self.is_reported() => {}
                _ => warn_of_error(self.name, &error),
            }
            None
        }))
    }

    /// Every record as `Ok`, and the error that ended the stream, if there was one, as the last
    /// item.
    pub const fn results(self) -> Results<T, Src> {
        Results { stream: self, ended: false }
    }

    /// Every record with its timestamp, and the marks between them.
    pub const fn elements(self) -> Elements<T, Src> {
        Elements { stream: self, ended: false, closed: false }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Routes each record by `function`, with its timestamp and the watermark in the context.
    #[track_caller]
    pub fn split_with<S, M, F>(self, function: F) -> OperatorStreams<Self, Split<T, S, F, M>>
    where
        S: Streamed,
        F: SplitFn<T, S, M>,
    {
        open(self, Split::new(function), ByPlace, Location::caller())
    }

    /// Routes each record by `function`, a [`Process`].
    #[track_caller]
    pub fn process<P>(self, function: P) -> OperatorStreams<Self, Processing<P>>
    where
        P: Process<In = T, Out: Streamed>,
    {
        open(self, Processing::new(function), ByPlace, Location::caller())
    }

    /// Drives an operator with this stream.
    #[track_caller]
    pub fn drive<Op>(self, operator: Op) -> OperatorStreams<Self, Op>
    where
        Op: Operator<In = T, Out: Streamed>,
    {
        open(self, operator, Unnamed, Location::caller())
    }
}

/// The streams of an operator, whose state has this name.
pub(super) fn open<Src, Op, N>(
    source: Src,
    mut operator: Op,
    name: N,
    at: &'static Location<'static>,
) -> OperatorStreams<Src, Op>
where
    Src: Source<Op::In>,
    Op: Operator<Out: Streamed>,
    N: Naming<Op>,
{
    let saving = name.tie(source.job(), &mut operator, at);
    open_saved(source, operator, saving, at)
}

/// The same, of an operator that is tied to its job already.
pub(super) fn open_saved<Src, Op>(
    source: Src,
    operator: Op,
    saving: Saving<Op>,
    at: &'static Location<'static>,
) -> OperatorStreams<Src, Op>
where
    Src: Source<Op::In>,
    Op: Operator<Out: Streamed>,
{
    Hub::open_at(Drive::saved(source, operator, saving), at)
}

impl<S: StreamAt<I>, D: Driver<S>, const I: usize> DataStream<S::Payload, Port<S, D, I>> {
    /// The port, or the name if it was taken.
    pub(super) fn into_port(mut self) -> Result<Port<S, D, I>, &'static str> {
        self.source.take().ok_or(self.name)
    }

    /// Sets how many records the buffer of this output holds, whatever its declaration says.
    ///
    /// It is a method of the output itself: call it before the stream is mapped, boxed or wired.
    /// What the buffer holds already stays there, until the next record comes.
    ///
    /// # Examples
    ///
    /// The outputs that the library declares have 1024 records and [`Overflow::Block`]. Late records
    /// that nobody waits for need not hold up the results:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    /// use side_output::{Count, Overflow};
    /// use std::time::Duration;
    ///
    /// let mut streams = stream::iter([1, 30, 2, 3, 4])
    ///     .assign_timestamps(|n| Timestamp::from_secs(*n), Watermarks::monotonous())
    ///     .key_by(|_| ())
    ///     .window(Tumbling::of(Duration::from_secs(10)))
    ///     .side_output_late_data()
    ///     .aggregate(Count::new());
    /// streams.late = streams.late.capacity(2).overflow(Overflow::DropOldest);
    ///
    /// let WindowStreams { results, late } = streams;
    /// block_on(results.for_each(drop))?;
    /// let late = block_on(late.fold(Vec::new(), |all, late| all.push(late.value)))?;
    /// assert_eq!(late, [3, 4]);
    /// # Ok::<(), StreamError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    #[must_use]
    #[track_caller]
    pub fn capacity(self, capacity: usize) -> Self {
        self.declare(|spec| spec.capacity(capacity))
    }

    /// Sets what happens when the buffer of this output is full, whatever its declaration says.
    ///
    /// Like [`capacity`](Self::capacity), it is a method of the output itself.
    #[must_use]
    pub fn overflow(self, overflow: Overflow) -> Self {
        self.declare(|spec| spec.overflow(overflow))
    }

    /// Changes the declaration of this output.
    #[track_caller]
    fn declare(self, change: impl FnOnce(OutputSpec) -> OutputSpec) -> Self {
        if let Some(port) = &self.source {
            port.hub().declare::<I>(change(port.hub().spec::<I>()));
        }
        self
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
            Ok(port) => DataStream::new(BoxSource::from_fill(port.into_output()), S::SPEC.name),
            Err(name) => DataStream::taken(name),
        }
    }
}

impl<T> DataStream<T> {
    fn taken(name: &'static str) -> Self {
        Self { source: None, name, end: None, ledger: None, records: PhantomData }
    }
}

/// The streams of the operator `Op`, which reads `Src`.
pub type OperatorStreams<Src, Op> =
    <<Op as Operator>::Out as Streamed>::Streams<Typed<Drive<Src, Op>>>;

/// The streams of the operator `Op`, which reads `Src`, with a clock.
pub type ClockedStreams<Src, Op, Ck> =
    <<Op as Operator>::Out as Streamed>::Streams<Typed<super::Clocked<Src, Op, Ck>>>;

impl<T, Src: Source<T>> Source<T> for DataStream<T, Src> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        if let Some(end) = &self.end {
            return Fed::from(end.clone());
        }
        let Some(source) = &mut self.source else {
            return Fed::Failed(StreamError::Taken { output: self.name });
        };
        let fed = source.feed(cx, intake);
        match &fed {
            Fed::More | Fed::Pending => {}
            Fed::End => self.end = Some(Ok(())),
            Fed::Failed(error) => self.end = Some(Err(error.clone())),
        }
        fed
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        match &mut self.source {
            Some(source) => source.pop(),
            None => None,
        }
    }

    #[inline]
    fn resumes() -> bool {
        Src::resumes()
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

    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        self.source.as_mut().and_then(Source::take_inputs)
    }

    fn is_reported(&self) -> bool {
        self.source.as_ref().is_some_and(Source::is_reported)
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.ledger_handle()
    }

    fn job(&self) -> Option<JobLink> {
        self.source.as_ref().and_then(Source::job)
    }

    fn behind(&self, behind: &mut Behind) {
        if let Some(source) = &self.source {
            source.behind(behind);
        }
    }
}

/// What a reader's poll comes to when there was no record for it.
#[inline]
fn poll_of(fed: Fed, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
    match fed {
        Fed::More => {
            // It has had its share of this poll.
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Fed::Pending => Poll::Pending,
        Fed::End => Poll::Ready(Ok(())),
        Fed::Failed(error) => Poll::Ready(Err(error)),
    }
}

/// Calls a function with every record.
struct Calling<F>(F);

impl<T, F: FnMut(T)> Intake<T> for Calling<F> {
    const STOPS: bool = false;

    #[inline(always)]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        (self.0)(value);
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn mark(&mut self, _mark: Mark) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Takes one record, and passes over the marks before it.
struct One<T>(Option<T>);

impl<T> Intake<T> for One<T> {
    #[inline(always)]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        self.0 = Some(value);
        ControlFlow::Break(())
    }

    #[inline(always)]
    fn mark(&mut self, _mark: Mark) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Takes a record or a mark.
struct OneElement<T>(Option<Element<T>>);

impl<T> Intake<T> for OneElement<T> {
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.0 = Some(Element::Record { value, at: at.known() });
        ControlFlow::Break(())
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.0 = Some(Element::Mark(mark));
        ControlFlow::Break(())
    }
}

/// Takes a batch of records.
struct Batching<'a, T>(&'a mut Vec<T>);

impl<T> Intake<T> for Batching<'_, T> {
    #[inline(always)]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        self.0.push(value);
        if self.0.len() < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    #[inline(always)]
    fn mark(&mut self, _mark: Mark) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

// Neither the source nor the records are ever pinned.
impl<T, Src: Source<T>> Unpin for DataStream<T, Src> {}

impl<T, Src: Source<T>> Stream for DataStream<T, Src> {
    type Item = T;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if let Some(value) = this.pop() {
            return Poll::Ready(Some(value));
        }
        this.poll_plain(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.end.is_some().then_some(0))
    }
}

impl<T, Src: Source<T>> FusedStream for DataStream<T, Src> {
    fn is_terminated(&self) -> bool {
        self.end.is_some()
    }
}

/// Its reader may take the error for the true end.
#[cold]
fn warn_of_error(stream: &'static str, error: &StreamError) {
    tracing::error!(stream, %error, "a stream that is read as plain records ended in an error");
}

#[cold]
fn raise(error: &StreamError) -> ! {
    panic!("{error}")
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
    ended: bool,
}

impl<T, Src: Source<T>> Stream for Results<T, Src> {
    type Item = Result<T, StreamError>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(value) = this.stream.pop() {
            return Poll::Ready(Some(Ok(value)));
        }
        let result = ready!(this.stream.poll_more(cx)).transpose();
        this.ended = !matches!(result, Some(Ok(_)));
        Poll::Ready(result)
    }
}

impl<T, Src: Source<T>> FusedStream for Results<T, Src> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

/// Stream for the [`elements`](DataStream::elements) method.
#[must_use = "streams do nothing unless polled"]
#[derive(Debug)]
pub struct Elements<T, Src: Source<T>> {
    stream: DataStream<T, Src>,
    ended: bool,
    /// The last watermark has come.
    closed: bool,
}

impl<T, Src: Source<T>> Stream for Elements<T, Src> {
    type Item = Result<Element<T>, StreamError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let last = Element::Mark(Mark::Watermark(Timestamp::MAX));
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        let mut one = OneElement(None);
        let fed = this.stream.feed(cx, &mut one);
        if let Some(element) = one.0 {
            this.closed |= matches!(element, Element::Mark(Mark::Watermark(Timestamp::MAX)));
            return Poll::Ready(Some(Ok(element)));
        }
        let end = ready!(poll_of(fed, cx));
        this.ended = true;
        Poll::Ready(match end {
            // The end of the input is the end of time.
            Ok(()) => (!this.closed).then_some(Ok(last)),
            Err(error) => Some(Err(error)),
        })
    }
}

impl<T, Src: Source<T>> FusedStream for Elements<T, Src> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}
