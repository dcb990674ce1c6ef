use super::{Merged, Separate, Window};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// What a window does after a record or a timer.
///
/// # Examples
///
/// What a trigger decides, it can be asked in a unit test:
///
/// ```
/// use side_output::Verdict;
///
/// fn by_size(records: usize) -> Verdict {
///     if records < 1000 { Verdict::Continue } else { Verdict::FireAndPurge }
/// }
///
/// assert_eq!(by_size(1000), Verdict::FireAndPurge);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Nothing.
    Continue,
    /// Say what it holds.
    Fire,
    /// Forget what it holds.
    Purge,
    /// Say what it holds and forget it.
    FireAndPurge,
}

impl Verdict {
    pub(crate) const fn fires(self) -> bool {
        matches!(self, Self::Fire | Self::FireAndPurge)
    }

    pub(crate) const fn purges(self) -> bool {
        matches!(self, Self::Purge | Self::FireAndPurge)
    }
}

/// Says when a window fires.
///
/// A trigger is one for all windows; what it has to remember of one is its `State`, plain data.
/// Its timers belong to the window too, and go with it. Windows that merge need a
/// [`MergingTrigger`].
///
/// # Examples
///
/// A window that fires as soon as a record says so:
///
/// ```
/// use side_output::{Timestamp, Trigger, TriggerContext, Verdict};
///
/// struct OnMarker;
///
/// impl Trigger<char> for OnMarker {
///     type State = ();
///
///     fn on_record(&mut self, record: &char, _: Timestamp, (): &mut (), _: &mut TriggerContext<'_>) -> Verdict {
///         if *record == '!' { Verdict::FireAndPurge } else { Verdict::Continue }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trigger for records of type `{T}`",
    label = "expected `EventTime`, `EveryCount`, `ContinuousEventTime`, `Purging` or a `Trigger` of \
             your own"
)]
pub trait Trigger<T> {
    /// What it remembers of one window of one key.
    type State: Default;

    /// Whether it does what [`EventTime`] does and nothing else, which has a faster way.
    #[doc(hidden)]
    const AT_END: bool = false;

    /// A record was added to the window.
    fn on_record(
        &mut self,
        value: &T,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict;

    /// The watermark has reached a timer of this window.
    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        let _ = (at, state, cx);
        Verdict::Continue
    }
}

/// A trigger of windows that merge.
///
/// # Examples
///
/// Sessions that fire as soon as they have a hundred records, and at their end:
///
/// ```
/// use side_output::{EventTime, MergingTrigger, Timestamp, Trigger, TriggerContext, Verdict};
///
/// struct AtHundred;
///
/// impl<T> Trigger<T> for AtHundred {
///     type State = u32;
///
///     fn on_record(
///         &mut self,
///         record: &T,
///         at: Timestamp,
///         count: &mut u32,
///         cx: &mut TriggerContext<'_>,
///     ) -> Verdict {
///         *count += 1;
///         let at_end = EventTime.on_record(record, at, &mut (), cx);
///         if *count == 100 { Verdict::Fire } else { at_end }
///     }
///
///     fn on_timer(&mut self, _: Timestamp, _: &mut u32, _: &mut TriggerContext<'_>) -> Verdict {
///         Verdict::Fire
///     }
/// }
///
/// impl<T> MergingTrigger<T> for AtHundred {
///     fn on_merge(&mut self, count: &mut u32, other: u32, _: &mut TriggerContext<'_>) {
///         *count += other;
///     }
/// }
/// ```
pub trait MergingTrigger<T>: Trigger<T> {
    /// The window has swallowed another one, whose state is `other`, or has grown, and `other` is
    /// the default. The timers of both are gone: register what the merged window needs, unless
    /// [`on_record`](Trigger::on_record), which comes next, does.
    fn on_merge(
        &mut self,
        state: &mut Self::State,
        other: Self::State,
        cx: &mut TriggerContext<'_>,
    );
}

