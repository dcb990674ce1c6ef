//! Why nothing comes out: which output is full, and which input holds the time.

use super::LedgerHandle;
use crate::time::{Alignment, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// What an operator waits for at this moment. See [`LedgerHandle::waiting_for`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingFor {
    /// The output that is full, or whose destination is not done, and that somebody waits for.
    pub output: Option<&'static str>,
    /// The inputs, in order.
    pub inputs: Vec<InputNow>,
}

/// An input of an operator at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputNow {
    /// The last watermark; [`Timestamp::MIN`] before the first.
    pub watermark: Timestamp,
    /// What it is doing.
    pub state: InputIs,
}

/// What an input is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputIs {
    /// It was not asked: nobody reads, or another input comes first.
    NotAsked,
    /// It had something when it was asked last.
    Ready,
    /// It was asked and has nothing.
    Silent,
    /// It was declared idle, and does not hold up the time.
    Idle,
    /// Its barrier waits for those of the others.
    Barrier,
    /// It has ended.
    Ended,
}

impl InputIs {
    const ALL: [Self; 6] =
        [Self::NotAsked, Self::Ready, Self::Silent, Self::Idle, Self::Barrier, Self::Ended];
}

impl WaitingFor {
    /// The number of the input that holds the time: the one with the lowest watermark, among those that
    /// are neither idle nor at their end.
    #[must_use]
    pub fn holds_the_time(&self) -> Option<usize> {
        let counts = |input: &InputNow| !matches!(input.state, InputIs::Idle | InputIs::Ended);
        let inputs = self.inputs.iter().enumerate().filter(|(_, input)| counts(input));
        inputs.min_by_key(|(_, input)| input.watermark).map(|(number, _)| number)
    }
}

impl fmt::Display for WaitingFor {
    /// A line for the output, and one for each input.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(output) = self.output {
            write!(f, "output `{output}` takes no more")?;
        }
        let holds = self.holds_the_time();
        for (number, InputNow { watermark, state }) in self.inputs.iter().enumerate() {
            if self.output.is_some() || number > 0 {
                writeln!(f)?;
            }
            let state = match state {
                InputIs::NotAsked => "was not asked",
                InputIs::Ready => "had something when it was asked last",
                InputIs::Silent => "was asked and has nothing",
                InputIs::Idle => "is idle",
                InputIs::Barrier => "waits for the barriers of the others",
                InputIs::Ended => "has ended",
            };
            write!(f, "input {number} {state}; ")?;
            match watermark.known() {
                Some(watermark) => write!(f, "its watermark is {watermark}")?,
                None => f.write_str("no watermark has come")?,
            }
            if holds == Some(number) && self.inputs.len() > 1 {
                f.write_str(", which holds the time")?;
            }
        }
        Ok(())
    }
}

/// What is behind a source, for whoever asks why nothing comes out.
#[derive(Debug, Default)]
pub struct Behind {
    /// The operators that it reads.
    pub(super) ledgers: Vec<LedgerHandle>,
    /// The inputs, where there are several.
    pub(super) inputs: Option<Arc<Inputs>>,
}

/// Several inputs, as they were when they were read last. Whoever merges them writes it.
#[derive(Debug)]
pub(super) struct Inputs(Vec<(AtomicI64, AtomicU8)>);

impl Inputs {
    pub(super) fn new(inputs: usize) -> Arc<Self> {
        let input = || (AtomicI64::new(Timestamp::MIN.as_millis()), AtomicU8::new(0));
        Arc::new(Self((0..inputs).map(|_| input()).collect()))
    }

    pub(super) fn set(&self, input: usize, alignment: &Alignment, state: InputIs) {
        let state = if alignment.is_input_idle(input) { InputIs::Idle } else { state };
        let (watermark, is) = &self.0[input];
        watermark.store(alignment.input_watermark(input).as_millis(), Ordering::Relaxed);
        is.store(state as u8, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Vec<InputNow> {
        let now = |(watermark, is): &(AtomicI64, AtomicU8)| InputNow {
            watermark: Timestamp::from_millis(watermark.load(Ordering::Relaxed)),
            state: InputIs::ALL[usize::from(is.load(Ordering::Relaxed))],
        };
        self.0.iter().map(now).collect()
    }
}
