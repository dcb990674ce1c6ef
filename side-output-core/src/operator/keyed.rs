#[cfg(feature = "job")]
mod snapshot;

use super::key_context::OwnKeyContext;
use super::{AtEnd, Either, KeyedCoProcess, KeyedProcess, Operator, TimerChange};
use crate::error::StreamError;
use crate::output::{Collect, Collector, Routes as _};
use crate::state::{Due, Keys, WORK};
use crate::time::{Mark, Timestamp, saturating_millis};
use rustc_hash::FxHashMap;
use std::{fmt, mem};

/// State, timers and time around a keyed function, whatever its inputs are.
pub(super) struct KeyedCore<F: KeyedCoProcess> {
    pub(super) function: F,
    keys: Keys<F::Key, F::State>,
    cx: OwnKeyContext<F::Key, F::Out>,
    watermark: Timestamp,
    /// Timers are due at the current watermark, or the mark is still to be forwarded.
    firing: bool,
    time_to_live: Option<i64>,
    delay: i64,
    /// Last watermark of the outputs.
    forwarded: Timestamp,
    at_end: AtEnd,
    /// Timers beyond this are dropped at the end of the input.
    horizon: Timestamp,
    /// How many timers each key has set at the end of the input.
    renewals: FxHashMap<u32, u32>,
    /// The input is idle, and the outputs are not: what is kept may be emitted behind the
    /// watermark.
    idle: bool,
}

/// How a function is entered with the state of a key.
pub(super) trait Enter<F: KeyedCoProcess> {
    fn enter<C: Collect<F::Out>>(
        self,
        function: &mut F,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;
}

pub(super) struct Left<T>(pub(super) T);
pub(super) struct Right<T>(pub(super) T);
struct DueByWatermark;
struct DueByClock(Timestamp);

impl<F: KeyedCoProcess> Enter<F> for Left<F::Left> {
    #[inline]
    fn enter<C: Collect<F::Out>>(
        self,
        function: &mut F,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        function.on_left(self.0, state, cx).route(at, out)
    }
}

impl<F: KeyedCoProcess> Enter<F> for Right<F::Right> {
    #[inline]
    fn enter<C: Collect<F::Out>>(
        self,
        function: &mut F,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        function.on_right(self.0, state, cx).route(at, out)
    }
}

impl<F: KeyedCoProcess> Enter<F> for DueByWatermark {
    #[inline]
    fn enter<C: Collect<F::Out>>(
        self,
        function: &mut F,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        function.on_timer(at, state, cx).route(at, out)
    }
}

impl<F: KeyedCoProcess> Enter<F> for DueByClock {
    fn enter<C: Collect<F::Out>>(
        self,
        function: &mut F,
        state: &mut F::State,
        cx: &mut OwnKeyContext<F::Key, F::Out>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        function.on_processing_timer(self.0, state, cx).route(at, out)
    }
}

impl<F: KeyedCoProcess> KeyedCore<F> {
    pub(super) fn new(function: F) -> Self {
        let time_to_live = function.time_to_live().map(saturating_millis);
        let delay = saturating_millis(function.output_delay());
        let at_end = function.timers_at_end();
        Self {
            function,
            keys: Keys::new(),
            cx: OwnKeyContext::new(),
            watermark: Timestamp::MIN,
            firing: false,
            time_to_live,
            delay,
            forwarded: Timestamp::MIN,
            at_end,
            horizon: Timestamp::MAX,
            renewals: FxHashMap::default(),
            idle: false,
        }
    }

