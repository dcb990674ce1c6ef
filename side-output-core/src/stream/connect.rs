#[cfg(feature = "job")]
use super::Uid;
use super::data_stream::open;
use super::merge::{Merge, ReadStep};
use super::saving::{ByPlace, Hold};
use super::{
    Behind, Clocked, ClockedStreams, DataStream, Drive, Fed, Hub, Intake, JobLink, KeyedStream,
    Naming, OperatorStreams, Source, Unnamed,
};
use crate::operator::{
    Broadcast, BroadcastProcess, Co, CoFn, CoProcess, Either, KeyedBroadcast,
    KeyedBroadcastProcess, KeyedCo, KeyedCoProcess, Reconcile, ReconcileWithin,
};
use crate::output::{Context as RecordContext, Routes};
use crate::stream::Streamed;
use crate::time::{Alignment, Clock};
use std::fmt;
use std::hash::Hash;
use std::panic::Location;
use std::task::Context;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// What an operator with two inputs reads.
///
/// The inputs take turns; when one has nothing ready, the other has them all. The watermark is the
/// lower one of both, see [`Alignment::connected`]. An input that ends early leaves the time to
/// the other.
pub struct ConnectSource<T, A: Source<T>, U, B: Source<U>> {
    left: DataStream<T, A>,
    right: DataStream<U, B>,
    merge: Merge<Either<T, U>>,
    /// The first input waits for the end of the second.
    right_first: bool,
    /// Until then there is no checkpoint: what the first input would be cut from is not read.
    hold: Hold,
}

impl<T, A: Source<T>, U, B: Source<U>> ConnectSource<T, A, U, B> {
    pub(super) fn new(left: DataStream<T, A>, right: DataStream<U, B>, right_first: bool) -> Self {
        let mut merge = Merge::new(Alignment::connected(2), 2);
        merge.set_unread(LEFT, right_first);
        let link = Source::job(&left).or_else(|| Source::job(&right));
        merge.tie(link.clone(), "connect");
        let hold = if right_first { Hold::new(link) } else { Hold::NONE };
        Self { left, right, merge, right_first, hold }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> Source<Either<T, U>> for ConnectSource<T, A, U, B> {
    fn feed<K: Intake<Either<T, U>>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { left, right, merge, right_first, hold } = self;
        merge.feed(&mut (left, right), intake, |merge, (left, right), input, intake| {
            if input == LEFT {
                if *right_first && !merge.has_ended(RIGHT) {
                    return ReadStep::Nothing;
                }
                return merge.read(LEFT, *left, Either::Left, cx, intake);
            }
            let merged = merge.read(RIGHT, *right, Either::Right, cx, intake);
            if merge.has_ended(RIGHT) {
                merge.set_unread(LEFT, false);
                hold.release();
            }
            merged
        })
    }

    fn unread(&mut self, records: usize) {
        let Self { left, right, merge, .. } = self;
        merge.take_back(records, |input, records| {
            if input == LEFT { left.unread(records) } else { right.unread(records) }
        });
    }

    fn fail_on_stall(&mut self) {
        Source::fail_on_stall(&mut self.left);
        Source::fail_on_stall(&mut self.right);
    }

    fn job(&self) -> Option<JobLink> {
        Source::job(&self.left).or_else(|| Source::job(&self.right))
    }

    fn behind(&self, behind: &mut Behind) {
        self.merge.behind(behind);
        self.left.behind(behind);
        self.right.behind(behind);
    }
}

impl<T, A: Source<T>, U, B: Source<U>> Drop for ConnectSource<T, A, U, B> {
    fn drop(&mut self) {
        for input in self.merge.waiting() {
            if input == LEFT { self.left.unread(1) } else { self.right.unread(1) }
        }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> fmt::Debug for ConnectSource<T, A, U, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectSource").field("merge", &self.merge).finish_non_exhaustive()
    }
}

/// The streams of the two-input function `P`.
pub type CoStreams<T, A, U, B, P> = OperatorStreams<ConnectSource<T, A, U, B>, Co<P>>;

/// The streams of the closures `L` and `R`.
pub type CoFnStreams<T, A, U, B, L, R, S> = CoStreams<T, A, U, B, CoFn<L, R, T, U, S>>;

/// The streams of the two-input function `P` on keys that `F` and `G` give.
pub type KeyedCoStreams<T, A, U, B, P, F, G> =
    OperatorStreams<ConnectSource<T, A, U, B>, KeyedCo<P, F, G>>;

/// The same, with the clock `Ck`.
pub type ClockedCoStreams<T, A, U, B, P, F, G, Ck> =
    ClockedStreams<ConnectSource<T, A, U, B>, KeyedCo<P, F, G>, Ck>;

type KeyedCoDrive<T, A, U, B, P, F, G> = Drive<ConnectSource<T, A, U, B>, KeyedCo<P, F, G>>;

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
        BroadcastConnected { stream: self, config, config_first: false, name: Unnamed }
    }
}

