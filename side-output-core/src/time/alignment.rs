use super::{Mark, Timestamp};

/// The time of several inputs together: the watermark and the idleness of their merger.
///
/// With every watermark and every change of status, the merger's watermark is derived anew: it is
/// the lowest of the active inputs', and where all inputs are idle, the highest of all, since
/// nothing holds back what was promised. It never goes back. An idle input does not hold it back,
/// an ended one neither, and an input's watermark that goes back is ignored. When all inputs are
/// idle, so is the merger.
///
/// The two kinds of mergers differ in how an input counts that comes back from being idle:
///
/// - in a [`union`](Self::union) its watermark counts again once it has caught up with the
///   merger's, so that it does not hold back the others in the meantime;
/// - where inputs are [`connected`](Self::connected) it counts at once, and the merger's watermark
///   waits for it.
///
/// An input that has ended stands at [`Timestamp::MAX`], but the merger ends only when all inputs
/// have: while the rest is idle, an ended input does not end the time of those that may come back.
///
/// # Differences from Apache Flink
///
/// Flink derives the time of a union only with some changes of status, so that it depends on the
/// order in which inputs become idle, and stands still when an input comes back that is ahead of it
/// while all other active ones are behind (flink#29024). When all of two connected inputs are idle,
/// Flink leaves their time where the last one left it. And when an input has ended and the others
/// are idle or behind, Flink goes to the end of time at once.
///
/// # Examples
///
/// ```
/// use side_output::{Alignment, Mark, Timestamp};
///
/// let at = Timestamp::from_millis;
/// let mut alignment = Alignment::union(2);
/// assert_eq!(alignment.on_watermark(0, at(10)).count(), 0);
/// assert_eq!(alignment.on_watermark(1, at(5)).next(), Some(Mark::Watermark(at(5))));
/// // Input 1 says nothing for now, and input 0 alone makes the time.
/// assert_eq!(alignment.on_idle(1).next(), Some(Mark::Watermark(at(10))));
/// assert_eq!(alignment.watermark(), at(10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Alignment {
    inputs: Vec<InputTime>,
    watermark: Timestamp,
    idle: bool,
    /// Whether an active input has to have caught up before it counts.
    catch_up: bool,
}

/// The last that came from one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct InputTime {
    watermark: Timestamp,
    status: Status,
}

/// In this order: what one partition still waits for, all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Status {
    Active,
    Idle,
    Ended,
}

/// The marks that follow from one input's mark, in order; at most two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "marks that are not forwarded are lost"]
pub struct Marks {
    first: Option<Mark>,
    second: Option<Mark>,
}

impl Iterator for Marks {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        self.first.take().or_else(|| self.second.take())
    }
}

impl Alignment {
    /// The merger of streams of the same kind.
    #[must_use]
    pub fn union(inputs: usize) -> Self {
        Self::new(inputs, true)
    }

    /// The merger of connected inputs, each with a role of its own.
    #[must_use]
    pub fn connected(inputs: usize) -> Self {
        Self::new(inputs, false)
    }

    fn new(inputs: usize, catch_up: bool) -> Self {
        let input = InputTime { watermark: Timestamp::MIN, status: Status::Active };
        Self { inputs: vec![input; inputs], watermark: Timestamp::MIN, idle: false, catch_up }
    }

    /// The merger's watermark; [`Timestamp::MIN`] before the first.
    #[inline]
    #[must_use]
    pub const fn watermark(&self) -> Timestamp {
        self.watermark
    }