/// A trigger of windows that are [`Separate`](super::Separate), which any is, or
/// [`Merged`](super::Merged), which a [`MergingTrigger`] is: `M` is the one or the other.
#[diagnostic::on_unimplemented(
    message = "the trigger `{Self}` does not say how it merges, and these windows merge",
    label = "`{Self}` has to implement `MergingTrigger<{T}>`",
    note = "`EventTime`, `EveryCount`, `ContinuousEventTime` and `Purging` of one of these do"
)]
pub trait TriggerOf<T, M>: Trigger<T> {
    /// The window has merged or grown; see [`MergingTrigger::on_merge`].
    #[doc(hidden)]
    fn merge(&mut self, state: &mut Self::State, other: Self::State, cx: &mut TriggerContext<'_>);
}

impl<T, Tr: Trigger<T>> TriggerOf<T, Separate> for Tr {
    fn merge(&mut self, _: &mut Self::State, _: Self::State, _: &mut TriggerContext<'_>) {}
}

#[diagnostic::do_not_recommend]
impl<T, Tr: MergingTrigger<T>> TriggerOf<T, Merged> for Tr {
    fn merge(&mut self, state: &mut Self::State, other: Self::State, cx: &mut TriggerContext<'_>) {
        self.on_merge(state, other, cx);
    }
}

/// All timers of an operator's windows: the time, the window's age, and where it is kept.
pub type Timers = BTreeSet<(Timestamp, u64, u32)>;

/// The window that a trigger is asked about.
///
/// # Examples
///
/// A trigger that also fires in the middle of its window:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Count, Trigger, TriggerContext, Verdict};
/// use std::time::Duration;
///
/// struct AtHalfTime;
///
/// impl<T> Trigger<T> for AtHalfTime {
///     type State = ();
///
///     fn on_record(&mut self, _: &T, _: Timestamp, (): &mut (), cx: &mut TriggerContext<'_>) -> Verdict {
///         let window = cx.window();
///         let length = window.end().millis_since(window.start());
///         let half = window.start().saturating_add_millis(length / 2 - 1);
///         if half > cx.watermark() {
///             cx.register_timer(half);
///         }
///         cx.register_timer(window.max_timestamp());
///         Verdict::Continue
///     }
///
///     fn on_timer(&mut self, _: Timestamp, (): &mut (), _: &mut TriggerContext<'_>) -> Verdict {
///         Verdict::Fire
///     }
/// }
///
/// let counts = DataStream::from_stream(stream::iter([1, 30, 40]))
///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
///     .window_all(Tumbling::of(Duration::from_secs(60)))
///     .trigger(AtHalfTime)
///     .drop_late_data()
///     .aggregate(Count::new());
/// let counts: Vec<u64> = block_on(counts.map(|count| count.value).collect());
/// assert_eq!(counts, [2, 3]);
/// ```
pub struct TriggerContext<'a> {
    pub(crate) window: Window,
    pub(crate) watermark: Timestamp,
    /// When the window's state is freed: a timer of the operator's own.
    pub(crate) cleanup: Timestamp,
    pub(crate) own: &'a mut Vec<Timestamp>,
    pub(crate) all: &'a mut Timers,
    pub(crate) age: u64,
    pub(crate) slot: u32,
}

impl TriggerContext<'_> {
    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The current watermark.
    #[must_use]
    pub const fn watermark(&self) -> Timestamp {
        self.watermark
    }

    /// Calls [`Trigger::on_timer`] once the watermark has reached `at`. Once, however often it is
    /// registered; with the next watermark, if it is at or behind the current one.
    pub fn register_timer(&mut self, at: Timestamp) {
        if !self.own.contains(&at) {
            self.own.push(at);
            self.all.insert((at, self.age, self.slot));
        }
    }

    /// Forgets the timer at `at`.
    pub fn delete_timer(&mut self, at: Timestamp) {
        if let Some(index) = self.own.iter().position(|own| *own == at) {
            self.own.swap_remove(index);
            if at != self.cleanup {
                self.all.remove(&(at, self.age, self.slot));
            }
        }
    }
}

impl fmt::Debug for TriggerContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TriggerContext")
            .field("window", &self.window)
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}

