use super::{KeyedCoProcess, KeyedContext};
use crate::output::{Routes, WithTimestamp};
use crate::time::{Timestamp, saturating_millis};
use side_output_macros::splitter;
use std::hash::Hash;
use std::marker::PhantomData;
use std::time::Duration;

/// Where the records of two reconciled streams go.
#[splitter(crate = crate)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciliation<L, R> {
    /// A record of each stream, with the same key and times close enough to each other.
    #[main]
    Matched(Match<L, R>),
    /// A record of the first stream for which none of the second one came in time.
    UnmatchedLeft(L),
    /// A record of the second stream for which none of the first one came in time.
    UnmatchedRight(R),
    /// A record of the first stream that came when it could have been missed already.
    LateLeft(L),
    /// A record of the second stream that came when it could have been missed already.
    LateRight(R),
}

/// A record of each stream.
///
/// # Examples
///
/// ```
/// use side_output::Match;
///
/// let Match { left: order, right: payment } = Match { left: ("tea", 2.50), right: 2.50 };
/// assert_eq!(order.1, payment);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Match<L, R> {
    /// Of the first stream.
    pub left: L,
    /// Of the second stream.
    pub right: R,
}

/// How far apart in time two records may be that belong together, and how long to wait.
///
/// - A record is *matched*, with each record of the other stream that has its key and a timestamp
///   at most `within` apart, or it is *unmatched*, once; never both. It is unmatched
///   as soon as the watermark has reached its timestamp plus `within` plus
///   [`grace`](Self::grace): nothing that could match it can come any more.
/// - A record is *late* if the watermark has reached its timestamp plus the grace. It is not
///   matched with anything.
/// - A record without a timestamp is known from the beginning of time: it is never late, matches
///   at any time, and is unmatched at the end of the input.
///
/// A match carries the higher one of the two timestamps, an unmatched record its own. The
/// watermark of the outputs is held back by `within` plus `grace`, so that none of them is late
/// for what follows. Both have to be `Clone` because a record may have several matches; for large
/// records that is cheap in an [`Arc`](std::sync::Arc).
///
/// # Examples
///
/// ```
/// use side_output::ReconcileWithin;
/// use std::time::Duration;
///
/// let ten_minutes = ReconcileWithin::new(Duration::from_secs(600)).grace(Duration::from_secs(5));
/// assert_eq!(ten_minutes.output_delay(), Duration::from_secs(605));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconcileWithin {
    within: Duration,
    grace: Duration,
}

impl ReconcileWithin {
    /// Matches records whose timestamps are at most `within` apart.
    #[must_use]
    pub const fn new(within: Duration) -> Self {
        Self { within, grace: Duration::ZERO }
    }

    /// Waits for `grace` longer, by event time, for records behind the watermark.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How much the watermark of the outputs is held back.
    #[must_use]
    pub const fn output_delay(&self) -> Duration {
        self.within.saturating_add(self.grace)
    }
}

impl From<Duration> for ReconcileWithin {
    fn from(within: Duration) -> Self {
        Self::new(within)
    }
}

/// The function behind [`reconcile`](crate::stream::KeyedStream::reconcile).
#[derive(Debug)]
pub struct Reconcile<K, L, R> {
    within: i64,
    grace: i64,
    types: PhantomData<fn(K, L, R)>,
}

impl<K, L, R> Reconcile<K, L, R> {
    /// A function that reconciles within the given bounds.
    pub fn new(within: impl Into<ReconcileWithin>) -> Self {
        let ReconcileWithin { within, grace } = within.into();
        let (within, grace) = (saturating_millis(within), saturating_millis(grace));
        Self { within, grace, types: PhantomData }
    }

    /// When a record of this time is given up.
    const fn deadline(&self, at: Timestamp) -> Timestamp {
        match at.known() {
            Some(at) => at.saturating_add_millis(self.within).saturating_add_millis(self.grace),
            None => Timestamp::MAX,
        }
    }

    fn is_late(&self, at: Timestamp, watermark: Timestamp) -> bool {
        at.known().is_some_and(|at| at.saturating_add_millis(self.grace) <= watermark)
    }

