use super::{Clocked, ClockedStreams, DataStream, Drive, Hub, OperatorStreams, Source};
use crate::operator::{KeyContext, Keyed, KeyedFn, KeyedProcess};
use crate::output::Routes;
use crate::stream::Streamed;
use crate::time::Clock;
use std::fmt;
use std::hash::Hash;

/// A stream whose records belong to keys: state, timers and windows are kept for each.
///
/// Made by [`DataStream::key_by`].
pub struct KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    pub(super) stream: DataStream<T, Src>,
    pub(super) key: F,
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
        KeyedStream { stream: self, key }
    }
}

impl<T, K, F, Src> KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    /// Routes the records by `function`, with state and timers for each key.
    pub fn process<P>(self, function: P) -> KeyedStreams<T, Src, P, F>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
    {
        self.stream.drive(Keyed::new(self.key, function))
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
    pub fn process_with_clock<P, Ck>(
        self,
        function: P,
        clock: Ck,
    ) -> ClockedStreams<DataStream<T, Src>, Keyed<P, F>, Ck>
    where
        P: KeyedProcess<Key = K, In = T, Out: Streamed>,
        Ck: Clock,
    {
        let drive = Drive::new(self.stream, Keyed::new(self.key, function));
        Hub::open(Clocked::new(drive, clock))
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
    {
        self.process(KeyedFn::new(function))
    }
}

impl<T, K, F, Src> fmt::Debug for KeyedStream<T, K, F, Src>
where
    Src: Source<T>,
    F: FnMut(&T) -> K,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}
