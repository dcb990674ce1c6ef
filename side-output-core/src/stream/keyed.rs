#[cfg(feature = "job")]
use super::Uid;
use super::data_stream::open;
use super::{
    Clocked, ClockedStreams, DataStream, Drive, Hub, Naming, OperatorStreams, Source, Unnamed,
};
use crate::operator::{KeyContext, Keyed, KeyedFn, KeyedProcess};
use crate::output::Routes;
use crate::stream::Streamed;
use crate::time::Clock;
use std::fmt;
use std::hash::Hash;
use std::panic::Location;

/// A stream whose records belong to keys: state, timers and windows are kept for each.
///
/// Made by [`DataStream::key_by`].
///
/// `N` is the name of the state, [`Unnamed`] unless [`uid`](Self::uid) gave it one.
pub struct KeyedStream<T, K, F, Src, N = Unnamed>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    pub(super) stream: DataStream<T, Src>,
    pub(super) key: F,
    pub(super) name: N,
}

/// The streams of the function `P` on keys that `F` gives.
pub type KeyedStreams<T, Src, P, F> = OperatorStreams<DataStream<T, Src>, Keyed<P, F>>;

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// Groups the records by the key that `key` gives.
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<T, K, F, Src>
    where
        K: Hash + Eq + Clone,
        F: FnMut(&T) -> K,
    {
        KeyedStream { stream: self, key, name: Unnamed }
    }
}

#[cfg(feature = "job")]
impl<T, K, F, Src> KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Names the state of the function that comes next: a [job](crate::stream::job::Job) saves it
    /// under this name.
    ///
    /// From here on the key, and what the function keeps, must be serializable. Outside of a job
    /// nothing is saved.
    pub fn uid(self, name: impl Into<String>) -> KeyedStream<T, K, F, Src, Uid> {
        let Self { stream, key, .. } = self;
        KeyedStream { stream, key, name: Uid::new(name) }
    }
}

#[cfg(feature = "job")]
impl<T, K, F, Src> KeyedStream<T, K, F, Src, Uid>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// The version of the types that are saved, 1 without this. What was saved with another one is
    /// refused.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.name.version = version;
        self
    }
}

impl<T, K, F, Src, N> KeyedStream<T, K, F, Src, N>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Routes the records by `function`, with state and timers for each key.
    #[track_caller]
    pub fn process<P>(self, function: P) -> KeyedStreams<T, Src, P, F>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
        N: Naming<Keyed<P, F>>,
    {
        let Self { stream, key, name } = self;
        open(stream, Keyed::new(key, function), name, Location::caller())
    }

    /// Routes the records by `function`, which may set timers by the time of `clock` too.
    ///
    /// # Examples
    ///
    /// An alert when a machine is silent, although nothing else happens:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{KeyedContext, KeyedProcess, TestClock};
    /// use std::time::Duration;
    ///
    /// #[splitter]
    /// enum Machines {
    ///     #[main]
    ///     Heard(&'static str),
    ///     Silent(String),
    /// }
    ///
    /// struct Watch;
    ///
    /// impl KeyedProcess for Watch {
    ///     type Key = &'static str;
    ///     type In = &'static str;
    ///     type State = ();
    ///     type Out = Machines;
    ///
    ///     fn on_record(
    ///         &mut self,
    ///         machine: &'static str,
    ///         _state: &mut (),
    ///         cx: &mut KeyedContext<Self>,
    ///     ) -> impl Routes<Machines> {
    ///         if let Some(now) = cx.now() {
    ///             cx.set_processing_timer(now + Duration::from_secs(30));
    ///         }
    ///         Machines::Heard(machine)
    ///     }
    ///
    ///     fn on_processing_timer(
    ///         &mut self,
    ///         _at: Timestamp,
    ///         _state: &mut (),
    ///         cx: &mut KeyedContext<Self>,
    ///     ) -> impl Routes<Machines> {
    ///         Machines::Silent(cx.key().to_string())
    ///     }
    /// }
    ///
    /// let clock = TestClock::at(Timestamp::EPOCH);
    /// let machines = stream::iter(["press"]).chain(stream::pending());
    /// let MachinesStreams { heard, mut silent } = DataStream::from_stream(machines)
    ///     .key_by(|machine: &&'static str| *machine)
    ///     .process_with_clock(Watch, clock.clone());
    /// block_on(async {
    ///     let mut heard = heard;
    ///     assert_eq!(heard.next().await, Some("press"));
    ///     clock.advance(Duration::from_secs(30));
    ///     assert_eq!(silent.next().await, Some("press".to_owned()));
    /// });
    /// ```
    #[track_caller]
    pub fn process_with_clock<P, Ck>(
        self,
        function: P,
        clock: Ck,
    ) -> ClockedStreams<DataStream<T, Src>, Keyed<P, F>, Ck>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
        Ck: Clock,
        N: Naming<Keyed<P, F>>,
    {
        let Self { stream, key, name } = self;
        let at = Location::caller();
        let mut operator = Keyed::new(key, function);
        let saving = name.tie(stream.job(), &mut operator, at);
        Hub::open_at(Clocked::new(Drive::saved(stream, operator, saving), clock), at)
    }

    /// Routes the records by a closure, with state for each key.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::KeyContext;
    /// use side_output::prelude::*;
    ///
    /// #[splitter]
    /// enum Visits {
    ///     First(char),
    ///     Again(char),
    /// }
    ///
    /// let VisitsStreams { first, again } = DataStream::from_stream(stream::iter("abba".chars()))
    ///     .key_by(|visitor: &char| *visitor)
    ///     .process_with(|visitor, seen: &mut bool, _: &mut KeyContext<char, Visits>| {
    ///         if std::mem::replace(seen, true) {
    ///             Visits::Again(visitor)
    ///         } else {
    ///             Visits::First(visitor)
    ///         }
    ///     });
    /// again.discard();
    /// assert_eq!(block_on(first.collect::<Vec<_>>()), ['a', 'b']);
    /// ```
    #[track_caller]
    pub fn process_with<S, St, P, R>(
        self,
        function: P,
    ) -> KeyedStreams<T, Src, KeyedFn<P, K, T, St, S>, F>
    where
        K: Hash + Eq + Clone,
        S: Streamed,
        St: Default,
        R: Routes<S>,
        P: FnMut(T, &mut St, &mut KeyContext<K, S>) -> R,
        N: Naming<Keyed<KeyedFn<P, K, T, St, S>, F>>,
    {
        self.process(KeyedFn::new(function))
    }
}

impl<T, K, F, Src, N> fmt::Debug for KeyedStream<T, K, F, Src, N>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}
