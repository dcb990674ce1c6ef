//! Jobs: killed at any point and started again, the results are those of a run without a crash.

use futures::executor::block_on;
use futures::future::poll_immediate;
use side_output::checkpoint::{
    BoxError, Ending, Failed, Guarantee, JobSink, JobSource, MemorySink, MemorySource, MemoryStore,
    Read, Store, StoreError, Stored,
};
use side_output::job::{Every, Job, JobError, JobReport, Pipeline, Restart};
use side_output::prelude::*;
use side_output::state::StateChanges;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// Counts down the operations of a run; the last one fails.
#[derive(Clone, Debug, Default)]
struct Fuse(Arc<AtomicU64>);

impl Fuse {
    /// Fails the operation number `count`; none if that is zero.
    fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    fn burn(&self) -> Result<(), BoxError> {
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            Ok(1) => Err("blown".into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn is_blown(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Gives a few records at a time, after a poll without any.
struct Slowly {
    source: MemorySource<u32>,
    fuse: Fuse,
    told: Arc<Mutex<Vec<u64>>>,
}

impl JobSource for Slowly {
    type Item = u32;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.fuse.burn()?;
        self.source.open(position).await
    }

    async fn read(&mut self, into: &mut Vec<u32>, _most: usize) -> Result<Read, BoxError> {
        pause().await;
        self.fuse.burn()?;
        self.source.read(into, 3).await
    }

    fn position(&self) -> Vec<u8> {
        self.source.position()
    }

    async fn completed(&mut self, position: &[u8]) -> Result<(), BoxError> {
        self.fuse.burn()?;
        self.told.lock().unwrap().push(u64::from_le_bytes(position.try_into()?));
        Ok(())
    }
}

/// Is pending once.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A sink whose operations may fail, before or after they have done their work.
struct Fused<T> {
    sink: MemorySink<T>,
    fuse: Fuse,
}

impl<T: Send + 'static> JobSink<T> for Fused<T> {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        self.fuse.burn()?;
        self.sink.open(prepared).await?;
        self.fuse.burn()
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        self.fuse.burn()?;
        self.sink.write(batch, refused).await
    }

    async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
        pause().await;
        self.fuse.burn()?;
        let prepared = self.sink.prepare(checkpoint).await?;
        self.fuse.burn()?;
        Ok(prepared)
    }

    async fn commit(&mut self, checkpoint: u64) -> Result<(), BoxError> {
        pause().await;
        self.fuse.burn()?;
        self.sink.commit(checkpoint).await?;
        self.fuse.burn()
    }
}

struct FusedStore {
    store: MemoryStore,
    fuse: Fuse,
}

impl Store for FusedStore {
    async fn open(&mut self, job: &str) -> Result<Option<Stored>, StoreError> {
        self.fuse.burn().map_err(StoreError::failed)?;
        self.store.open(job).await
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), StoreError> {
        pause().await;
        self.fuse.burn().map_err(StoreError::failed)?;
        self.store.complete(id, cut, changes).await?;
        // It may be stored although the answer is lost.
        self.fuse.burn().map_err(StoreError::failed)
    }

    fn forget(&mut self, uid: &str) {
        self.store.forget(uid);
    }
}

/// What outlives a run.
#[derive(Default)]
struct World {
    store: MemoryStore,
    fuse: Fuse,
    even: MemorySink<u32>,
    odd: MemorySink<u32>,
    told: Arc<Mutex<Vec<u64>>>,
}

#[splitter]
enum Parity {
    Even(u32),
    Odd(u32),
}

fn by_parity(number: u32) -> Parity {
    if number % 2 == 0 { Parity::Even(number) } else { Parity::Odd(number) }
}

impl World {
    fn job(&self) -> Job<FusedStore> {
        let store = FusedStore { store: self.store.clone(), fuse: self.fuse.clone() };
        Job::open("test", store).checkpoint_every(Every::records(10))
    }

    fn source(&self, count: u32) -> Slowly {
        let (fuse, told) = (self.fuse.clone(), Arc::clone(&self.told));
        Slowly { source: MemorySource::new((1..=count).collect()), fuse, told }
    }

    fn sink<T>(&self, sink: &MemorySink<T>) -> Fused<T> {
        Fused { sink: sink.clone(), fuse: self.fuse.clone() }
    }

    fn split(&self, job: &mut Pipeline<'_, FusedStore>) -> Result<(), BoxError> {
        let ParityStreams { even, odd } =
            job.source("numbers", self.source(100)).split_with(by_parity);
        job.sink("even", even, self.sink(&self.even));
        job.sink("odd", odd, self.sink(&self.odd));
        Ok(())
    }

