use super::{
    Clocked, ClockedStreams, DataFeed, DataStream, Drive, Element, Fed, Feed, Hub, Intake,
    KeyedStream, OperatorStreams, Source,
};
use crate::operator::{
    Broadcast, BroadcastProcess, Co, CoFn, CoProcess, Either, KeyedBroadcast,
    KeyedBroadcastProcess, KeyedCo, KeyedCoProcess, Reconcile, ReconcileWithin,
};
use crate::output::{Context as RecordContext, Routes, Splitter};
use crate::time::{Alignment, Clock, Mark, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::task::Context;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Feeds an operator with two inputs.
///
/// The inputs take turns; when one has nothing ready, the other has them all. The watermark is the
/// lower one of both, see [`Alignment::connected`]. An input that ends early leaves the time to
/// the other. An input whose barrier has come waits until that of the other has.
pub struct ConnectFeed<T, A: Source<T>, U, B: Source<U>> {
    left: Side<T, A>,
    right: Side<U, B>,
    alignment: Alignment,
    /// Whose turn is next.
    turn: usize,
    /// The first input waits for the end of the second.
    right_first: bool,
    barrier: Option<u64>,
    /// What the operator had no room for.
    pending: VecDeque<Element<Either<T, U>>>,
}

struct Side<T, Src: Source<T>> {
    /// `None` after the end.
    feed: Option<DataFeed<T, Src>>,
    /// A barrier has come, and the other input has not reached it.
    blocked: bool,
}

impl<T, Src: Source<T>> Side<T, Src> {
    const fn new(stream: DataStream<T, Src>) -> Self {
        Self { feed: Some(DataFeed(stream)), blocked: false }
    }

    fn poll<X, W: Fn(T) -> X, K: Intake<X>>(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Entrance<'_, W, X, K>,
    ) -> Fed {
        match &mut self.feed {
            Some(feed) if !self.blocked => feed.feed(cx, into),
            _ => Fed::Pending,
        }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> ConnectFeed<T, A, U, B> {
    pub(super) fn new(left: DataStream<T, A>, right: DataStream<U, B>, right_first: bool) -> Self {
        Self {
            left: Side::new(left),
            right: Side::new(right),
            alignment: Alignment::connected(2),
            turn: RIGHT,
            right_first,
            barrier: None,
            pending: VecDeque::new(),
        }
    }

    /// Lets one input deliver. True if things have changed and it is worth asking again.
    fn poll_side<K: Intake<Either<T, U>>>(
        &mut self,
        side: usize,
        cx: &mut Context<'_>,
        intake: &mut K,
    ) -> ControlFlow<Fed, bool> {
        if side == LEFT && self.right_first && self.right.feed.is_some() {
            return ControlFlow::Continue(false);
        }
        let Self { left, right, alignment, barrier, pending, .. } = self;
        let (fed, full) = if side == LEFT {
            let mut entrance =
                Entrance::new(side, Either::Left, alignment, barrier, pending, intake);
            (left.poll(cx, &mut entrance), entrance.full)
        } else {
            let mut entrance =
                Entrance::new(side, Either::Right, alignment, barrier, pending, intake);
            (right.poll(cx, &mut entrance), entrance.full)
        };
        match fed {
            Fed::Failed(_) => ControlFlow::Break(fed),
            Fed::More if full => ControlFlow::Break(Fed::More),
            // A barrier stopped it.
            Fed::More => {
                self.block(side);
                self.pass_barrier();
                ControlFlow::Continue(true)
            }
            Fed::Pending => ControlFlow::Continue(false),
            Fed::End => {
                self.end(side);
                let marks = self.alignment.on_watermark(side, Timestamp::MAX);
                self.pending.extend(marks.map(Element::Mark));
                self.pass_barrier();
                ControlFlow::Continue(true)
            }
        }
    }

    const fn block(&mut self, side: usize) {
        if side == LEFT { self.left.blocked = true } else { self.right.blocked = true }
    }

    fn end(&mut self, side: usize) {
        if side == LEFT { self.left.feed = None } else { self.right.feed = None }
    }

    /// Lets the barrier through once both inputs stand before it, or have ended.
    fn pass_barrier(&mut self) {
        let left = self.left.blocked || self.left.feed.is_none();
        let right = self.right.blocked || self.right.feed.is_none();
        // "Configuration first" reads the first input not at all: it does not hold up a cut.
        let left = left || (self.right_first && self.right.feed.is_some());
        if left
            && right
            && let Some(id) = self.barrier.take()
        {
            self.left.blocked = false;
            self.right.blocked = false;
            self.pending.push_back(Element::Mark(Mark::Barrier(id)));
        }
    }

    fn flush<K: Intake<Either<T, U>>>(&mut self, intake: &mut K) -> ControlFlow<()> {
        while let Some(element) = self.pending.pop_front() {
            match element {
                Element::Record { value, at } => {
                    intake.record(value, at.unwrap_or(Timestamp::MIN))?;
                }
                Element::Mark(mark) => intake.mark(mark)?,
            }
        }
        ControlFlow::Continue(())
    }
}

impl<T, A: Source<T>, U, B: Source<U>> Feed for ConnectFeed<T, A, U, B> {
    type Item = Either<T, U>;

    fn fail_on_stall(&mut self) {
        self.left.feed.iter_mut().for_each(Feed::fail_on_stall);
        self.right.feed.iter_mut().for_each(Feed::fail_on_stall);
    }

    fn feed<K: Intake<Self::Item>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let first = self.turn;
        self.turn = 1 - first;
        loop {
            let mut moved = false;
            for side in [first, 1 - first] {
                if self.flush(intake).is_break() {
                    return Fed::More;
                }
                match self.poll_side(side, cx, intake) {
                    ControlFlow::Continue(more) => moved |= more,
                    ControlFlow::Break(fed) => return fed,
                }
            }
            if moved || !self.pending.is_empty() {
                continue;
            }
            if self.left.feed.is_none() && self.right.feed.is_none() {
                return Fed::End;
            }
            return Fed::Pending;
        }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> fmt::Debug for ConnectFeed<T, A, U, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectFeed").field("alignment", &self.alignment).finish_non_exhaustive()
    }
}

/// Where one of the inputs delivers to.
struct Entrance<'a, W, X, K> {
    side: usize,
    wrap: W,
    alignment: &'a mut Alignment,
    barrier: &'a mut Option<u64>,
    pending: &'a mut VecDeque<Element<X>>,
    intake: &'a mut K,
    /// It was the operator that asked to stop.
    full: bool,
}

impl<'a, W, X, K: Intake<X>> Entrance<'a, W, X, K> {
    const fn new(
        side: usize,
        wrap: W,
        alignment: &'a mut Alignment,
        barrier: &'a mut Option<u64>,
        pending: &'a mut VecDeque<Element<X>>,
        intake: &'a mut K,
    ) -> Self {
        Self { side, wrap, alignment, barrier, pending, intake, full: false }
    }

    /// Gives the marks on as long as there is room; the rest waits.
    fn forward(&mut self, marks: crate::time::Marks) {
        for mark in marks {
            if self.full {
                self.pending.push_back(Element::Mark(mark));
            } else {
                self.full = self.intake.mark(mark).is_break();
            }
        }
    }

    const fn flow(&self) -> ControlFlow<()> {
        if self.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<T, X, W: Fn(T) -> X, K: Intake<X>> Intake<T> for Entrance<'_, W, X, K> {
    #[inline]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        if self.alignment.is_input_idle(self.side) {
            let marks = self.alignment.on_active(self.side);
            self.forward(marks);
        }
        let value = (self.wrap)(value);
        if self.full {
            self.pending.push_back(Element::Record { value, at: at.known() });
        } else {
            self.full = self.intake.record(value, at).is_break();
        }
        self.flow()
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        if let Mark::Barrier(id) = mark {
            *self.barrier = Some(id);
            return ControlFlow::Break(());
        }
        let marks = self.alignment.on_mark(self.side, mark);
        self.forward(marks);
        self.flow()
    }
}

