use super::{Drive, Hub, StreamFeed, Typed};
use crate::operator::{Split, SplitFn};
use crate::output::Splitter;
use futures_core::Stream;
use std::pin::Pin;

/// What drives the streams of [`SplitExt::split_with`].
pub type StreamDrive<St, S, F, M> =
    Drive<StreamFeed<Pin<Box<St>>>, Split<<St as Stream>::Item, S, F, M>>;

/// Splits any stream into typed outputs.
pub trait SplitExt: Stream + Sized {
    /// Routes each record by `function`; the streams of all outputs come back in one struct.
    ///
    /// Nothing runs until an output is read, and whichever is read drives the input for all.
    /// See [`Splitter`] for how to declare the outputs.
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
        S: Splitter,
        F: SplitFn<Self::Item, S, M>,
    {
        Hub::open(Drive::new(StreamFeed(Box::pin(self)), Split::new(function)))
    }
}

impl<St: Stream> SplitExt for St {}