    fn assert_split(&self) {
        let of = |rest| (1..=100).filter(|n| n % 2 == rest).collect::<Vec<u32>>();
        assert_eq!((self.even.committed(), self.odd.committed()), (of(0), of(1)));
    }
}

#[test]
fn a_job_writes_all_and_says_so() {
    let world = World::default();
    let report = block_on(world.job().run(|job| world.split(job))).unwrap();
    world.assert_split();
    assert_eq!((report.ending, report.had_finished), (Ending::Finished, false));
    assert_eq!((report.runs, report.restored), (1, 0));
    assert!(report.checkpoints >= 9, "{}", report.checkpoints);
    assert_eq!(report.read["numbers"], 100);
    assert_eq!((report.written["even"], report.written["odd"]), (50, 50));
    let told = world.told.lock().unwrap();
    assert!(told.is_sorted() && told.last() == Some(&100), "{told:?}");
}

#[test]
fn sink_01_a_failure_of_any_operation_changes_no_result() {
    for count in 1.. {
        let world = World::default();
        world.fuse.set(count);
        let first = block_on(world.job().run(|job| world.split(job)));
        let blown = world.fuse.is_blown();
        assert_eq!(first.is_err(), blown, "{count}");
        world.fuse.set(0);
        let report = block_on(world.job().run(|job| world.split(job))).unwrap();
        world.assert_split();
        assert_eq!(report.ending, Ending::Finished);
        assert_eq!(report.read["numbers"], 100, "{count}");
        assert_eq!((report.written["even"], report.written["odd"]), (50, 50), "{count}");
        if !blown {
            assert!(report.had_finished && count > 100);
            break;
        }
    }
}

#[test]
fn a_run_that_is_dropped_at_any_poll_changes_no_result() {
    for polls in 0.. {
        let world = World::default();
        let mut ready = false;
        {
            let job = world.job();
            let mut run = pin!(job.run(|job| world.split(job)));
            for _ in 0..polls {
                ready = block_on(poll_immediate(run.as_mut())).is_some();
                if ready {
                    break;
                }
            }
        }
        let report = block_on(world.job().run(|job| world.split(job))).unwrap();
        world.assert_split();
        assert_eq!(report.read["numbers"], 100, "{polls}");
        if ready {
            assert!(polls > 30);
            break;
        }
    }
}

#[test]
fn a_job_starts_again_by_itself() {
    let world = World::default();
    world.fuse.set(60);
    let restart = Restart::at_most(1).backoff(Duration::ZERO);
    let report = block_on(world.job().restart(restart).run(|job| world.split(job))).unwrap();
    world.assert_split();
    assert_eq!((report.runs, report.restored, report.written["odd"]), (2, 1, 50));
}

#[test]
fn a_finished_job_says_so_and_leaves_everything_as_it_is() {
    let world = World::default();
    let first = block_on(world.job().run(|job| world.split(job))).unwrap();
    let second = block_on(world.job().run(|job| world.split(job))).unwrap();
    world.assert_split();
    assert_eq!(second, {
        let mut report = first;
        report.had_finished = true;
        report
    });
}

#[test]
fn sink_02_a_job_that_is_stopped_goes_on_from_there() {
    let world = World::default();
    let mut runs = 0;
    let report = loop {
        let job = world.job();
        let handle = job.handle();
        let mut run = pin!(job.run(|job| world.split(job)));
        let mut ended = None;
        for _ in 0..12 {
            ended = ended.or_else(|| block_on(poll_immediate(run.as_mut())));
        }
        handle.stop();
        let report = ended.unwrap_or_else(|| block_on(run)).unwrap();
        runs += 1;
        if report.ending == Ending::Finished {
            break report;
        }
        let so_far = world.even.committed().len() + world.odd.committed().len();
        assert_eq!(report.written["even"] + report.written["odd"], so_far as u64);
        assert_eq!(report.read["numbers"], so_far as u64);
    };
    world.assert_split();
    assert!(runs > 2);
    assert_eq!((report.runs, report.restored), (runs, runs - 1));
}