    /// Whether the merger is idle: all inputs that have not ended are.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.idle
    }

    /// The last watermark of this input; [`Timestamp::MIN`] before the first.
    pub(crate) fn input_watermark(&self, input: usize) -> Timestamp {
        self.inputs[input].watermark
    }

    /// Whether this input declared itself idle.
    #[inline]
    #[must_use]
    pub fn is_input_idle(&self, input: usize) -> bool {
        self.inputs[input].status == Status::Idle
    }

    /// Takes what `input` says about time. A barrier is none of that: it yields nothing.
    pub fn on_mark(&mut self, input: usize, mark: Mark) -> Marks {
        match mark {
            Mark::Watermark(watermark) => self.on_watermark(input, watermark),
            Mark::Idle => self.on_idle(input),
            Mark::Active => self.on_active(input),
            Mark::Barrier(_) => Marks::default(),
        }
    }

    /// Takes a watermark of `input`; [`Timestamp::MAX`] is its end. An idle input becomes active.
    pub fn on_watermark(&mut self, input: usize, watermark: Timestamp) -> Marks {
        let entry = &mut self.inputs[input];
        let is_news = watermark > entry.watermark || entry.status == Status::Idle;
        if entry.status == Status::Ended || !is_news {
            return Marks::default();
        }
        if watermark == Timestamp::MAX {
            entry.status = Status::Ended;
        } else {
            entry.status = Status::Active;
            entry.watermark = watermark.max(entry.watermark);
        }
        self.derive()
    }

    /// Notes that `input` is idle.
    pub fn on_idle(&mut self, input: usize) -> Marks {
        self.change(input, Status::Active, Status::Idle)
    }

    /// Notes that `input` is active again; also to be called for a record of an idle input.
    pub fn on_active(&mut self, input: usize) -> Marks {
        self.change(input, Status::Idle, Status::Active)
    }

    /// Whether it is a merger of the same kind, with as many inputs.
    #[cfg(feature = "job")]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.inputs.len(), self.catch_up) == (other.inputs.len(), other.catch_up)
    }

    /// The time up to which both have come, of mergers that are [alike](Self::is_like).
    #[cfg(feature = "job")]
    pub(crate) fn lower(mut self, other: &Self) -> Self {
        for (input, other) in self.inputs.iter_mut().zip(&other.inputs) {
            input.watermark = input.watermark.min(other.watermark);
            input.status = input.status.min(other.status);
        }
        self.watermark = self.watermark.min(other.watermark);
        self.idle &= other.idle;
        self
    }

    fn change(&mut self, input: usize, from: Status, to: Status) -> Marks {
        let status = &mut self.inputs[input].status;
        if *status != from {
            return Marks::default();
        }
        *status = to;
        self.derive()
    }

    /// The time and the status that follow from those of the inputs, where they change.
    fn derive(&mut self) -> Marks {
        let is = |status| move |input: &&InputTime| input.status == status;
        let active = self.inputs.iter().any(|input| input.status == Status::Active);
        let idle = !active && self.inputs.iter().any(|input| input.status == Status::Idle);
        let inputs = self.inputs.iter();
        let time = if active {
            let counts = |at: &Timestamp| !self.catch_up || *at >= self.watermark;
            inputs.filter(is(Status::Active)).map(|input| input.watermark).filter(counts).min()
        } else if idle {
            inputs.map(|input| input.watermark).max()
        } else {
            Some(Timestamp::MAX)
        };
        let raised = time.filter(|time| *time > self.watermark).map(Mark::Watermark);
        self.watermark = self.watermark.max(time.unwrap_or(self.watermark));
        match (std::mem::replace(&mut self.idle, idle), idle) {
            (true, false) => Marks { first: Some(Mark::Active), second: raised },
            (false, true) => Marks { first: raised, second: Some(Mark::Idle) },
            _ => Marks { first: raised, second: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn watermark(millis: i64) -> Mark {
        Mark::Watermark(at(millis))
    }

    #[test]
    fn a_returning_input_of_a_union_counts_once_it_has_caught_up() {
        let mut union = Alignment::union(2);
        assert_eq!(union.on_watermark(0, at(10)).count(), 0);
        assert!(union.on_watermark(1, at(100)).eq([watermark(10)]));
        assert!(union.on_idle(0).eq([watermark(100)]));
        assert!(union.on_watermark(1, at(200)).eq([watermark(200)]));
        assert_eq!(union.on_watermark(0, at(50)).count(), 0);
        assert!(union.on_watermark(1, at(210)).eq([watermark(210)]));
        assert_eq!(union.on_watermark(0, at(210)).count(), 0);
        assert_eq!(union.on_watermark(1, at(300)).count(), 0);
        assert!(union.on_watermark(0, at(250)).eq([watermark(250)]));
    }

    #[test]
    fn a_returning_connected_input_counts_at_once() {
        let mut connected = Alignment::connected(2);
        assert_eq!(connected.on_watermark(0, at(10)).count(), 0);
        assert!(connected.on_watermark(1, at(100)).eq([watermark(10)]));
        assert!(connected.on_idle(0).eq([watermark(100)]));
        assert!(connected.on_watermark(1, at(200)).eq([watermark(200)]));
        assert_eq!(connected.on_watermark(0, at(50)).count(), 0);
        assert_eq!(connected.on_watermark(1, at(210)).count(), 0);
        assert!(connected.on_watermark(0, at(205)).eq([watermark(205)]));
    }

    #[test]
    fn all_idle_goes_up_to_the_highest_and_comes_back() {
        let mut union = Alignment::union(2);
        assert_eq!(union.on_watermark(0, at(10)).count(), 0);
        assert!(union.on_watermark(1, at(100)).eq([watermark(10)]));
        assert_eq!(union.on_idle(1).count(), 0);
        assert!(union.on_idle(0).eq([watermark(100), Mark::Idle]));
        assert!(union.on_active(1).eq([Mark::Active]));
        assert!(union.on_watermark(1, at(110)).eq([watermark(110)]));
    }

    #[test]
    fn an_ended_input_does_not_end_the_time_of_an_idle_one() {
        let mut union = Alignment::union(2);
        assert_eq!(union.on_watermark(0, at(10)).count(), 0);
        assert!(union.on_watermark(1, at(20)).eq([watermark(10)]));
        assert!(union.on_idle(0).eq([watermark(20)]));
        assert!(union.on_watermark(1, Timestamp::MAX).eq([Mark::Idle]));
        assert!(union.on_watermark(0, at(30)).eq([Mark::Active, watermark(30)]));
        assert!(union.on_watermark(0, Timestamp::MAX).eq([Mark::Watermark(Timestamp::MAX)]));
        assert_eq!(union.on_watermark(0, Timestamp::MAX).count(), 0);
    }

    /// What `steps` come to: an input's number, and the watermark or status that it sends.
    fn after(alignment: &mut Alignment, steps: &[(usize, Mark)]) -> i64 {
        for (input, mark) in steps {
            alignment.on_mark(*input, *mark).for_each(drop);
        }
        alignment.watermark().as_millis()
    }

    #[test]
    fn fault_27_time_does_not_depend_on_the_order_in_which_inputs_become_idle() {
        let before = [
            (0, watermark(10)),
            (1, watermark(100)),
            (2, watermark(300)),
            (0, Mark::Idle),
            (0, watermark(50)),
            (2, Mark::Idle),
        ];
        for order in [[0, 1], [1, 0]] {
            let mut union = Alignment::union(3);
            assert_eq!(after(&mut union, &before), 100);
            assert_eq!(after(&mut union, &order.map(|input| (input, Mark::Idle))), 300);
            assert!(union.is_idle());
        }
        for order in [[0, 1], [1, 0]] {
            let mut connected = Alignment::connected(2);
            assert_eq!(after(&mut connected, &[(0, watermark(10)), (1, watermark(100))]), 10);
            assert_eq!(after(&mut connected, &order.map(|input| (input, Mark::Idle))), 100);
        }
    }

    #[test]
    fn fault_27_an_input_that_comes_back_ahead_of_time_moves_it() {
        let before = [
            (0, watermark(8)),
            (1, watermark(8)),
            (2, watermark(5)),
            (2, Mark::Idle),
            (0, watermark(10)),
            (1, watermark(100)),
            (2, Mark::Active),
            (1, Mark::Idle),
            (0, Mark::Idle),
        ];
        let mut union = Alignment::union(3);
        assert_eq!(after(&mut union, &before), 10);
        assert!(union.on_active(1).eq([watermark(100)]));
        // Input 2 is still behind where inputs are connected, and counts there.
        let mut connected = Alignment::connected(3);
        assert_eq!(after(&mut connected, &before), 10);
        assert_eq!(connected.on_active(1).count(), 0);
        assert!(connected.on_idle(2).eq([watermark(100)]));
    }

    /// The rule, from the state of all inputs: `None` of an ended one, else watermark and idleness.
    fn derived(inputs: &[Option<(i64, bool)>], last: &[i64], time: i64, union: bool) -> i64 {
        let mut counted: Vec<i64> = Vec::new();
        for (at, idle) in inputs.iter().flatten() {
            if !idle && (!union || *at >= time) {
                counted.push(*at);
            }
        }
        counted.sort_unstable();
        let lowest = counted.first().copied().unwrap_or(time);
        let all_idle = inputs.iter().flatten().all(|(_, idle)| *idle);
        let derived = if all_idle { last.iter().copied().max().unwrap_or(time) } else { lowest };
        derived.max(time)
    }

    #[test]
    fn fault_27_time_follows_the_rule_at_every_step() {
        let mut seed = 27_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let runs = if cfg!(miri) { 20 } else { 2_000 };
        for run in 0..runs {
            let (union, count) = (run % 2 == 0, 1 + run / 2 % 4);
            let mut alignment =
                if union { Alignment::union(count) } else { Alignment::connected(count) };
            let mut inputs = vec![Some((i64::MIN, false)); count];
            let (mut last, mut time, mut idle) = (vec![i64::MIN; count], i64::MIN, false);
            for _ in 0..40 {
                let input = usize::try_from(random(count as u64)).unwrap();
                let mark = match random(12) {
                    0..=3 => Mark::Idle,
                    4..=5 => Mark::Active,
                    6 if random(8) == 0 => Mark::Watermark(Timestamp::MAX),
                    _ => watermark(random(20).cast_signed()),
                };
                let marks: Vec<Mark> = alignment.on_mark(input, mark).collect();
                if let Some((at, is_idle)) = &mut inputs[input] {
                    match mark {
                        Mark::Idle => *is_idle = true,
                        Mark::Active => *is_idle = false,
                        Mark::Watermark(Timestamp::MAX) => inputs[input] = None,
                        Mark::Watermark(to) => {
                            *at = to.as_millis().max(*at);
                            last[input] = *at;
                            *is_idle = false;
                        }
                        Mark::Barrier(_) => {}
                    }
                }
                let ended = inputs.iter().all(Option::is_none);
                let now = if ended { i64::MAX } else { derived(&inputs, &last, time, union) };
                let now_idle = !ended && inputs.iter().flatten().all(|(_, idle)| *idle);
                let mut expected = Vec::new();
                expected.extend((idle && !now_idle).then_some(Mark::Active));
                expected.extend((now > time).then_some(watermark(now)));
                expected.extend((!idle && now_idle).then_some(Mark::Idle));
                assert_eq!(marks, expected, "run {run}, {mark:?} of {input}: {inputs:?}");
                (time, idle) = (now, now_idle);
                assert_eq!((alignment.watermark(), alignment.is_idle()), (at(time), idle));
            }
        }
    }
}