/// The streams of the two-input function `P`.
pub type CoStreams<T, A, U, B, P> = OperatorStreams<ConnectFeed<T, A, U, B>, Co<P>>;

/// The streams of the closures `L` and `R`.
pub type CoFnStreams<T, A, U, B, L, R, S> = CoStreams<T, A, U, B, CoFn<L, R, T, U, S>>;

/// The streams of the two-input function `P` on keys that `F` and `G` give.
pub type KeyedCoStreams<T, A, U, B, P, F, G> =
    OperatorStreams<ConnectFeed<T, A, U, B>, KeyedCo<P, F, G>>;

/// The same, with the clock `Ck`.
pub type ClockedCoStreams<T, A, U, B, P, F, G, Ck> =
    ClockedStreams<ConnectFeed<T, A, U, B>, KeyedCo<P, F, G>, Ck>;

type KeyedCoDrive<T, A, U, B, P, F, G> = Drive<ConnectFeed<T, A, U, B>, KeyedCo<P, F, G>>;

/// Two streams side by side, for a function on both. Made by [`DataStream::connect`].
pub struct Connected<T, A: Source<T>, U, B: Source<U>> {
    left: DataStream<T, A>,
    right: DataStream<U, B>,
}

impl<T, A: Source<T>> DataStream<T, A> {
    /// Connects two streams, of different types or roles, for a function on both.
    ///
    /// [`union`](Self::union) makes one stream of several of the same type.
    ///
    /// Each input is in its own order. Which of them comes first where both have records ready is
    /// not defined; a function for which that matters goes by the timestamps, as
    /// [`reconcile`](KeyedStream::reconcile) does.
    pub const fn connect<U, B: Source<U>>(self, other: DataStream<U, B>) -> Connected<T, A, U, B> {
        Connected { left: self, right: other }
    }

