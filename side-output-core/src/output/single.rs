use super::{Lane, LanePairVisitor, LaneVisitor, Lanes, OutputAt, OutputSpec, Splitter};
use crate::stream::{DataStream, Driver, Hub, Outlet, Typed};
use crate::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// The splitter of operators with one output: its streams are that one stream.
///
/// # Examples
///
/// A function with one output needs no enum of its own:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::output::Single;
/// use side_output::prelude::*;
///
/// let even = stream::iter(0..5).split_with(|n: u32| (n % 2 == 0).then_some(Single(n)));
/// assert_eq!(block_on(even.collect::<Vec<_>>()), [0, 2, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single<T>(pub T);

/// The lane of [`Single`].
pub struct SingleLanes<T>(Lane<T>);

const SPEC: OutputSpec = OutputSpec::new(0, "records").main();

#[diagnostic::do_not_recommend]
impl<T> Splitter for Single<T> {
    type Lanes = SingleLanes<T>;
    type Streams<H: Outlet<Self>> = DataStream<T, H::Source<0>>;

    const NAME: &'static str = "Single";
    const OUTPUTS: &'static [OutputSpec] = &[SPEC];
    const SLOTS: usize = 1;

    #[inline]
    fn index(&self) -> usize {
        0
    }

    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> Self::Streams<Typed<D>> {
        hub.stream()
    }
}

impl<T> OutputAt<0> for Single<T> {
    type Payload = T;
    const SPEC: OutputSpec = SPEC;

    #[inline]
    fn wrap(value: T) -> Self {
        Self(value)
    }

    #[inline]
    fn take(self) -> Result<T, Self> {
        Ok(self.0)
    }

    #[inline]
    fn lane(lanes: &mut SingleLanes<T>) -> &mut Lane<T> {
        &mut lanes.0
    }

    #[inline]
    fn stream<H: Outlet<Self>>(
        streams: &mut DataStream<T, H::Source<0>>,
    ) -> &mut DataStream<T, H::Source<0>> {
        streams
    }
}

impl<T> Lanes<Single<T>> for SingleLanes<T> {
    #[inline]
    fn push(&mut self, route: Single<T>, at: Timestamp) {
        self.0.push(route.0, at);
    }

    #[inline]
    fn visit<V: LaneVisitor>(&mut self, visitor: &mut V) {
        visitor.lane(0, &mut self.0);
    }

    #[inline]
    fn visit_pairs<V: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut V) {
        visitor.pair(0, &mut self.0, &mut other.0);
    }
}

impl<T> Default for SingleLanes<T> {
    fn default() -> Self {
        Self(Lane::new())
    }
}

impl<T> fmt::Debug for SingleLanes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SingleLanes").field(&self.0).finish()
    }
}
