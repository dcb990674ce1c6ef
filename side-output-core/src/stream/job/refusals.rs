use super::part::JobLink;
use crate::checkpoint::{BoxError, Failed};
use crate::stream::{Fed, Intake, Source};
use crate::sync::{Mutex, wake_all};
use crate::time::{Mark, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Waker};

/// The records that a sink has refused, as a stream; see [`Pipeline::sink`](super::Pipeline::sink).
pub struct Refusals<T> {
    queue: Arc<Mutex<Queue<T>>>,
    link: JobLink,
}

/// The sink's end of the stream.
pub(super) struct Refused<T> {
    queue: Arc<Mutex<Queue<T>>>,
}

struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    ended: bool,
    /// Nobody reads them.
    dropped: bool,
    reader: Option<Waker>,
}

enum Waiting<T> {
    Failed(Failed<T>),
    Barrier(u64),
}

pub(super) fn refusals<T>(link: JobLink) -> (Refused<T>, Refusals<T>) {
    let queue = Queue { waiting: VecDeque::new(), ended: false, dropped: false, reader: None };
    let queue = Arc::new(Mutex::new(queue));
    (Refused { queue: Arc::clone(&queue) }, Refusals { queue, link })
}

impl<T> Refused<T> {
    /// Hands on what was refused, if somebody takes it.
    pub(super) fn push(&self, failed: Vec<Failed<T>>) -> Result<(), BoxError> {
        if failed.is_empty() {
            return Ok(());
        }
        self.with(|queue| match failed.first() {
            Some(first) if queue.dropped || queue.ended => Err(format!(
                "a record was refused, and nothing takes what is refused: {}",
                first.error
            )
            .into()),
            _ => {
                queue.waiting.extend(failed.into_iter().map(Waiting::Failed));
                Ok(())
            }
        })
    }

    pub(super) fn barrier(&self, id: u64) {
        self.with(|queue| {
            if !queue.dropped {
                queue.waiting.push_back(Waiting::Barrier(id));
            }
        });
    }

    pub(super) fn end(&self) {
        self.with(|queue| queue.ended = true);
    }

    fn with<R>(&self, f: impl FnOnce(&mut Queue<T>) -> R) -> R {
        let (result, waker) = {
            let mut queue = self.queue.lock();
            (f(&mut queue), queue.reader.take())
        };
        wake_all(waker);
        result
    }
}

impl<T> Source<Failed<T>> for Refusals<T> {
    fn feed<K: Intake<Failed<T>>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        loop {
            let mut queue = self.queue.lock();
            let Some(waiting) = queue.waiting.pop_front() else {
                if queue.ended {
                    return Fed::End;
                }
                let old = queue.reader.replace(cx.waker().clone());
                drop(queue);
                drop(old);
                return Fed::Pending;
            };
            drop(queue);
            let flow = match waiting {
                Waiting::Failed(failed) => intake.record(failed, Timestamp::MIN),
                Waiting::Barrier(id) => intake.mark(Mark::Barrier(id)),
            };
            if flow.is_break() {
                return Fed::More;
            }
        }
    }

    fn resumes() -> bool {
        true
    }

    fn job(&self) -> Option<JobLink> {
        Some(self.link.clone())
    }
}

impl<T> Drop for Refusals<T> {
    fn drop(&mut self) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.dropped = true;
            std::mem::take(&mut queue.waiting)
        };
        drop(waiting);
    }
}

impl<T> fmt::Debug for Refusals<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").field("link", &self.link).finish_non_exhaustive()
    }
}
