use super::core::{Complete, JobCore};
use super::input::{self, JobInput};
use super::options::{Every, JobError, JobReport, Restart};
use super::output;
use super::part::JobLink;
use super::refusals::{Refusals, refusals};
use crate::checkpoint::{BoxError, Cut, Ending, Event, Failed, JobSink, JobSource, Store};
use crate::state::StateChanges;
use crate::stream::{DataStream, Source};
use crate::sync::Mutex;
use crate::time::{Monotonic, SystemClock, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A pipeline that survives crashes: killed at any point and started again, it ends with the
/// results of a run without a crash.
///
/// The pipeline is built by a function, from [sources](JobSource) that can be read again from a
/// position to [sinks](JobSink) that take part in checkpoints. A checkpoint is a cut through all of
/// it: barriers travel in order with the records, and where one passes, sources, operators and sinks
/// hand in where they are. When all parts are in the [store](Store), in one atomic step, the sinks
/// make visible what belongs to it. After a crash everything goes on from the last checkpoint.
///
/// Functions with state are named by `uid`, and what they keep can be serialized. What a function or
/// closure holds itself is not saved.
///
/// # Examples
///
/// ```
/// use futures::executor::block_on;
/// use side_output::KeyContext;
/// use side_output::checkpoint::{Ending, MemorySink, MemorySource, MemoryStore};
/// use side_output::job::{Every, Job};
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Sums {
///     Sum((bool, u32)),
/// }
///
/// let sums = MemorySink::new();
/// let job = Job::open("sums", MemoryStore::new()).checkpoint_every(Every::records(4));
/// let report = block_on(job.run(|job| {
///     let SumsStreams { sum } = job
///         .source("numbers", MemorySource::new((1..=10).collect()))
///         .key_by(|number: &u32| number % 2 == 0)
///         .uid("sums")
///         .process_with(|number, sum: &mut u32, cx: &mut KeyContext<bool, Sums>| {
///             *sum += number;
///             Sums::Sum((*cx.key(), *sum))
///         });
///     job.sink("sums", sum, sums.clone());
///     Ok(())
/// }))?;
/// assert_eq!(report.ending, Ending::Finished);
/// assert_eq!(sums.committed()[8..], [(false, 25), (true, 30)]);
/// # Ok::<(), side_output::job::JobError>(())
/// ```
#[must_use = "a job does nothing until it is run"]
pub struct Job<S> {
    name: String,
    store: S,
    every: Every,
    restart: Restart,
    forgotten: Vec<String>,
    handle: JobHandle,
}

/// Stops a running job, or drains it. Cheap to clone.
#[derive(Clone)]
pub struct JobHandle {
    inner: Arc<Mutex<Control>>,
}

#[derive(Default)]
struct Control {
    core: Option<Arc<JobCore>>,
    stop: bool,
    drain: bool,
}

impl JobHandle {
    /// Stops the job with a last checkpoint: nothing fires that is not complete, and when it is
    /// started again it goes on from there. Before the job runs, it stops as soon as it does.
    pub fn stop(&self) {
        let core = {
            let mut control = self.inner.lock();
            control.stop = true;
            control.core.clone()
        };
        if let Some(core) = core {
            core.on(Event::Stop);
        }
    }

    /// Ends the job as if its sources had come to their ends: whatever is open fires. It has
    /// finished then.
    pub fn drain(&self) {
        let core = {
            let mut control = self.inner.lock();
            control.drain = true;
            control.core.clone()
        };
        if let Some(core) = core {
            core.drain();
        }
    }

    fn attach(&self, core: &Arc<JobCore>) {
        let (stop, drain) = {
            let mut control = self.inner.lock();
            control.core = Some(Arc::clone(core));
            (control.stop, control.drain)
        };
        if drain {
            core.drain();
        }
        if stop {
            core.on(Event::Stop);
        }
    }
}

impl Default for JobHandle {
    fn default() -> Self {
        Self { inner: Arc::new(Mutex::new(Control::default())) }
    }
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobHandle")
    }
}

type Task = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

/// A pipeline that is being built: gives the inputs, and takes the outputs.
///
/// Every output of it must end in a [sink](Self::sink), or be
/// [discarded](crate::stream::DataStream::discard).
pub struct Pipeline<'a, S> {
    core: Arc<JobCore>,
    store: &'a S,
    tasks: Vec<Task>,
}