/// Fires at the end of the window, and then after each late record: the trigger of windows that
/// end.
///
/// # Examples
///
/// It is named only where another trigger wraps it, or a description of windows asks for one:
///
/// ```
/// use side_output::{Assigner, EventTime, Purging, Tumbling};
///
/// fn trigger_of<A: Assigner>(_: &A) -> A::Trigger {
///     A::Trigger::default()
/// }
///
/// assert_eq!(trigger_of(&Tumbling::of(std::time::Duration::from_secs(60))), EventTime);
/// let changes_only = Purging(EventTime);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTime;

impl<T> Trigger<T> for EventTime {
    type State = ();
    const AT_END: bool = true;

    fn on_record(
        &mut self,
        _value: &T,
        _at: Timestamp,
        (): &mut (),
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        let end = cx.window.max_timestamp();
        if end <= cx.watermark {
            return Verdict::Fire;
        }
        cx.register_timer(end);
        Verdict::Continue
    }

    fn on_timer(&mut self, at: Timestamp, (): &mut (), cx: &mut TriggerContext<'_>) -> Verdict {
        if at == cx.window.max_timestamp() { Verdict::Fire } else { Verdict::Continue }
    }
}

impl<T> MergingTrigger<T> for EventTime {
    fn on_merge(&mut self, (): &mut (), (): (), cx: &mut TriggerContext<'_>) {
        let end = cx.window.max_timestamp();
        if end > cx.watermark {
            cx.register_timer(end);
        }
    }
}

/// Never fires: the trigger of [`Global`](super::Global) windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Never;

impl<T> Trigger<T> for Never {
    type State = ();

    fn on_record(
        &mut self,
        _value: &T,
        _at: Timestamp,
        (): &mut (),
        _cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        Verdict::Continue
    }
}

/// Fires after every n-th record of a window, and not at its end: a rest of fewer is never said.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Count, EveryCount};
///
/// let counts = DataStream::from_stream(stream::iter(0..7))
///     .window_all(Global)
///     .trigger(EveryCount::new(3))
///     .drop_late_data()
///     .aggregate(Count::new());
/// let counts: Vec<_> = block_on(counts.map(|result| (result.value, result.pane)).collect());
/// assert_eq!(counts, [(3, Pane::Early(1)), (6, Pane::Early(2))]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EveryCount {
    count: u64,
}

impl EveryCount {
    /// Fires after every `count` records.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { count }
    }
}

impl<T> Trigger<T> for EveryCount {
    type State = u64;

    fn on_record(
        &mut self,
        _value: &T,
        _at: Timestamp,
        seen: &mut u64,
        _cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        *seen += 1;
        if *seen < self.count {
            return Verdict::Continue;
        }
        *seen = 0;
        Verdict::Fire
    }
}

impl<T> MergingTrigger<T> for EveryCount {
    fn on_merge(&mut self, seen: &mut u64, other: u64, _cx: &mut TriggerContext<'_>) {
        *seen += other;
    }
}

/// Fires early, whenever the watermark has come to a multiple of the interval, and at the end of
/// the window; then after each late record.
///
/// At the end of the input, the early firings of a window come too, unless
/// [`timers_at_end`](crate::stream::WindowedStream::timers_at_end) drops them; a window without an
/// end fires once.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{ContinuousEventTime, Count};
/// use std::time::Duration;
///
/// let counts = DataStream::from_stream(stream::iter([1, 5, 11, 25, 61]))
///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
///     .window_all(Tumbling::of(Duration::from_secs(60)))
///     .trigger(ContinuousEventTime::every(Duration::from_secs(20)))
///     .drop_late_data()
///     .aggregate(Count::new());
/// let counts: Vec<_> = block_on(counts.map(|result| (result.value, result.pane)).collect());
/// assert_eq!(counts[..2], [(4, Pane::Early(1)), (4, Pane::Early(2))]);
/// assert_eq!(counts[2], (4, Pane::OnTime));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuousEventTime {
    interval: i64,
}

