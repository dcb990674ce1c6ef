use crate::error::StreamError;
use crate::output::{Account, Ledger, OutputLedger, OutputSpec, Overflow};
use crate::stream::source::AWAITED;
use crate::stream::{Behind, InputNow, WaitingFor};
use crate::sync::{Mutex, MutexGuard, wake_all};
use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// What the readers of one operator share beside the records: counters, and who waits for what.
///
/// It knows no type of the operator's, so it is also the waker with which the input is polled, and
/// the handle through which a ledger is read.
pub(crate) struct Board {
    name: &'static str,
    behind: Behind,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) ports: Vec<PortState>,
    pub(crate) account: Account,
    pub(crate) held: u64,
    /// What ended the operator before the true end of its input.
    pub(crate) error: Option<StreamError>,
    /// The input, where there is one.
    pub(crate) input: Option<InputNow>,
    /// Where a driver that reads no output may wait.
    free_places: Vec<usize>,
    /// The input called its waker since it was last polled.
    woken: bool,
    /// Counts turns and takings: as long as it stands still, nothing moves.
    pub(crate) moves: u64,
    pub(crate) stalls: u64,
    pub(crate) watched: bool,
    /// The reader that is to drive next, if it comes for it.
    preferred: Option<usize>,
    /// How often one was preferred.
    preferences: u64,
}

/// One output, as all readers see it.
pub(crate) struct PortState {
    pub(crate) spec: OutputSpec,
    pub(crate) open: bool,
    pub(crate) discarded_on_purpose: bool,
    /// Records and marks in the shared lane.
    pub(crate) load: usize,
    /// Records in the shared lane: they count against the capacity.
    pub(crate) buffered: u64,
    /// Of those buffered: in a sink that has not flushed them.
    pub(crate) accepted: u64,
    pub(crate) routed: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) discarded: u64,
    waiting: Option<(Waker, Wait)>,
    pub(crate) fail_on_stall: bool,
    /// The last [preference](State::preferences) to which it gave way.
    gave_way: u64,
    /// The full output that this reader waited for too long.
    pub(crate) stalled_by: Option<usize>,
}

/// What a reader waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Records, from the input or from the reader that drives it.
    Records,
    /// Room in the output with this index.
    Room(usize),
    /// The destination of the output with this index: to take more, or to be done.
    Destination(usize),
}

impl Wait {
    /// The output that is in the way.
    const fn output(self) -> Option<usize> {
        match self {
            Self::Records => None,
            Self::Room(output) | Self::Destination(output) => Some(output),
        }
    }
}

/// That a reader waits: what is left to do once no lock is held.
#[must_use]
#[derive(Default)]
pub(crate) struct Waiting {
    /// It is time to watch for a stall.
    watch: bool,
    /// A waker that is not needed any more. Dropping it may drop a task, and with it a stream that
    /// locks this board.
    old: Option<Waker>,
    /// The waker could not be cloned.
    panic: Option<Box<dyn Any + Send>>,
}

impl Waiting {
    pub(crate) fn settle(self, board: &Arc<Board>) {
        if self.watch {
            super::stall::watch(board);
        }
        drop(self.old);
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

/// Wakers to call once no lock is held.
#[must_use]
#[derive(Default)]
pub(crate) struct Wakers {
    few: [Option<Waker>; 4],
    len: usize,
    many: Vec<Waker>,
}

impl Wakers {
    fn push(&mut self, waker: Waker) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = Some(waker),
            None => self.many.push(waker),
        }
        self.len += 1;
    }

    pub(crate) fn wake(self) {
        wake_all(self.few.into_iter().flatten().chain(self.many));
    }
}

impl Board {
    pub(crate) fn new(
        name: &'static str,
        slots: usize,
        outputs: &[OutputSpec],
        behind: Behind,
    ) -> Arc<Self> {
        let mut ports: Vec<_> =
            (0..slots).map(|index| PortState::new(OutputSpec::new(index, ""))).collect();
        // Two more than there are outputs: the places of a driver that reads none, and of a wiring.
        // More drivers get places behind them.
        ports.push(PortState::new(OutputSpec::new(slots, "")));
        ports.push(PortState::new(OutputSpec::new(slots + 1, "")));
        for spec in outputs {
            ports[spec.index] = PortState { open: true, ..PortState::new(*spec) };
        }
        let state = State {
            ports,
            account: Account::new(),
            held: 0,
            error: None,
            input: None,
            free_places: vec![slots],
            woken: false,
            moves: 0,
            stalls: 0,
            watched: false,
            preferred: None,
            preferences: 0,
        };
        Arc::new(Self { name, behind, state: Mutex::new(state) })
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The outputs whose streams were dropped, and not discarded on purpose.
    #[cfg(feature = "job")]
    pub(crate) fn lost_outputs(&self) -> Vec<&'static str> {
        let state = self.lock();
        let named = state.ports.iter().filter(|port| !port.spec.name.is_empty());
        let lost = named.filter(|port| !port.open && !port.discarded_on_purpose);
        lost.map(|port| port.spec.name).collect()
    }
}

