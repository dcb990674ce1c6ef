use super::{DataStream, Driver, Fed, Intake, LedgerHandle, Port};
use crate::error::StreamError;
use crate::output::{Lane, OutputAt, Splitter};
use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};

/// Most records and marks in one chunk, and one turn of an operator. A multiple of a cache line's
/// worth of records, small enough for a chunk of ordinary records to stay in the first-level cache.
pub(crate) const CHUNK: usize = 512;

/// How many turns one poll may take before it lets other tasks run.
pub(crate) const TURNS: usize = 64;

/// After how many turns of one poll everybody who has something to read is woken, and after the
/// first one, for those who wait for a first record. Who has [much](AWAITED) to read is woken at
/// once. Not more often: to wake another thread costs more than a turn.
pub(crate) const WAKING: usize = 16;

/// How many records are worth a wake-up, unless a quarter of the lane is less.
pub(crate) const AWAITED: usize = CHUNK / 2;

/// What a [`DataStream`](crate::stream::DataStream) reads: chunks of records and marks.
pub trait Source<T> {
    /// Fills the empty `into` with what is ready; `false` at the true end of the stream.
    ///
    /// A chunk holds what is ready now, at least one record or mark.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<T>,
    ) -> Poll<Result<bool, StreamError>>;

    /// Hands every record to `f` until the end of the stream.
    ///
    /// `local` is a buffer that may hold records already.
    fn poll_each<F: FnMut(T)>(
        &mut self,
        cx: &mut Context<'_>,
        local: &mut Lane<T>,
        f: &mut F,
    ) -> Poll<Result<(), StreamError>>
    where
        Self: Sized,
    {
        local.values.drain(..).for_each(&mut *f);
        for _ in 0..TURNS {
            local.clear();
            match self.poll_chunk(cx, local) {
                // Before the turns are over: what stays in `local` is not kept.
                Poll::Ready(Ok(true)) => local.values.drain(..).for_each(&mut *f),
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands what is ready straight to an operator's intake; `None` if this source knows only
    /// chunks.
    fn feed_into<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Option<Fed>
    where
        Self: Sized,
    {
        let _ = (cx, intake);
        None
    }

    /// Whether [`feed_into`](Self::feed_into) can go on after a panic of the intake; so where it
    /// does nothing.
    #[must_use]
    fn resumes() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Says that the reader goes away without having used `records` of what it was handed.
    fn unread(&mut self, records: usize) {
        let _ = records;
    }

    /// Says that the reader goes away on purpose.
    fn discard(&mut self) {}

    /// Asks for an error instead of waiting for ever where another output is full and nobody
    /// reads it.
    fn fail_on_stall(&mut self) {}

    /// Whether the error of this source is returned elsewhere, as that of a wiring's input is by
    /// `run`: its plain reader then comes to an end of the records, and need not panic.
    fn is_reported(&self) -> bool {
        false
    }

    /// Reads the ledger of the operator behind this source, if there is one.
    fn ledger(&self) -> Option<LedgerHandle> {
        None
    }
}

/// Any source of `T`, boxed.
pub struct BoxSource<T>(Box<dyn Source<T> + Send>);

impl<T> BoxSource<T> {
    /// Boxes `source`.
    pub fn new(source: impl Source<T> + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

impl<T> Source<T> for BoxSource<T> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<T>,
    ) -> Poll<Result<bool, StreamError>> {
        self.0.poll_chunk(cx, into)
    }

    fn unread(&mut self, records: usize) {
        self.0.unread(records);
    }

    fn discard(&mut self) {
        self.0.discard();
    }

    fn fail_on_stall(&mut self) {
        self.0.fail_on_stall();
    }

    fn is_reported(&self) -> bool {
        self.0.is_reported()
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.0.ledger()
    }

    fn resumes() -> bool {
        true
    }
}

impl<T> fmt::Debug for BoxSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxSource")
    }
}

/// How the streams of a splitter hold what they read: with its type, or boxed.
pub trait Outlet<S: Splitter> {
    /// What the stream of output `I` reads.
    type Source<const I: usize>: Source<<S as OutputAt<I>>::Payload>
    where
        S: OutputAt<I>;
}

/// An outlet whose streams can be boxed: all there is behind them may leave for another thread.
pub trait SendOutlet<S: Splitter>: Outlet<S> {
    /// The stream with a type that names only what it carries.
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>;
}

/// Streams that know the type of their operator: records reach `for_each` without a detour.
#[derive(Debug)]
pub struct Typed<D>(PhantomData<fn() -> D>);

impl<S: Splitter, D: Driver<S>> Outlet<S> for Typed<D> {
    type Source<const I: usize>
        = Port<S, D, I>
    where
        S: OutputAt<I>;
}

impl<S, D> SendOutlet<S> for Typed<D>
where
    S: Splitter + 'static,
    S::Lanes: Send,
    D: Driver<S> + Send + 'static,
{
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>,
    {
        stream.boxed_port()
    }
}

/// Streams whose type names only what they carry.
#[derive(Debug)]
#[non_exhaustive]
pub struct Boxed;

impl<S: Splitter> Outlet<S> for Boxed {
    type Source<const I: usize>
        = BoxSource<<S as OutputAt<I>>::Payload>
    where
        S: OutputAt<I>;
}

impl<S: Splitter> SendOutlet<S> for Boxed {
    fn boxed<const I: usize>(
        stream: DataStream<S::Payload, Self::Source<I>>,
    ) -> DataStream<S::Payload>
    where
        S: OutputAt<I>,
    {
        stream
    }
}
