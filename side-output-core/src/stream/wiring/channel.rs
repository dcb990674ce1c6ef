//! Senders of `tokio`'s channels.

use super::destination::{Counts, Destination, InputState, IntoDestination};
use super::sink::{IntoSink, ToSink};
use crate::error::StreamError;
use crate::output::OutputSpec;
use crate::time::Timestamp;
use futures_sink::Sink;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::error::{SendError, TrySendError};
use tokio::sync::mpsc::{OwnedPermit, Sender, UnboundedSender};

/// Marks senders of channels.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntoChannel;

impl<T: Send + 'static> IntoDestination<T, IntoChannel> for Sender<T> {
    type Destination = ToSink<T, ToChannel<T>>;

    fn into_destination(self, spec: OutputSpec) -> Self::Destination {
        IntoDestination::<T, IntoSink>::into_destination(
            ToChannel { place: Place::None(self) },
            spec,
        )
    }
}

type Reserving<T> = Pin<Box<dyn Future<Output = Result<OwnedPermit<T>, SendError<()>>> + Send>>;

/// A sender and the place in its channel that it has.
enum Place<T> {
    None(Sender<T>),
    /// The channel is full.
    Waiting(Reserving<T>),
    Reserved(OwnedPermit<T>),
    Closed,
}

/// A bounded sender as a `Sink`.
pub struct ToChannel<T> {
    place: Place<T>,
}

/// Nobody receives any more.
fn gone() -> SendError<()> {
    SendError(())
}

impl<T: Send + 'static> Sink<T> for ToChannel<T> {
    type Error = SendError<()>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let place = &mut self.get_mut().place;
        loop {
            *place = match std::mem::replace(place, Place::Closed) {
                Place::None(sender) => match sender.try_reserve_owned() {
                    Ok(permit) => Place::Reserved(permit),
                    Err(TrySendError::Full(sender)) => {
                        Place::Waiting(Box::pin(sender.reserve_owned()))
                    }
                    Err(TrySendError::Closed(_)) => return Poll::Ready(Err(gone())),
                },
                Place::Waiting(mut reserving) => match reserving.as_mut().poll(cx) {
                    Poll::Ready(permit) => Place::Reserved(permit?),
                    Poll::Pending => {
                        *place = Place::Waiting(reserving);
                        return Poll::Pending;
                    }
                },
                Place::Closed => return Poll::Ready(Err(gone())),
                reserved @ Place::Reserved(_) => {
                    *place = reserved;
                    return Poll::Ready(Ok(()));
                }
            };
        }
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Self::Error> {
        let place = &mut self.get_mut().place;
        match std::mem::replace(place, Place::Closed) {
            Place::Reserved(permit) => {
                *place = Place::None(permit.send(value));
                Ok(())
            }
            _ => Err(gone()),
        }
    }

    /// What is in the channel is the receiver's.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.place = Place::Closed;
        Poll::Ready(Ok(()))
    }
}

impl<T> fmt::Debug for ToChannel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToChannel")
    }
}

impl<T: Send + 'static> IntoDestination<T, IntoChannel> for UnboundedSender<T> {
    type Destination = ToUnbounded<T>;

    fn into_destination(self, spec: OutputSpec) -> ToUnbounded<T> {
        ToUnbounded { sender: Some(self), output: spec.name, delivered: 0, failed: false }
    }
}

/// Destination that is a sender without a bound.
pub struct ToUnbounded<T> {
    /// Dropped at the end, so that the receiver sees it.
    sender: Option<UnboundedSender<T>>,
    output: &'static str,
    delivered: u64,
    failed: bool,
}

impl<T> Destination<T> for ToUnbounded<T> {
    const WAITS: bool = true;

    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        let sent = self.sender.as_ref().is_some_and(|sender| sender.send(value).is_ok());
        self.delivered += u64::from(sent);
        self.failed |= !sent;
        self.failed
    }

    fn poll(
        &mut self,
        _cx: &mut Context<'_>,
        input: InputState<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if matches!(input, InputState::Ended(_)) {
            self.sender = None;
        }
        Poll::Ready(if std::mem::take(&mut self.failed) {
            Err(StreamError::destination(self.output, gone()))
        } else {
            Ok(())
        })
    }

    fn sum(&self, routed: u64) -> Counts {
        let delivered = self.delivered;
        Counts { delivered, discarded: routed - delivered, ..Counts::default() }
    }
}

impl<T> fmt::Debug for ToUnbounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToUnbounded").field("output", &self.output).finish_non_exhaustive()
    }
}
