//! Tasks that are polled only when they were woken, in any order: nobody is forgotten, nobody is
//! woken for ever without getting anywhere, after each poll every record is accounted for, and
//! nothing is left in a lane when all tasks wait.

mod common;

use common::{Rng, assert_balanced, is_subsequence};
use futures::future::{abortable, join3, poll_fn, ready};
use futures::{Sink, Stream, StreamExt as _, stream};
use proptest::option::weighted;
use proptest::prelude::*;
use side_output::prelude::*;
use side_output::stream::Source;
use side_output::{Element, LedgerHandle, overflow_into};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::iter;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Polls in a row that may move nothing.
const PATIENCE: u32 = 300;

/// Whether a task was woken since it was polled last.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What tasks wait for that is not the runtime's: it comes when all of them wait.
#[derive(Clone)]
struct Outside(Arc<Mutex<Arrivals>>);

struct Arrivals {
    /// Records that the input has at hand.
    ready: u64,
    /// The reader of the input: the last one that asked.
    input: Option<Waker>,
    others: Vec<Waker>,
    rng: Rng,
}

impl Outside {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let ready = rng.below(3000);
        Self(Arc::new(Mutex::new(Arrivals { ready, input: None, others: Vec::new(), rng })))
    }

    /// Lets something come; false if nobody waits for it.
    fn comes(&self) -> bool {
        let mut arrivals = self.0.lock().unwrap();
        arrivals.ready = 1 + arrivals.rng.below(3000);
        let mut wakers = mem::take(&mut arrivals.others);
        wakers.extend(arrivals.input.take());
        drop(arrivals);
        let awaited = !wakers.is_empty();
        wakers.into_iter().for_each(Waker::wake);
        awaited
    }

    fn waiting(&self) -> usize {
        self.0.lock().unwrap().others.len()
    }

    /// Whether the input has nothing at hand.
    fn is_exhausted(&self) -> bool {
        self.0.lock().unwrap().ready == 0
    }

    fn wait(&self, cx: &TaskContext<'_>) {
        self.0.lock().unwrap().others.push(cx.waker().clone());
    }

    /// Waits until all tasks do.
    async fn later(&self) {
        let mut waited = false;
        poll_fn(|cx| {
            if mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            self.wait(cx);
            Poll::Pending
        })
        .await;
    }
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The numbers from 0, as they come from outside; or it wakes itself now and then.
struct Input {
    next: u64,
    end: u64,
    wakes_itself: bool,
    outside: Outside,
}

impl Stream for Input {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<u64>> {
        let this = &mut *self;
        let mut arrivals = this.outside.0.lock().unwrap();
        // Who does not have to wait is not woken for it later.
        arrivals.input = None;
        if this.next == this.end {
            return Poll::Ready(None);
        }
        if arrivals.ready == 0 {
            if this.wakes_itself && arrivals.rng.below(2) == 0 {
                arrivals.ready = 1 + arrivals.rng.below(2000);
                drop(arrivals);
                cx.waker().wake_by_ref();
            } else {
                arrivals.input = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        arrivals.ready -= 1;
        this.next += 1;
        Poll::Ready(Some(this.next - 1))
    }
}

/// How much there is of the input, and how it comes.
#[derive(Clone, Copy, Debug)]
struct Coming {
    count: u64,
    wakes_itself: bool,
    seed: u64,
}

impl Coming {
    fn start(self) -> (Outside, Input) {
        let Self { count: end, wakes_itself, seed } = self;
        let outside = Outside::new(seed);
        (outside.clone(), Input { next: 0, end, wakes_itself, outside })
    }
}

/// `most` is more than one poll takes, or nobody would have to come again.
fn coming(most: u64) -> impl Strategy<Value = Coming> {
    (prop_oneof![5 => 1..3000_u64, 1 => 1..most], any::<bool>(), any::<u64>())
        .prop_map(|(count, wakes_itself, seed)| Coming { count, wakes_itself, seed })
}

/// What the readers got, and streams that stay open after their end: one that is dropped wakes the
/// other readers.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<[Vec<u64>; 4]>>, Rc<RefCell<Vec<Box<dyn Any>>>>);

impl Seen {
    /// Adds a record; the number of those that this reader has got.
    fn add(&self, reader: usize, n: u64) -> usize {
        let seen = &mut self.0.borrow_mut()[reader];
        seen.push(n);
        seen.len()
    }