/// The reasons for which a pipeline is refused.
fn refusals(
    world: &World,
    build: impl FnMut(&mut Pipeline<'_, FusedStore>) -> Result<(), BoxError> + Send,
) -> Vec<String> {
    match block_on(world.job().run(build)) {
        Err(JobError::Refused(reasons)) => reasons,
        other => panic!("{other:?}"),
    }
}

fn report(result: Result<JobReport, JobError>) -> JobReport {
    result.unwrap()
}

#[test]
fn a_pipeline_with_loose_ends_is_refused_before_the_first_record() {
    let world = World::default();
    let reasons = refusals(&world, |job| {
        let ParityStreams { even, odd: _lost } =
            job.source("numbers", world.source(10)).split_with(by_parity);
        job.sink("even", even, world.sink(&world.even));
        Ok(())
    });
    assert_eq!(reasons.len(), 1);
    assert!(
        reasons[0].starts_with("tests/jobs.rs:")
            && reasons[0].ends_with(
                ": the output `odd` of `Parity` ends nowhere: give it to a sink, or discard it"
            ),
        "{reasons:?}"
    );
    assert!(world.store.stored().is_none());

    let reasons = refusals(&world, |job| {
        let stranger = DataStream::from_stream(futures::stream::iter([1]));
        job.sink("stranger", stranger, world.sink(&world.even));
        let numbers = job.source("numbers", world.source(10));
        let sums = numbers.key_by(|n: &u32| n % 3).process_with(
            |n, sum: &mut u32, _: &mut side_output::KeyContext<u32, Parity>| {
                *sum += n;
                by_parity(*sum)
            },
        );
        job.sink("stranger", sums.even, world.sink(&world.even));
        sums.odd.discard();
        Ok(())
    });
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons[0].ends_with("the stream of sink `stranger` has no source of the job"));
    assert!(
        reasons[1].ends_with(
            ": `Keyed` has state, which needs a name to be saved under: write `.uid(\"...\")` \
             before the method that brings the function"
        ),
        "{reasons:?}"
    );
    assert!(reasons[2].ends_with(": there are two sinks named `stranger`"));
}

#[test]
fn what_the_store_has_and_the_pipeline_does_not_is_refused() {
    let world = World::default();
    report(block_on(world.job().run(|job| world.split(job))));
    let before = world.store.stored();
    let reasons = refusals(&world, |job| {
        let all = job.source("figures", world.source(10));
        job.sink("even", all, world.sink(&world.even));
        Ok(())
    });
    assert_eq!(
        reasons,
        [
            "the store has state that nothing in the program has the name of: `numbers/Parity`; \
             the program has: none; to give it up, call `forget` with its name",
            "the store has the position of sources that nothing in the program has the name of: \
             `numbers`; the program has: `figures`",
            "the store has prepared records of sinks that nothing in the program has the name of: \
             `odd`; the program has: `even`",
        ]
    );
    assert_eq!(world.store.stored(), before);
}

#[test]
fn a_record_that_is_refused_is_an_output_or_fails_the_job() {
    /// Refuses multiples of ten.
    struct Picky(MemorySink<u32>);

    impl JobSink<u32> for Picky {
        const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

        async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
            self.0.open(prepared).await
        }

        async fn write(
            &mut self,
            batch: &mut Vec<u32>,
            refused: &mut Vec<Failed<u32>>,
        ) -> Result<(), BoxError> {
            let bad = batch.extract_if(.., |number| *number % 10 == 0);
            refused.extend(bad.map(|number| Failed::new(number, "too round")));
            self.0.write(batch, refused).await
        }

        async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
            self.0.prepare(checkpoint).await
        }

        async fn commit(&mut self, checkpoint: u64) -> Result<(), BoxError> {
            self.0.commit(checkpoint).await
        }
    }

    for count in 1.. {
        let world = World::default();
        let dead = MemorySink::new();
        let build = |job: &mut Pipeline<'_, FusedStore>| {
            let numbers = job.source("numbers", world.source(40));
            let refused = job.sink("picky", numbers, Picky(world.even.clone()));
            let refused = refused.map(|failed| failed.record);
            job.sink("dead", refused, world.sink(&dead));
            Ok(())
        };
        world.fuse.set(count);
        let blown = block_on(world.job().run(build)).is_err();
        world.fuse.set(0);
        report(block_on(world.job().run(build)));
        assert_eq!(dead.committed(), [10, 20, 30, 40], "{count}");
        assert_eq!(world.even.committed().len(), 36);
        if !blown {
            break;
        }
    }

    let world = World::default();
    let run = world.job().run(|job| {
        let numbers = job.source("numbers", world.source(40));
        job.sink("picky", numbers, Picky(world.even.clone()));
        Ok(())
    });
    let error = block_on(run).unwrap_err().to_string();
    assert_eq!(
        error,
        "sink `picky`: a record was refused, and nothing takes what is refused: too round"
    );
}
