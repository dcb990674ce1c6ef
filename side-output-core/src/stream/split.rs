use super::{
    DataStream, Drive, FromStream, Hub, IdleSource, Idleness, StampStreams, TimestampStreams, Typed,
};
use crate::operator::{Split, SplitFn};
use crate::stream::Streamed;
use crate::time::{Timestamp, WatermarkGenerator, Watermarks};
use futures_core::Stream;
use std::pin::Pin;

/// What drives the streams of [`SplitExt::split_with`].
pub type StreamDrive<St, S, F, M> =
    Drive<FromStream<Pin<Box<St>>>, Split<<St as Stream>::Item, S, F, M>>;

/// What reads any stream without a chunk in between.
pub type StreamSource<St> = FromStream<Pin<Box<St>>>;

/// Splits any stream into typed outputs.
pub trait SplitExt: Stream + Sized {
    /// Routes each record by `function`; the streams of all outputs come back in one struct.
    ///
    /// Nothing runs until an output is read, and whichever is read drives the input for all.
    /// See [`Splitter`](crate::output::Splitter) for how to declare the outputs.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
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
    /// let NumbersStreams { even, odd } = stream::iter(1..=5).split_with(by_parity);
    /// let (even, odd) = block_on(futures::future::join(
    ///     even.collect::<Vec<_>>(),
    ///     odd.collect::<Vec<_>>(),
    /// ));
    /// assert_eq!(even, [2, 4]);
    /// assert_eq!(odd, [1, 3, 5]);
    /// ```
    fn split_with<S, M, F>(self, function: F) -> S::Streams<Typed<StreamDrive<Self, S, F, M>>>
    where
        S: Streamed,
        F: SplitFn<Self::Item, S, M>,
    {
        Hub::open(Drive::new(FromStream(Box::pin(self)), Split::new(function)))
    }

    /// Gives each record its timestamp, and the stream its watermarks: see
    /// [`DataStream::assign_timestamps`].
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    /// use side_output::Count;
    /// use std::time::Duration;
    ///
    /// let minutes = stream::iter([3, 59, 61])
    ///     .assign_timestamps(|second| Timestamp::from_secs(*second), Watermarks::monotonous())
    ///     .window_all(Tumbling::of(Duration::from_secs(60)))
    ///     .drop_late_data()
    ///     .aggregate(Count::new());
    /// let counts: Vec<u64> = block_on(minutes.map(|minute| minute.value).collect());
    /// assert_eq!(counts, [2, 1]);
    /// ```
    fn assign_timestamps<F, G, I, S>(
        self,
        timestamp: F,
        watermarks: Watermarks<G, I, S>,
    ) -> TimestampStreams<Self::Item, StreamSource<Self>, F, G, I, S>
    where
        F: FnMut(&Self::Item) -> Timestamp,
        G: WatermarkGenerator<Self::Item>,
        I: Idleness,
        S: StampStreams<
                Self::Item,
                IdleSource<Self::Item, DataStream<Self::Item, StreamSource<Self>>, I>,
                F,
                G,
            >,
    {
        let source = FromStream(Box::pin(self));
        DataStream::new(source, "stream").assign_timestamps(timestamp, watermarks)
    }
}

impl<St: Stream> SplitExt for St {}
