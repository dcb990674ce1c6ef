use super::Account;
use crate::time::{Mark, Timestamp};
use std::mem;

/// Where routes and marks go: buffers, destinations, or a test's list.
///
/// It only receives. What was emitted is counted by the [`Collector`] in front of it, so that every
/// driver of an operator keeps the same account.
pub trait Collect<S> {
    /// Takes one route; `at` is the record's timestamp, [`Timestamp::MIN`] if it has none.
    fn emit(&mut self, route: S, at: Timestamp);

    /// Takes a mark for every output.
    fn mark(&mut self, mark: Mark);

    /// Whether it must be polled before it accepts more.
    #[inline]
    fn is_full(&self) -> bool {
        false
    }
}

impl<S, C: Collect<S> + ?Sized> Collect<S> for &mut C {
    #[inline]
    fn emit(&mut self, route: S, at: Timestamp) {
        (**self).emit(route, at);
    }

    #[inline]
    fn mark(&mut self, mark: Mark) {
        (**self).mark(mark);
    }

    #[inline]
    fn is_full(&self) -> bool {
        (**self).is_full()
    }
}

/// What an operator emits into.
///
/// It owns the budget of the turn and keeps the [`Account`]: what a route counts as follows from
/// what the operator has in hand. It is entered when the route is emitted, so the account is right
/// however the call ends: with success, an error or a panic. An operator counts nothing, and a wrong
/// count cannot be written.
#[derive(Debug)]
pub struct Collector<'a, C> {
    out: &'a mut C,
    account: &'a mut Account,
    hand: Hand,
    /// Routes emitted in this call.
    routes: usize,
    /// Firings begun in this call.
    firings: usize,
    /// How many routes a mark may cause in this call.
    room: usize,
    /// The mark in hand was forwarded or swallowed.
    marked: bool,
}

/// What an operator has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    /// Nothing: it is not being called.
    Empty,
    /// A record that no route was emitted for.
    Record,
    /// A record that has left through an output.
    Routed,
    /// A record that only configures the operator.
    Update,
    /// A mark, or the clock.
    Mark,
    /// The end of one of several inputs.
    End,
}

impl<'a, C> Collector<'a, C> {
    #[inline(always)]
    pub(crate) const fn new(out: &'a mut C, account: &'a mut Account) -> Self {
        Self { out, account, hand: Hand::Empty, routes: 0, firings: 0, room: 0, marked: false }
    }

    #[inline(always)]
    pub(crate) const fn out(&self) -> &C {
        self.out
    }

    /// The operator is called with a record.
    #[inline(always)]
    pub(crate) const fn begin_record(&mut self) {
        self.hand = Hand::Record;
        self.routes = 0;
    }

    /// The call is over; how many routes it emitted.
    #[inline(always)]
    pub(crate) const fn end_record(&mut self, succeeded: bool) -> usize {
        match self.hand {
            Hand::Record if succeeded => self.account.unrouted += 1,
            Hand::Record => self.account.failed += 1,
            Hand::Update => self.account.updates += 1,
            // A record that has left is not failed, whatever came after: it has one exit.
            Hand::Routed | Hand::Empty | Hand::Mark | Hand::End => {}
        }
        self.hand = Hand::Empty;
        self.routes
    }

    /// The operator is called with a mark, or shown the clock.
    #[inline(always)]
    pub(crate) const fn begin_mark(&mut self, room: usize) {
        self.hand = Hand::Mark;
        (self.routes, self.firings, self.room, self.marked) = (0, 0, room, false);
    }

    /// The operator is told that one of its inputs has ended.
    #[inline]
    pub(crate) const fn begin_end(&mut self) {
        self.hand = Hand::End;
        (self.routes, self.firings) = (0, 0);
    }

    /// The call is over; whether the operator is done with the mark, and how much of the room was
    /// used.
    #[inline(always)]
    pub(crate) const fn end_mark(&mut self) -> (bool, usize) {
        self.hand = Hand::Empty;
        (self.marked, self.spent())
    }

    /// Ends the turn, which has taken so many records. The operator may have panicked.
    #[inline(always)]
    pub(crate) const fn end_turn(&mut self, taken: u64) {
        self.account.taken += taken;
        _ = self.end_record(false);
    }

    #[inline(always)]
    const fn spent(&self) -> usize {
        if self.firings > self.routes { self.firings } else { self.routes }
    }

