use super::{OutputAt, OutputSpec, Splitter};

/// The splitter of operators with one output: its streams are that one stream.
///
/// # Examples
///
/// A function with one output needs no enum of its own:
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::output::Single;
/// use side_output::prelude::*;
///
/// let even = stream::iter(0..5).split_with(|n: u32| (n % 2 == 0).then_some(Single(n)));
/// assert_eq!(block_on(even.collect::<Vec<_>>()), [0, 2, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single<T>(pub T);

const SPEC: OutputSpec = OutputSpec::new(0, "records").main();

#[diagnostic::do_not_recommend]
impl<T> Splitter for Single<T> {
    const NAME: &'static str = "Single";
    const OUTPUTS: &'static [OutputSpec] = &[SPEC];
    const SLOTS: usize = 1;

    #[inline]
    fn index(&self) -> usize {
        0
    }
}

impl<T> OutputAt<0> for Single<T> {
    type Payload = T;
    const SPEC: OutputSpec = SPEC;

    #[inline]
    fn wrap(value: T) -> Self {
        Self(value)
    }

    #[inline]
    fn take(self) -> Result<T, Self> {
        Ok(self.0)
    }
}