    fn keep(&self, stream: impl Any) {
        self.1.borrow_mut().push(Box::new(stream));
    }

    fn counts(&self) -> [usize; 4] {
        self.0.borrow().each_ref().map(Vec::len)
    }
}

/// What there is to check after a poll.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    Polled,
    /// Nobody was woken.
    AllWait {
        /// They wait for nothing of the runtime's.
        resting: bool,
    },
}

/// Polls those of `tasks` that were woken until all have ended, and says whether one panicked.
///
/// `check` looks at the ledgers and hands them over: a poll that changes none of them and gives
/// no reader a record has moved nothing.
fn run(
    tasks: Vec<Task>,
    outside: &Outside,
    order: u64,
    seen: &Seen,
    check: impl Fn(Moment) -> Vec<Ledger>,
) -> bool {
    let mut rng = Rng(order);
    let woken = || Arc::new(Woken(AtomicBool::new(true)));
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (task, woken())).collect();
    let mut last = (check(Moment::Polled), seen.counts());
    let mut unmoved = 0;
    let mut panicked = false;
    while !tasks.is_empty() {
        let ready = |(_, (_, woken)): &(usize, &(Task, Arc<Woken>))| woken.0.load(Ordering::SeqCst);
        let ready: Vec<_> =
            tasks.iter().enumerate().filter(ready).map(|(index, _)| index).collect();
        let Ok(count) = u32::try_from(ready.len()) else { unreachable!("a handful of tasks") };
        if count == 0 {
            let ledgers = check(Moment::AllWait { resting: outside.waiting() >= tasks.len() });
            // A waker may panic: somebody waited then.
            let comes = catch_unwind(AssertUnwindSafe(|| outside.comes())).unwrap_or(true);
            assert!(comes, "all tasks wait for ever: {ledgers:#?}");
            continue;
        }
        let index = ready[rng.index(count)];
        let (task, woken) = &mut tasks[index];
        woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(woken));
        let poll = || task.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready();
        let ended = catch_unwind(AssertUnwindSafe(poll));
        panicked |= ended.is_err();
        if ended.unwrap_or(true) {
            drop(tasks.swap_remove(index));
        }
        let now = (check(Moment::Polled), seen.counts());
        unmoved = if now == last { unmoved + 1 } else { 0 };
        assert!(unmoved < PATIENCE, "tasks wake each other for nothing: {:#?}", now.0);
        last = now;
    }
    panicked
}

#[track_caller]
fn assert_all_read(ledger: &Ledger) {
    let read = ledger.outputs.iter().all(|output| output.buffered == 0);
    assert!(read, "something is left: {ledger:#?}");
}

/// How a task reads its stream.
#[derive(Clone, Copy, Debug)]
enum Reading {
    ForEach,
    Next,
    Chunks,
    Elements,
    /// It lets others run now and then.
    Yielding,
    /// It is busy elsewhere now and then.
    Resting,
    /// It is busy elsewhere whenever it was woken, and asks again later.
    Distracted,
}

fn reading() -> impl Strategy<Value = Reading> {
    use Reading::{Chunks, Distracted, Elements, ForEach, Next, Resting, Yielding};
    prop::sample::select(vec![ForEach, Next, Chunks, Elements, Yielding, Resting, Distracted])
}

