use std::marker::PhantomData;

/// Condenses the records of a window as they come, so that the window keeps only one value.
///
/// # Examples
///
/// The mean, which is no sum of means:
///
/// ```
/// use side_output::Aggregate;
///
/// struct Mean;
///
/// impl Aggregate for Mean {
///     type In = f64;
///     type Accumulator = (f64, u32);
///     type Output = f64;
///
///     fn create(&mut self) -> (f64, u32) {
///         (0.0, 0)
///     }
///     fn add(&mut self, (sum, count): &mut (f64, u32), value: &f64) {
///         *sum += value;
///         *count += 1;
///     }
///     fn merge(&mut self, (sum, count): &mut (f64, u32), other: (f64, u32)) {
///         *sum += other.0;
///         *count += other.1;
///     }
///     fn result(&mut self, (sum, count): &(f64, u32)) -> f64 {
///         sum / f64::from(*count)
///     }
/// }
/// ```
pub trait Aggregate {
    /// The records.
    type In;

    /// What is kept of them; plain data. Windows that overlap take copies of what they share.
    type Accumulator: Clone;

    /// The window's result.
    type Output;

    /// Whether records have to be added in the order in which they came, as where the last one
    /// wins. [`Sliding`](super::Sliding) windows then add each record to each of its windows, and
    /// do not merge.
    const IN_ORDER: bool = false;

    /// The accumulator of no records.
    fn create(&mut self) -> Self::Accumulator;

    /// Adds a record.
    fn add(&mut self, accumulator: &mut Self::Accumulator, value: &Self::In);

    /// Adds what was kept of other records, as if they had been added one by one.
    ///
    /// Sessions merge, and [`Sliding`](super::Sliding) windows are put together from slices of
    /// time, in the order of time. So sums of floating point numbers may be rounded differently
    /// than record by record.
    fn merge(&mut self, accumulator: &mut Self::Accumulator, other: Self::Accumulator);

    /// The window's result.
    fn result(&mut self, accumulator: &Self::Accumulator) -> Self::Output;
}

/// Counts records.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt, stream};
/// use side_output::prelude::*;
/// use side_output::{Count, Tumbling, Watermarks};
/// use std::time::Duration;
///
/// let counts = DataStream::from_stream(stream::iter([1, 2, 61]))
///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
///     .window_all(Tumbling::of(Duration::from_secs(60)))
///     .drop_late_data()
///     .aggregate(Count::new());
/// let counts: Vec<_> = block_on(counts.map(|result| result.value).collect());
/// assert_eq!(counts, [2, 1]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Count<T>(PhantomData<fn(T)>);

impl<T> Count<T> {
    /// Counts records of type `T`.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Count<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Aggregate for Count<T> {
    type In = T;
    type Accumulator = u64;
    type Output = u64;

    fn create(&mut self) -> u64 {
        0
    }

    fn add(&mut self, count: &mut u64, _value: &T) {
        *count += 1;
    }

    fn merge(&mut self, count: &mut u64, other: u64) {
        *count += other;
    }

    fn result(&mut self, count: &u64) -> u64 {
        *count
    }
}
