//! Windows: which of them a record belongs to, when they fire, and what they say.
//!
//! Pure data and functions. The operator in [`operator`](crate::operator) keeps the state.

mod advice;
mod aggregate;
mod assigner;
mod calendar;
mod global;
mod interval;
mod late;
mod pane;
mod process;
mod session;
mod sliding;
mod trigger;
mod tumbling;

pub(crate) use self::pane::Firings;

pub use self::aggregate::{Aggregate, Count};
pub use self::assigner::{Assigner, Merged, Merging, Separate};
pub use self::calendar::Calendar;
pub use self::global::Global;
pub use self::interval::Window;
pub use self::late::{Late, LateWindows};
pub use self::pane::{Pane, WindowResult};
pub use self::process::{RouteLate, WindowContext, WindowProcess};
pub use self::session::Session;
pub use self::sliding::{Sliding, SlidingWindows};
pub use self::trigger::{
    ContinuousEventTime, EventTime, EveryCount, MergingTrigger, Never, Purging, Timers, Trigger,
    TriggerContext, TriggerOf, Verdict,
};
pub use self::tumbling::Tumbling;
