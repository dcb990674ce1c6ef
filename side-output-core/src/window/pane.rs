use super::Window;
use crate::time::Timestamp;
use std::fmt;

/// Which of a window's results this is.
///
/// A sink that writes by key and window can overwrite what an earlier pane said. Sessions grow: a
/// late update of a session replaces every result of its key whose window lies within its own.
///
/// # Examples
///
/// ```
/// use side_output::Pane;
///
/// assert!(Pane::Late(2).is_update() && !Pane::OnTime.is_update());
/// assert_eq!(Pane::Late(2).to_string(), "late update 2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Pane {
    /// The n-th result before the window was complete, counted from one.
    Early(u32),
    /// The result at the end of the window.
    OnTime,
    /// The n-th result after the window was complete, counted from one. The first one may be the
    /// first of all: a late record opened the window.
    Late(u32),
    /// What the window holds when it is freed: nothing comes after it. Only windows
    /// [with final panes](crate::stream::WindowedStream::with_final_panes) say so.
    Final,
}

impl Pane {
    /// Whether the window had been complete before.
    #[must_use]
    pub const fn is_update(self) -> bool {
        matches!(self, Self::Late(_) | Self::Final)
    }
}

impl fmt::Display for Pane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Early(n) => write!(f, "early result {n}"),
            Self::OnTime => f.write_str("on time"),
            Self::Late(n) => write!(f, "late update {n}"),
            Self::Final => f.write_str("final"),
        }
    }
}

/// The result of a window for one key. Its timestamp is the window's last instant.
///
/// # Examples
///
/// A sink that knows by the pane whether to insert or to overwrite:
///
/// ```
/// use side_output::{Pane, Timestamp, Window, WindowResult};
///
/// fn statement(result: &WindowResult<&str, u32>) -> String {
///     let WindowResult { key, window, value, pane } = result;
///     let verb = if pane.is_update() { "UPDATE" } else { "INSERT" };
///     format!("{verb} {key} {} {value}", window.start().as_millis())
/// }
///
/// let window = Window::new(Timestamp::EPOCH, Timestamp::from_secs(60));
/// let result = WindowResult { key: "ann", window, value: 3, pane: Pane::Late(1) };
/// assert_eq!(statement(&result), "UPDATE ann 0 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WindowResult<K, V> {
    /// The key; `()` where the stream has none.
    pub key: K,
    /// The window.
    pub window: Window,
    /// What the function made of its records.
    pub value: V,
    /// Which of the window's results this is.
    pub pane: Pane,
}

/// How often a window has spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "job", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Firings {
    early: u32,
    late: u32,
    complete: bool,
}

impl Firings {
    /// The next pane, of a firing at the time `at`: the timer's, or the watermark of a record.
    pub(crate) fn next(&mut self, window: Window, at: Timestamp, by_record: bool) -> Pane {
        if at < window.max_timestamp() && !self.complete {
            self.early = self.early.saturating_add(1);
            return Pane::Early(self.early);
        }
        if !by_record && !self.complete {
            self.complete = true;
            return Pane::OnTime;
        }
        self.complete = true;
        self.late = self.late.saturating_add(1);
        Pane::Late(self.late)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.early = self.early.max(other.early);
        self.late = self.late.max(other.late);
        self.complete |= other.complete;
    }
}
