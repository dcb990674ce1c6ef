use super::destination::{Counts, Destination, InputState, IntoDestination};
use crate::error::StreamError;
use crate::output::{OutputSpec, Overflow};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};

/// Leads records to `primary` as long as it has room for them, and to `spill` otherwise.
///
/// A destination that is down then holds up nobody, and nothing is lost: what it cannot take goes
/// elsewhere. Only a full `spill` makes the splitter wait.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{sink, stream};
/// use side_output::prelude::*;
/// use side_output::overflow_into;
///
/// #[splitter]
/// enum Rows {
///     #[main]
///     #[output(capacity = 2)]
///     Db(u32),
/// }
///
/// // A database that never answers.
/// let dead = sink::unfold((), |(), _: u32| std::future::pending::<Result<_, StreamError>>());
/// let mut spilled = Vec::new();
/// let run = stream::iter(0..5)
///     .split_with(Rows::Db)
///     .wire()
///     .db(overflow_into(dead, each(|row| spilled.push(row))))
///     .run();
/// // It never ends, but everything goes through except what the dead sink holds: two in its
/// // buffer, and one that it accepted.
/// block_on(futures::future::select(run, futures::future::ready(())));
/// assert_eq!(spilled, [3, 4]);
/// ```
pub const fn overflow_into<A, B>(primary: A, spill: B) -> OverflowInto<A, B> {
    OverflowInto { primary, spill }
}

/// What [`overflow_into`] returns.
#[derive(Debug)]
pub struct OverflowInto<A, B> {
    primary: A,
    spill: B,
}

/// Destination for the [`overflow_into`] function.
pub struct Overflowing<T, A, B> {
    primary: A,
    spill: B,
    capacity: usize,
    spilled: u64,
    values: PhantomData<fn(T)>,
}

/// Marks a destination with an overflow, and of what kinds both are.
pub struct IntoOverflowing<M, N>(PhantomData<(M, N)>);

impl<M, N> fmt::Debug for IntoOverflowing<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IntoOverflowing")
    }
}

#[diagnostic::do_not_recommend]
impl<T, M, N, A, B> IntoDestination<T, IntoOverflowing<M, N>> for OverflowInto<A, B>
where
    A: IntoDestination<T, M>,
    B: IntoDestination<T, N>,
{
    type Destination = Overflowing<T, A::Destination, B::Destination>;

    fn into_destination(self, spec: OutputSpec) -> Self::Destination {
        Overflowing {
            primary: self.primary.into_destination(spec),
            spill: self.spill.into_destination(spec),
            capacity: spec.capacity.get(),
            spilled: 0,
            values: PhantomData,
        }
    }
}

impl<T, A: Destination<T>, B: Destination<T>> Destination<T> for Overflowing<T, A, B> {
    const WAITS: bool = true;

    fn push(&mut self, value: T, at: Timestamp) -> bool {
        if self.primary.load() < self.capacity {
            self.primary.push(value, at)
        } else {
            let full = self.spill.push(value, at);
            // Afterwards: a record at which it panics is not counted.
            self.spilled += 1;
            full
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.primary.mark(mark);
        self.spill.mark(mark);
    }

    fn load(&self) -> usize {
        self.spill.load()
    }

    fn trim(&mut self, capacity: usize, overflow: Overflow) {
        self.spill.trim(capacity, overflow);
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        let primary = self.primary.poll(cx, input);
        let spill = self.spill.poll(cx, input);
        match (primary, spill) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    fn cancel(&mut self, error: &StreamError) {
        self.primary.cancel(error);
        self.spill.cancel(error);
    }

    fn sum(&self, routed: u64) -> Counts {
        let primary = self.primary.sum(routed - self.spilled);
        let spill = self.spill.sum(self.spilled);
        Counts {
            delivered: primary.delivered + spill.delivered,
            buffered: primary.buffered + spill.buffered,
            accepted: primary.accepted + spill.accepted,
            dropped: primary.dropped + spill.dropped,
            discarded: primary.discarded + spill.discarded,
        }
    }
}

impl<T, A, B> fmt::Debug for Overflowing<T, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflowing").field("spilled", &self.spilled).finish_non_exhaustive()
    }
}

/// Discards every record like [`discard`](super::discard), and shows some of them to `hook`: the
/// first ten, and then each time that their number has doubled.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::{Discarded, discard_noting};
///
/// #[splitter]
/// enum Lines {
///     Good(u32),
///     Bad(String),
/// }
///
/// let mut notes = Vec::new();
/// block_on(
///     stream::iter(0..1000)
///         .split_with(|n: u32| Lines::Bad(format!("line {n} invalid")))
///         .wire()
///         .good(discard())
///         .bad(discard_noting(|note: Discarded<'_, String>| {
///             notes.push((note.value.clone(), note.suppressed));
///         }))
///         .run(),
/// )?;
/// assert_eq!(notes.len(), 16);
/// assert_eq!(notes[10], ("line 15 invalid".to_owned(), 5));
/// # Ok::<(), StreamError>(())
/// ```
pub const fn discard_noting<T, F: FnMut(Discarded<'_, T>)>(hook: F) -> DiscardNoting<T, F> {
    DiscardNoting { hook, seen: 0, noted: 0, values: PhantomData }
}

/// A record that was discarded, as the hook of [`discard_noting`] sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Discarded<'a, T> {
    /// The record.
    pub value: &'a T,
    /// How many were discarded since the last one that was shown.
    pub suppressed: u64,
}

/// Destination for the [`discard_noting`] function.
pub struct DiscardNoting<T, F> {
    hook: F,
    seen: u64,
    noted: u64,
    values: PhantomData<fn(T)>,
}

impl<T, F: FnMut(Discarded<'_, T>)> Destination<T> for DiscardNoting<T, F> {
    const WAITS: bool = false;

    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        self.seen += 1;
        if self.seen <= 10 || self.seen.is_power_of_two() {
            let suppressed = self.seen - self.noted - 1;
            self.noted = self.seen;
            (self.hook)(Discarded { value: &value, suppressed });
        }
        false
    }

    fn sum(&self, routed: u64) -> Counts {
        Counts { discarded: routed, ..Counts::default() }
    }
}

impl<T, F> fmt::Debug for DiscardNoting<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscardNoting").field("seen", &self.seen).finish_non_exhaustive()
    }
}