/// Reads to the end; panics when it has got more than `panics_after`.
fn reader<Src: Source<u64> + 'static>(
    reading: Reading,
    mut stream: DataStream<u64, Src>,
    index: usize,
    (seen, outside): (&Seen, &Outside),
    panics_after: Option<usize>,
) -> Task {
    let (seen, outside) = (seen.clone(), outside.clone());
    let add = seen.clone();
    let take = move |n| {
        let count = add.add(index, n);
        if panics_after.is_some_and(|most| count > most) {
            // Without the message of a panic.
            resume_unwind(Box::new(()));
        }
        count
    };
    match reading {
        Reading::ForEach => {
            Box::pin(async move { stream.for_each(|n| _ = take(n)).await.unwrap() })
        }
        Reading::Next => Box::pin(async move {
            while let Some(n) = stream.next().await {
                take(n);
            }
            seen.keep(stream);
        }),
        Reading::Chunks => Box::pin(async move {
            stream.for_each_chunk(|chunk| chunk.for_each(|n| _ = take(n))).await.unwrap();
        }),
        Reading::Elements => Box::pin(async move {
            let mut elements = stream.elements();
            while let Some(element) = elements.next().await {
                if let Element::Record { value, .. } = element.unwrap() {
                    take(value);
                }
            }
        }),
        Reading::Yielding => Box::pin(async move {
            while let Some(n) = stream.next().await {
                if take(n).is_multiple_of(100) {
                    yield_now().await;
                }
            }
        }),
        Reading::Resting => Box::pin(async move {
            while let Some(n) = stream.next().await {
                if take(n).is_multiple_of(1000) {
                    outside.later().await;
                }
            }
            seen.keep(stream);
        }),
        Reading::Distracted => Box::pin(async move {
            loop {
                let (mut next, mut asked) = (stream.next(), false);
                let answer = poll_fn(|cx| {
                    if mem::replace(&mut asked, true) {
                        return Poll::Ready(None);
                    }
                    Pin::new(&mut next).poll(cx).map(Some)
                });
                match answer.await {
                    Some(Some(n)) => _ = take(n),
                    Some(None) => break,
                    None => outside.later().await,
                }
            }
            seen.keep(stream);
        }),
    }
}

/// A number that says little about `n`.
const fn hash(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

/// Where records go, of three outputs.
#[derive(Clone, Copy, Debug)]
enum Routing {
    Evenly,
    /// To the first, and one of so many to the second.
    Rarely(u64),
    /// To none, to several, to the third often.
    Mixed,
    /// To the second.
    One,
}

impl Routing {
    fn outputs(self, n: u64) -> &'static [usize] {
        match (self, hash(n)) {
            (Self::Evenly, hash) => [&[0], &[1], &[2]][usize::try_from(hash % 3).unwrap()],
            (Self::Rarely(of), hash) if hash.is_multiple_of(of) => &[1],
            (Self::Rarely(_), _) => &[0],
            (Self::Mixed, hash) => match hash % 10 {
                0 => &[],
                1 => &[0, 1],
                2 => &[2],
                3 => &[2; 7],
                _ => &[1],
            },
            (Self::One, _) => &[1],
        }
    }

    /// What output `index` gets of `count` records.
    fn expected(self, count: u64, index: usize) -> Vec<u64> {
        let of_one = |n| self.outputs(n).iter().filter(|to| **to == index).map(move |_| n);
        (0..count).flat_map(of_one).collect()
    }
}

fn routing() -> impl Strategy<Value = Routing> {
    prop_oneof![
        Just(Routing::Evenly),
        (50..1000_u64).prop_map(Routing::Rarely),
        Just(Routing::Mixed),
        Just(Routing::One),
    ]
}

macro_rules! splitter {
    ([$a:literal $ao:literal, $b:literal $bo:literal, $c:literal $co:literal]) => {
        #[splitter]
        enum Out {
            #[main]
            #[output(capacity = $a, overflow = $ao)]
            A(u64),
            #[output(capacity = $b, overflow = $bo)]
            B(u64),
            #[output(capacity = $c, overflow = $co)]
            C(u64),
        }

        fn route(n: u64, routing: Routing) -> Vec<Out> {
            routing.outputs(n).iter().map(|index| [Out::A, Out::B, Out::C][*index](n)).collect()
        }
    };
}