impl<T, A: Source<T>, U, B: Source<U>> Connected<T, A, U, B> {
    /// Routes the records of both streams by `function`.
    #[track_caller]
    pub fn process<F>(self, function: F) -> CoStreams<T, A, U, B, F>
    where
        F: CoProcess<Left = T, Right = U, Out: Streamed>,
    {
        let source = ConnectSource::new(self.left, self.right, false);
        open(source, Co::new(function), ByPlace, Location::caller())
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
    #[track_caller]
    pub fn process_with<S, L, R, V, W>(self, left: L, right: R) -> CoFnStreams<T, A, U, B, L, R, S>
    where
        S: Streamed,
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
///
/// `N` is the name of the state, [`Unnamed`] unless [`uid`](Self::uid) gave it one, here or on the
/// first stream.
pub struct KeyedConnected<Left, Right, N = Unnamed> {
    left: Left,
    right: Right,
    name: N,
}

/// Two streams with keys of the type `K`, side by side.
pub type ConnectedByKey<T, U, K, F, G, A, B, N = Unnamed> =
    KeyedConnected<KeyedStream<T, K, F, A>, KeyedStream<U, K, G, B>, N>;

impl<T, K, F, A, N> KeyedStream<T, K, F, A, N>
where
    A: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Connects two keyed streams for a function on both, with state and timers for each key.
    ///
    /// Each input is in its own order. Which of them comes first where both have records ready is
    /// not defined; a function for which that matters goes by the timestamps, as
    /// [`reconcile`](Self::reconcile) does.
    pub fn connect<U, G, B>(
        self,
        other: KeyedStream<U, K, G, B>,
    ) -> ConnectedByKey<T, U, K, F, G, A, B, N>
    where
        B: Source<U>,
        G: FnMut(&U) -> K,
    {
        let Self { stream, key, name } = self;
        let left = KeyedStream { stream, key, name: Unnamed };
        KeyedConnected { left, right: other, name }
    }

    /// Connects this keyed stream with one that configures its function.
    pub fn connect_broadcast<U, B: Source<U>>(
        self,
        config: DataStream<U, B>,
    ) -> BroadcastConnected<KeyedStream<T, K, F, A>, U, B, N> {
        let Self { stream, key, name } = self;
        let stream = KeyedStream { stream, key, name: Unnamed };
        BroadcastConnected { stream, config, config_first: false, name }
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
    #[track_caller]
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
        N: Naming<KeyedCo<Reconcile<K, T, U>, F, G>>,
    {
        self.connect(other).process(Reconcile::new(within))
    }
}

#[cfg(feature = "job")]
impl<Left, Right> KeyedConnected<Left, Right> {
    /// Names the state of the function that comes next: a [job](crate::stream::job::Job) saves it
    /// under this name.
    ///
    /// From here on the key, and what the function keeps, must be serializable.
    pub fn uid(self, name: impl Into<String>) -> KeyedConnected<Left, Right, Uid> {
        let Self { left, right, .. } = self;
        KeyedConnected { left, right, name: Uid::new(name) }
    }
}

impl<T, U, K, F, G, A, B, N> KeyedConnected<KeyedStream<T, K, F, A>, KeyedStream<U, K, G, B>, N>
where
    A: Source<T>,
    B: Source<U>,
    F: FnMut(&T) -> K,
    G: FnMut(&U) -> K,
{
    /// Routes the records of both streams by `function`, with state and timers for each key.
    #[track_caller]
    pub fn process<P>(self, function: P) -> KeyedCoStreams<T, A, U, B, P, F, G>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U, Out: Streamed>,
        N: Naming<KeyedCo<P, F, G>>,
    {
        let at = Location::caller();
        Hub::open_at(self.drive(function, at), at)
    }

    /// Routes the records of both streams by `function`, which may set timers by the time of
    /// `clock` too.
    #[track_caller]
    pub fn process_with_clock<P, Ck>(
        self,
        function: P,
        clock: Ck,
    ) -> ClockedCoStreams<T, A, U, B, P, F, G, Ck>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U, Out: Streamed>,
        Ck: Clock,
        N: Naming<KeyedCo<P, F, G>>,
    {
        let at = Location::caller();
        Hub::open_at(Clocked::new(self.drive(function, at), clock), at)
    }

    fn drive<P>(
        self,
        function: P,
        at: &'static Location<'static>,
    ) -> KeyedCoDrive<T, A, U, B, P, F, G>
    where
        P: KeyedCoProcess<Key = K, Left = T, Right = U, Out: Streamed>,
        N: Naming<KeyedCo<P, F, G>>,
    {
        let Self { left, right, name } = self;
        let mut operator = KeyedCo::new(left.key, right.key, function);
        let source = ConnectSource::new(left.stream, right.stream, false);
        let saving = name.tie(source.job(), &mut operator, at);
        Drive::saved(source, operator, saving)
    }
}

impl<Left, Right, N> fmt::Debug for KeyedConnected<Left, Right, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedConnected")
    }
}

