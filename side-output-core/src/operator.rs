//! Operators as state machines: a record or a mark goes in, routes come out.
//!
//! No I/O, no clock, no async. The futures runtime drives them, and so do the conformance tests.

mod answered;
mod at_end;
mod broadcast;
mod closures;
mod dynamic;
mod either;
mod hold_back;
mod key_context;
mod keyed;
mod keyed_broadcast;
mod keyed_co_process;
mod keyed_process;
mod process;
mod reconcile;
#[cfg(feature = "job")]
mod snapshot;
mod split;
mod timestamps;
mod turn;
mod window;

pub use self::answered::{Answered, AnsweredStreams, AnsweredTag, AnsweredWiring, FailedCall};
pub use self::at_end::AtEnd;
pub use self::broadcast::{
    Broadcast, BroadcastContext, BroadcastProcess, Configuration, Configured, Unkeyed,
};
pub use self::closures::{CoFn, KeyedFn};
pub use self::dynamic::{BatchItem, DynOperator};
pub use self::either::Either;
pub use self::hold_back::{Configurable, HoldBack};
pub use self::key_context::{KeyContext, KeyedContext, TimerChange};
pub use self::keyed::{Keyed, KeyedCo};
pub use self::keyed_broadcast::{
    ByKey, KeyedBroadcast, KeyedBroadcastContext, KeyedBroadcastProcess,
};
pub use self::keyed_co_process::KeyedCoProcess;
pub use self::keyed_process::KeyedProcess;
pub use self::process::{Co, CoProcess, Process, Processing};
pub use self::reconcile::{
    Match, Pending, Reconcile, ReconcileWithin, Reconciliation, ReconciliationStreams,
    ReconciliationTag, ReconciliationWiring,
};
pub use self::split::{Split, SplitFn, WithContext, WithoutContext};
pub use self::timestamps::{
    AssignTimestamps, FutureSkew, Stamped, StampedStreams, StampedTag, StampedWiring,
};
#[cfg(feature = "job")]
pub(crate) use self::timestamps::{load_emission, save_emission};
pub use self::turn::Turn;
#[cfg(feature = "job")]
pub use self::window::SaveBody;
pub use self::window::{
    Aggregated, Applied, Elements, Evictor, Firing, KeepAll, KeepLast, LateDecided, LateDropped,
    LatePolicy, LateToOutput, LateUndecided, ProcessLate, Processed, Reduced, Share, WindowBody,
    WindowOperator, WindowStreams, WindowTag, WindowWiring, Windowed, Windows,
};

use crate::error::StreamError;
use crate::output::{Collect, Collector, Splitter};
use crate::time::{Mark, Timestamp};

/// A state machine with one input and the outputs of one splitter.
///
/// A driver calls [`on_record`](Operator::on_record) and [`on_mark`](Operator::on_mark)
/// in the order of the input, each through a [`Turn`], which keeps the account. The end of the
/// input is a watermark at [`Timestamp::MAX`].
///
/// # Examples
///
/// Driven by hand, for a test of a function without any stream:
///
/// ```
/// use side_output::operator::{Keyed, KeyedFn, Operator, Turn};
/// use side_output::output::{Account, Single};
/// use side_output::prelude::*;
/// use side_output::{Collect, KeyContext, Mark};
///
/// /// Keeps what comes out.
/// #[derive(Default)]
/// struct Collected(Vec<(u32, Timestamp)>, Vec<Mark>);
///
/// impl Collect<Single<u32>> for Collected {
///     fn emit(&mut self, Single(count): Single<u32>, at: Timestamp) {
///         self.0.push((count, at));
///     }
///     fn mark(&mut self, mark: Mark) {
///         self.1.push(mark);
///     }
/// }
///
/// let count = |_word, count: &mut u32, _: &mut KeyContext<&str, Single<u32>>| {
///     *count += 1;
///     Single(*count)
/// };
/// let mut operator = Keyed::new(|word: &&str| *word, KeyedFn::new(count));
/// let (mut out, mut account) = (Collected::default(), Account::new());
/// let mut turn = Turn::new(&mut out, &mut account, 100);
/// let at = Timestamp::from_secs;
/// for (second, word) in [(1, "a"), (2, "b"), (3, "a")] {
///     turn.record(&mut operator, word, at(second))?;
/// }
/// assert!(turn.mark(&mut operator, Mark::Watermark(at(3)))?);
/// drop(turn);
/// assert_eq!(out.0, [(1, at(1)), (1, at(2)), (2, at(3))]);
/// assert_eq!((out.1, operator.held()), (vec![Mark::Watermark(at(3))], 2));
/// assert_eq!((account.received(), account.emitted()), (3, 3));
/// # Ok::<(), StreamError>(())
/// ```
pub trait Operator {
    /// What comes in.
    type In;

    /// The splitter whose routes come out.
    type Out: Splitter;

    /// Whether the route of a record is emitted once and last, taps excepted, and marks emit
    /// nothing: if the receiver of a route panics, the operator has nothing left to do and can go on.
    const EMITS_LAST: bool = false;

    /// Whether results depend on what it keeps of earlier records. In a job, such an operator must
    /// have a name under which that is saved.
    const STATEFUL: bool = true;

    /// Takes a record; `at` is its timestamp, [`Timestamp::MIN`] if it has none.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_record<C: Collect<Self::Out>>(
        &mut self,
        value: Self::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// Takes a mark: emits what it causes, then [forwards](Collector::mark) or
    /// [swallows](Collector::swallow) it.
    ///
    /// A watermark that is due for many keys at once must not hold up everything else: before each
    /// firing the operator asks whether it [may fire](Collector::may_fire). If it may not, it
    /// returns before it has forwarded the mark, and is called again with the same one, before
    /// anything else.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_mark<C: Collect<Self::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// Notes that one of the inputs has ended, if there are several: they are numbered from zero.
    /// What follows for time comes as a mark after this.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_input_end<C: Collect<Self::Out>>(
        &mut self,
        input: usize,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        _ = (input, out);
        Ok(())
    }

    /// Looks at the clock, if its driver has one: fires the processing-time
    /// timers that are due at `now`, as long as it [may fire](Collector::may_fire) and does not take
    /// long.
    ///
    /// Called before anything that happens at `now`; again as long as [`alarm`](Self::alarm) is not
    /// after that.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_clock<C: Collect<Self::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        _ = (now, out);
        Ok(())
    }

    /// How much it keeps in its state at this moment, for the [`Ledger`](crate::output::Ledger):
    /// windows of keys, keys, or records, whichever it is made of.
    ///
    /// Asked for after every turn, so it must not have to count.
    fn held(&self) -> u64 {
        0
    }

    /// When the clock is to be looked at again even if nothing comes in. After a look at the clock
    /// that has fired all that is due, it is after that time.
    fn alarm(&self) -> Option<Timestamp> {
        None
    }
}
