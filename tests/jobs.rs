//! Jobs: killed at any point and started again, the results are those of a run without a crash.

#![allow(clippy::unnecessary_wraps, reason = "they are what `Job::run` takes")]

use futures::executor::block_on;
use futures::future::poll_immediate;
use side_output::checkpoint::{
    BoxError, Ending, Failed, Guarantee, JobSink, JobSource, MemorySink, MemorySource, MemoryStore,
    Read, Store, StoreError, Stored,
};
use side_output::job::{Every, Job, JobError, JobReport, Pipeline, Restart};
use side_output::operator::{BroadcastContext, BroadcastProcess, Configuration};
use side_output::prelude::*;
use side_output::state::StateChanges;
use side_output::{
    Count, KeyContext, KeyedContext, KeyedProcess, Pane, ReconciliationStreams, Session, Sliding,
    Tumbling, WindowStreams,
};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// Is pending until another thread has woken the task.
async fn wait_for_another_thread() {
    let mut woken = None;
    std::future::poll_fn(|cx| {
        let woken = woken.get_or_insert_with(|| {
            let (woken, waker) = (Arc::new(AtomicBool::new(false)), cx.waker().clone());
            let told = Arc::clone(&woken);
            std::thread::spawn(move || {
                told.store(true, Ordering::Release);
                waker.wake();
            });
            woken
        });
        if woken.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
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
    if number.is_multiple_of(2) { Parity::Even(number) } else { Parity::Odd(number) }
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

#[test]
fn a_job_that_is_drained_has_finished() {
    let everything = Everything::default();
    let job = everything.world.job();
    let handle = job.handle();
    let mut run = pin!(job.run(|job| everything.build(job)));
    for _ in 0..12 {
        assert!(block_on(poll_immediate(run.as_mut())).is_none());
    }
    handle.drain();
    let report = block_on(run).unwrap();
    assert_eq!(report.ending, Ending::Finished);
    let read = report.read["numbers"];
    assert!((1..60).contains(&read), "{read}");
    // Windows that were open have fired: each odd number is in one, or was too late.
    let mut last = std::collections::BTreeMap::new();
    for (key, start, count, _) in everything.tumbling.committed() {
        last.insert((key, start), count);
    }
    let counted = last.values().sum::<u64>() + everything.late.committed().len() as u64;
    assert_eq!(counted, read.div_ceil(2));
    assert!(report_of(&everything).had_finished);
}

fn report_of(everything: &Everything) -> JobReport {
    block_on(everything.world.job().run(|job| everything.build(job))).unwrap()
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
            |n, sum: &mut u32, _: &mut KeyContext<u32, Parity>| {
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
fn sink_09_a_record_that_is_refused_is_an_output_or_fails_the_job() {
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

/// A pipeline with one of everything that has state, and what it writes.
#[derive(Default)]
struct Everything {
    world: World,
    /// In order: one source.
    counted: MemorySink<(u32, u32)>,
    alarms: MemorySink<(u32, i64)>,
    tumbling: MemorySink<(u32, i64, u64, Pane)>,
    sliding: MemorySink<(i64, u64)>,
    late: MemorySink<(u32, String)>,
    routed: MemorySink<String>,
    /// In any order: two sources.
    sessions: MemorySink<(u32, i64, i64, u64)>,
    matched: MemorySink<(u32, u32)>,
    unmatched: MemorySink<u32>,
}

#[splitter]
enum Counting {
    Counted((u32, u32)),
    Alarm((u32, i64)),
}

/// Counts each key, and is alarmed two seconds after its last record.
struct Counter;

impl KeyedProcess for Counter {
    type Key = u32;
    type In = u32;
    type State = (u32, Option<Timestamp>);
    type Out = Counting;

    fn on_record(
        &mut self,
        _number: u32,
        (count, alarm): &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counting> {
        *count += 1;
        if let Some(at) = cx.timestamp() {
            if let Some(old) = alarm.replace(at + Duration::from_secs(2)) {
                cx.delete_timer(old);
            }
            cx.set_timer(at + Duration::from_secs(2));
        }
        Counting::Counted((*cx.key(), *count))
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        (_, alarm): &mut Self::State,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counting> {
        *alarm = None;
        Counting::Alarm((*cx.key(), at.as_millis()))
    }
}

#[splitter]
enum Routed {
    #[main]
    To(String),
}

/// Says under which configuration a number came.
struct Router;

impl BroadcastProcess for Router {
    type In = u32;
    type Update = u32;
    type Config = u32;
    type Out = Routed;

    fn on_record(
        &mut self,
        number: u32,
        config: &u32,
        _cx: &mut BroadcastContext<Routed>,
    ) -> impl Routes<Routed> {
        Routed::To(format!("{number} by {config}"))
    }

    fn on_update(
        &mut self,
        update: u32,
        config: &mut Configuration<u32>,
        _cx: &mut Context<Routed>,
    ) -> impl Routes<Routed> {
        let before = config.current().copied().unwrap_or(0);
        config.replace(before + update);
        None::<Routed>
    }

    fn on_unconfigured(&mut self, number: u32, _cx: &mut Context<Routed>) -> impl Routes<Routed> {
        Routed::To(format!("{number} by nothing"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is called with a reference")]
/// Mostly in order, some a little behind, a few far behind.
fn seconds(number: &u32) -> Timestamp {
    let behind = match number % 7 {
        3 => 9,
        5 => 30,
        _ => 0,
    };
    Timestamp::from_secs(i64::from(*number) - behind)
}

#[splitter]
enum Twice {
    #[main]
    One(u32),
    #[tap]
    Other(u32),
    #[tap]
    Third(u32),
}

impl Everything {
    fn build(&self, job: &mut Pipeline<'_, FusedStore>) -> Result<(), BoxError> {
        let world = &self.world;
        let bound = Watermarks::bounded_out_of_orderness(Duration::from_secs(1));
        let ParityStreams { even, odd } = job
            .source("numbers", world.source(60))
            .assign_timestamps(seconds, bound)
            .split_with(by_parity);
        let CountingStreams { counted, alarm } =
            even.key_by(|n: &u32| n % 3).uid("counter").process(Counter);
        job.sink("counted", counted, world.sink(&self.counted));
        job.sink("alarms", alarm, world.sink(&self.alarms));
        let TwiceStreams { one, other, third } =
            odd.split_with(|n: u32, cx: &mut Context<Twice>| {
                cx.output(Twice::OTHER_TAG, n);
                cx.output(Twice::THIRD_TAG, n);
                Twice::One(n)
            });
        let WindowStreams { results, late } = one
            .key_by(|n: &u32| n % 2)
            .window(Tumbling::of(Duration::from_secs(10)))
            .allowed_lateness(Duration::from_secs(10))
            .side_output_late_data()
            .uid("tumbling")
            .aggregate(Count::new());
        let rows = results.map(|r| (r.key, r.window.start().as_millis(), r.value, r.pane));
        job.sink("tumbling", rows, world.sink(&self.tumbling));
        let late = late.map(|late| (late.value, late.to_string()));
        job.sink("late", late, world.sink(&self.late));
        let sliding = other
            .window_all(Sliding::of(Duration::from_secs(10)).every(Duration::from_secs(5)))
            .drop_late_data()
            .uid("sliding")
            .aggregate(Count::new())
            .map(|r| (r.window.start().as_millis(), r.value));
        job.sink("sliding", sliding, world.sink(&self.sliding));

        let config = job.source("config", world.source(7));
        let RoutedStreams { to } =
            third.connect_broadcast(config).config_first().uid("router").process(Router);
        job.sink("routed", to, world.sink(&self.routed));

        // Keys that belong to one of two sources each.
        let source = |job: &mut Pipeline<'_, FusedStore>, name: &str, offset: u32| {
            job.source(name, world.source(25)).map(move |n| n * 2 + offset).assign_timestamps(
                |n: &u32| Timestamp::from_secs(i64::from(*n)),
                Watermarks::monotonous(),
            )
        };
        let (left, right) = (source(job, "left", 0), source(job, "right", 1));
        let sessions = left
            .union(right)
            .key_by(|n: &u32| n % 2 + n / 16 * 2)
            .window(Session::with_gap(Duration::from_secs(4)))
            .drop_late_data()
            .uid("sessions")
            .aggregate(Count::new())
            .map(|r| (r.key, r.window.start().as_millis(), r.window.end().as_millis(), r.value));
        job.sink("sessions", sessions, world.sink(&self.sessions));

        let (orders, payments) = (source(job, "orders", 0), source(job, "payments", 3));
        let ReconciliationStreams {
            matched,
            unmatched_left,
            unmatched_right,
            late_left,
            late_right,
        } = orders
            .key_by(|n: &u32| n / 3)
            .uid("reconcile")
            .reconcile(payments.key_by(|n: &u32| n / 3), Duration::from_secs(5));
        late_left.discard();
        late_right.discard();
        job.sink("matched", matched.map(|m| (m.left, m.right)), world.sink(&self.matched));
        let unmatched = unmatched_left.union(unmatched_right.boxed());
        job.sink("unmatched", unmatched, world.sink(&self.unmatched));
        Ok(())
    }

    /// What was written, sorted where the order is a matter of timing.
    fn written(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
            all.sort();
            all
        }
        (
            (self.counted.committed(), self.alarms.committed()),
            (self.tumbling.committed(), self.sliding.committed(), self.late.committed()),
            self.routed.committed(),
            sorted(self.sessions.committed()),
            (sorted(self.matched.committed()), sorted(self.unmatched.committed())),
        )
    }
}

#[test]
fn whatever_has_state_goes_on_after_a_failure_of_any_operation() {
    let whole = Everything::default();
    block_on(whole.world.job().run(|job| whole.build(job))).unwrap();
    assert_eq!(whole.counted.committed().len(), 30);
    for written in [whole.alarms.committed().len(), whole.late.committed().len()] {
        assert!(written > 2, "{written}");
    }
    assert!(whole.tumbling.committed().iter().any(|(.., pane)| matches!(pane, Pane::Late(_))));
    assert_eq!(whole.routed.committed()[0], "1 by 28");
    assert!(whole.sessions.committed().len() > 5 && whole.matched.committed().len() > 5);
    assert!(whole.unmatched.committed().len() > 2);

    // A step that has no common divisor with the number of sinks meets all of them.
    for count in (1..).step_by(7) {
        let everything = Everything::default();
        everything.world.fuse.set(count);
        let blown = block_on(everything.world.job().run(|job| everything.build(job))).is_err();
        everything.world.fuse.set(0);
        block_on(everything.world.job().run(|job| everything.build(job))).unwrap();
        assert_eq!(everything.written(), whole.written(), "{count}");
        if !blown {
            assert!(count > 300, "{count}");
            break;
        }
    }
}

#[test]
fn whatever_has_state_goes_on_after_being_dropped_at_any_poll() {
    let whole = Everything::default();
    block_on(whole.world.job().run(|job| whole.build(job))).unwrap();
    for polls in 0.. {
        let everything = Everything::default();
        let (mut ready, mut runs) = (false, 0);
        // Dropped again and again after so many polls, as long as that gets anywhere.
        while !ready && runs < 4 {
            runs += 1;
            let job = everything.world.job();
            let mut run = pin!(job.run(|job| everything.build(job)));
            for _ in 0..polls {
                if !ready {
                    ready = block_on(poll_immediate(run.as_mut())).is_some();
                }
            }
        }
        block_on(everything.world.job().run(|job| everything.build(job))).unwrap();
        assert_eq!(everything.written(), whole.written(), "{polls}");
        if runs == 1 && ready {
            assert!(polls > 30, "{polls}");
            break;
        }
    }
}

/// Counts numbers in a state of the type `S`, in version `version`.
fn count_in<S>(world: &World, sink: &MemorySink<u32>, version: u32) -> Result<JobReport, JobError>
where
    S: Default + AsMut<u32> + serde::Serialize + serde::de::DeserializeOwned,
    S: Send + 'static,
{
    let job = world.job();
    let handle = job.handle();
    let mut run = pin!(job.run(|job| {
        let ParityStreams { even, odd } = job
            .source("numbers", world.source(40))
            .key_by(|_: &u32| ())
            .uid("count")
            .version(version)
            .process_with(|_, count: &mut S, _: &mut KeyContext<(), Parity>| {
                *count.as_mut() += 1;
                Parity::Even(*count.as_mut())
            });
        odd.discard();
        job.sink("counts", even, world.sink(sink));
        Ok(())
    }));
    for _ in 0..10 {
        if let Some(ended) = block_on(poll_immediate(run.as_mut())) {
            return ended;
        }
    }
    handle.stop();
    block_on(run)
}

#[test]
fn sink_06_state_of_another_type_is_an_error_and_never_empty() {
    macro_rules! state {
        ($name:ident { $($field:tt)* }) => {
            #[derive(Default, serde::Serialize, serde::Deserialize)]
            struct $name {
                $($field)*
            }

            impl AsMut<u32> for $name {
                fn as_mut(&mut self) -> &mut u32 {
                    &mut self.count
                }
            }
        };
    }
    state!(Old { count: u32 });
    state!(WithDefault {
        count: u32,
        #[serde(default)]
        sum: u64
    });
    state!(WithoutDefault { count: u32, sum: u64 });

    let (world, sink) = (World::default(), MemorySink::new());
    assert_eq!(count_in::<Old>(&world, &sink, 1).unwrap().ending, Ending::Stopped);
    let before = world.store.stored();
    for (result, reason) in [
        (count_in::<WithoutDefault>(&world, &sink, 1), "the state of `count`, `keys` in key group"),
        (count_in::<Old>(&world, &sink, 2), "the state of `count` has version 1, expected 2"),
    ] {
        let JobError::Refused(reasons) = result.unwrap_err() else { panic!() };
        assert!(reasons.iter().any(|said| said.starts_with(reason)), "{reasons:?}");
    }
    assert_eq!(world.store.stored(), before);
    while count_in::<WithDefault>(&world, &sink, 1).unwrap().ending == Ending::Stopped {}
    assert_eq!(sink.committed(), (1..=40).collect::<Vec<_>>());
}

#[test]
fn sink_14_a_slow_sink_delays_a_checkpoint_and_loses_nothing() {
    /// Takes one poll for each record.
    struct Slow(MemorySink<u32>);

    impl JobSink<u32> for Slow {
        const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

        async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
            self.0.open(prepared).await
        }

        async fn write(
            &mut self,
            batch: &mut Vec<u32>,
            refused: &mut Vec<Failed<u32>>,
        ) -> Result<(), BoxError> {
            for _ in 0..batch.len() {
                pause().await;
            }
            self.0.write(batch, refused).await
        }

        async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
            self.0.prepare(checkpoint).await
        }

        async fn commit(&mut self, checkpoint: u64) -> Result<(), BoxError> {
            self.0.commit(checkpoint).await
        }
    }

    let world = World::default();
    for _ in 0..2 {
        let run = world.job().run(|job| {
            let ParityStreams { even, odd } =
                job.source("numbers", world.source(100)).split_with(by_parity);
            job.sink("even", even, Slow(world.even.clone()));
            job.sink("odd", odd, world.sink(&world.odd));
            Ok(())
        });
        // The first one is dropped half-way.
        let mut run = pin!(run);
        for _ in 0..60 {
            if block_on(poll_immediate(run.as_mut())).is_some() {
                break;
            }
        }
    }
    block_on(world.job().run(|job| world.split(job))).unwrap();
    world.assert_split();
}

/// What takes its time, and says so only when it is done.
struct Waits<K>(K);

impl<T, K: JobSink<T>> JobSink<T> for Waits<K>
where
    T: Send + 'static,
{
    const GUARANTEE: Guarantee = K::GUARANTEE;

    async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        wait_for_another_thread().await;
        self.0.open(prepared).await
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        wait_for_another_thread().await;
        self.0.write(batch, refused).await
    }

    async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
        wait_for_another_thread().await;
        self.0.prepare(checkpoint).await
    }

    async fn commit(&mut self, checkpoint: u64) -> Result<(), BoxError> {
        wait_for_another_thread().await;
        self.0.commit(checkpoint).await
    }
}

impl Store for Waits<MemoryStore> {
    async fn open(&mut self, job: &str) -> Result<Option<Stored>, StoreError> {
        wait_for_another_thread().await;
        self.0.open(job).await
    }

    async fn complete(
        &mut self,
        id: u64,
        cut: Vec<u8>,
        changes: &[(String, StateChanges)],
    ) -> Result<(), StoreError> {
        // Long enough for everything else to come to its end meanwhile.
        for _ in 0..100 {
            wait_for_another_thread().await;
        }
        self.0.complete(id, cut, changes).await
    }

    fn forget(&mut self, uid: &str) {
        self.0.forget(uid);
    }
}

#[test]
fn no_wake_up_is_lost() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..20 {
            let (even, odd) = (MemorySink::new(), MemorySink::new());
            let job = Job::open("waits", Waits(MemoryStore::new()));
            let run = job.checkpoint_every(Every::records(1000)).run(|job| {
                let numbers = job.source("numbers", MemorySource::new((1..=5000).collect()));
                let streams = numbers.split_with(by_parity);
                if round % 2 == 0 {
                    job.sink("even", streams.even, Waits(even.clone()));
                } else {
                    job.sink("even", streams.even, even.clone());
                }
                job.sink("odd", streams.odd, odd.clone());
                Ok(())
            });
            block_on(run).unwrap();
            done.send(even.committed().len() + odd.committed().len()).unwrap();
        }
    });
    for _ in 0..20 {
        // It takes milliseconds; a wake-up that is lost takes for ever.
        assert_eq!(ended.recv_timeout(Duration::from_secs(8)), Ok(5000));
    }
}

/// Holds back what it is given, and refuses all of it when it is asked to write that.
struct Holds {
    held: Vec<u32>,
    prepared: Arc<Mutex<Vec<u64>>>,
}

impl JobSink<u32> for Holds {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, _prepared: Option<&[u8]>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn write(
        &mut self,
        batch: &mut Vec<u32>,
        refused: &mut Vec<Failed<u32>>,
    ) -> Result<(), BoxError> {
        if batch.is_empty() {
            refused.extend(self.held.drain(..).map(|number| Failed::new(number, "held")));
        }
        self.held.append(batch);
        Ok(())
    }

    async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<u8>, BoxError> {
        assert!(self.held.is_empty());
        self.prepared.lock().unwrap().push(checkpoint);
        Ok(Vec::new())
    }

    async fn commit(&mut self, _checkpoint: u64) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn what_a_sink_refuses_last_is_not_lost_and_no_checkpoint_is_prepared_twice() {
    let (world, dead) = (World::default(), MemorySink::new());
    let prepared = Arc::new(Mutex::new(Vec::new()));
    let mut runs = 0;
    loop {
        runs += 1;
        let job = world.job();
        let handle = job.handle();
        let mut run = pin!(job.run(|job| {
            let numbers = job.source("numbers", world.source(40));
            let holds = Holds { held: Vec::new(), prepared: Arc::clone(&prepared) };
            let refused = job.sink("holds", numbers, holds).map(|failed| failed.record);
            job.sink("dead", refused, dead.clone());
            Ok(())
        }));
        let mut ended = None;
        for _ in 0..8 {
            ended = ended.or_else(|| block_on(poll_immediate(run.as_mut())));
        }
        handle.stop();
        if ended.unwrap_or_else(|| block_on(run)).unwrap().ending == Ending::Finished {
            break;
        }
    }
    assert_eq!(dead.committed(), (1..=40).collect::<Vec<_>>());
    let prepared = prepared.lock().unwrap();
    assert!(runs > 2 && prepared.windows(2).all(|ids| ids[0] < ids[1]), "{prepared:?}");
}

#[test]
fn a_source_that_is_slow_to_hear_of_a_checkpoint_hears_of_the_last_one() {
    struct Slow(MemorySource<u32>, Arc<Mutex<Vec<u64>>>);

    impl JobSource for Slow {
        type Item = u32;

        async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
            self.0.open(position).await
        }

        async fn read(&mut self, into: &mut Vec<u32>, _most: usize) -> Result<Read, BoxError> {
            self.0.read(into, 5).await
        }

        fn position(&self) -> Vec<u8> {
            self.0.position()
        }

        async fn completed(&mut self, position: &[u8]) -> Result<(), BoxError> {
            for _ in 0..10 {
                pause().await;
            }
            self.1.lock().unwrap().push(u64::from_le_bytes(position.try_into()?));
            Ok(())
        }
    }

    let (world, told) = (World::default(), Arc::new(Mutex::new(Vec::new())));
    let run = world.job().checkpoint_every(Every::records(5)).run(|job| {
        let source = Slow(MemorySource::new((1..=10).collect()), Arc::clone(&told));
        let numbers = job.source("numbers", source);
        job.sink("numbers", numbers, world.even.clone());
        Ok(())
    });
    block_on(run).unwrap();
    assert_eq!(told.lock().unwrap().last(), Some(&10));
}