    fn belong_together(&self, one: Timestamp, other: Timestamp) -> bool {
        match (one.known(), other.known()) {
            (Some(one), Some(other)) => one.max(other).millis_since(one.min(other)) <= self.within,
            _ => true,
        }
    }

    /// Matches a record that came with what is held of the other side.
    fn meet<A: Clone, B: Clone>(
        &self,
        arrived: &mut Held<A>,
        others: &mut [Held<B>],
        pair: impl Fn(A, B) -> Match<L, R>,
    ) -> Vec<WithTimestamp<Reconciliation<L, R>>> {
        let mut routes = Vec::new();
        for other in others {
            if self.belong_together(arrived.at, other.at) {
                arrived.matched = true;
                other.matched = true;
                let matched = pair(arrived.value.clone(), other.value.clone());
                let at = arrived.at.max(other.at);
                routes.push(WithTimestamp::new(at, Reconciliation::Matched(matched)));
            }
        }
        routes
    }
}

/// A record that waits.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "job", derive(serde::Serialize, serde::Deserialize))]
struct Held<T> {
    value: T,
    at: Timestamp,
    /// It has been matched, and will not be unmatched.
    matched: bool,
}

/// The records of one key that wait, in the order in which they came.
#[derive(Debug)]
#[cfg_attr(feature = "job", derive(serde::Serialize, serde::Deserialize))]
pub struct Pending<L, R> {
    left: Vec<Held<L>>,
    right: Vec<Held<R>>,
}

impl<L, R> Default for Pending<L, R> {
    fn default() -> Self {
        Self { left: Vec::new(), right: Vec::new() }
    }
}

impl<K, L, R> KeyedCoProcess for Reconcile<K, L, R>
where
    K: Hash + Eq + Clone,
    L: Clone,
    R: Clone,
{
    type Key = K;
    type Left = L;
    type Right = R;
    type State = Pending<L, R>;
    type Out = Reconciliation<L, R>;

    fn on_left(
        &mut self,
        value: L,
        pending: &mut Pending<L, R>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciliation<L, R>> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        if self.is_late(at, cx.watermark()) {
            return vec![WithTimestamp::new(at, Reconciliation::LateLeft(value))];
        }
        let mut arrived = Held { value, at, matched: false };
        let pair = |left, right| Match { left, right };
        let routes = self.meet(&mut arrived, &mut pending.right, pair);
        pending.left.push(arrived);
        cx.set_timer(self.deadline(at));
        routes
    }

    fn on_right(
        &mut self,
        value: R,
        pending: &mut Pending<L, R>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciliation<L, R>> {
        let at = cx.timestamp().unwrap_or(Timestamp::MIN);
        if self.is_late(at, cx.watermark()) {
            return vec![WithTimestamp::new(at, Reconciliation::LateRight(value))];
        }
        let mut arrived = Held { value, at, matched: false };
        let pair = |right, left| Match { left, right };
        let routes = self.meet(&mut arrived, &mut pending.left, pair);
        pending.right.push(arrived);
        cx.set_timer(self.deadline(at));
        routes
    }

    fn on_timer(
        &mut self,
        now: Timestamp,
        pending: &mut Pending<L, R>,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciliation<L, R>> {
        let left = pending.left.extract_if(.., |held| self.deadline(held.at) <= now);
        let right = pending.right.extract_if(.., |held| self.deadline(held.at) <= now);
        let left = left
            .filter(|held| !held.matched)
            .map(|held| WithTimestamp::new(held.at, Reconciliation::UnmatchedLeft(held.value)));
        let right = right
            .filter(|held| !held.matched)
            .map(|held| WithTimestamp::new(held.at, Reconciliation::UnmatchedRight(held.value)));
        left.chain(right).collect::<Vec<_>>()
    }

    fn is_empty(pending: &Pending<L, R>) -> bool {
        pending.left.is_empty() && pending.right.is_empty()
    }

    fn output_delay(&self) -> Duration {
        let millis = self.within.saturating_add(self.grace);
        Duration::from_millis(millis.unsigned_abs())
    }
}
