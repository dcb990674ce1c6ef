use crate::error::StreamError;
use crate::output::{OutputSpec, Overflow};
use crate::stream::board::PortState;
use crate::stream::driver::Noting;
use crate::stream::{Lane, LaneItem, Streamed};
use crate::sync::{Shelter, contain};
use crate::time::{Mark, Timestamp};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

/// What became of the records that a destination was handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed on, for good.
    pub delivered: u64,
    /// Waiting, or accepted and not flushed.
    pub buffered: u64,
    /// Of those buffered: accepted and not flushed.
    pub accepted: u64,
    /// Dropped by the overflow policy.
    pub dropped: u64,
    /// Discarded.
    pub discarded: u64,
}

/// What the input of a wiring is doing while a destination is polled.
#[derive(Clone, Copy, Debug)]
pub enum InputState<'a> {
    /// More records come at once.
    Ready,
    /// No more come for now: what can be flushed is to be flushed.
    Pending,
    /// No more come at all, and this is why: everything is to be moved on and closed.
    Ended(&'a Result<(), StreamError>),
}

/// Where the records of one wired output go.
///
/// The error of one destination, or its panic, ends the run. It is polled on like the others until
/// it is ready, so what has failed in there must not be touched again, and is ready at once.
pub trait Destination<T> {
    /// Whether it can ever keep the splitter waiting.
    ///
    /// Where it cannot, the waiting path is not even compiled.
    const WAITS: bool;

    /// Takes a record; true if it must be polled before it accepts more.
    fn push(&mut self, value: T, at: Timestamp) -> bool;

    /// Takes a mark.
    fn mark(&mut self, mark: Mark) {
        _ = mark;
    }

    /// Number of records that wait here and count against the capacity.
    fn load(&self) -> usize {
        0
    }

    /// Keeps at most `capacity` waiting records, dropping by the policy.
    fn trim(&mut self, capacity: usize, overflow: Overflow) {
        _ = (capacity, overflow);
    }

    /// Moves on what waits. After the end of the input it is polled until it is ready.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        _ = (cx, input);
        Poll::Ready(Ok(()))
    }

    /// Gives up: what is buffered is discarded, and `error` is why. It is not polled again.
    fn cancel(&mut self, error: &StreamError) {
        _ = error;
    }

    /// What became of the `routed` records that were pushed. Of a record at which `push` panicked
    /// nothing became.
    fn sum(&self, routed: u64) -> Counts;
}

/// What can be given to an output of a wiring: a `Sink`, a closure from the output's stream to a
/// future, [`each`], or [`discard`].
///
/// A closure says the type of its stream: `|stream: DataStream<Order>| stream.for_each(…)`; or it is
/// given to the method of the output that ends in `_with`, which says it. What it changes outside it
/// holds as a reference of its own, which `move` closures take along:
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Numbers {
///     #[main]
///     Any(u32),
/// }
///
/// let mut sum = 0;
/// let total = &mut sum;
/// block_on(
///     stream::iter([1, 2])
///         .split_with(Numbers::Any)
///         .wire()
///         .any_with(move |stream| stream.for_each(move |n| *total += n))
///         .run(),
/// )?;
/// assert_eq!(sum, 3);
/// # Ok::<(), StreamError>(())
/// ```
///
/// A sender of a `futures` channel is a `Sink`; one of a `tokio` channel becomes one by
/// `tokio_util::sync::PollSender`.
///
/// `M` tells the kinds apart; it is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a destination for records of type `{T}`",
    label = "expected a `Sink<{T}>`, `each(|record| …)`, a closure \
             `|stream: DataStream<{T}>| future` or `discard()`",
    note = "its error, if it may fail, must be one: `E: Into<Box<dyn Error + Send + Sync>>`"
)]
pub trait IntoDestination<T, M> {
    /// The destination.
    type Destination: Destination<T>;

    /// Makes the destination of the output `spec`.
    fn into_destination(self, spec: OutputSpec) -> Self::Destination;
}

/// Marks what is a destination itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct Itself;

impl<T, K: Destination<T>> IntoDestination<T, Itself> for K {
    type Destination = K;

    fn into_destination(self, _spec: OutputSpec) -> K {
        self
    }
}

/// Discards every record, and counts it.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Numbers {
///     #[main]
///     Small(u32),
///     Large(u32),
/// }
///
/// let mut small = Vec::new();
/// let ledger = block_on(
///     stream::iter([1, 1000, 2])
///         .split_with(|n: u32| if n < 10 { Numbers::Small(n) } else { Numbers::Large(n) })
///         .wire()
///         .small(&mut small)
///         .large(discard())
///         .run(),
/// )?;
/// assert_eq!(small, [1, 2]);
/// assert_eq!(ledger["large"].discarded, 1);
/// # Ok::<(), StreamError>(())
/// ```
#[must_use]
pub const fn discard() -> Discard {
    Discard
}

/// Destination for the [`discard`] function.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Discard;

impl<T> Destination<T> for Discard {
    const WAITS: bool = false;