impl Wake for Board {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = {
            let mut state = self.lock();
            state.woken = true;
            state.take_waiting(|_| true)
        };
        wakers.wake();
    }
}

impl State {
    /// Called before the input is polled.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.woken = false;
        self.preferred = None;
    }

    /// Lets the reader of output `index` wait.
    pub(crate) fn wait(&mut self, index: usize, waker: &Waker, wait: Wait) -> Waiting {
        let (mut old, mut panic) = (None, None);
        match &mut self.ports[index].waiting {
            Some((old, why)) if old.will_wake(waker) => *why = wait,
            waiting => match catch_unwind(AssertUnwindSafe(|| waker.clone())) {
                Ok(waker) => old = waiting.replace((waker, wait)).map(|(old, _)| old),
                Err(payload) => panic = Some(payload),
            },
        }
        let watch = wait.output().is_some() && !self.watched;
        self.watched |= watch;
        Waiting { watch, old, panic }
    }

    #[inline]
    pub(crate) fn woken(&self) -> bool {
        self.woken
    }

    /// How many records the reader of output `own` may take from the input wherever they go, or
    /// which output is in the way.
    ///
    /// Half a turn, or a quarter of the lane, or nothing: with a nearly full lane, turns of one
    /// record each would pay the locks and wake-ups of a whole one.
    #[inline]
    pub(crate) fn room(&self, own: usize) -> Result<usize, usize> {
        let mut room = usize::MAX;
        for (index, port) in self.ports.iter().enumerate() {
            if index == own || !port.blocks() {
                continue;
            }
            let capacity = port.spec.capacity.get();
            let free = capacity.saturating_sub(port.buffered());
            if free == 0 || free < AWAITED.min(capacity / 4) {
                return Err(index);
            }
            room = room.min(free);
        }
        Ok(room)
    }

    /// Enters that the reader of output `index` took `records` from its lane; those who waited
    /// for room there can go on.
    pub(crate) fn taken(&mut self, index: usize, records: usize) -> Wakers {
        let port = &mut self.ports[index];
        port.load = 0;
        port.buffered = 0;
        port.delivered += records as u64;
        port.stalled_by = None;
        self.moves += 1;
        let wanted = |wait| wait == Wait::Room(index);
        let waiters = self.ports.iter().enumerate().filter(|(_, port)| port.waits(wanted));
        if let Some((waiter, _)) = waiters.max_by_key(|(_, port)| port.routed) {
            self.prefer(waiter);
        }
        self.take_waiting(wanted)
    }

    /// Prefers that the reader of output `index` drives next, if nobody gets more records: what a
    /// reader drives for itself does not go through its lane.
    pub(crate) fn prefer(&mut self, index: usize) {
        let routed = self.ports[index].routed;
        if self.ports.iter().all(|port| port.routed <= routed) {
            self.preferred = Some(index);
            self.preferences += 1;
        }
    }

    /// Prefers nobody of `gone`.
    pub(crate) fn forget(&mut self, gone: &[usize]) {
        self.preferred.take_if(|index| gone.contains(index));
    }

    /// Whether the reader of output `own` should yield once to the preferred one, which
    /// may be busy elsewhere.
    #[inline]
    pub(crate) fn gives_way(&mut self, own: usize) -> bool {
        let preference = self.preferences;
        self.preferred.is_some_and(|other| other != own)
            && mem::replace(&mut self.ports[own].gave_way, preference) != preference
    }

    /// Takes the wakers of those who wait and for whom `wanted` holds.
    pub(crate) fn take_waiting(&mut self, wanted: impl Fn(Wait) -> bool) -> Wakers {
        let mut wakers = Wakers::default();
        for port in &mut self.ports {
            if port.waits(&wanted) {
                wakers.push(port.waiting.take().expect("checked").0);
            }
        }
        wakers
    }

    /// Takes the wakers of those who wait and have `much` to read, or a quarter of their lane.
    pub(crate) fn take_served(&mut self, much: usize) -> Wakers {
        let mut wakers = Wakers::default();
        for port in &mut self.ports {
            let much = much.min(port.spec.capacity.get() / 4).max(1);
            if port.load >= much
                && let Some((waker, _)) = port.waiting.take()
            {
                wakers.push(waker);
            }
        }
        wakers
    }

    /// The operator is free and its input can go on: adds all who wait for records to `wakers`.
    ///
    /// One of them would do if it came, but it may not: its task may have stopped to ask for the
    /// next record, and of that nobody is told.
    pub(crate) fn hand_on(&mut self, wakers: &mut Wakers) {
        for port in &mut self.ports {
            if let Some((waker, _)) = port.waiting.take_if(|(_, wait)| *wait == Wait::Records) {
                wakers.push(waker);
            }
        }
    }

    /// The operator is free and its input can go on, but output `full` is in the way: whoever waits
    /// for records waits for room there, and is woken when there is some.
    pub(crate) fn hold_up(&mut self, full: usize, waiting: &mut Waiting) {
        for port in &mut self.ports {
            if let Some((_, wait @ Wait::Records)) = &mut port.waiting {
                *wait = Wait::Room(full);
                waiting.watch |= !mem::replace(&mut self.watched, true);
            }
        }
    }

    /// Takes a place for a driver that reads no output.
    pub(crate) fn take_place(&mut self) -> usize {
        self.free_places.pop().unwrap_or_else(|| {
            let place = self.ports.len();
            self.ports.push(PortState::new(OutputSpec::new(place, "")));
            place
        })
    }

    /// Gives it back; its waker is to be dropped without a lock.
    pub(crate) fn leave_place(&mut self, place: usize) -> Option<Waker> {
        self.forget(&[place]);
        self.free_places.push(place);
        self.ports[place].forget_waiter()
    }

    /// The output that somebody waits for, if any, and what for.
    pub(crate) fn blocked_by(&self) -> Option<(usize, Wait)> {
        self.ports.iter().find_map(|port| {
            let (_, wait) = port.waiting.as_ref()?;
            Some((wait.output()?, *wait))
        })
    }

    /// Gives up on the readers that wait for an output and asked for an error.
    pub(crate) fn fail_stalled(&mut self) -> Wakers {
        let mut wakers = Wakers::default();
        for port in &mut self.ports {
            if port.fail_on_stall
                && let Some(full) = port.waiting.as_ref().and_then(|(_, wait)| wait.output())
            {
                port.stalled_by = Some(full);
                wakers.push(port.waiting.take().expect("checked").0);
            }
        }
        wakers
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let (blocked_by, account) = (self.blocked_by().map(|(output, _)| output), self.account);
        Ledger {
            received: account.received(),
            updates: account.updates,
            failed: account.failed,
            held: self.held,
            unrouted: account.unrouted,
            extra: account.extra,
            fired: account.fired,
            tapped: account.tapped,
            late: account.late,
            timers_dropped: account.timers_dropped,
            timers_left: account.timers_left,
            stalls: self.stalls,
            error: self.error.as_ref().map(ToString::to_string),
            outputs: self
                .ports
                .iter()
                .enumerate()
                .filter(|(_, port)| !port.spec.name.is_empty())
                .map(|(index, port)| OutputLedger {
                    name: port.spec.name,
                    tap: port.spec.tap,
                    routed: port.routed,
                    delivered: port.delivered,
                    buffered: port.buffered,
                    accepted: port.accepted,
                    dropped: port.dropped,
                    discarded: port.discarded,
                    blocking: blocked_by == Some(index),
                })
                .collect(),
        }
    }
}