    /// Passes the record in hand to a call that is not inlined, and which enters it: nothing is left
    /// to be done for it here, and the records that are not worth a call share no code with it.
    #[inline(always)]
    pub(crate) fn pass<E>(
        &mut self,
        f: impl FnOnce(&mut Collector<'_, C>) -> Result<(), E>,
    ) -> Result<(), E> {
        let hand = mem::replace(&mut self.hand, Hand::Empty);
        let result;
        (result, self.routes) = passed(&mut *self.out, &mut *self.account, hand, f);
        result
    }

    /// Emits a route; `at` is its timestamp, [`Timestamp::MIN`] if it has none.
    #[inline(always)]
    pub fn emit<S>(&mut self, route: S, at: Timestamp)
    where
        C: Collect<S>,
    {
        // First: the receiver may panic, and the record has left by then.
        self.routes += 1;
        match self.hand {
            Hand::Record => self.hand = Hand::Routed,
            Hand::Routed => self.account.extra += 1,
            Hand::Update | Hand::Mark | Hand::End | Hand::Empty => self.account.fired += 1,
        }
        self.out.emit(route, at);
    }

    /// Emits copies to taps, beside the routes.
    #[inline(always)]
    pub fn tap_all<S>(&mut self, copies: &mut Vec<S>, at: Timestamp)
    where
        C: Collect<S>,
    {
        // Without the collector itself: if it were lent to a call, its count would live in memory.
        tap_all(&mut *self.out, &mut self.account.tapped, copies, at);
    }

    /// Forwards a mark to every output. The mark in hand is done with that.
    #[inline]
    pub fn mark<S>(&mut self, mark: Mark)
    where
        C: Collect<S>,
    {
        self.marked = true;
        self.out.mark(mark);
    }

    /// Ends the mark in hand without forwarding it.
    #[inline]
    pub const fn swallow(&mut self) {
        self.marked = true;
    }

    /// Whether a mark was forwarded or swallowed since this was last asked, where more than one is
    /// in hand: the operator is not done with the last one before that was forwarded too.
    pub(crate) const fn take_marked(&mut self) -> bool {
        mem::replace(&mut self.marked, false)
    }

    /// Whether what is in hand may take several calls.
    #[inline]
    pub(crate) const fn is_limited(&self) -> bool {
        matches!(self.hand, Hand::Mark)
    }

    /// Notes that the record in hand is dropped because it is late.
    #[inline]
    pub const fn drop_late(&mut self) {
        self.account.late += 1;
    }

    /// Notes that a timer is dropped at the end of the input.
    #[inline]
    pub const fn drop_timer(&mut self) {
        self.account.timers_dropped += 1;
    }

    /// Notes that the input has ended and so many processing-time timers are still set.
    #[inline]
    pub const fn leave_timers(&mut self, timers: u64) {
        self.account.timers_left += timers;
    }

    /// Notes that the record in hand configures the operator and is not to be routed itself.
    #[inline]
    pub const fn update(&mut self) {
        self.hand = Hand::Update;
    }

    /// Whether one more timer or window may fire in this call; asked before each of them.
    ///
    /// If not, the operator returns before it has forwarded the mark, and is called again with the
    /// same mark once there is room. With a record in hand, or the end of an input, it always may:
    /// those are taken whole.
    #[inline]
    #[must_use]
    pub fn may_fire<S>(&mut self) -> bool
    where
        C: Collect<S>,
    {
        if self.is_limited() && (self.spent() >= self.room || self.out.is_full()) {
            return false;
        }
        self.firings += 1;
        true
    }
}

/// A collector that was lent.
struct Lent<'a, C>(Collector<'a, C>);

impl<C> Drop for Lent<'_, C> {
    fn drop(&mut self) {
        _ = self.0.end_record(false);
    }
}

#[inline(never)]
fn passed<C, E>(
    out: &mut C,
    account: &mut Account,
    hand: Hand,
    f: impl FnOnce(&mut Collector<'_, C>) -> Result<(), E>,
) -> (Result<(), E>, usize) {
    let mut lent = Lent(Collector { hand, ..Collector::new(out, account) });
    let result = f(&mut lent.0);
    let routes = lent.0.end_record(result.is_ok());
    (result, routes)
}

fn tap_all<S, C: Collect<S>>(out: &mut C, count: &mut u64, copies: &mut Vec<S>, at: Timestamp) {
    for copy in copies.drain(..) {
        *count += 1;
        out.emit(copy, at);
    }
}