    pub(super) const fn watermark(&self) -> Timestamp {
        self.watermark
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    pub(super) const fn timers(&self) -> usize {
        self.keys.timers()
    }

    /// Calls the function for a record of `key`.
    #[inline]
    pub(super) fn on_record<C: Collect<F::Out>>(
        &mut self,
        key: F::Key,
        record: impl Enter<F>,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let slot = self.keys.slot(key);
        self.call(slot, at, record, out)
    }

    #[inline]
    fn call<C: Collect<F::Out>>(
        &mut self,
        slot: u32,
        at: Timestamp,
        how: impl Enter<F>,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.cx.set(at, self.watermark);
        self.keys.touch(slot);
        let lent = self.keys.lend(slot);
        lent.swap_key(&mut self.cx.key);
        let routed = how.enter(&mut self.function, lent.state(), &mut self.cx, at, out);
        self.cx.flush(at, out);
        lent.swap_key(&mut self.cx.key);
        // The key is kept while it has state or timers; the timers are looked at below.
        let empty = F::is_empty(lent.state());
        if mem::take(&mut self.cx.clear) {
            self.cx.changes.clear();
            self.keys.remove(slot);
            return routed;
        }
        if !self.cx.changes.is_empty() {
            self.change_timers(slot, at)?;
        }
        if empty && self.keys.lend(slot).is_idle() {
            self.keys.remove(slot);
        } else if let Some(time_to_live) = self.time_to_live {
            // Without any time yet, there is nothing to count from.
            if let Some(from) = at.max(self.watermark).known() {
                self.keys.keep_until(slot, from.saturating_add_millis(time_to_live));
            }
        }
        routed
    }

    /// Does to the timers what the function asked for.
    fn change_timers(&mut self, slot: u32, at: Timestamp) -> Result<(), StreamError> {
        let ending = self.firing && self.watermark == Timestamp::MAX;
        for change in self.cx.changes.drain(..) {
            match change {
                // The highest time renews itself for ever: nothing comes after it.
                TimerChange::Set(Timestamp::MAX) if self.firing && at == Timestamp::MAX => {}
                TimerChange::Set(at) => {
                    let new = self.keys.set_timer(slot, at);
                    if ending {
                        note_renewal(&mut self.renewals, slot, new);
                    }
                }
                TimerChange::Delete(at) => _ = self.keys.delete_timer(slot, at),
                TimerChange::SetAlarm(_) if self.cx.now.is_none() => {
                    return Err(StreamError::failed(
                        "a processing-time timer needs a clock: use `process_with_clock`",
                    ));
                }
                TimerChange::SetAlarm(at) => _ = self.keys.set_alarm(slot, at),
                TimerChange::DeleteAlarm(at) => _ = self.keys.delete_alarm(slot, at),
            }
        }
        Ok(())
    }

    #[cold]
    fn check_renewals(&self, slot: u32) -> Result<(), StreamError> {
        match self.renewals.get(&slot) {
            Some(renewals) if self.at_end.forbids(*renewals) => {
                Err(AtEnd::endless::<F, F::Out>(renewals - 1))
            }
            _ => Ok(()),
        }
    }

    /// Forgets the key of a timer that does not fire, if there is nothing else of it.
    #[cold]
    fn drop_timer(&mut self, slot: u32) {
        self.keys.touch(slot);
        let lent = self.keys.lend(slot);
        if F::is_empty(lent.state()) && lent.is_idle() {
            self.keys.remove(slot);
        }
    }

    pub(super) fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let Mark::Watermark(watermark) = mark else {
            match mark {
                Mark::Idle if self.delay > 0 && !self.keys.is_empty() => {
                    self.idle = true;
                    out.swallow();
                }
                Mark::Active if mem::take(&mut self.idle) => out.swallow(),
                mark => out.mark(mark),
            }
            return Ok(());
        };
        if !self.firing {
            // Behind the exchange by key, a watermark that does not go forward says nothing.
            if watermark <= self.watermark {
                out.swallow();
                return Ok(());
            }
            if watermark == Timestamp::MAX {
                self.horizon = self.at_end.horizon(self.watermark);
            }
            self.watermark = watermark;
            self.firing = true;
        }
        let mut work = WORK;
        loop {
            if !out.may_fire() {
                return Ok(());
            }
            match self.keys.pop_due(watermark, &mut work) {
                Some(Due::Timer(slot, at)) if at > self.horizon && at != Timestamp::MAX => {
                    self.drop_timer(slot);
                    out.drop_timer();
                }
                Some(Due::Timer(slot, at)) => {
                    self.call(slot, at, DueByWatermark, out)?;
                    if !self.renewals.is_empty() {
                        self.check_renewals(slot)?;
                    }
                }
                Some(Due::Expired) => {}
                Some(Due::Busy) => return Ok(()),
                None => break,
            }
        }
        self.firing = false;
        let held = if watermark == Timestamp::MAX {
            self.renewals = FxHashMap::default();
            out.leave_timers(self.keys.alarms() as u64);
            watermark
        } else {
            watermark.saturating_sub_millis(self.delay)
        };
        if held > self.forwarded {
            self.forwarded = held;
            out.mark(Mark::Watermark(held));
        } else {
            out.swallow();
        }
        Ok(())
    }

