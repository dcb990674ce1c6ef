#[cfg(feature = "job")]
use super::snapshot::watermark;
use super::{Either, Operator};
use crate::error::StreamError;
use crate::output::{Collect, Collector, Context, OwnContext, Routes, Splitter};
#[cfg(feature = "job")]
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::time::{Mark, Timestamp};
use std::fmt;

/// A function on the records of a stream, as a type of its own.
///
/// Where a closure or a plain function is enough,
/// [`split_with`](crate::stream::DataStream::split_with) takes that.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::Process;
///
/// #[splitter]
/// enum Numbers {
///     Even(u32),
///     Odd(u32),
/// }
///
/// struct ByParity;
///
/// impl Process for ByParity {
///     type In = u32;
///     type Out = Numbers;
///
///     fn on_record(&mut self, number: u32, _cx: &mut Context<Numbers>) -> impl Routes<Numbers> {
///         if number % 2 == 0 { Numbers::Even(number) } else { Numbers::Odd(number) }
///     }
/// }
///
/// let NumbersStreams { even, odd } =
///     DataStream::from_stream(stream::iter(1..=4)).process(ByParity);
/// odd.discard();
/// assert_eq!(block_on(even.collect::<Vec<_>>()), [2, 4]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on a stream",
    label = "expected a type that implements `Process`",
    note = "`split_with` takes a closure"
)]
pub trait Process {
    /// What comes in.
    type In;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record.
    fn on_record(
        &mut self,
        record: Self::In,
        cx: &mut Context<Self::Out>,
    ) -> impl Routes<Self::Out>;
}

/// A function on two streams. Time is that of both together: the watermark is the lower one.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::CoProcess;
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Lines {
///     #[main]
///     Line(String),
///     Empty(()),
/// }
///
/// struct Show;
///
/// impl CoProcess for Show {
///     type Left = u32;
///     type Right = &'static str;
///     type Out = Lines;
///
///     fn on_left(&mut self, number: u32, _cx: &mut Context<Lines>) -> impl Routes<Lines> {
///         Lines::Line(number.to_string())
///     }
///
///     fn on_right(&mut self, text: &'static str, _cx: &mut Context<Lines>) -> impl Routes<Lines> {
///         if text.is_empty() { Lines::Empty(()) } else { Lines::Line(text.to_owned()) }
///     }
/// }
///
/// let numbers = DataStream::from_stream(stream::iter([1, 2]));
/// let texts = DataStream::from_stream(stream::iter(["one", ""]));
/// let LinesStreams { line, empty } = numbers.connect(texts).process(Show);
/// empty.discard();
/// let mut lines = block_on(line.collect::<Vec<_>>());
/// lines.sort();
/// assert_eq!(lines, ["1", "2", "one"]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function on two streams",
    label = "expected a type that implements `CoProcess`",
    note = "`process_with` takes one closure for each stream"
)]
pub trait CoProcess {
    /// What comes in from the first stream.
    type Left;
    /// What comes in from the second stream.
    type Right;
    /// The outputs.
    type Out: Splitter;

    /// Takes a record of the first stream.
    fn on_left(
        &mut self,
        record: Self::Left,
        cx: &mut Context<Self::Out>,
    ) -> impl Routes<Self::Out>;

    /// Takes a record of the second stream.
    fn on_right(
        &mut self,
        record: Self::Right,
        cx: &mut Context<Self::Out>,
    ) -> impl Routes<Self::Out>;
}

/// The operator of a [`Process`].
pub struct Processing<F: Process> {
    function: F,
    cx: OwnContext<F::Out>,
    watermark: Timestamp,
}

impl<F: Process> Processing<F> {
    /// An operator that calls `function`.
    pub const fn new(function: F) -> Self {
        Self { function, cx: OwnContext::new(), watermark: Timestamp::MIN }
    }
}

impl<F: Process> Operator for Processing<F> {
    type In = F::In;
    type Out = F::Out;

    const STATEFUL: bool = false;

    #[inline]
    fn on_record<C: Collect<F::Out>>(
        &mut self,
        value: F::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.set(at, self.watermark);
        let routed = self.function.on_record(value, &mut self.cx).route(at, out);
        self.cx.flush(at, out);
        routed
    }

    #[inline]
    fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if let Mark::Watermark(watermark) = mark {
            // Not filtered, as in `Split`.
            self.watermark = watermark;
        }
        out.mark(mark);
        Ok(())
    }
}

impl<F: Process> fmt::Debug for Processing<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processing").field("watermark", &self.watermark).finish_non_exhaustive()
    }
}

/// The operator of a [`CoProcess`].
pub struct Co<F: CoProcess> {
    function: F,
    cx: OwnContext<F::Out>,
    watermark: Timestamp,
}

impl<F: CoProcess> Co<F> {
    /// An operator that calls `function`.
    pub const fn new(function: F) -> Self {
        Self { function, cx: OwnContext::new(), watermark: Timestamp::MIN }
    }
}

impl<F: CoProcess> Operator for Co<F> {
    type In = Either<F::Left, F::Right>;
    type Out = F::Out;

    const STATEFUL: bool = false;

    #[inline]
    fn on_record<C: Collect<F::Out>>(
        &mut self,
        value: Self::In,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        self.cx.set(at, self.watermark);
        let routed = match value {
            Either::Left(value) => self.function.on_left(value, &mut self.cx).route(at, out),
            Either::Right(value) => self.function.on_right(value, &mut self.cx).route(at, out),
        };
        self.cx.flush(at, out);
        routed
    }

    #[inline]
    fn on_mark<C: Collect<F::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if let Mark::Watermark(watermark) = mark {
            self.watermark = watermark;
        }
        out.mark(mark);
        Ok(())
    }
}

impl<F: CoProcess> fmt::Debug for Co<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Co").field("watermark", &self.watermark).finish_non_exhaustive()
    }
}

#[cfg(feature = "job")]
impl<F: Process> Snapshot for Processing<F> {
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        watermark::save(self.watermark, to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        watermark::load(&mut self.watermark, from)
    }
}

#[cfg(feature = "job")]
impl<F: CoProcess> Snapshot for Co<F> {
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        watermark::save(self.watermark, to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        watermark::load(&mut self.watermark, from)
    }
}
