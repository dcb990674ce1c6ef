use super::{Assigner, Never, Separate, Window};
use crate::time::Timestamp;
use std::iter;

/// One window for all of time: it says something when a trigger tells it to, nothing without one.
///
/// Records need no timestamps, and none is ever late.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{EveryCount, Global, Purging};
///
/// let pairs = DataStream::from_stream(stream::iter([1, 2, 3, 4, 5]))
///     .window_all(Global)
///     .trigger(Purging(EveryCount::new(2)))
///     .drop_late_data()
///     .reduce(|sum: &mut u32, next| *sum += next);
/// let sums: Vec<_> = block_on(pairs.map(|pair| pair.value).collect());
/// assert_eq!(sums, [3, 7]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Global;

impl Assigner for Global {
    type Windows = iter::Once<Window>;
    type Trigger = Never;
    type Merging = Separate;

    const ENDS: bool = false;

    fn assign(&self, _at: Timestamp) -> iter::Once<Window> {
        iter::once(Window::GLOBAL)
    }
}