    pub(super) fn on_clock<C: Collect<F::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.now = Some(now);
        let mut work = WORK;
        while self.keys.next_alarm().is_some_and(|next| next <= now) && out.may_fire() {
            match self.keys.pop_alarm(now, &mut work) {
                // A processing time is no event time: what is emitted carries no timestamp.
                Some(Due::Timer(slot, at)) => {
                    self.call(slot, Timestamp::MIN, DueByClock(at), out)?;
                }
                Some(Due::Expired) | None => {}
                Some(Due::Busy) => break,
            }
        }
        Ok(())
    }

    pub(super) fn alarm(&self) -> Option<Timestamp> {
        self.keys.next_alarm()
    }
}

/// Notes that a timer was set at the end of the input.
#[cold]
fn note_renewal(renewals: &mut FxHashMap<u32, u32>, slot: u32, new: bool) {
    *renewals.entry(slot).or_default() += u32::from(new);
}

impl<F: KeyedCoProcess> fmt::Debug for KeyedCore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedCore")
            .field("keys", &self.keys)
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}

/// The operator of a [`KeyedProcess`]; `By` gives the key of a record.
pub struct Keyed<F: KeyedProcess, By> {
    core: KeyedCore<F>,
    key: By,
}

impl<F: KeyedProcess, By: FnMut(&F::In) -> F::Key> Keyed<F, By> {
    /// An operator that calls `function` for records with the key that `key` gives.
    pub fn new(key: By, function: F) -> Self {
        Self { core: KeyedCore::new(function), key }
    }

    /// Number of keys with state or timers.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.core.keys()
    }

    /// Number of event-time timers that are set.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.core.timers()
    }
}

impl<F: KeyedProcess, By: FnMut(&F::In) -> F::Key> Operator for Keyed<F, By> {
    type In = F::In;
    type Out = F::Out;

    #[inline]
    fn on_record<C: Collect<F::Out>>(
        &mut self,
        value: F::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        let key = (self.key)(&value);
        self.core.on_record(key, Left(value), at, out)
    }

    fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_mark(mark, out)
    }

    fn on_clock<C: Collect<F::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_clock(now, out)
    }

    fn alarm(&self) -> Option<Timestamp> {
        self.core.alarm()
    }

    fn held(&self) -> u64 {
        self.core.keys() as u64
    }
}

impl<F: KeyedProcess, By> fmt::Debug for Keyed<F, By> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyed").field(&self.core).finish()
    }
}

/// The operator of a [`KeyedCoProcess`]; `ByLeft` and `ByRight` give the key of a record.
pub struct KeyedCo<F: KeyedCoProcess, ByLeft, ByRight> {
    core: KeyedCore<F>,
    left: ByLeft,
    right: ByRight,
}

impl<F, ByLeft, ByRight> KeyedCo<F, ByLeft, ByRight>
where
    F: KeyedCoProcess,
    ByLeft: FnMut(&F::Left) -> F::Key,
    ByRight: FnMut(&F::Right) -> F::Key,
{
    /// An operator that calls `function` for records with the keys that `left` and `right` give.
    pub fn new(left: ByLeft, right: ByRight, function: F) -> Self {
        Self { core: KeyedCore::new(function), left, right }
    }

    /// Number of keys with state or timers.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.core.keys()
    }

    /// Number of event-time timers that are set.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.core.timers()
    }
}

impl<F, ByLeft, ByRight> Operator for KeyedCo<F, ByLeft, ByRight>
where
    F: KeyedCoProcess,
    ByLeft: FnMut(&F::Left) -> F::Key,
    ByRight: FnMut(&F::Right) -> F::Key,
{
    type In = Either<F::Left, F::Right>;
    type Out = F::Out;

    #[inline]
    fn on_record<C: Collect<F::Out>>(
        &mut self,
        value: Self::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        match value {
            Either::Left(value) => {
                let key = (self.left)(&value);
                self.core.on_record(key, Left(value), at, out)
            }
            Either::Right(value) => {
                let key = (self.right)(&value);
                self.core.on_record(key, Right(value), at, out)
            }
        }
    }

    fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_mark(mark, out)
    }

    fn on_clock<C: Collect<F::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.core.on_clock(now, out)
    }

    fn alarm(&self) -> Option<Timestamp> {
        self.core.alarm()
    }

    fn held(&self) -> u64 {
        self.core.keys() as u64
    }
}

impl<F: KeyedCoProcess, ByLeft, ByRight> fmt::Debug for KeyedCo<F, ByLeft, ByRight> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyedCo").field(&self.core).finish()
    }
}