macro_rules! readers {
    ($name:ident, [$a:literal, $b:literal $overflow:literal, $c:literal]) => {
        mod $name {
            use super::*;

            splitter!([$a "block", $b $overflow, $c "block"]);

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(100))]

                #[test]
                fn readers_in_any_order_get_everything(
                    coming in coming(70_000),
                    routing in routing(),
                    readings in [reading(), reading(), reading()],
                    one_task in prop::bool::weighted(0.3),
                    drivers in prop_oneof![5 => Just(0), 1 => Just(1), 1 => Just(2)],
                    seed: u64,
                ) {
                    let (outside, input) = coming.start();
                    let streams = input.split_with(move |n| route(n, routing));
                    let ledger = streams.ledger_handle();
                    let OutStreams { a, b, c } = streams;
                    let seen = Seen::default();
                    let mut tasks: Vec<Task> = Vec::new();
                    for _ in 0..drivers {
                        let driver = a.driver();
                        tasks.push(Box::pin(async { driver.await.unwrap() }));
                    }
                    let readers = [
                        reader(readings[0], a, 0, (&seen, &outside), None),
                        reader(readings[1], b, 1, (&seen, &outside), None),
                        reader(readings[2], c, 2, (&seen, &outside), None),
                    ];
                    if one_task {
                        let [a, b, c] = readers;
                        tasks.push(Box::pin(async { _ = join3(a, b, c).await }));
                    } else {
                        tasks.extend(readers);
                    }
                    run(tasks, &outside, seed, &seen, |moment| {
                        let ledger = ledger.read();
                        assert_balanced(&ledger);
                        let waiting = ledger["a"].buffered - ledger["a"].accepted;
                            assert!(waiting <= $a, "{ledger:#?}");
                        assert!(ledger["b"].buffered <= $b, "{ledger:#?}");
                        if let Moment::AllWait { resting } = moment {
                            let rests = |r: &Reading| matches!(r, Reading::Resting | Reading::Distracted);
                            let goes_on = !readings.iter().any(rests);
                            if goes_on {
                                assert_all_read(&ledger);
                            }
                            // Whoever does not rest has come as far as it can.
                            let mut full = ledger.outputs.iter();
                            assert!(
                                resting
                                    || one_task
                                    || outside.is_exhausted()
                                    || ledger.received == coming.count
                                    || full.any(|output| output.blocking && output.buffered > 0),
                                "nobody asks the input, which is ready: {ledger:#?}"
                            );
                        }
                        vec![ledger]
                    });

                    let ledger = ledger.read();
                    prop_assert_eq!(ledger.received, coming.count);
                    for (index, output) in ledger.outputs.iter().enumerate() {
                        let read = &seen.0.borrow()[index];
                        let expected = routing.expected(coming.count, index);
                        if index == 1 && $overflow != "block" {
                            prop_assert!(is_subsequence(read, &expected));
                        } else {
                            prop_assert!(*read == expected, "{}", output.name);
                        }
                        prop_assert_eq!(output.delivered, read.len() as u64);
                        prop_assert_eq!(output.routed, output.delivered + output.dropped);
                    }
                }
            }
        }
    };
}

readers!(readers_small, [1, 2 "block", 3]);
readers!(readers_mixed, [300, 10 "block", 1000]);
readers!(readers_usual, [1024, 1024 "block", 1024]);
readers!(readers_oldest, [700, 5 "drop_oldest", 600]);
readers!(readers_newest, [700, 300 "drop_newest", 2000]);

/// A sink that is not ready now and then.
struct Slow {
    seen: Seen,
    reader: usize,
    outside: Outside,
    rng: Rng,
    one_in: u64,
    ready: bool,
    /// It fails when it has got so many.
    fails_at: Option<usize>,
    closed: Rc<Cell<bool>>,
}

impl Slow {
    fn fails(&self) -> bool {
        self.fails_at == Some(self.seen.counts()[self.reader])
    }
}

