#[cfg(feature = "job")]
mod snapshot;

use super::{Either, Operator};
use crate::error::StreamError;
use crate::output::{Collect, Collector, Splitter};
use crate::time::{Mark, Timestamp};
use std::collections::VecDeque;
use std::{fmt, mem};

/// A function together with its configuration.
pub trait Configurable {
    /// The records.
    type In;
    /// What the configuration is made of.
    type Update;
    /// The outputs.
    type Out: Splitter;

    /// Whether there is a configuration.
    fn is_configured(&self) -> bool;

    /// Routes a record, with or without a configuration.
    fn route<C: Collect<Self::Out>>(
        &mut self,
        record: Self::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// Takes an update of the configuration.
    fn update<C: Collect<Self::Out>>(
        &mut self,
        update: Self::Update,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// Takes a mark that nothing holds back.
    fn pass<C: Collect<Self::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>;

    /// Looks at the clock; see [`Operator::on_clock`].
    fn on_clock<C: Collect<Self::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        _ = (now, out);
        Ok(())
    }

    /// What it keeps; see [`Operator::held`].
    fn held(&self) -> u64;

    /// When to look at the clock again; see [`Operator::alarm`].
    fn alarm(&self) -> Option<Timestamp> {
        None
    }
}

/// The operator of a function that a second input configures: records may wait for the first
/// configuration, and with them the marks that must not overtake them.
///
/// A watermark would make them late, and idleness would let the time downstream go on without
/// them. Barriers pass: what waits is state.
pub struct HoldBack<F: Configurable> {
    pub(super) function: F,
    pub(super) records: VecDeque<(F::In, Timestamp)>,
    capacity: usize,
    watermark: Option<Timestamp>,
    idle: bool,
    /// No configuration comes any more.
    ended: bool,
    /// Records that waited are in what was saved last.
    #[cfg(feature = "job")]
    pub(super) held_was_saved: bool,
}

impl<F: Configurable> HoldBack<F> {
    pub(super) const fn up_to(capacity: usize, function: F) -> Self {
        Self {
            function,
            records: VecDeque::new(),
            capacity,
            watermark: None,
            idle: false,
            ended: false,
            #[cfg(feature = "job")]
            held_was_saved: false,
        }
    }

    /// Whether this mark waits for records that do.
    fn withholds(&mut self, mark: Mark) -> bool {
        match mark {
            Mark::Watermark(Timestamp::MAX) | Mark::Barrier(_) => return false,
            Mark::Active => return mem::take(&mut self.idle),
            _ if self.records.is_empty() => return false,
            Mark::Watermark(watermark) => self.watermark = self.watermark.max(Some(watermark)),
            Mark::Idle => self.idle = true,
        }
        true
    }

    /// Routes the records that waited, and then passes the marks that waited with them. `false` if
    /// there is no room for more: it is called again then, before anything else.
    ///
    /// With a configuration in hand it is done at once, which happens with few of them.
    fn release<C: Collect<F::Out>>(
        &mut self,
        out: &mut Collector<'_, C>,
    ) -> Result<bool, StreamError> {
        while !self.records.is_empty() {
            if !out.may_fire() {
                return Ok(false);
            }
            if let Some((record, at)) = self.records.pop_front() {
                self.function.route(record, at, out)?;
            }
        }
        // Each waits until it has passed in full: what it makes due may take several calls.
        while let Some(mark) = self.withheld() {
            self.function.pass(mark, out)?;
            if out.take_marked() {
                match mark {
                    Mark::Watermark(_) => self.watermark = None,
                    _ => self.idle = false,
                }
            } else if out.is_limited() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next mark that waits.
    fn withheld(&self) -> Option<Mark> {
        self.watermark.map(Mark::Watermark).or(self.idle.then_some(Mark::Idle))
    }
}

impl<F: Configurable> Operator for HoldBack<F> {
    type In = Either<F::In, F::Update>;
    type Out = F::Out;

    fn on_record<C: Collect<F::Out>>(
        &mut self,
        value: Self::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        match value {
            Either::Left(record) => {
                let has_room = self.records.len() < self.capacity && !self.ended;
                if !self.function.is_configured() && has_room {
                    self.records.push_back((record, at));
                    return Ok(());
                }
                self.function.route(record, at, out)
            }
            Either::Right(update) => {
                out.update();
                self.function.update(update, at, out)?;
                if self.function.is_configured() {
                    self.release(out)?;
                }
                Ok(())
            }
        }
    }

    fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if self.withholds(mark) {
            out.swallow();
            return Ok(());
        }
        if mark == Mark::Watermark(Timestamp::MAX) && !self.release(out)? {
            return Ok(());
        }
        self.function.pass(mark, out)
    }

    fn on_input_end<C: Collect<F::Out>>(
        &mut self,
        input: usize,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if input == 0 {
            return Ok(());
        }
        // No configuration comes any more.
        self.ended = true;
        self.release(out)?;
        Ok(())
    }

    fn on_clock<C: Collect<F::Out>>(
        &mut self,
        now: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.function.on_clock(now, out)
    }

    fn held(&self) -> u64 {
        self.function.held() + self.records.len() as u64
    }

    fn alarm(&self) -> Option<Timestamp> {
        self.function.alarm()
    }
}

impl<F: Configurable + fmt::Debug> fmt::Debug for HoldBack<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldBack")
            .field("function", &self.function)
            .field("records", &self.records.len())
            .finish_non_exhaustive()
    }
}
