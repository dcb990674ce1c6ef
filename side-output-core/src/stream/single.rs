use super::{
    DataStream, Driver, Hub, Lane, LanePairVisitor, LaneVisitor, Lanes, Outlet, StreamAt, Streamed,
    Typed,
};
use crate::output::Single;
use crate::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// The lane of [`Single`].
pub struct SingleLanes<T>(Lane<T>);

#[diagnostic::do_not_recommend]
impl<T> Streamed for Single<T> {
    type Lanes = SingleLanes<T>;
    type Streams<H: Outlet<Self>> = DataStream<T, H::Source<0>>;

    fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> Self::Streams<Typed<D>> {
        hub.stream()
    }
}

impl<T> StreamAt<0> for Single<T> {
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
