use super::{DataStream, OperatorStreams, Source};
use crate::operator::Split;
use crate::operator::WithContext;
use crate::output::Context;
use side_output_macros::splitter;

/// The outputs of [`DataStream::tee`]: every record leaves through both.
#[splitter(crate = crate)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tee<T> {
    /// The records.
    #[main]
    First(T),
    /// A copy of each.
    #[tap]
    Second(T),
}

/// Copies a record.
fn copy<T: Clone>(value: T, cx: &mut Context<Tee<T>>) -> Tee<T> {
    cx.output(Tee::SECOND_TAG, value.clone());
    Tee::First(value)
}

/// The function behind [`DataStream::tee`].
type Copying<T> = Split<T, Tee<T>, fn(T, &mut Context<Tee<T>>) -> Tee<T>, WithContext>;

/// The streams of [`DataStream::tee`].
pub type TeeOf<Src, T> = OperatorStreams<Src, Copying<T>>;

impl<T: Clone, Src: Source<T>> DataStream<T, Src> {
    /// Two streams that both hold every record, with its timestamp and all marks.
    ///
    /// They are outputs like any others: the ledger counts each, a slow reader of one holds up the
    /// other when its buffer is full, and each has a [`capacity`](Self::capacity) and a
    /// [policy](Self::overflow) of its own. For three copies, call it again on one of the two.
    ///
    /// # Examples
    ///
    /// One output of a wiring, with two destinations:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// #[splitter]
    /// enum Orders {
    ///     #[main]
    ///     Valid(u32),
    ///     Invalid(String),
    /// }
    ///
    /// let (mut archive, mut sum) = (Vec::new(), 0);
    /// let ledger = block_on(
    ///     stream::iter([7, 8])
    ///         .split_with(Orders::Valid)
    ///         .wire()
    ///         .valid_with(|valid| {
    ///             valid.tee().wire().first(&mut archive).second(each(|n| sum += n)).run()
    ///         })
    ///         .invalid(discard())
    ///         .run(),
    /// )?;
    /// assert_eq!((archive, sum), (vec![7, 8], 15));
    /// assert_eq!(ledger["valid"].delivered, 2);
    /// # Ok::<(), StreamError>(())
    /// ```
    pub fn tee(self) -> TeeOf<Self, T> {
        self.drive(Split::new(copy::<T> as fn(T, &mut Context<Tee<T>>) -> Tee<T>))
    }
}