    #[inline]
    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        drop(value);
        false
    }

    fn sum(&self, routed: u64) -> Counts {
        Counts { discarded: routed, ..Counts::default() }
    }
}

/// Calls `f` with every record, without ever waiting: the fastest destination.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Numbers {
///     Even(u64),
///     Odd(u64),
/// }
///
/// let (mut even, mut odd) = (0, 0);
/// block_on(
///     stream::iter(0..10)
///         .split_with(|n: u64| if n % 2 == 0 { Numbers::Even(n) } else { Numbers::Odd(n) })
///         .wire()
///         .even(each(|n| even += n))
///         .odd(each(|n| odd += n))
///         .run(),
/// )?;
/// assert_eq!((even, odd), (20, 25));
/// # Ok::<(), StreamError>(())
/// ```
pub const fn each<T, F: FnMut(T)>(f: F) -> Each<T, F> {
    Each { f, values: PhantomData }
}

/// Destination for the [`each`] function.
pub struct Each<T, F> {
    f: F,
    values: PhantomData<fn(T)>,
}

impl<T, F: FnMut(T)> Destination<T> for Each<T, F> {
    const WAITS: bool = false;

    #[inline]
    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        (self.f)(value);
        false
    }

    fn sum(&self, routed: u64) -> Counts {
        Counts { delivered: routed, ..Counts::default() }
    }
}

impl<T, F> fmt::Debug for Each<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}

/// Calls `f` with every record, as [`each`] does; its first error ends the run.
///
/// Records that come after the error in the same turn are dropped, and counted as discarded.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::try_each;
/// use std::io::Write;
///
/// #[splitter]
/// enum Lines {
///     #[main]
///     Line(String),
/// }
///
/// let mut file = Vec::new();
/// block_on(
///     stream::iter(["to be"])
///         .split_with(|line: &str| Lines::Line(line.to_owned()))
///         .wire()
///         .line(try_each(|line| writeln!(file, "{line}")))
///         .run(),
/// )?;
/// assert_eq!(file, b"to be\n");
/// # Ok::<(), StreamError>(())
/// ```
pub const fn try_each<T, E, F: FnMut(T) -> Result<(), E>>(f: F) -> TryEach<T, E, F> {
    TryEach { f, error: None, delivered: 0, values: PhantomData }
}

/// Destination for the [`try_each`] function.
pub struct TryEach<T, E, F> {
    f: F,
    error: Option<E>,
    delivered: u64,
    values: PhantomData<fn(T)>,
}

/// Marks closures that may fail.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntoTrying;

#[diagnostic::do_not_recommend]
impl<T, E, F> IntoDestination<T, IntoTrying> for TryEach<T, E, F>
where
    E: Into<Box<dyn Error + Send + Sync>>,
    F: FnMut(T) -> Result<(), E>,
{
    type Destination = Trying<T, E, F>;

    fn into_destination(self, spec: OutputSpec) -> Trying<T, E, F> {
        Trying { each: self, output: spec.name }
    }
}

/// A [`TryEach`] that knows the name of its output.
#[derive(Debug)]
pub struct Trying<T, E, F> {
    each: TryEach<T, E, F>,
    output: &'static str,
}

impl<T, E, F> Destination<T> for Trying<T, E, F>
where
    E: Into<Box<dyn Error + Send + Sync>>,
    F: FnMut(T) -> Result<(), E>,
{
    // It never has the splitter wait, but it must be asked whether it failed.
    const WAITS: bool = true;

    #[inline]
    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        if self.each.error.is_none() {
            match (self.each.f)(value) {
                Ok(()) => self.each.delivered += 1,
                Err(error) => self.each.error = Some(error),
            }
        }
        self.each.error.is_some()
    }

    fn poll(
        &mut self,
        _cx: &mut Context<'_>,
        _input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        Poll::Ready(match self.each.error.take() {
            Some(error) => Err(StreamError::destination(self.output, error)),
            None => Ok(()),
        })
    }

    fn sum(&self, routed: u64) -> Counts {
        let delivered = self.each.delivered;
        Counts { delivered, discarded: routed - delivered, ..Counts::default() }
    }
}

impl<T, E, F> fmt::Debug for TryEach<T, E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryEach").field("delivered", &self.delivered).finish_non_exhaustive()
    }
}

/// The destination of every output of `S`.
pub trait Destinations<S: Streamed> {
    /// Hands a record to the destination of its output; true if that must be polled before it
    /// accepts more.
    fn push(&mut self, route: S, at: Timestamp) -> bool;

    /// Hands over what waits in lanes, from before the wiring.
    fn take_lanes(&mut self, lanes: &mut S::Lanes);

    /// Shows every destination to `visitor`.
    fn visit<V: DestinationVisitor>(&mut self, visitor: &mut V);
}

/// Something to do with each destination.
pub trait DestinationVisitor {
    /// Called for the destination of each output.
    fn line<T, K: Destination<T>>(&mut self, line: &mut Line<T, K>);
}