impl Sink<u64> for Slow {
    type Error = String;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result<(), String>> {
        let this = &mut *self;
        if !this.ready && this.rng.below(this.one_in) == 0 {
            if this.rng.below(2) == 0 {
                cx.waker().wake_by_ref();
            } else {
                this.outside.wait(cx);
            }
            return Poll::Pending;
        }
        if this.fails() && this.rng.below(2) == 0 {
            return Poll::Ready(Err("while it got ready".to_owned()));
        }
        this.ready = true;
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, n: u64) -> Result<(), String> {
        assert!(mem::take(&mut self.ready), "it was not asked");
        if self.fails() {
            return Err("at a record".to_owned());
        }
        self.seen.add(self.reader, n);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Result<(), String>> {
        self.closed.set(true);
        Poll::Ready(Ok(()))
    }
}

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
struct Incidents {
    /// The sink of the third output fails when it has got so many.
    fails_at: Option<usize>,
    /// The run is dropped after so many polls of another task.
    cancelled_after: Option<u32>,
    /// The reader of the second output goes away when it has got so many.
    leaves_at: Option<usize>,
}

fn incidents() -> impl Strategy<Value = Incidents> {
    (weighted(0.25, 0..300_usize), weighted(0.25, 0..50_u32), weighted(0.25, 0..100_usize))
        .prop_map(|(fails_at, cancelled_after, leaves_at)| Incidents {
            fails_at,
            cancelled_after,
            leaves_at,
        })
}

/// Reads to the end, or until it has got `leaves_at`, with a rest now and then.
async fn read_slowly(
    stream: DataStream<u64>,
    seen: Seen,
    outside: Outside,
    leaves_at: Option<usize>,
) {
    let mut records = stream.results();
    while let Some(Ok(n)) = records.next().await {
        let count = seen.add(1, n);
        if leaves_at == Some(count) {
            return;
        }
        if count.is_multiple_of(50) {
            outside.later().await;
        }
    }
}

/// Records with timestamps, and now and then a watermark behind one.
fn elements(input: Input, marked: bool) -> impl Stream<Item = Element<u64>> {
    input.flat_map(move |n| {
        let at = Timestamp::from_millis(n.cast_signed());
        let mark = (marked && n % 7 == 3).then(|| Element::watermark(at));
        stream::iter(iter::once(Element::record(n, at)).chain(mark))
    })
}

type Running = Pin<Box<dyn Future<Output = Result<Ledger, StreamError>>>>;

macro_rules! wired {
    ($name:ident, [$a:literal, $b:literal, $c:literal], $overflow:literal) => {
        mod $name {
            use super::*;

            splitter!([$a $overflow, $b $overflow, $c $overflow]);

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(200))]

                #[test]
                fn destinations_in_any_order_get_everything(
                    coming in coming(6000),
                    marked: bool,
                    routing in routing(),
                    incidents in incidents(),
                    elsewhere: bool,
                    spills: bool,
                    seed: u64,
                ) {
                    let Incidents { fails_at, cancelled_after, leaves_at } = incidents;
                    let lossy = $overflow != "block";
                    let mut rng = Rng(seed);
                    let (outside, input) = coming.start();
                    let seen = Seen::default();
                    let closed = Rc::new(Cell::new(false));
                    let mut sink = |reader, fails_at| Slow {
                        seen: seen.clone(),
                        reader,
                        outside: outside.clone(),
                        rng: Rng(rng.next()),
                        one_in: 2 + rng.below(20),
                        ready: false,
                        fails_at,
                        closed: Rc::clone(&closed),
                    };
                    let streams = DataStream::from_elements(elements(input, marked))
                        .split_with(move |n| route(n, routing));
                    let ledger = streams.ledger_handle();
                    let mut tasks: Vec<Task> = Vec::new();

                    // The stream of B is read by the wiring or by a task of its own.
                    let mut away = None;
                    let (b_seen, b_outside) = (seen.clone(), outside.clone());
                    let through = |stream: DataStream<u64>| {
                        let read = read_slowly(stream, b_seen, b_outside, leaves_at);
                        let read: Task = Box::pin(read);
                        if !elsewhere {
                            return read;
                        }
                        away = Some(read);
                        Box::pin(ready(()))
                    };
                    let (a, c, spill) = (sink(0, None), sink(2, fails_at), sink(3, None));
                    let wiring = streams.wire().a(a).b(through);
                    let running: Running = if spills {
                        Box::pin(wiring.c(overflow_into(c, spill)).run())
                    } else {
                        Box::pin(wiring.c(c).run())
                    };
                    let (running, cancel) = abortable(running);
                    let ended = Rc::new(RefCell::new(None));
                    let end = Rc::clone(&ended);
                    tasks.push(Box::pin(async move { *end.borrow_mut() = running.await.ok() }));
                    tasks.extend(away);
                    if let Some(polls) = cancelled_after {
                        tasks.push(Box::pin(async move {
                            for _ in 0..polls {
                                yield_now().await;
                            }
                            cancel.abort();
                        }));
                    }
                    run(tasks, &outside, rng.next(), &seen, |_| {
                        let ledger = ledger.read();
                        assert_balanced(&ledger);
                        if !lossy {
                            let waiting = ledger["a"].buffered - ledger["a"].accepted;
                            assert!(waiting <= $a, "{ledger:#?}");
                            assert!(ledger["b"].buffered <= $b, "{ledger:#?}");
                        }
                        vec![ledger]
                    });

                    let ended = ended.borrow();
                    let Some(Ok(last)) = ended.as_ref() else {
                        let failed = ended.is_some();
                        let cause =
                            if failed { fails_at.is_some() } else { cancelled_after.is_some() };
                        prop_assert!(cause, "{:?}", ended);
                        return Ok(());
                    };
                    prop_assert_eq!(last, &ledger.read());
                    prop_assert_eq!(last.received, coming.count);
                    assert_all_read(last);
                    prop_assert!(closed.get());
                    let mut read = seen.0.take();
                    prop_assert!(read.iter().all(|read| read.is_sorted()));
                    let spilled = mem::take(&mut read[3]);
                    read[2].extend(spilled);
                    read[2].sort_unstable();
                    for (index, output) in last.outputs.iter().enumerate() {
                        let expected = routing.expected(coming.count, index);
                        prop_assert_eq!(output.routed, expected.len() as u64);
                        if index == 1 && leaves_at.is_some() {
                            prop_assert!(is_subsequence(&read[index], &expected));
                            continue;
                        }
                        prop_assert_eq!(output.delivered, read[index].len() as u64);
                        prop_assert_eq!(output.discarded, 0);
                        if lossy {
                            prop_assert!(is_subsequence(&read[index], &expected));
                        } else {
                            prop_assert!(read[index] == expected, "{}", output.name);
                        }
                    }
                }
            }
        }
    };
}

