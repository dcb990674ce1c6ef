use super::{Behind, BoxSource, JobLink, LedgerHandle};
use crate::error::StreamError;
use crate::stream::Lane;
use crate::time::{Mark, Timestamp};
use std::ops::ControlFlow;
use std::task::Context;

/// Most records and marks in one chunk, and one turn of an operator. A multiple of a cache line's
/// worth of records, small enough for a chunk of ordinary records to stay in the first-level cache.
pub(crate) const CHUNK: usize = 512;

/// How many turns one poll may take before it lets other tasks run.
pub(crate) const TURNS: usize = 16;

/// After how many turns of one poll everybody who has something to read is woken, and after the
/// first one, for those who wait for a first record. Who has [much](AWAITED) to read is woken at
/// once. Not more often: to wake another thread costs more than a turn.
pub(crate) const WAKING: usize = 16;

/// How many records are worth a wake-up, unless a quarter of the lane is less.
pub(crate) const AWAITED: usize = CHUNK / 2;

/// Where a [`Source`] hands its records and marks: an operator, a function, a chunk, a sink.
pub trait Intake<T> {
    /// Whether it ever asks to stop. A source hands its records to one that does not without a
    /// chunk in between, and bounds the length of a poll itself.
    const STOPS: bool = true;

    /// Whether it may take all that a source has in hand at once.
    const WHOLE: bool = false;

    /// Takes a record; after a `Break` the source must stop for this time.
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()>;

    /// Takes a mark; after a `Break` the source must stop for this time.
    fn mark(&mut self, mark: Mark) -> ControlFlow<()>;

    /// Takes the end of one of several inputs; see
    /// [`Operator::on_input_end`](crate::operator::Operator::on_input_end).
    fn input_end(&mut self, input: usize) -> ControlFlow<()> {
        _ = input;
        ControlFlow::Continue(())
    }

    /// Takes everything in the lane, which is empty afterwards; `None` if it does not. Asked only
    /// where it [may](Self::WHOLE).
    fn lane(&mut self, lane: &mut Lane<T>) -> Option<ControlFlow<()>> {
        _ = lane;
        None
    }
}

/// How a source stopped.
#[derive(Debug)]
#[must_use]
pub enum Fed {
    /// The intake asked to stop, or the source has had its share of this poll: there may be more.
    More,
    /// Nothing is ready; the waker is registered.
    Pending,
    /// The true end of the stream. It is not read again.
    End,
    /// The stream failed. It is not read again.
    Failed(StreamError),
}

impl From<Result<(), StreamError>> for Fed {
    fn from(end: Result<(), StreamError>) -> Self {
        end.map_or_else(Self::Failed, |()| Self::End)
    }
}

/// What a [`DataStream`](crate::stream::DataStream) or an operator reads: a plain stream, the output
/// of another operator, several streams as one.
///
/// This is the one protocol of input. A reader is an [`Intake`], sees every record and every
/// mark, and says after each whether it takes another one. What it does not take stays where it is.
pub trait Source<T> {
    /// Hands what is ready to `intake` until that asks to stop.
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed
    where
        Self: Sized;

    /// Takes the next record out of the chunk in hand, if there is one, and passes over the marks
    /// before it: what a reader of single records asks for before it polls.
    #[inline]
    fn pop(&mut self) -> Option<T>
    where
        Self: Sized,
    {
        None
    }

    /// Whether it can go on with the next record after a panic of the intake.
    #[must_use]
    fn resumes() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Says that the reader goes away without having used the last `records` that it was handed.
    fn unread(&mut self, records: usize) {
        _ = records;
    }

    /// Says that the reader goes away on purpose.
    fn discard(&mut self) {}

    /// Asks for an error instead of waiting for ever where another output is full and nobody
    /// reads it.
    fn fail_on_stall(&mut self) {}

    /// Gives away its inputs, if it is a union that was not read yet.
    #[doc(hidden)]
    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        None
    }

    /// Whether the error of this source is returned elsewhere, as that of a wiring's input is by
    /// `run`: then it need not be logged where a plain reader comes to an end of the records.
    fn is_reported(&self) -> bool {
        false
    }

    /// Reads the ledger of the operator behind this source, if there is one.
    fn ledger(&self) -> Option<LedgerHandle> {
        None
    }

    /// The job that it is part of, with its place there.
    #[doc(hidden)]
    fn job(&self) -> Option<JobLink> {
        None
    }

    /// Notes what is behind it.
    #[doc(hidden)]
    fn behind(&self, behind: &mut Behind) {
        behind.ledgers.extend(self.ledger());
    }
}

/// What a source that wraps `$source` passes on to it.
macro_rules! pass_on {
    ($source:ident) => {
        fn unread(&mut self, records: usize) {
            self.$source.unread(records);
        }

        fn discard(&mut self) {
            self.$source.discard();
        }

        fn fail_on_stall(&mut self) {
            self.$source.fail_on_stall();
        }

        fn is_reported(&self) -> bool {
            self.$source.is_reported()
        }

        fn ledger(&self) -> Option<LedgerHandle> {
            self.$source.ledger()
        }

        fn job(&self) -> Option<crate::stream::JobLink> {
            self.$source.job()
        }

        fn behind(&self, behind: &mut $crate::stream::Behind) {
            self.$source.behind(behind);
        }
    };
}
pub(super) use pass_on;