impl ContinuousEventTime {
    /// Fires every `interval`, for the first time at its first multiple after the first record,
    /// counted from 1970; before 1970, at the one after that, as in Apache Flink.
    ///
    /// # Panics
    ///
    /// If `interval` is less than a millisecond.
    #[must_use]
    #[track_caller]
    pub fn every(interval: Duration) -> Self {
        Self { interval: super::assigner::length(interval, "interval") }
    }

    /// The firing after `at`, but at the end of the window at the latest. It need not be a
    /// multiple: a session may have grown after it.
    fn after(self, at: Timestamp, cx: &mut TriggerContext<'_>) -> Timestamp {
        let next = at.saturating_add_millis(self.interval).min(cx.window.max_timestamp());
        cx.register_timer(next);
        next
    }
}

impl<T> Trigger<T> for ContinuousEventTime {
    /// The next early firing.
    type State = Option<Timestamp>;

    fn on_record(
        &mut self,
        _value: &T,
        at: Timestamp,
        next: &mut Option<Timestamp>,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        let end = cx.window.max_timestamp();
        if end <= cx.watermark {
            return Verdict::Fire;
        }
        cx.register_timer(end);
        if next.is_none() {
            // Towards zero, also before 1970.
            let multiple = at.saturating_sub_millis(at.as_millis() % self.interval);
            *next = Some(self.after(multiple, cx));
        }
        Verdict::Continue
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        next: &mut Option<Timestamp>,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        if at == cx.window.max_timestamp() {
            return Verdict::Fire;
        }
        // At the end of the input, a window without an end fires once, at its own end: after this
        // firing, others would come for ever.
        let last = cx.watermark == Timestamp::MAX && cx.window.max_timestamp() == Timestamp::MAX;
        if *next != Some(at) || last {
            return Verdict::Continue;
        }
        *next = Some(self.after(at, cx));
        Verdict::Fire
    }
}

impl<T> MergingTrigger<T> for ContinuousEventTime {
    fn on_merge(
        &mut self,
        next: &mut Option<Timestamp>,
        other: Option<Timestamp>,
        cx: &mut TriggerContext<'_>,
    ) {
        let end = cx.window.max_timestamp();
        if end > cx.watermark {
            cx.register_timer(end);
        }
        *next = [*next, other].into_iter().flatten().min();
        if let Some(next) = *next {
            cx.register_timer(next);
        }
    }
}

/// Forgets what a window holds whenever `.0` fires: each firing then tells only what is new.
///
/// # Examples
///
/// A late record makes its window say what it adds, not the whole again:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Count, Element, EventTime, Purging};
/// use std::time::Duration;
///
/// let at = Timestamp::from_secs;
/// let records = stream::iter([
///     Element::record('a', at(1)),
///     Element::record('b', at(2)),
///     Element::watermark(at(60)),
///     Element::record('c', at(3)),
/// ]);
/// let added = DataStream::from_elements(records)
///     .window_all(Tumbling::of(Duration::from_secs(60)))
///     .allowed_lateness(Duration::from_secs(60))
///     .trigger(Purging(EventTime))
///     .drop_late_data()
///     .aggregate(Count::new());
/// let added: Vec<_> = block_on(added.map(|result| (result.value, result.pane)).collect());
/// assert_eq!(added, [(2, Pane::OnTime), (1, Pane::Late(1))]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purging<Tr>(pub Tr);

const fn purging(verdict: Verdict) -> Verdict {
    if matches!(verdict, Verdict::Fire) { Verdict::FireAndPurge } else { verdict }
}

impl<T, Tr: Trigger<T>> Trigger<T> for Purging<Tr> {
    type State = Tr::State;

    fn on_record(
        &mut self,
        value: &T,
        at: Timestamp,
        state: &mut Tr::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        purging(self.0.on_record(value, at, state, cx))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Tr::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        purging(self.0.on_timer(at, state, cx))
    }
}

impl<T, Tr: MergingTrigger<T>> MergingTrigger<T> for Purging<Tr> {
    fn on_merge(&mut self, state: &mut Tr::State, other: Tr::State, cx: &mut TriggerContext<'_>) {
        self.0.on_merge(state, other, cx);
    }
}
