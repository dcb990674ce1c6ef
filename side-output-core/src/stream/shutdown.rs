use super::{DataStream, Element};
use crate::error::StreamError;
use crate::sync::{Mutex, wake_all};
use futures_core::Stream;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

/// Ends inputs on request: as a service does when it is told to.
///
/// The streams that are made of it read their inputs until then. What was read before goes on through
/// every operator, and a run flushes and closes its destinations before it returns.
///
/// - [`stop`](Self::stop) breaks off: readers and `run` get [`StreamError::Stopped`], which is no end
///   of the input. Windows and timers that wait for more do not fire: what is not complete stays
///   incomplete.
/// - [`drain`](Self::drain) is the end: all that is open fires, as if the inputs had ended by
///   themselves, and `run` returns the ledger.
///
/// Where several inputs meet, make all of them of the same handle: a stop of one stops what they lead
/// to, once it has taken what the others had ready.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use futures::stream;
/// use side_output::prelude::*;
/// use side_output::Shutdown;
///
/// #[splitter]
/// enum Numbers {
///     #[main]
///     Any(u32),
/// }
///
/// let shutdown = Shutdown::new();
/// let handle = shutdown.clone(); // for the task that waits for Ctrl-C
/// let endless = shutdown.input(stream::iter(1..));
/// let mut seen = 0;
/// let run = endless
///     .split_with(Numbers::Any)
///     .wire()
///     .any(each(|n| {
///         seen = n;
///         if n == 1000 {
///             handle.stop();
///         }
///     }))
///     .run();
/// let ledger = run.ledger_handle();
/// assert!(matches!(block_on(run), Err(StreamError::Stopped)));
/// // All that was read has gone through.
/// assert_eq!(ledger.read()["any"].delivered, u64::from(seen));
/// ```
#[derive(Clone)]
pub struct Shutdown(Arc<Shared>);

struct Shared {
    /// [`RUNNING`], [`STOP`] or [`DRAIN`].
    request: AtomicU8,
    /// Who waits for an input or a request.
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

const RUNNING: u8 = 0;
const STOP: u8 = 1;
const DRAIN: u8 = 2;

impl Shutdown {
    /// A handle that was not used yet.
    #[must_use]
    pub fn new() -> Self {
        let waiting = Mutex::new(Waiting::default());
        Self(Arc::new(Shared { request: AtomicU8::new(RUNNING), waiting }))
    }

    /// Breaks off: nothing fires that is not complete, and readers get [`StreamError::Stopped`].
    ///
    /// After [`drain`](Self::drain) it has no effect.
    pub fn stop(&self) {
        self.request(STOP);
    }

    /// Ends the inputs, as if they had come to their ends.
    ///
    /// After [`stop`](Self::stop) it has no effect.
    pub fn drain(&self) {
        self.request(DRAIN);
    }

    fn request(&self, request: u8) {
        let first =
            self.0.request.compare_exchange(RUNNING, request, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            let wakers: Vec<_> =
                self.0.waiting.lock().wakers.iter_mut().filter_map(Option::take).collect();
            wake_all(wakers);
        }
    }

    /// Whether it was asked to stop or to drain.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.request.load(Ordering::SeqCst) != RUNNING
    }

    /// The records of any stream, until a request: see [`DataStream::from_stream`].
    pub fn input<St>(&self, stream: St) -> DataStream<St::Item>
    where
        St: Stream<Item: Send> + Send + 'static,
    {
        DataStream::from_try_stream(self.until(stream, Ok::<_, StreamError>))
    }

    /// The values of a stream of results, until a request: see [`DataStream::from_try_stream`].
    pub fn try_input<St, T, E>(&self, stream: St) -> DataStream<T>
    where
        St: Stream<Item = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
        T: 'static,
    {
        DataStream::from_try_stream(
            self.until(stream, |item: Result<T, E>| item.map_err(StreamError::failed)),
        )
    }

    /// Records and marks, until a request: see [`DataStream::from_try_elements`].
    pub fn try_elements<St, T, E>(&self, elements: St) -> DataStream<T>
    where
        St: Stream<Item = Result<Element<T>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
        T: 'static,
    {
        DataStream::from_try_elements(
            self.until(elements, |item: Result<Element<T>, E>| item.map_err(StreamError::failed)),
        )
    }

    fn until<St, F>(&self, stream: St, result: F) -> Until<St, F> {
        let place = {
            let mut waiting = self.0.waiting.lock();
            waiting.free.pop().unwrap_or_else(|| {
                waiting.wakers.push(None);
                waiting.wakers.len() - 1
            })
        };
        Until { stream: Box::pin(stream), result, shutdown: self.clone(), place }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").field("requested", &self.is_requested()).finish()
    }
}

/// A stream that ends on request.
struct Until<St, F> {
    stream: Pin<Box<St>>,
    result: F,
    shutdown: Shutdown,
    place: usize,
}

impl<St, F> Until<St, F> {
    /// What comes instead of the next item, once there was a request.
    fn requested<T>(&self) -> Poll<Option<Result<T, StreamError>>> {
        match self.shutdown.0.request.load(Ordering::SeqCst) {
            RUNNING => Poll::Pending,
            STOP => Poll::Ready(Some(Err(StreamError::Stopped))),
            _ => Poll::Ready(None),
        }
    }

    fn set_waker(&self, waker: Option<Waker>) {
        // Dropping a waker may drop a task: not under the lock.
        let mut waiting = self.shutdown.0.waiting.lock();
        let old = std::mem::replace(&mut waiting.wakers[self.place], waker);
        drop(waiting);
        drop(old);
    }
}

// The stream has a place of its own.
impl<St, F> Unpin for Until<St, F> {}

impl<St: Stream, F, T> Stream for Until<St, F>
where
    F: FnMut(St::Item) -> Result<T, StreamError>,
{
    type Item = Result<T, StreamError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let end @ Poll::Ready(_) = this.requested() {
            return end;
        }
        match this.stream.as_mut().poll_next(cx) {
            Poll::Ready(item) => Poll::Ready(item.map(&mut this.result)),
            Poll::Pending => {
                this.set_waker(Some(cx.waker().clone()));
                // A request between the look above and the entry of the waker has woken nobody.
                this.requested()
            }
        }
    }
}

impl<St, F> Drop for Until<St, F> {
    fn drop(&mut self) {
        self.set_waker(None);
        self.shutdown.0.waiting.lock().free.push(self.place);
    }
}
