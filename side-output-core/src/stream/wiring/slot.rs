use super::{Destination, DestinationVisitor, Line, Unwired};
use crate::stream::{Lane, StreamAt, Streamed};
use crate::time::Timestamp;

/// The place of output `I` in a wiring: its [`Line`], or what stands there instead.
///
/// `I` need not be an output of `S`: a `cfg` may have removed its variant, and generics cannot
/// carry a `cfg`. So the bound stands on the methods that need it. [`Unwired`] is a slot too, and
/// only the bounds on `run` keep it out; else each output left out would be reported twice.
pub trait Slot<S: Streamed, const I: usize> {
    /// Hands a record over; true if its destination must be polled before it accepts more.
    fn push(&mut self, value: S::Payload, at: Timestamp) -> bool
    where
        S: StreamAt<I>;

    /// Hands over what waits in a lane, with its marks.
    fn take_lane(&mut self, lane: &mut Lane<S::Payload>)
    where
        S: StreamAt<I>;

    /// Shows the line, if there is one.
    fn visit<V: DestinationVisitor>(&mut self, visitor: &mut V);
}

impl<S, T, K, const I: usize> Slot<S, I> for Line<T, K>
where
    S: StreamAt<I, Payload = T>,
    K: Destination<T>,
{
    #[inline]
    fn push(&mut self, value: T, at: Timestamp) -> bool {
        Self::push(self, value, at)
    }

    fn take_lane(&mut self, lane: &mut Lane<T>) {
        Self::take_lane(self, lane);
    }

    fn visit<V: DestinationVisitor>(&mut self, visitor: &mut V) {
        visitor.line(self);
    }
}

/// In place of a destination, where a `cfg` removed the variant.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Absent;

impl Absent {
    /// The placeholder; only generated code needs it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

macro_rules! empty_slot {
    ($($empty:ty),*) => {$(
        impl<S: Streamed, const I: usize> Slot<S, I> for $empty {
            fn push(&mut self, value: S::Payload, _at: Timestamp) -> bool
            where
                S: StreamAt<I>,
            {
                drop(value);
                false
            }

            fn take_lane(&mut self, lane: &mut Lane<S::Payload>)
            where
                S: StreamAt<I>,
            {
                lane.clear();
            }

            fn visit<V: DestinationVisitor>(&mut self, _visitor: &mut V) {}
        }
    )*};
}
empty_slot!(Unwired, Absent);

/// An output of a wiring that has no destination yet.
#[diagnostic::on_unimplemented(
    message = "this output has a destination already",
    label = "wired a second time",
    note = "every output has one destination; remove one of the two calls"
)]
pub trait NotWired {}

#[diagnostic::do_not_recommend]
impl NotWired for Unwired {}
#[diagnostic::do_not_recommend]
impl NotWired for Absent {}