/// A stream, keyed or not, and the one that configures its function. Made by
/// [`DataStream::connect_broadcast`] and [`KeyedStream::connect_broadcast`].
///
/// `N` is the name of the state, [`Unnamed`] unless [`uid`](Self::uid) gave it one.
pub struct BroadcastConnected<St, U, B: Source<U>, N = Unnamed> {
    stream: St,
    config: DataStream<U, B>,
    config_first: bool,
    name: N,
}

#[cfg(feature = "job")]
impl<St, U, B: Source<U>> BroadcastConnected<St, U, B> {
    /// Names the state of the function that comes next: a [job](crate::stream::job::Job) saves it
    /// under this name.
    ///
    /// From here on the configuration, records that wait for one, and what the function keeps must be
    /// serializable.
    pub fn uid(self, name: impl Into<String>) -> BroadcastConnected<St, U, B, Uid> {
        let Self { stream, config, config_first, .. } = self;
        BroadcastConnected { stream, config, config_first, name: Uid::new(name) }
    }
}

impl<St, U, B: Source<U>, N> BroadcastConnected<St, U, B, N> {
    /// Reads the configuration to its end before the first record: for bounded runs.
    #[must_use]
    pub const fn config_first(mut self) -> Self {
        self.config_first = true;
        self
    }
}

impl<T, A: Source<T>, U, B: Source<U>, N> BroadcastConnected<DataStream<T, A>, U, B, N> {
    /// Routes the records by `function`, which the second stream configures.
    #[track_caller]
    pub fn process<F>(self, function: F) -> OperatorStreams<ConnectSource<T, A, U, B>, Broadcast<F>>
    where
        F: BroadcastProcess<In = T, Update = U, Out: Streamed>,
        N: Naming<Broadcast<F>>,
    {
        let source = ConnectSource::new(self.stream, self.config, self.config_first);
        open(source, Broadcast::new(function), self.name, Location::caller())
    }
}

impl<T, K, By, A, U, B, N> BroadcastConnected<KeyedStream<T, K, By, A>, U, B, N>
where
    A: Source<T>,
    B: Source<U>,
    By: FnMut(&T) -> K,
{
    /// Routes the records by `function`, which the second stream configures, with state and timers
    /// for each key.
    #[track_caller]
    pub fn process<F>(
        self,
        function: F,
    ) -> OperatorStreams<ConnectSource<T, A, U, B>, KeyedBroadcast<F, By>>
    where
        F: KeyedBroadcastProcess<Key = K, In = T, Update = U, Out: Streamed>,
        N: Naming<KeyedBroadcast<F, By>>,
    {
        let at = Location::caller();
        Hub::open_at(self.drive(function, at), at)
    }

    /// Routes the records by `function`, which the second stream configures, and which may set
    /// timers by the time of `clock` too.
    #[track_caller]
    pub fn process_with_clock<F, Ck>(
        self,
        function: F,
        clock: Ck,
    ) -> ClockedStreams<ConnectSource<T, A, U, B>, KeyedBroadcast<F, By>, Ck>
    where
        F: KeyedBroadcastProcess<Key = K, In = T, Update = U, Out: Streamed>,
        Ck: Clock,
        N: Naming<KeyedBroadcast<F, By>>,
    {
        let at = Location::caller();
        Hub::open_at(Clocked::new(self.drive(function, at), clock), at)
    }

    fn drive<F>(
        self,
        function: F,
        at: &'static Location<'static>,
    ) -> Drive<ConnectSource<T, A, U, B>, KeyedBroadcast<F, By>>
    where
        F: KeyedBroadcastProcess<Key = K, In = T, Update = U, Out: Streamed>,
        N: Naming<KeyedBroadcast<F, By>>,
    {
        let KeyedStream { stream, key, .. } = self.stream;
        let source = ConnectSource::new(stream, self.config, self.config_first);
        let mut operator = KeyedBroadcast::new(key, function);
        let saving = self.name.tie(source.job(), &mut operator, at);
        Drive::saved(source, operator, saving)
    }
}

impl<St, U, B: Source<U>, N> fmt::Debug for BroadcastConnected<St, U, B, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastConnected")
            .field("config_first", &self.config_first)
            .finish_non_exhaustive()
    }
}
