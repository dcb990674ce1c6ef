use super::{Operator, Turn};
use crate::error::StreamError;
use crate::output::{Account, Collect};
use crate::time::{Mark, Timestamp};
use std::vec;

/// A record or a mark of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchItem<T> {
    /// A record with its timestamp, [`Timestamp::MIN`] if it has none.
    Record(T, Timestamp),
    /// A mark.
    Mark(Mark),
}

/// An [`Operator`] as a trait object over batches, for an engine that does not know its type: one
/// virtual call in for each batch, one out for each route.
///
/// Implemented by every operator.
///
/// # Examples
///
/// ```
/// use side_output::operator::{BatchItem, DynOperator, Split};
/// use side_output::output::{Account, Single};
/// use side_output::prelude::*;
/// use side_output::{Collect, Mark};
///
/// struct Sum(u32);
///
/// impl Collect<Single<u32>> for Sum {
///     fn emit(&mut self, Single(number): Single<u32>, _at: Timestamp) {
///         self.0 += number;
///     }
///     fn mark(&mut self, _mark: Mark) {}
/// }
///
/// let mut operator: Box<dyn DynOperator<u32, Single<u32>>> =
///     Box::new(Split::new(|n: u32| (n > 1).then_some(Single(n))));
/// let batch = (1..=3).map(|n| BatchItem::Record(n, Timestamp::MIN)).collect::<Vec<_>>();
/// let (mut sum, mut account) = (Sum(0), Account::new());
/// let mut batch = batch.into_iter();
/// while operator.on_batch(&mut batch, &mut sum, &mut account, 512)? {}
/// assert_eq!((sum.0, account.unrouted), (5, 1));
/// # Ok::<(), StreamError>(())
/// ```
pub trait DynOperator<T, S> {
    /// Hands the operator what is left of a batch, until about `room` routes were emitted or `out`
    /// is full. `true` if there is more to do: call again with the same batch.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    fn on_batch(
        &mut self,
        batch: &mut vec::IntoIter<BatchItem<T>>,
        out: &mut dyn Collect<S>,
        account: &mut Account,
        room: usize,
    ) -> Result<bool, StreamError>;

    /// Shows the operator the clock; `true` if there is more to do: call again with the same time,
    /// before anything else.
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    fn on_clock(
        &mut self,
        now: Timestamp,
        out: &mut dyn Collect<S>,
        account: &mut Account,
        room: usize,
    ) -> Result<bool, StreamError>;

    /// Tells the operator that one of its inputs has ended; see [`Operator::on_input_end`].
    ///
    /// # Errors
    ///
    /// The operator's. It must not be called again then.
    fn on_input_end(
        &mut self,
        input: usize,
        out: &mut dyn Collect<S>,
        account: &mut Account,
    ) -> Result<(), StreamError>;

    /// See [`Operator::alarm`].
    fn alarm(&self) -> Option<Timestamp>;

    /// See [`Operator::held`].
    fn held(&self) -> u64;
}

impl<T, Op: Operator<In = T>> DynOperator<T, Op::Out> for Op {
    fn on_batch(
        &mut self,
        batch: &mut vec::IntoIter<BatchItem<T>>,
        mut out: &mut dyn Collect<Op::Out>,
        account: &mut Account,
        room: usize,
    ) -> Result<bool, StreamError> {
        let mut turn = Turn::new(&mut out, account, room);
        while !turn.is_full() {
            // A mark stays in the batch until the operator is done with it.
            if let Some(&BatchItem::Mark(mark)) = batch.as_slice().first() {
                if !turn.mark(self, mark)? {
                    return Ok(true);
                }
                batch.next();
            } else if let Some(BatchItem::Record(value, at)) = batch.next() {
                turn.record(self, value, at)?;
            } else {
                return Ok(false);
            }
        }
        Ok(!batch.as_slice().is_empty())
    }

    fn on_clock(
        &mut self,
        now: Timestamp,
        mut out: &mut dyn Collect<Op::Out>,
        account: &mut Account,
        room: usize,
    ) -> Result<bool, StreamError> {
        Ok(!Turn::new(&mut out, account, room).clock(self, now)?)
    }

    fn on_input_end(
        &mut self,
        input: usize,
        mut out: &mut dyn Collect<Op::Out>,
        account: &mut Account,
    ) -> Result<(), StreamError> {
        Turn::new(&mut out, account, 1).input_end(self, input)
    }

    fn alarm(&self) -> Option<Timestamp> {
        Operator::alarm(self)
    }

    fn held(&self) -> u64 {
        Operator::held(self)
    }
}
