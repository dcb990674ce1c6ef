use std::fmt;

/// Where the records of one operator went, at one moment.
///
/// `received + extra + fired + tapped` equals the records routed over all outputs plus `unrouted` and
/// `failed`: [`Ledger::is_balanced`].
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
/// fn by_parity(number: u32) -> Numbers {
///     if number % 2 == 0 { Numbers::Even(number) } else { Numbers::Odd(number) }
/// }
///
/// let ledger = block_on(
///     stream::iter(0..5).split_with(by_parity).wire().even(discard()).odd(discard()).run(),
/// )?;
/// assert!(ledger.is_balanced());
/// assert_eq!(ledger.received, 5);
/// assert_eq!(ledger["even"].routed, 3);
/// assert_eq!(ledger["even"].discarded, 3);
/// # Ok::<(), StreamError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Ledger {
    /// Records taken from the input, without updates of a configuration.
    pub received: u64,
    /// Updates of a configuration taken from the input.
    pub updates: u64,
    /// Records for which the function returned an error or panicked before it had emitted a route.
    pub failed: u64,
    /// Records for which the function returned no route: dropped on purpose, or kept in state.
    pub unrouted: u64,
    /// Routes beyond the first one of a record.
    pub extra: u64,
    /// Routes that no record caused directly: timers, windows, updates, the end of the input.
    pub fired: u64,
    /// Of the records without a route: those dropped because they were late.
    pub late: u64,
    /// Copies that the function emitted to taps with [`Context::output`](super::Context::output),
    /// beside the routes that it returned. A tap that is returned is a route like any other.
    pub tapped: u64,
    /// Timers that the end of the input has dropped, where [`AtEnd::Drop`] was chosen. They are no
    /// part of the sum.
    ///
    /// [`AtEnd::Drop`]: crate::operator::AtEnd::Drop
    pub timers_dropped: u64,
    /// Processing-time timers that were still set when the input ended. They do not fire, and what
    /// waits for them stays in the state. They are no part of the sum.
    pub timers_left: u64,
    /// What the operator keeps in its state at this moment, and may still emit something for: the
    /// open windows of all keys (or the slices that they share), the keys of a keyed function with
    /// state or timers, the records that a broadcast function holds back. It is no part of the
    /// sum.
    pub held: u64,
    /// Times that a reader had to wait for another output for longer than the stall limit.
    pub stalls: u64,
    /// What ended the operator before the true end of its input, if anything did.
    pub error: Option<String>,
    /// One entry for each output, in the order of declaration.
    pub outputs: Vec<OutputLedger>,
}

/// The ledger of one output: `routed = delivered + buffered + dropped + discarded`.
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
///     Number(u32),
///     #[tap]
///     Large(u32),
/// }
///
/// let route = |n: u32, cx: &mut Context<Numbers>| {
///     if n > 9 {
///         cx.output(Numbers::LARGE_TAG, n);
///     }
///     Numbers::Number(n)
/// };
/// let ledger = block_on(
///     stream::iter([7, 70]).split_with(route).wire().number(discard()).large(discard()).run(),
/// )?;
/// assert!(ledger["large"].tap);
/// assert_eq!((ledger["number"].routed, ledger["large"].routed), (2, 1));
/// assert_eq!((ledger.received, ledger.tapped), (2, 1));
/// # Ok::<(), StreamError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OutputLedger {
    /// The output's name.
    pub name: &'static str,
    /// Whether it is a tap.
    pub tap: bool,
    /// Records routed here.
    pub routed: u64,
    /// Records handed to the reader or the destination; to a sink, once it has flushed them.
    pub delivered: u64,
    /// Records that wait for the reader or the destination, or to be flushed.
    pub buffered: u64,
    /// Of those buffered: records that a sink has accepted and not flushed. They do not count
    /// against the output's capacity.
    pub accepted: u64,
    /// Records dropped by the overflow policy.
    pub dropped: u64,
    /// Records discarded: by [`discard`](crate::stream::wiring::discard), because the reader went
    /// away, or because the destination failed before they were delivered.
    pub discarded: u64,
    /// Whether the splitter waits for this output at this moment: it is full, or at the end of a
    /// wiring its destination is not done.
    pub blocking: bool,
}

impl Ledger {
    /// Whether every record is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let routed: u64 = self.outputs.iter().map(|output| output.routed).sum();
        let outputs = self.outputs.iter().all(|output| {
            output.routed == output.delivered + output.buffered + output.dropped + output.discarded
        });
        let caused = self.received + self.extra + self.fired + self.tapped;
        outputs && caused == routed + self.unrouted + self.failed
    }

    /// The ledger of the output called `name`.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<&OutputLedger> {
        self.outputs.iter().find(|output| output.name == name)
    }
}

impl std::ops::Index<&str> for Ledger {
    type Output = OutputLedger;

    /// # Panics
    ///
    /// If no output has this name; [`Ledger::output`] does not.
    fn index(&self, name: &str) -> &OutputLedger {
        self.output(name).unwrap_or_else(|| no_such_output(name))
    }
}

#[cold]
#[track_caller]
fn no_such_output(name: &str) -> ! {
    panic!("the ledger has no output `{name}`")
}

impl fmt::Display for Ledger {
    /// A table with a line for each output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.outputs.iter().map(|output| output.name.len()).max().unwrap_or(0).max(8);
        writeln!(f, "{:width$} {:>12}", "received", self.received)?;
        for output in &self.outputs {
            let tap = if output.tap { " (tap)" } else { "" };
            writeln!(f, "{:width$} {:>12}{tap}", output.name, output.routed)?;
            let lost = output.dropped + output.discarded;
            if lost > 0 {
                let (dropped, discarded) = (output.dropped, output.discarded);
                writeln!(f, "{:width$} {dropped} dropped, {discarded} discarded", "")?;
            }
        }
        write!(f, "{:width$} {:>12}", "unrouted", self.unrouted)?;
        if self.timers_dropped + self.timers_left > 0 {
            let (dropped, left) = (self.timers_dropped, self.timers_left);
            write!(f, "\n{:width$} {dropped} timers dropped at the end, {left} left", "")?;
        }
        if let Some(error) = &self.error {
            write!(f, "\n{:width$} {error}", "error")?;
        }
        Ok(())
    }
}
