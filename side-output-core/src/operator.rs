//! Operators as state machines: a record or a mark goes in, routes come out.
//!
//! No I/O, no clock, no async. The futures runtime drives them, and so do the conformance tests.

mod at_end;
mod broadcast;
mod closures;
mod either;
mod hold_back;
mod key_context;
mod keyed;
mod keyed_broadcast;
mod keyed_co_process;
mod keyed_process;
mod process;
mod reconcile;
mod split;
mod timestamps;
mod window;

pub use self::at_end::AtEnd;
pub use self::broadcast::{
    Broadcast, BroadcastContext, BroadcastProcess, Configuration, Configured, Unkeyed,
};
pub use self::closures::{CoFn, KeyedFn};
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
    Match, Pending, Reconcile, ReconcileWithin, Reconciliation, ReconciliationLanes,
    ReconciliationStreams, ReconciliationWiring,
};
pub use self::split::{Split, SplitFn, WithContext, WithoutContext};
pub use self::timestamps::{
    AssignTimestamps, FutureSkew, Stamped, StampedLanes, StampedStreams, StampedWiring,
};
pub use self::window::{
    Aggregated, Applied, Elements, Evictor, Firing, KeepAll, KeepLast, LateDecided, LateDropped,
    LatePolicy, LateToOutput, LateUndecided, ProcessLate, Processed, Reduced, Share, WindowBody,
    WindowOperator, WindowStreams, WindowWiring, Windowed, WindowedLanes, Windows,
};

use crate::error::StreamError;
use crate::output::{Collect, Splitter};
use crate::time::Mark;

/// Whether an operator is done with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// Everything the mark causes was emitted, and the mark after it.
    Done,
    /// More is to come: call again with the same mark.
    More,
}

/// A state machine with one input and the outputs of one splitter.
///
/// Whoever drives it calls [`on_record`](Operator::on_record) and [`on_mark`](Operator::on_mark)
/// in the order of the input. The end of the input is a watermark at
/// [`Timestamp::MAX`](crate::Timestamp::MAX).
///
/// # Examples
///
/// Driven by hand, for a test of a function without any stream:
///
/// ```
/// use side_output::operator::{Keyed, KeyedFn, Operator, Progress};
/// use side_output::output::{Single, Tally};
/// use side_output::prelude::*;
/// use side_output::{Collect, KeyContext, Mark};
///
/// /// Keeps what comes out.
/// #[derive(Default)]
/// struct Collected(Vec<(u32, Timestamp)>, Vec<Mark>, Tally);
///
/// impl Collect<Single<u32>> for Collected {
///     fn emit(&mut self, Single(count): Single<u32>, at: Timestamp) {
///         self.0.push((count, at));
///     }
///     fn mark(&mut self, mark: Mark) {
///         self.1.push(mark);
///     }
///     fn tally(&mut self) -> &mut Tally {
///         &mut self.2
///     }
/// }
///
/// let count = |_word, count: &mut u32, _: &mut KeyContext<&str, Single<u32>>| {
///     *count += 1;
///     Single(*count)
/// };
/// let mut operator = Keyed::new(|word: &&str| *word, KeyedFn::new(count));
/// let mut out = Collected::default();
/// let at = Timestamp::from_secs;
/// for (second, word) in [(1, "a"), (2, "b"), (3, "a")] {
///     operator.on_record(word, at(second), &mut out)?;
/// }
/// assert_eq!(operator.on_mark(Mark::Watermark(at(3)), 100, &mut out)?, Progress::Done);
/// assert_eq!(out.0, [(1, at(1)), (1, at(2)), (2, at(3))]);
/// assert_eq!((out.1, operator.held()), (vec![Mark::Watermark(at(3))], 2));
/// # Ok::<(), StreamError>(())
/// ```
pub trait Operator {
    /// What comes in.
    type In;

    /// The splitter whose routes come out.
    type Out: Splitter;

    /// Whether the route of a record is emitted once and last, taps excepted, and marks emit
    /// nothing: if whoever takes a route panics, the operator has nothing left to do and can go on.
    const EMITS_LAST: bool = false;

    /// Takes a record; `at` is its timestamp, [`Timestamp::MIN`](crate::Timestamp::MIN) if it has none.
    ///
    /// Returns the number of routes emitted, which counts against the room of the outputs. The
    /// operator tells `out.tally()` about records without a route and about extra routes.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_record<C: Collect<Self::Out>>(
        &mut self,
        value: Self::In,
        at: crate::Timestamp,
        out: &mut C,
    ) -> Result<usize, StreamError>;

    /// Takes a mark: emits what it causes, then forwards it.
    ///
    /// At most about `room` routes are emitted in one call, so that a watermark which is due for
    /// many keys at once does not hold up everything else; [`Progress::More`] asks to be called
    /// again with the same mark, before anything else, once there is room.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_mark<C: Collect<Self::Out>>(
        &mut self,
        mark: Mark,
        room: usize,
        out: &mut C,
    ) -> Result<Progress, StreamError>;

    /// Notes that one of the inputs has ended, if there are several: they are numbered from zero.
    /// What follows for time comes as a mark after this.
    ///
    /// Returns the number of routes emitted, as [`on_record`](Operator::on_record) does.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_input_end<C: Collect<Self::Out>>(
        &mut self,
        input: usize,
        out: &mut C,
    ) -> Result<usize, StreamError> {
        let _ = (input, out);
        Ok(0)
    }

    /// Looks at the clock, if whoever drives the operator has one: fires the processing-time
    /// timers that are due at `now`.
    ///
    /// Called before anything that happens at `now`. [`Progress::More`] asks to be called again,
    /// as with a mark.
    ///
    /// # Errors
    ///
    /// An error ends the stream at every reader.
    fn on_clock<C: Collect<Self::Out>>(
        &mut self,
        now: crate::Timestamp,
        room: usize,
        out: &mut C,
    ) -> Result<Progress, StreamError> {
        let _ = (now, room, out);
        Ok(Progress::Done)
    }

    /// How much it keeps in its state at this moment, for the [`Ledger`](crate::output::Ledger):
    /// windows of keys, keys, or records, whichever it thinks in.
    ///
    /// Asked for after every turn, so it must not have to count.
    fn held(&self) -> u64 {
        0
    }

    /// When the clock is to be looked at again even if nothing comes in.
    fn alarm(&self) -> Option<crate::Timestamp> {
        None
    }
}