/// An output with its destination.
pub struct Line<T, K> {
    pub(super) spec: OutputSpec,
    routed: u64,
    /// What was routed at the last report.
    reported: u64,
    destination: K,
    /// It panicked at the last record.
    unwound: bool,
    /// It closed after the end of the input, or was given up.
    done: bool,
    /// Delivered, and dropped and discarded, before the wiring.
    before: u64,
    lost: (u64, u64),
    values: PhantomData<fn(T)>,
}

impl<T, K: Destination<T>> Line<T, K> {
    /// Leads the output that is declared as `spec` to `destination`.
    #[doc(hidden)]
    pub fn new<M>(
        spec: OutputSpec,
        destination: impl IntoDestination<T, M, Destination = K>,
    ) -> Self {
        Self {
            spec,
            routed: 0,
            // The first one has what the readers before the wiring left.
            reported: u64::MAX,
            destination: destination.into_destination(spec),
            unwound: false,
            done: false,
            before: 0,
            lost: (0, 0),
            values: PhantomData,
        }
    }

    /// Hands a record over.
    #[inline(always)]
    pub fn push(&mut self, value: T, at: Timestamp) -> bool {
        self.routed += 1;
        // Its panic goes through the operator: to catch it here would cost something each time.
        let noting = Noting::new(&mut self.unwound);
        let full = self.destination.push(value, at);
        noting.disarm();
        full
    }

    #[inline]
    pub(super) fn mark(&mut self, mark: Mark) {
        self.destination.mark(mark);
    }

    /// Hands over what waits in a lane, with its marks. If the destination panics, the rest is
    /// discarded before the panic goes on.
    pub fn take_lane(&mut self, lane: &mut Lane<T>) {
        let mut shelter = Shelter::default();
        lane.take_all(|taken| {
            let failed = shelter.is_hit();
            // Each by itself, since the rest may panic when it is dropped.
            shelter.run(|| match taken {
                _ if failed => drop(taken),
                LaneItem::Record(value, at) => {
                    // It is not discarded after all.
                    self.lost.1 -= 1;
                    _ = self.push(value, at);
                }
                LaneItem::Mark(mark) => self.mark(mark),
            });
        });
        shelter.leave();
    }

    /// Whether it panicked at a record.
    pub(super) const fn is_unwound(&self) -> bool {
        self.unwound
    }

    /// How many records may come before it has more than its capacity, if that is a limit.
    #[inline]
    pub(super) fn room(&self) -> usize {
        match self.spec.overflow {
            Overflow::Block if K::WAITS => {
                self.spec.capacity.get().saturating_sub(self.destination.load())
            }
            _ => usize::MAX,
        }
    }

    /// Polls the destination until it is done; its panic is an error.
    #[inline]
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if self.done {
            return Poll::Ready(Ok(()));
        }
        let (spec, destination) = (&self.spec, &mut self.destination);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let capacity = spec.capacity.get();
            // What is too much is dropped, if the policy says so. At the end, that is what the
            // destination does not take at once.
            let ended = matches!(input, InputState::Ended(_));
            if !ended && destination.load() > capacity {
                destination.trim(capacity, spec.overflow);
            }
            let polled = destination.poll(cx, input);
            if ended && polled.is_pending() && destination.load() > capacity {
                destination.trim(capacity, spec.overflow);
            }
            polled
        }));
        let polled = polled.unwrap_or_else(|panic| {
            Poll::Ready(Err(StreamError::from_panic(&*panic).in_destination(spec.name)))
        });
        self.done = matches!((&polled, input), (Poll::Ready(Ok(())), InputState::Ended(_)));
        polled
    }

    /// Gives the destination up, if it is not done.
    pub(super) fn cancel(&mut self, error: &StreamError) {
        if !mem::replace(&mut self.done, true) {
            contain(|| self.destination.cancel(error));
        }
    }

    /// Takes up the counters where the readers before the wiring left them. What waits in the lane
    /// is discarded, unless it [is taken](Self::take_lane).
    pub(super) fn resume(&mut self, port: &mut PortState) {
        port.load = 0;
        self.before = port.delivered;
        self.lost = (port.dropped, port.routed - port.delivered - port.dropped);
    }

    /// Brings the counters up to date; whether any of them has changed.
    #[inline]
    pub(super) fn report(&mut self, port: &mut PortState) -> bool {
        if !K::WAITS && self.reported == self.routed {
            // Nothing changes where nothing came.
            return false;
        }
        self.reported = self.routed;
        // What never waits has moved if anything came.
        let old = K::WAITS.then(|| port.counters());
        let unwound = u64::from(self.unwound);
        let sum = self.destination.sum(self.routed - unwound);
        port.routed = self.before + self.lost.0 + self.lost.1 + self.routed;
        port.delivered = self.before + sum.delivered;
        port.buffered = sum.buffered;
        port.accepted = sum.accepted;
        port.dropped = self.lost.0 + sum.dropped;
        port.discarded = self.lost.1 + sum.discarded + unwound;
        old.is_none_or(|old| port.counters() != old)
    }
}

impl<T, K> fmt::Debug for Line<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("output", &self.spec.name)
            .field("routed", &self.routed)
            .finish_non_exhaustive()
    }
}
