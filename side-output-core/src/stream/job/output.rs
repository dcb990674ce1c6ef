use super::core::{JobCore, Order};
use super::options::JobError;
use super::refusals::Refused;
use crate::checkpoint::{BoxError, Event, JobSink};
use crate::error::StreamError;
use crate::stream::source::{CHUNK, TURNS};
use crate::stream::{DataStream, Fed, Intake, Source};
use crate::time::{Mark, Timestamp};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What the task of a sink does next.
enum Step {
    /// Writes what has come.
    Write,
    /// Prepares for a checkpoint, after what has come.
    Barrier(u64),
    End,
    Order(Order),
}

/// Where the error came from.
enum Failure {
    Sink(BoxError),
    Stream(StreamError),
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self::Sink(error)
    }
}

/// Writes a stream into a sink, until the job is over.
pub(super) async fn write<T, Src, K>(
    mut stream: DataStream<T, Src>,
    mut sink: K,
    refused: Refused<T>,
    core: Arc<JobCore>,
    index: usize,
    prepared: Option<Vec<u8>>,
) -> Result<(), JobError>
where
    Src: Source<T>,
    K: JobSink<T>,
{
    let result = write_all(&mut stream, &mut sink, &refused, &core, index, prepared).await;
    result.map_err(|failure| {
        let name = core.sink_name(index);
        match failure {
            Failure::Sink(error) => JobError::Sink { name, error },
            Failure::Stream(error) => JobError::Stream { sink: name, error },
        }
    })
}

async fn write_all<T, Src, K>(
    stream: &mut DataStream<T, Src>,
    sink: &mut K,
    refused: &Refused<T>,
    core: &JobCore,
    index: usize,
    prepared: Option<Vec<u8>>,
) -> Result<(), Failure>
where
    Src: Source<T>,
    K: JobSink<T>,
{
    sink.open(prepared.as_deref()).await?;
    // Records since the last barrier.
    let mut written = 0;
    let mut batch = Vec::new();
    let mut ended = false;
    loop {
        let mut barrier = None;
        let step = poll_fn(|cx| {
            if let Some(order) = core.order(index) {
                return Poll::Ready(Ok(Step::Order(order)));
            }
            if ended {
                return Poll::Pending;
            }
            poll_batch(stream, cx, &mut batch, &mut barrier)
        })
        .await
        .map_err(Failure::Stream)?;
        if !batch.is_empty() {
            written += batch.len() as u64;
            hand_over(sink, &mut batch, refused).await?;
        }
        match step {
            Step::Write => {}
            Step::Barrier(id) | Step::Order(Order::Prepare(id)) => {
                hand_over(sink, &mut batch, refused).await?;
                let prepared = sink.prepare(id).await?;
                refused.barrier(id);
                core.prepared(index, id, prepared, std::mem::take(&mut written));
            }
            Step::End => {
                ended = true;
                hand_over(sink, &mut batch, refused).await?;
                refused.end();
                core.on(Event::SinkEnded(index));
            }
            Step::Order(Order::Commit(id)) => {
                sink.commit(id).await?;
                core.on(Event::SinkCommitted(index, id));
            }
        }
    }
}

/// Lets the sink write a batch, and hands on what it refuses. An empty one lets it write what it has
/// held back, so that refusals are known before the barrier and the end of theirs.
async fn hand_over<T, K: JobSink<T>>(
    sink: &mut K,
    batch: &mut Vec<T>,
    refused: &Refused<T>,
) -> Result<(), BoxError> {
    let mut failed = Vec::new();
    sink.write(batch, &mut failed).await?;
    batch.clear();
    refused.push(failed)
}

/// Waits for records, or for what comes instead.
fn poll_batch<T, Src: Source<T>>(
    stream: &mut DataStream<T, Src>,
    cx: &mut Context<'_>,
    batch: &mut Vec<T>,
    barrier: &mut Option<u64>,
) -> Poll<Result<Step, StreamError>> {
    for _ in 0..TURNS {
        let fed = stream.feed(cx, &mut UntilBarrier { batch, barrier });
        if let Some(id) = barrier.take() {
            return Poll::Ready(Ok(Step::Barrier(id)));
        }
        if !batch.is_empty() {
            // The end, if that was it, is there at the next call as well.
            return Poll::Ready(Ok(Step::Write));
        }
        match fed {
            Fed::More => {}
            Fed::Pending => return Poll::Pending,
            Fed::End => return Poll::Ready(Ok(Step::End)),
            Fed::Failed(error) => return Poll::Ready(Err(error)),
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Takes a batch of records, up to a barrier.
struct UntilBarrier<'a, T> {
    batch: &'a mut Vec<T>,
    barrier: &'a mut Option<u64>,
}

impl<T> Intake<T> for UntilBarrier<'_, T> {
    #[inline(always)]
    fn record(&mut self, value: T, _at: Timestamp) -> ControlFlow<()> {
        self.batch.push(value);
        if self.batch.len() < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    #[inline]
    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        match mark {
            Mark::Barrier(id) => {
                *self.barrier = Some(id);
                ControlFlow::Break(())
            }
            Mark::Watermark(_) | Mark::Idle | Mark::Active => ControlFlow::Continue(()),
        }
    }
}