impl PortState {
    const fn new(spec: OutputSpec) -> Self {
        Self {
            spec,
            open: false,
            discarded_on_purpose: false,
            load: 0,
            buffered: 0,
            accepted: 0,
            routed: 0,
            delivered: 0,
            dropped: 0,
            discarded: 0,
            waiting: None,
            fail_on_stall: false,
            gave_way: 0,
            stalled_by: None,
        }
    }

    #[inline]
    fn buffered(&self) -> usize {
        usize::try_from(self.buffered).unwrap_or(usize::MAX)
    }

    #[inline]
    fn blocks(&self) -> bool {
        self.open && matches!(self.spec.overflow, Overflow::Block)
    }

    /// Whether its reader waits, and for what is `wanted`.
    #[inline]
    fn waits(&self, wanted: impl Fn(Wait) -> bool) -> bool {
        self.waiting.as_ref().is_some_and(|(_, wait)| wanted(*wait))
    }

    /// Everything that moves when a record does.
    pub(crate) const fn counters(&self) -> [u64; 5] {
        [self.routed, self.delivered, self.accepted, self.dropped, self.discarded]
    }

    pub(crate) fn forget_waiter(&mut self) -> Option<Waker> {
        self.waiting.take().map(|(waker, _)| waker)
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads an operator's [`Ledger`] at any time, also after its streams were taken apart.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Numbers {
///     #[main]
///     Small(u32),
///     Large(u32),
/// }
///
/// let streams = stream::iter([1, 1000, 2])
///     .split_with(|n: u32| if n < 10 { Numbers::Small(n) } else { Numbers::Large(n) });
/// let handle = streams.ledger_handle();
/// let NumbersStreams { small, large } = streams;
/// large.discard();
/// block_on(small.for_each(drop))?;
/// assert_eq!(handle.read()["large"].discarded, 1);
/// # Ok::<(), StreamError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LedgerHandle(Arc<Board>);

impl LedgerHandle {
    pub(crate) const fn new(board: Arc<Board>) -> Self {
        Self(board)
    }

    /// A ledger without outputs.
    #[doc(hidden)]
    #[must_use]
    pub fn empty() -> Self {
        Self(Board::new("", 0, &[], Behind::default()))
    }

    /// The ledger at this moment.
    #[must_use]
    pub fn read(&self) -> Ledger {
        self.0.lock().ledger()
    }

    /// The name of the splitter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Why nothing comes out: which output takes no more, which input holds the time and at what, and
    /// whether it is silent, idle, behind a barrier, or was not asked.
    ///
    /// # Examples
    ///
    /// A union waits for the input that has nothing:
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{FutureExt, StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::{Count, Element};
    /// use std::time::Duration;
    ///
    /// let at = Timestamp::from_secs;
    /// let ahead = [Element::record('a', at(1)), Element::watermark(at(60))];
    /// let ahead = DataStream::from_elements(stream::iter(ahead).chain(stream::pending()));
    /// let behind = [Element::record('b', at(2)), Element::watermark(at(2))];
    /// let behind = DataStream::from_elements(stream::iter(behind).chain(stream::pending()));
    /// let mut counts = ahead
    ///     .union(behind)
    ///     .window_all(Tumbling::of(Duration::from_secs(10)))
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// assert!(counts.next().now_or_never().is_none());
    ///
    /// let waiting = counts.ledger_handle().unwrap().waiting_for();
    /// assert_eq!(waiting.holds_the_time(), Some(1));
    /// assert_eq!(
    ///     waiting.to_string(),
    ///     "input 0 was asked and has nothing; its watermark is 60000 (1970-01-01T00:01:00Z)\n\
    ///      input 1 was asked and has nothing; its watermark is 2000 (1970-01-01T00:00:02Z), \
    ///      which holds the time"
    /// );
    /// ```
    #[must_use]
    pub fn waiting_for(&self) -> WaitingFor {
        let (output, input) = {
            let state = self.0.lock();
            let full = state.blocked_by().map(|(output, _)| state.ports[output].spec.name);
            (full, state.input)
        };
        let inputs = self.0.behind.inputs.as_ref();
        let inputs = inputs.map_or_else(|| input.into_iter().collect(), |inputs| inputs.now());
        WaitingFor { output, inputs }
    }

    /// The operators whose outputs this one reads.
    #[must_use]
    pub fn upstream(&self) -> &[Self] {
        &self.0.behind.ledgers
    }

    /// This operator and all before it, each once, those that are read first in front.
    ///
    /// A closure in a wiring is a border: what it reads is the wiring's, whose ledger is another one.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::stream;
    /// use side_output::prelude::*;
    ///
    /// #[splitter]
    /// enum Numbers {
    ///     Even(u32),
    ///     Odd(u32),
    /// }
    ///
    /// let NumbersStreams { even, odd } = stream::iter(0..10)
    ///     .split_with(|n| if n % 2 == 0 { Numbers::Even(n) } else { Numbers::Odd(n) });
    /// odd.discard();
    /// let copies = even.map(|n| n / 2).tee();
    /// let last = copies.ledger_handle();
    /// block_on(copies.wire().first(discard()).second(discard()).run())?;
    ///
    /// let topology = last.topology();
    /// let counts: Vec<_> =
    ///     topology.iter().map(|ledger| (ledger.name(), ledger.read().received)).collect();
    /// assert_eq!(counts, [("Numbers", 10), ("Tee", 5)]);
    /// # Ok::<(), StreamError>(())
    /// ```
    #[must_use]
    pub fn topology(&self) -> Vec<Self> {
        let mut all = Vec::new();
        self.walk(&mut all);
        all
    }

    fn walk(&self, into: &mut Vec<Self>) {
        if into.iter().any(|other| Arc::ptr_eq(&other.0, &self.0)) {
            return;
        }
        self.upstream().iter().for_each(|above| above.walk(into));
        into.push(self.clone());
    }
}