wired!(wired_small, [1, 2, 3], "block");
wired!(wired_mixed, [300, 10, 1000], "block");
wired!(wired_usual, [1024, 1024, 1024], "block");
wired!(wired_oldest, [5, 5, 600], "drop_oldest");
wired!(wired_newest, [5, 300, 2000], "drop_newest");

/// What stands between a first operator and the second.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Both outputs of the first together are the second's input.
    Union,
    Connect,
    /// One output is, and the other is read.
    Behind,
    BehindFilter,
    /// The second is wired.
    Wired,
}

fn shape() -> impl Strategy<Value = Shape> {
    use Shape::{Behind, BehindFilter, Connect, Union, Wired};
    prop::sample::select(vec![Union, Connect, Behind, BehindFilter, Wired])
}

/// Where the first operator's records go, of its two outputs.
#[derive(Clone, Copy, Debug)]
enum Upper {
    Evenly,
    /// To the second, and few to the first.
    Rarely,
    /// To the first, and some to none.
    Lossy,
    One,
}

impl Upper {
    fn output(self, n: u64) -> Option<usize> {
        let hash = hash(n);
        match self {
            Self::Evenly => Some(usize::from(!hash.is_multiple_of(2))),
            Self::Rarely => Some(usize::from(!hash.is_multiple_of(5000))),
            Self::Lossy => (!hash.is_multiple_of(3)).then_some(0),
            Self::One => Some(1),
        }
    }
}

fn upper() -> impl Strategy<Value = Upper> {
    use Upper::{Evenly, Lossy, One, Rarely};
    prop::sample::select(vec![Evenly, Rarely, Lossy, One])
}

/// The readers of a network, of which some panic.
struct Readers {
    tasks: Vec<Task>,
    seen: Seen,
    outside: Outside,
    rng: Rng,
}