    /// Connects this stream with one that configures its function.
    pub const fn connect_broadcast<U, B: Source<U>>(
        self,
        config: DataStream<U, B>,
    ) -> BroadcastConnected<DataStream<T, A>, U, B> {
        BroadcastConnected { stream: self, config, config_first: false }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> Connected<T, A, U, B> {
    /// Routes the records of both streams by `function`.
    pub fn process<F>(self, function: F) -> CoStreams<T, A, U, B, F>
    where
        F: CoProcess<Left = T, Right = U>,
    {
        Hub::open(Drive::new(ConnectFeed::new(self.left, self.right, false), Co::new(function)))
    }

    /// Routes the records of the first stream by `left`, those of the second by `right`.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    ///
    /// #[splitter]
    /// enum Pets {
    ///     #[main]
    ///     Pet(String),
    /// }
    ///
    /// let cats = DataStream::from_stream(stream::iter([3]));
    /// let dogs = DataStream::from_stream(stream::iter(["Rex"]));
    /// let PetsStreams { pet } = cats.connect(dogs).process_with(
    ///     |cats: u32, _: &mut Context<Pets>| Pets::Pet(format!("{cats} cats")),
    ///     |name: &str, _: &mut Context<Pets>| Pets::Pet(format!("dog {name}")),
    /// );
    /// let mut pets = block_on(pet.collect::<Vec<_>>());
    /// pets.sort();
    /// assert_eq!(pets, ["3 cats", "dog Rex"]);
    /// ```
    pub fn process_with<S, L, R, V, W>(self, left: L, right: R) -> CoFnStreams<T, A, U, B, L, R, S>
    where
        S: Splitter,
        V: Routes<S>,
        W: Routes<S>,
        L: FnMut(T, &mut RecordContext<S>) -> V,
        R: FnMut(U, &mut RecordContext<S>) -> W,
    {
        self.process(CoFn::new(left, right))
    }
}

impl<T, A: Source<T>, U, B: Source<U>> fmt::Debug for Connected<T, A, U, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connected")
    }
}

/// Two keyed streams side by side. Made by [`KeyedStream::connect`].
pub struct KeyedConnected<Left, Right> {
    left: Left,
    right: Right,
}

impl<T, K, F, A> KeyedStream<T, K, F, A>
where
    A: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Connects two keyed streams for a function on both, with state and timers for each key.
    ///
    /// Each input is in its own order. Which of them comes first where both have records ready is
    /// not defined; a function for which that matters goes by the timestamps, as
    /// [`reconcile`](Self::reconcile) does.
    pub const fn connect<U, G, B>(
        self,
        other: KeyedStream<U, K, G, B>,
    ) -> KeyedConnected<Self, KeyedStream<U, K, G, B>>
    where
        B: Source<U>,
        G: FnMut(&U) -> K,
    {
        KeyedConnected { left: self, right: other }
    }

    /// Connects this keyed stream with one that configures its function.
    pub const fn connect_broadcast<U, B: Source<U>>(
        self,
        config: DataStream<U, B>,
    ) -> BroadcastConnected<Self, U, B> {
        BroadcastConnected { stream: self, config, config_first: false }
    }

    /// Matches the records of two streams that have the same key, within a bounded time.
    ///
    /// What is matched, unmatched and late is said at [`ReconcileWithin`]; a plain `Duration` is one
    /// without grace.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::ReconciliationStreams;
    /// use std::time::Duration;
    ///
    /// let orders = DataStream::from_stream(stream::iter([(1, "tea"), (2, "milk")]));
    /// let payments = DataStream::from_stream(stream::iter([(1, 2.50), (3, 0.99)]));
    /// let ReconciliationStreams { matched, unmatched_left, unmatched_right, late_left, late_right } =
    ///     orders
    ///         .key_by(|order: &(u32, &str)| order.0)
    ///         .reconcile(payments.key_by(|pay: &(u32, f64)| pay.0), Duration::from_secs(600));
    /// late_left.discard();
    /// late_right.discard();
    /// block_on(async {
    ///     let (matched, left, right) = futures::join!(
    ///         matched.collect::<Vec<_>>(),
    ///         unmatched_left.collect::<Vec<_>>(),
    ///         unmatched_right.collect::<Vec<_>>(),
    ///     );
    ///     assert_eq!((matched[0].left, matched[0].right), ((1, "tea"), (1, 2.50)));
    ///     assert_eq!((left, right), (vec![(2, "milk")], vec![(3, 0.99)]));
    /// });
    /// ```
    pub fn reconcile<U, G, B>(
        self,
        other: KeyedStream<U, K, G, B>,
        within: impl Into<ReconcileWithin>,
    ) -> KeyedCoStreams<T, A, U, B, Reconcile<K, T, U>, F, G>
    where
        K: Hash + Eq + Clone,
        T: Clone,
        U: Clone,
        B: Source<U>,
        G: FnMut(&U) -> K,
    {
        self.connect(other).process(Reconcile::new(within))
    }
}

