use super::core::JobCore;
use super::options::JobError;
use super::part::JobLink;
use crate::checkpoint::{BoxError, JobSource, Read, SourceCut};
use crate::stream::source::CHUNK;
use crate::stream::{Fed, Intake, Source};
use crate::sync::{Mutex, wake_all};
use crate::time::{Mark, Timestamp};
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::vec;

/// The stream of a [`JobSource`], with the barriers of the job's checkpoints.
pub struct JobInput<T> {
    slot: Arc<Slot<T>>,
    core: Arc<JobCore>,
    link: JobLink,
    index: usize,
    /// What is left of the batch in hand.
    batch: vec::IntoIter<T>,
    /// Where the source goes on after it; `None` before the first batch.
    position: Option<Vec<u8>>,
    /// That was all.
    at_end: bool,
    /// The last barrier that it has sent.
    sent: u64,
    /// It was the last one: nothing comes after it.
    stopped: bool,
    ended: bool,
}

/// One batch on its way from the task that reads the source to the stream.
pub(super) struct Slot<T>(Mutex<Inner<T>>);

struct Inner<T> {
    batch: Option<Batch<T>>,
    reader: Option<Waker>,
    task: Option<Waker>,
}

struct Batch<T> {
    records: Vec<T>,
    position: Vec<u8>,
    end: bool,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self(Mutex::new(Inner { batch: None, reader: None, task: None }))
    }

    fn put(&self, batch: Batch<T>) {
        let waker = {
            let mut inner = self.0.lock();
            inner.batch = Some(batch);
            inner.reader.take()
        };
        wake_all(waker);
    }

    fn poll_take(&self, cx: &Context<'_>) -> Poll<Batch<T>> {
        let mut inner = self.0.lock();
        let (batch, waker) = match inner.batch.take() {
            Some(batch) => (Some(batch), inner.task.take()),
            None => (None, inner.reader.replace(cx.waker().clone())),
        };
        drop(inner);
        match batch {
            Some(batch) => {
                wake_all(waker);
                Poll::Ready(batch)
            }
            None => Poll::Pending,
        }
    }

    /// Whether the stream has taken the batch.
    fn poll_empty(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        if inner.batch.is_none() {
            return Poll::Ready(());
        }
        let old = inner.task.replace(cx.waker().clone());
        drop(inner);
        drop(old);
        Poll::Pending
    }
}

impl<T> JobInput<T> {
    pub(super) fn new(core: &Arc<JobCore>, name: &str, index: usize) -> (Self, Arc<Slot<T>>) {
        let slot = Arc::new(Slot::new());
        let input = Self {
            slot: Arc::clone(&slot),
            core: Arc::clone(core),
            link: JobLink::new(Arc::clone(core), name),
            index,
            batch: Vec::new().into_iter(),
            position: None,
            at_end: false,
            sent: 0,
            stopped: false,
            ended: false,
        };
        (input, slot)
    }

    fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            self.core.source_ended(self.index, self.position.take().unwrap_or_default());
        }
    }
}

impl<T> Source<T> for JobInput<T> {
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        if self.ended {
            return Fed::End;
        }
        // Its share of a poll, for an intake that never stops.
        let mut share = super::SHARE;
        loop {
            for value in self.batch.by_ref() {
                if intake.record(value, Timestamp::MIN).is_break() {
                    return Fed::More;
                }
            }
            if self.stopped {
                return Fed::Pending;
            }
            if self.at_end || self.core.is_draining() {
                self.end();
                return Fed::End;
            }
            if let Some(id) = self.core.barrier_after(self.sent) {
                self.sent = id;
                self.stopped = self.core.source_reached(self.index, id, self.position.clone());
                if intake.mark(Mark::Barrier(id)).is_break() {
                    return Fed::More;
                }
                continue;
            }
            if share == 0 {
                return Fed::More;
            }
            share -= 1;
            match self.slot.poll_take(cx) {
                Poll::Ready(Batch { records, position, end }) => {
                    self.core.count(self.index, records.len());
                    self.batch = records.into_iter();
                    (self.position, self.at_end) = (Some(position), end);
                }
                Poll::Pending => {
                    self.core.wait_for_barrier(self.index, cx.waker());
                    // It may have been requested before the waker was there.
                    if self.core.barrier_after(self.sent).is_none() && !self.core.is_draining() {
                        return Fed::Pending;
                    }
                }
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

/// A source that nobody reads any more has come to its end, as far as the job is concerned.
impl<T> Drop for JobInput<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> fmt::Debug for JobInput<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobInput").field("link", &self.link).finish_non_exhaustive()
    }
}

/// Reads a source into a slot, batch by batch, until the job is over.
pub(super) async fn read<J: JobSource>(
    mut source: J,
    slot: Arc<Slot<J::Item>>,
    core: Arc<JobCore>,
    index: usize,
    goes_on: Option<SourceCut>,
) -> Result<(), JobError> {
    let result = read_all(&mut source, &slot, &core, index, goes_on).await;
    result.map_err(|error| JobError::Source { name: core.source_name(index), error })
}

/// What the task of a source does next.
enum Step {
    Read(Result<Read, BoxError>),
    Complete(Vec<u8>),
}

async fn read_all<J: JobSource>(
    source: &mut J,
    slot: &Slot<J::Item>,
    core: &JobCore,
    index: usize,
    goes_on: Option<SourceCut>,
) -> Result<(), BoxError> {
    let mut end = false;
    match goes_on {
        Some(SourceCut { position, ended: true }) => {
            slot.put(Batch { records: Vec::new(), position, end: true });
            end = true;
        }
        cut => source.open(cut.map(|cut| cut.position).as_deref()).await?,
    }
    loop {
        let mut records = Vec::new();
        let step = {
            let mut reading = pin!(async {
                poll_fn(|cx| slot.poll_empty(cx)).await;
                if end {
                    return std::future::pending().await;
                }
                source.read(&mut records, CHUNK).await
            });
            poll_fn(|cx| match core.completing(index) {
                Some(position) => Poll::Ready(Step::Complete(position)),
                None => reading.as_mut().poll(cx).map(Step::Read),
            })
            .await
        };
        match step {
            Step::Read(read) => {
                end = read? == Read::End;
                slot.put(Batch { records, position: source.position(), end });
            }
            Step::Complete(position) => {
                source.completed(&position).await?;
                core.completed(index, &position);
            }
        }
    }
}