impl Readers {
    fn read<Src: Source<u64> + 'static>(&mut self, index: usize, stream: DataStream<u64, Src>) {
        let panics_after = (self.rng.below(6) == 0).then(|| self.rng.index(500));
        let reading = [Reading::ForEach, Reading::Next][self.rng.index(2)];
        let around = (&self.seen, &self.outside);
        self.tasks.push(reader(reading, stream, index, around, panics_after));
    }

    fn read_two<X, Y>(&mut self, x: DataStream<u64, X>, y: DataStream<u64, Y>)
    where
        X: Source<u64> + Send + 'static,
        Y: Source<u64> + Send + 'static,
    {
        if self.rng.below(2) == 0 {
            self.read(0, x);
            self.read(1, y);
        } else {
            self.read(0, x.boxed());
            self.read(1, y.boxed());
        }
    }
}

macro_rules! networks {
    ($name:ident, [$a:literal, $b:literal, $lower:literal]) => {
        mod $name {
            use super::*;

            #[splitter]
            enum Up {
                #[main]
                #[output(capacity = $a)]
                A(u64),
                #[output(capacity = $b)]
                B(u64),
            }

            #[splitter]
            enum Down {
                #[main]
                #[output(capacity = $lower)]
                X(u64),
                #[output(capacity = $lower)]
                Y(u64),
            }

            fn down(n: u64) -> Down {
                if (hash(n) >> 5).is_multiple_of(3) { Down::X(n) } else { Down::Y(n) }
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(150))]

                #[test]
                fn operators_behind_operators_in_any_order_get_everything(
                    coming in coming(70_000),
                    upper in upper(),
                    shape in shape(),
                    seed: u64,
                ) {
                    let (outside, input) = coming.start();
                    let streams = input
                        .split_with(move |n| upper.output(n).map(|to| [Up::A, Up::B][to](n)));
                    let mut ledgers = vec![streams.ledger_handle()];
                    let UpStreams { a, b } = streams;
                    let seen = Seen::default();
                    let mut readers = Readers {
                        tasks: Vec::new(),
                        seen: seen.clone(),
                        outside: outside.clone(),
                        rng: Rng(seed),
                    };
                    match shape {
                        Shape::Union => {
                            let streams = a.union(b).split_with(down);
                            ledgers.push(streams.ledger_handle());
                            readers.read_two(streams.x, streams.y);
                        }
                        Shape::Connect => {
                            let streams = a.connect(b).process_with(
                                |n: u64, _: &mut Context<Down>| down(n),
                                |n: u64, _: &mut Context<Down>| down(n),
                            );
                            ledgers.push(streams.ledger_handle());
                            readers.read_two(streams.x, streams.y);
                        }
                        Shape::Behind => {
                            let streams = a.split_with(down);
                            ledgers.push(streams.ledger_handle());
                            readers.read_two(streams.x, streams.y);
                            readers.read(2, b);
                        }
                        Shape::BehindFilter => {
                            let streams = b
                                .filter(|n| n % 3 != 0)
                                .boxed()
                                .split_with(|n: u64| [down(n), down(n + 1)]);
                            ledgers.push(streams.ledger_handle());
                            readers.read_two(streams.x, streams.y);
                            readers.read(2, a);
                        }
                        Shape::Wired => {
                            let streams = a.split_with(down);
                            ledgers.push(streams.ledger_handle());
                            let y = |stream: DataStream<u64>| stream.for_each(drop);
                            let run = streams.wire().x(each(drop)).y(y).run();
                            readers.tasks.push(Box::pin(async { drop(run.await.unwrap()) }));
                            readers.read(2, b.map(|n| n));
                        }
                    }
                    let Readers { tasks, mut rng, .. } = readers;
                    let read = || ledgers.iter().map(LedgerHandle::read).collect::<Vec<_>>();
                    let panicked = run(tasks, &outside, rng.next(), &seen, |moment| {
                        let ledgers = read();
                        for ledger in &ledgers {
                            assert_balanced(ledger);
                            assert_eq!((ledger.failed, ledger.fired), (0, 0), "{ledger:#?}");
                            if moment != Moment::Polled {
                                assert_all_read(ledger);
                            }
                        }
                        ledgers
                    });

                    let ledgers = read();
                    ledgers.iter().for_each(assert_all_read);
                    if !panicked {
                        prop_assert_eq!(ledgers[0].received, coming.count);
                        for output in ledgers.iter().flat_map(|ledger| &ledger.outputs) {
                            prop_assert_eq!(output.routed, output.delivered, "{:#?}", ledgers);
                        }
                    }
                }
            }
        }
    };
}

