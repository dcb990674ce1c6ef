use super::gather::{Item, PartitionQueues};
use crate::error::StreamError;
use crate::output::{Account, Collect};
use crate::stream::Streamed;
use crate::stream::driver::drive_turn;
use crate::stream::source::{CHUNK, TURNS};
use crate::stream::{Driver, Fed};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How much a partition may be ahead of the reader.
const CAPACITY: usize = 4 * CHUNK;

/// The future that runs one partition: to be spawned, or polled by the reader of the outputs.
///
/// It is ready when its partition has ended or nobody reads the outputs any more. Dropped before
/// that, it is an error of all partitions.
#[must_use = "a partition does nothing unless its task is polled"]
pub struct PartitionTask<S, D> {
    pipes: Arc<PartitionQueues<S>>,
    partition: usize,
    /// `None` after the end.
    driver: Option<D>,
    staged: Emitted<S>,
    /// What of the driver's account was handed on.
    entered: Account,
}

struct Emitted<S> {
    items: Vec<Item<S>>,
}

impl<S> Collect<S> for Emitted<S> {
    #[inline]
    fn emit(&mut self, route: S, at: Timestamp) {
        self.items.push(Item::Route(route, at));
    }

    #[inline]
    fn mark(&mut self, mark: Mark) {
        self.items.push(Item::Mark(mark));
    }
}

impl<S, D> PartitionTask<S, D> {
    pub(super) fn new(pipes: Arc<PartitionQueues<S>>, partition: usize, driver: D) -> Self {
        let staged = Emitted { items: Vec::new() };
        Self { pipes, partition, driver: Some(driver), staged, entered: Account::new() }
    }

    fn finish(&mut self, end: Result<(), StreamError>) {
        self.pipes.pipes[self.partition].lock().end.get_or_insert(end);
        self.pipes.wake_reader();
        self.driver = None;
    }
}

// Nothing in it is pinned.
impl<S, D> Unpin for PartitionTask<S, D> {}

impl<S: Streamed, D: Driver<S>> Future for PartitionTask<S, D> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        for _ in 0..TURNS {
            let Some(driver) = &mut this.driver else { return Poll::Ready(()) };
            {
                let mut pipe = this.pipes.pipes[this.partition].lock();
                if pipe.closed {
                    drop(pipe);
                    this.driver = None;
                    return Poll::Ready(());
                }
                let old = pipe.task.replace(cx.waker().clone());
                let full = pipe.items.len() >= CAPACITY;
                let asked = mem::take(&mut pipe.fail_on_stall);
                // Dropping a waker may drop a task: not under the lock.
                drop(pipe);
                drop(old);
                if asked {
                    driver.fail_on_stall();
                }
                if full {
                    // It may not know: what was only counted wakes nobody.
                    this.pipes.wake_reader();
                    return Poll::Pending;
                }
            }
            let staged = &mut this.staged;
            let fed = drive_turn(driver, cx, CHUNK, staged);
            let emitted = !staged.items.is_empty();
            let account = *driver.account();
            if account != this.entered {
                staged.items.push(Item::Account(account.since(&this.entered)));
                this.entered = account;
            }
            {
                let mut pipe = this.pipes.pipes[this.partition].lock();
                pipe.held = driver.held();
                for item in staged.items.drain(..) {
                    match (pipe.items.back_mut(), item) {
                        // A turn that emits nothing takes no place.
                        (Some(Item::Account(last)), Item::Account(account)) => last.add(&account),
                        (_, item) => pipe.items.push_back(item),
                    }
                }
            }
            // Not for nothing: where the reader polls the tasks, it would never come to rest.
            if emitted {
                this.pipes.wake_reader();
            }
            match fed {
                Fed::More => {}
                Fed::Pending => return Poll::Pending,
                Fed::End => this.finish(Ok(())),
                Fed::Failed(error) => this.finish(Err(error)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S, D> Drop for PartitionTask<S, D> {
    fn drop(&mut self) {
        if self.driver.is_some() {
            self.finish(Err(StreamError::Cancelled));
        }
    }
}

impl<S, D> fmt::Debug for PartitionTask<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionTask").field("partition", &self.partition).finish_non_exhaustive()
    }
}
