use super::{Mark, Timestamp};

/// What several inputs together say about time: the watermark and the idleness of their merger.
///
/// The watermark is the lowest of all inputs that speak. An idle input does not hold it back, an
/// ended one neither, and a watermark that goes back is ignored. When all inputs are idle, so is
/// the merger.
///
/// The two kinds of mergers differ in what an input is worth when it comes back from being idle:
///
/// - in a [`union`](Self::union) its watermark counts again once it has caught up with the
///   merger's, so that it does not hold back the others in the meantime; and when the last input
///   becomes idle, the merger's watermark goes up to the highest of them;
/// - where inputs are [`connected`](Self::connected) it counts at once, and the merger's watermark
///   waits for it.
///
/// An input that has ended stands at [`Timestamp::MAX`], but the merger ends only when all inputs
/// have: while the rest is idle, an ended input does not end the time of those that may come back.
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
    inputs: Vec<Input>,
    watermark: Timestamp,
    idle: bool,
    /// Whether an input that comes back has to catch up before it counts.
    catch_up: bool,
}

/// What one input said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Input {
    watermark: Timestamp,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Status {
    /// Its watermark counts.
    Aligned,
    /// It speaks, but has to catch up first.
    Behind,
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
        let input = Input { watermark: Timestamp::MIN, status: Status::Aligned };
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
        let first = self.on_active(input).next();
        if watermark == Timestamp::MAX {
            self.inputs[input].status = Status::Ended;
            if self.inputs.iter().all(|input| input.status == Status::Ended) {
                return Marks { first, second: self.raise(watermark) };
            }
            // What is left may be idle, and then so is the merger.
            return Marks { first, ..self.settle(self.inputs[input].watermark) };
        }
        let entry = &mut self.inputs[input];
        if watermark <= entry.watermark || entry.status == Status::Ended {
            return Marks { first, second: None };
        }
        entry.watermark = watermark;
        if watermark >= self.watermark {
            entry.status = Status::Aligned;
        }
        Marks { first, second: self.raise_to_lowest() }
    }

    /// Notes that `input` is idle.
    pub fn on_idle(&mut self, input: usize) -> Marks {
        let entry = &mut self.inputs[input];
        if matches!(entry.status, Status::Idle | Status::Ended) {
            return Marks::default();
        }
        entry.status = Status::Idle;
        let watermark = entry.watermark;
        self.settle(watermark)
    }

    /// Notes that `input` speaks again; also to be called for a record of an idle input.
    pub fn on_active(&mut self, input: usize) -> Marks {
        let entry = &mut self.inputs[input];
        if entry.status != Status::Idle {
            return Marks::default();
        }
        let behind = self.catch_up && entry.watermark < self.watermark;
        entry.status = if behind { Status::Behind } else { Status::Aligned };
        let first = std::mem::take(&mut self.idle).then_some(Mark::Active);
        Marks { first, second: None }
    }

    /// An input that stood at `watermark` left those that speak.
    fn settle(&mut self, watermark: Timestamp) -> Marks {
        let speaking = |input: &Input| matches!(input.status, Status::Aligned | Status::Behind);
        if self.inputs.iter().any(speaking) {
            return Marks { first: None, second: self.raise_to_lowest() };
        }
        let highest = self.inputs.iter().map(|input| input.watermark).max();
        // The others were waiting for this input: nothing is to be expected before the highest.
        let raised = match highest {
            Some(highest) if self.catch_up && watermark == self.watermark => self.raise(highest),
            _ => None,
        };
        let idle = (!std::mem::replace(&mut self.idle, true)).then_some(Mark::Idle);
        Marks { first: raised, second: idle }
    }

    fn raise_to_lowest(&mut self) -> Option<Mark> {
        let aligned = self.inputs.iter().filter(|input| input.status == Status::Aligned);
        let lowest = aligned.map(|input| input.watermark).min()?;
        self.raise(lowest)
    }

    fn raise(&mut self, watermark: Timestamp) -> Option<Mark> {
        if watermark <= self.watermark {
            return None;
        }
        self.watermark = watermark;
        Some(Mark::Watermark(watermark))
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
}