networks!(networks_small, [1, 2, 3]);
networks!(networks_mixed, [300, 10, 600]);
networks!(networks_usual, [1024, 1024, 1024]);

/// Foreign code that panics: destructors of records that nobody reads, and wakers.
mod panicking {
    use super::*;
    use std::sync::atomic::AtomicU64;

    struct Bomb(bool);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 {
                // Without the message of a panic.
                resume_unwind(Box::new(()));
            }
        }
    }

    #[splitter]
    enum Out {
        #[main]
        #[output(capacity = 5)]
        A(u64),
        #[output(capacity = 600)]
        B(u64),
        C(Bomb),
    }

    /// Panics at the wake-up of this number, when it has passed it on.
    struct Panicking {
        waker: Waker,
        left: Arc<AtomicU64>,
    }

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            self.waker.wake_by_ref();
            if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
                resume_unwind(Box::new(()));
            }
        }
    }

    fn with_panicking_waker(mut task: Task, wake: u64) -> Task {
        let left = Arc::new(AtomicU64::new(wake));
        Box::pin(poll_fn(move |cx| {
            let waker = Panicking { waker: cx.waker().clone(), left: Arc::clone(&left) };
            task.as_mut().poll(&mut TaskContext::from_waker(&Waker::from(Arc::new(waker))))
        }))
    }

    fn read<Src: Source<u64> + 'static>(
        stream: DataStream<u64, Src>,
        index: usize,
        (seen, ended): (&Seen, &Rc<Cell<[bool; 2]>>),
    ) -> Task {
        let (seen, ended) = (seen.clone(), Rc::clone(ended));
        let mut records = stream.results();
        Box::pin(async move {
            while let Some(Ok(n)) = records.next().await {
                seen.add(index, n);
            }
            let mut all = ended.get();
            all[index] = true;
            ended.set(all);
            seen.keep(records);
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn panics_of_foreign_code_keep_nobody_waiting(
            coming in coming(6000),
            bombs in weighted(0.5, 1..2000_u64),
            wakes in [weighted(0.5, 1..30_u64), weighted(0.5, 1..30_u64), weighted(0.5, 1..30_u64)],
            seed: u64,
        ) {
            let (outside, input) = coming.start();
            let routes = |n: u64| usize::try_from(hash(n) % 3).unwrap();
            let streams = input.split_with(move |n| match routes(n) {
                0 => Out::A(n),
                1 => Out::B(n),
                _ => Out::C(Bomb(bombs.is_some_and(|every| n % every == every - 1))),
            });
            let ledger = streams.ledger_handle();
            let OutStreams { a, b, c } = streams;
            c.discard();
            let (seen, ended) = (Seen::default(), Rc::default());
            let driver = a.driver();
            let driver: Task = Box::pin(async { drop(driver.await) });
            let tasks = [read(a, 0, (&seen, &ended)), read(b, 1, (&seen, &ended)), driver];
            let tasks = tasks.into_iter().zip(wakes).map(|(task, wake)| match wake {
                Some(wake) => with_panicking_waker(task, wake),
                None => task,
            });
            let panicked = run(tasks.collect(), &outside, seed, &seen, |_| {
                let ledger = ledger.read();
                assert_balanced(&ledger);
                vec![ledger]
            });
            prop_assert!(panicked || ended.get() == [true; 2]);
            for (index, read) in seen.0.borrow()[..2].iter().enumerate() {
                let expected: Vec<_> = (0..coming.count).filter(|n| routes(*n) == index).collect();
                prop_assert!(expected.starts_with(read));
                let whole = bombs.is_none() && wakes.iter().all(Option::is_none);
                prop_assert!(!whole || *read == expected);
            }
        }
    }
}
