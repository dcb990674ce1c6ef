/// What an operator did with its input: the part of the [`Ledger`](super::Ledger) that does not
/// belong to a single output.
///
/// Only a [`Collector`](super::Collector) and the [`Turn`](crate::operator::Turn) that makes it
/// write into it. Every route is one of these:
/// the first one of a record, a further one of a record (`extra`), one that no record caused
/// (`fired`), or a copy to a tap. So the number of all routes is always
/// `taken - updates - unrouted - failed + extra + fired + tapped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Records taken from the input, updates of a configuration among them.
    pub taken: u64,
    /// Of the records taken: those that only configure the operator.
    pub updates: u64,
    /// Records that no route was emitted for because the function failed or panicked.
    pub failed: u64,
    /// Records for which the function returned no route: dropped on purpose, or kept in state.
    pub unrouted: u64,
    /// Routes beyond the first one of a record.
    pub extra: u64,
    /// Routes that no record caused directly: timers, windows, updates, the end of the input.
    pub fired: u64,
    /// Copies emitted to taps beside the routes.
    pub tapped: u64,
    /// Of the records without a route: those dropped because they were late.
    pub late: u64,
    /// Timers that the end of the input has dropped.
    pub timers_dropped: u64,
    /// Processing-time timers that were set when the input ended.
    pub timers_left: u64,
}

impl Account {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            taken: 0,
            updates: 0,
            failed: 0,
            unrouted: 0,
            extra: 0,
            fired: 0,
            tapped: 0,
            late: 0,
            timers_dropped: 0,
            timers_left: 0,
        }
    }

    /// Records taken from the input that are to be routed.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.taken - self.updates
    }

    /// How many routes and copies were emitted, to all outputs together.
    #[must_use]
    pub const fn emitted(&self) -> u64 {
        self.received() + self.extra + self.fired + self.tapped - self.unrouted - self.failed
    }

    /// Adds what `other` counted.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.taken += other.taken;
        self.updates += other.updates;
        self.failed += other.failed;
        self.unrouted += other.unrouted;
        self.extra += other.extra;
        self.fired += other.fired;
        self.tapped += other.tapped;
        self.late += other.late;
        self.timers_dropped += other.timers_dropped;
        self.timers_left += other.timers_left;
    }

    /// What was counted since `before`.
    pub(crate) const fn since(&self, before: &Self) -> Self {
        Self {
            taken: self.taken - before.taken,
            updates: self.updates - before.updates,
            failed: self.failed - before.failed,
            unrouted: self.unrouted - before.unrouted,
            extra: self.extra - before.extra,
            fired: self.fired - before.fired,
            tapped: self.tapped - before.tapped,
            late: self.late - before.late,
            timers_dropped: self.timers_dropped - before.timers_dropped,
            timers_left: self.timers_left - before.timers_left,
        }
    }
}