impl<S> Pipeline<'_, S> {
    /// The job's store, which may have sinks of its own: what they write is committed in one step
    /// with the checkpoint.
    #[must_use]
    pub const fn store(&self) -> &S {
        self.store
    }

    /// The records of a source. Its position is saved under `name`.
    #[track_caller]
    pub fn source<J: JobSource>(
        &mut self,
        name: &str,
        source: J,
    ) -> DataStream<J::Item, JobInput<J::Item>> {
        let (index, goes_on) = self.core.add_source(name, Location::caller());
        let (stream, slot) = JobInput::new(&self.core, name, index);
        let core = Arc::clone(&self.core);
        self.tasks.push(Box::pin(input::read(source, slot, core, index, goes_on)));
        DataStream::new(stream, "source")
    }

    /// Ends an output in a sink. What it has prepared is saved under `name`.
    ///
    /// The stream that comes back has the records that the sink refuses. It ends in another sink, or
    /// is discarded; dropped, it says that none may be refused: the first one that is fails the job.
    #[track_caller]
    pub fn sink<T, Src, K>(
        &mut self,
        name: &str,
        stream: DataStream<T, Src>,
        sink: K,
    ) -> DataStream<Failed<T>, Refusals<T>>
    where
        T: Send + 'static,
        Src: Source<T> + Send + 'static,
        K: JobSink<T>,
    {
        let at = Location::caller();
        let (index, prepared) = self.core.add_sink(name, at);
        if stream.job().is_none() {
            self.core.refuse(format!("{at}: the stream of sink `{name}` has no source of the job"));
        }
        let link = JobLink::new(Arc::clone(&self.core), &format!("{name}/refused"));
        let (refused, stream_of_refused) = refusals(link);
        let core = Arc::clone(&self.core);
        self.tasks.push(Box::pin(output::write(stream, sink, refused, core, index, prepared)));
        DataStream::new(stream_of_refused, "refused")
    }
}

impl<S> fmt::Debug for Pipeline<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl<S: Store> Job<S> {
    /// A job of this name, whose checkpoints are in `store`. Nothing is opened before it
    /// [runs](Self::run).
    pub fn open(name: impl Into<String>, store: S) -> Self {
        Self {
            name: name.into(),
            store,
            every: Every::default(),
            restart: Restart::default(),
            forgotten: Vec::new(),
            handle: JobHandle::default(),
        }
    }

    /// Sets when checkpoints are made. Without this there is one at the end, or at a stop.
    pub const fn checkpoint_every(mut self, every: Every) -> Self {
        self.every = every;
        self
    }

    /// Sets what happens after an error; without this, it ends the job.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Gives up the state that was saved under `uid`. Without this, state that nothing in the
    /// pipeline has the name of is an error.
    pub fn forget(mut self, uid: impl Into<String>) -> Self {
        self.forgotten.push(uid.into());
        self
    }

    /// A handle that stops the job.
    #[must_use]
    pub fn handle(&self) -> JobHandle {
        self.handle.clone()
    }