impl<T, U, K, F, G, A, B> KeyedConnected<KeyedStream<T, K, F, A>, KeyedStream<U, K, G, B>>
where
    A: Source<T>,
    B: Source<U>,
    F: FnMut(&T) -> K,
    G: FnMut(&U) -> K,
{
    /// Routes the records of both streams by `function`, with state and timers for each key.
    pub fn process<P>(self, function: P) -> KeyedCoStreams<T, A, U, B, P, F, G>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U>,
    {
        Hub::open(self.drive(function))
    }

    /// Routes the records of both streams by `function`, which may set timers by the time of
    /// `clock` too.
    pub fn process_with_clock<P, Ck>(
        self,
        function: P,
        clock: Ck,
    ) -> ClockedCoStreams<T, A, U, B, P, F, G, Ck>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U>,
        Ck: Clock,
    {
        Hub::open(Clocked::new(self.drive(function), clock))
    }

    fn drive<P>(self, function: P) -> KeyedCoDrive<T, A, U, B, P, F, G>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U>,
    {
        let Self { left, right } = self;
        let operator = KeyedCo::new(left.key, right.key, function);
        Drive::new(ConnectFeed::new(left.stream, right.stream, false), operator)
    }
}

impl<Left, Right> fmt::Debug for KeyedConnected<Left, Right> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedConnected")
    }
}

/// A stream, keyed or not, and the one that configures its function. Made by
/// [`DataStream::connect_broadcast`] and [`KeyedStream::connect_broadcast`].
pub struct BroadcastConnected<St, U, B: Source<U>> {
    stream: St,
    config: DataStream<U, B>,
    config_first: bool,
}

impl<St, U, B: Source<U>> BroadcastConnected<St, U, B> {
    /// Reads the configuration to its end before the first record: for bounded runs.
    #[must_use]
    pub const fn config_first(mut self) -> Self {
        self.config_first = true;
        self
    }
}

impl<T, A: Source<T>, U, B: Source<U>> BroadcastConnected<DataStream<T, A>, U, B> {
    /// Routes the records by `function`, which the second stream configures.
    pub fn process<F>(self, function: F) -> OperatorStreams<ConnectFeed<T, A, U, B>, Broadcast<F>>
    where
        F: BroadcastProcess<In = T, Update = U>,
    {
        let feed = ConnectFeed::new(self.stream, self.config, self.config_first);
        Hub::open(Drive::new(feed, Broadcast::new(function)))
    }
}

impl<T, K, By, A, U, B> BroadcastConnected<KeyedStream<T, K, By, A>, U, B>
where
    A: Source<T>,
    B: Source<U>,
    By: FnMut(&T) -> K,
{
    /// Routes the records by `function`, which the second stream configures, with state and timers
    /// for each key.
    pub fn process<F>(
        self,
        function: F,
    ) -> OperatorStreams<ConnectFeed<T, A, U, B>, KeyedBroadcast<F, By>>
    where
        F: KeyedBroadcastProcess<Key = K, In = T, Update = U>,
    {
        let KeyedStream { stream, key } = self.stream;
        let feed = ConnectFeed::new(stream, self.config, self.config_first);
        Hub::open(Drive::new(feed, KeyedBroadcast::new(key, function)))
    }
}

impl<St, U, B: Source<U>> fmt::Debug for BroadcastConnected<St, U, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastConnected")
            .field("config_first", &self.config_first)
            .finish_non_exhaustive()
    }
}