    /// Builds the pipeline and runs it to its end. After an error `build` is called again, if
    /// [`restart`](Self::restart) says so.
    ///
    /// # Errors
    ///
    /// See [`JobError`]. When the job is started again, it goes on from its last checkpoint.
    pub async fn run(
        mut self,
        mut build: impl FnMut(&mut Pipeline<'_, S>) -> Result<(), BoxError> + Send,
    ) -> Result<JobReport, JobError> {
        let mut failures = 0;
        loop {
            let mut progress = false;
            let error = match self.run_once(&mut build, &mut progress).await {
                Ok(report) => return Ok(report),
                Err(error) => error,
            };
            failures = if progress { 1 } else { failures + 1 };
            match self.restart.delay(failures) {
                Some(delay) if !error.is_lasting() => {
                    tracing::warn!(job = self.name, %error, "the job starts again");
                    sleep(delay).await;
                }
                _ => return Err(error),
            }
        }
    }

    /// Runs the pipeline once; `progress` says whether a checkpoint was completed.
    async fn run_once(
        &mut self,
        build: &mut (impl FnMut(&mut Pipeline<'_, S>) -> Result<(), BoxError> + Send),
        progress: &mut bool,
    ) -> Result<JobReport, JobError> {
        let stored = self.store.open(&self.name).await.map_err(JobError::Store)?;
        let (mut id, mut cut, mut states) = (0, Cut::default(), BTreeMap::new());
        if let Some(stored) = stored {
            cut = Cut::from_bytes(&stored.cut).map_err(JobError::Store)?;
            (id, states) = (stored.id, stored.states);
        }
        for uid in &self.forgotten {
            if states.remove(uid).is_some() {
                self.store.forget(uid);
            }
        }
        let finished = (cut.ending == Some(Ending::Finished)).then(|| cut.clone());
        // The run counts from its start, whatever becomes of it.
        cut.runs += 1;
        cut.restored += u64::from(cut.checkpoints > 0);
        cut.ending = None;
        let core = JobCore::new(cut.clone(), states, self.every);
        let mut pipeline =
            Pipeline { core: Arc::clone(&core), store: &self.store, tasks: Vec::new() };
        let result = build(&mut pipeline);
        let mut tasks = Tasks { tasks: pipeline.tasks, core: Arc::clone(&core) };
        result.map_err(JobError::Building)?;
        core.check()?;
        if finished.is_none() {
            id += 1;
            self.complete(id, &cut, &[]).await?;
        }
        core.start(id);
        self.handle.attach(&core);
        let mut ticks = Ticks::new(self.every.elapsed);
        loop {
            let next = poll_fn(|cx| {
                ticks.poll(cx, &core);
                tasks.poll_next(cx)
            });
            let complete = match next.await? {
                Ok(complete) => complete,
                Err(ending) => return Ok(report(cut, ending, false)),
            };
            if let Some(finished) = finished {
                // Its sinks were opened, and have committed what they had not yet.
                return Ok(report(finished, Ending::Finished, true));
            }
            let Complete { id, cut: new, changes } = complete;
            {
                // The pipeline goes on meanwhile.
                let mut storing = pin!(self.complete(id, &new, &changes));
                let stored = poll_fn(|cx| match storing.as_mut().poll(cx) {
                    Poll::Ready(result) => Poll::Ready(result),
                    Poll::Pending => tasks.poll(cx).map(Err),
                });
                stored.await?;
            }
            *progress = true;
            cut = new;
            core.on(Event::Stored(id));
        }
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: &Cut,
        changes: &[(String, StateChanges)],
    ) -> Result<(), JobError> {
        let cut = cut.to_bytes().map_err(JobError::Store)?;
        self.store.complete(id, cut, changes).await.map_err(JobError::Store)
    }
}

/// The tasks of sources and sinks, which all run in the task of the job.
struct Tasks {
    tasks: Vec<Task>,
    core: Arc<JobCore>,
}

impl Tasks {
    /// Lets all go on; the first error.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<JobError> {
        self.core.wake_tasks_by(cx.waker());
        for task in &mut self.tasks {
            if let Poll::Ready(Err(error)) = task.as_mut().poll(cx) {
                return Poll::Ready(error);
            }
        }
        Poll::Pending
    }

    /// Lets all go on, until there is a checkpoint to be stored or the job has ended.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Result<Complete, Ending>, JobError>> {
        if let Poll::Ready(error) = self.poll(cx) {
            return Poll::Ready(Err(error));
        }
        self.core.poll_next().map(Ok)
    }
}

/// What the parts say while they are dropped is of no account.
impl Drop for Tasks {
    fn drop(&mut self) {
        self.core.close();
    }
}

/// Makes a checkpoint due when so much time has passed.
struct Ticks {
    every: Option<Duration>,
    next: Option<Timestamp>,
    clock: Monotonic<SystemClock>,
}

impl Ticks {
    const fn new(every: Option<Duration>) -> Self {
        Self { every, next: None, clock: Monotonic::new(SystemClock) }
    }

    fn poll(&mut self, cx: &Context<'_>, core: &JobCore) {
        let Some(every) = self.every else { return };
        let now = self.clock.now();
        if self.next.is_some_and(|next| next <= now) {
            self.next = None;
            core.on(Event::Due);
        }
        let next = *self.next.get_or_insert(now + every);
        self.clock.wake_at(next, cx.waker());
    }
}

async fn sleep(delay: Duration) {
    let mut clock = Monotonic::new(SystemClock);
    let end = clock.now() + delay;
    poll_fn(|cx| {
        if clock.now() >= end {
            return Poll::Ready(());
        }
        clock.wake_at(end, cx.waker());
        Poll::Pending
    })
    .await;
}

fn report(cut: Cut, ending: Ending, had_finished: bool) -> JobReport {
    let Cut { runs, checkpoints, restored, read, written, .. } = cut;
    JobReport { ending, had_finished, runs, checkpoints, restored, read, written }
}

impl<S> fmt::Debug for Job<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name).finish_non_exhaustive()
    }
}
