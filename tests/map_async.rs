//! Asynchronous work for each record: order, time, bounds, retries, time-outs. No clock and no sleep:
//! the tests hold the calls and the timer.

mod common;

use common::assert_balanced;
use futures::channel::mpsc::unbounded;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{BoxFuture, FutureExt as _};
use futures::{StreamExt as _, stream};
use proptest::prelude::{Just, Strategy as _, prop, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};
use side_output::operator::AnsweredStreams;
use side_output::prelude::*;
use side_output::stream::wiring::{Counts, Destination};
use side_output::{Calls, Count, Element, FailedCall, Mark, Retry};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

type Answer = Result<String, String>;

/// The other end of all calls and timers.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<Calling>>);

#[derive(Default)]
struct Calling {
    /// The attempts that wait for an answer, by record.
    calls: BTreeMap<u32, oneshot::Sender<Answer>>,
    /// The attempts so far.
    attempts: Vec<u32>,
    /// What was asked for and is still waited for, in order.
    timers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl Desk {
    fn call(&self) -> impl FnMut(&u32) -> BoxFuture<'static, Answer> + use<> {
        let desk = self.clone();
        move |id| {
            let (sender, receiver) = oneshot::channel();
            let mut calling = desk.0.lock().unwrap();
            calling.attempts.push(*id);
            calling.calls.insert(*id, sender);
            receiver.map(|answer| answer.expect("the desk answers")).boxed()
        }
    }

    fn timer(&self) -> impl FnMut(Duration) -> BoxFuture<'static, ()> + use<> {
        let desk = self.clone();
        move |duration| {
            let (sender, receiver) = oneshot::channel();
            desk.0.lock().unwrap().timers.push((duration, sender));
            receiver.map(|rung| rung.expect("the desk rings")).boxed()
        }
    }

    fn answer(&self, id: u32, answer: Answer) {
        let call = self.0.lock().unwrap().calls.remove(&id).expect("it was called");
        call.send(answer).unwrap();
    }

    fn succeed(&self, id: u32) {
        self.answer(id, Ok(format!("answer {id}")));
    }

    fn fail(&self, id: u32) {
        self.answer(id, Err(format!("error {id}")));
    }

    /// Whether the call is still waited for.
    fn is_waited_for(&self, id: u32) -> bool {
        self.0.lock().unwrap().calls.get(&id).is_some_and(|call| !call.is_canceled())
    }

    /// The timers that somebody waits for.
    fn timers(&self) -> Vec<Duration> {
        let mut calling = self.0.lock().unwrap();
        calling.timers.retain(|(_, timer)| !timer.is_canceled());
        calling.timers.iter().map(|(duration, _)| *duration).collect()
    }

    fn ring(&self, index: usize) {
        drop(self.timers());
        let (_, timer) = self.0.lock().unwrap().timers.remove(index);
        timer.send(()).unwrap();
    }

    fn attempts(&self) -> Vec<u32> {
        self.0.lock().unwrap().attempts.clone()
    }
}

/// What left, through whichever output.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Left {
    Result(u32),
    Failure(u32),
    Timeout(u32),
    Mark(Mark),
}

type Seen = Rc<RefCell<Vec<Left>>>;

struct Noting<F>(Seen, F, bool);

impl<T, F: FnMut(T) -> Left> Destination<T> for Noting<F> {
    const WAITS: bool = false;

    fn push(&mut self, value: T, _at: Timestamp) -> bool {
        self.0.borrow_mut().push(self.1(value));
        false
    }

    fn mark(&mut self, mark: Mark) {
        if self.2 {
            self.0.borrow_mut().push(Left::Mark(mark));
        }
    }

    fn sum(&self, routed: u64) -> Counts {
        Counts { delivered: routed, ..Counts::default() }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future that is polled as often as it is woken, and no more.
struct Task<F> {
    future: Pin<Box<F>>,
    woken: Arc<Woken>,
}

impl<F: Future> Task<F> {
    fn new(future: F) -> Self {
        Self { future: Box::pin(future), woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    /// The output, if there is one without anything else happening.
    fn run(&mut self) -> Option<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        for _ in 0..10_000 {
            if !self.woken.0.swap(false, Ordering::SeqCst) {
                return None;
            }
            let polled = self.future.as_mut().poll(&mut TaskContext::from_waker(&waker));
            if let Poll::Ready(output) = polled {
                return Some(output);
            }
        }
        panic!("it wakes itself for ever")
    }
}

/// A run over `input` with what leaves, and its ledger.
macro_rules! run {
    ($input:expr, $calls:expr, $desk:expr) => {{
        let seen = Seen::default();
        let streams = $input.map_async($calls, $desk.call());
        let ledger = streams.ledger_handle();
        let result = |(id, answer): (u32, String)| {
            assert_eq!(answer, format!("answer {id}"));
            Left::Result(id)
        };
        let failure = |failed: FailedCall<u32, String>| {
            assert_eq!(failed.error, format!("error {}", failed.record));
            Left::Failure(failed.record)
        };
        let run = streams
            .wire()
            .results(Noting(Rc::clone(&seen), result, true))
            .failures(Noting(Rc::clone(&seen), failure, false))
            .timeouts(Noting(Rc::clone(&seen), Left::Timeout, false))
            .run();
        (Task::new(run), seen, ledger)
    }};
}

const END: Left = Left::Mark(Mark::Watermark(Timestamp::MAX));

fn wm(n: i64) -> Mark {
    Mark::Watermark(Timestamp::from_millis(n))
}

fn at(id: u32) -> Element<u32> {
    Element::record(id, Timestamp::from_millis(i64::from(id)))
}

/// Two records, a mark, two records.
fn around(mark: Mark) -> DataStream<u32> {
    let elements = [at(1), at(2), Element::Mark(mark), at(3), at(4)];
    DataStream::from_elements(stream::iter(elements))
}

#[test]
fn api_02_ordered_answers_leave_in_the_order_of_their_records() {
    let desk = Desk::default();
    let (mut run, seen, ledger) = run!(around(wm(2)), Calls::ordered(8), desk);
    assert!(run.run().is_none());
    assert_eq!(desk.attempts(), [1, 2, 3, 4]);
    assert_eq!((ledger.read().held, ledger.read().received), (4, 4));
    for id in [4, 2, 3] {
        desk.succeed(id);
        assert!(run.run().is_none());
        assert!(seen.borrow().is_empty());
        assert_balanced(&ledger.read());
    }
    desk.succeed(1);
    let ledger = run.run().unwrap().unwrap();
    let [one, two, three, four] = [1, 2, 3, 4].map(Left::Result);
    assert_eq!(*seen.borrow(), [one, two, Left::Mark(wm(2)), three, four, END]);
    assert_eq!((ledger.received, ledger.unrouted, ledger.held), (4, 0, 0));
    assert_balanced(&ledger);
}

#[test]
fn api_02_unordered_answers_leave_as_they_come_but_never_across_a_mark() {
    for mark in [wm(2), Mark::Barrier(1), Mark::Idle, Mark::Active] {
        let desk = Desk::default();
        let (mut run, seen, _) = run!(around(mark), Calls::unordered(8), desk);
        assert!(run.run().is_none());
        for id in [3, 2] {
            desk.succeed(id);
            assert!(run.run().is_none());
        }
        assert_eq!(*seen.borrow(), [Left::Result(2)]);
        desk.succeed(1);
        assert!(run.run().is_none());
        let before = [Left::Result(2), Left::Result(1), Left::Mark(mark), Left::Result(3)];
        assert_eq!(*seen.borrow(), before);
        desk.succeed(4);
        assert_balanced(&run.run().unwrap().unwrap());
        assert_eq!(seen.borrow()[4..], [Left::Result(4), END]);
    }
}

#[test]
fn api_02_no_more_calls_at_once_than_the_concurrency() {
    for calls in [Calls::ordered(2), Calls::unordered(2)] {
        let desk = Desk::default();
        let (mut run, seen, ledger) =
            run!(DataStream::from_stream(stream::iter(1..=4)), calls, desk);
        assert!(run.run().is_none());
        assert_eq!(desk.attempts(), [1, 2]);
        assert_eq!((ledger.read().held, ledger.read().received), (2, 2));
        // What waits for its turn still counts, or the memory would not be bounded.
        desk.succeed(1);
        assert!(run.run().is_none());
        assert_eq!(desk.attempts(), [1, 2, 3]);
        desk.fail(3);
        desk.succeed(2);
        assert!(run.run().is_none());
        desk.succeed(4);
        assert_balanced(&run.run().unwrap().unwrap());
        assert_eq!(seen.borrow().len(), 5);
    }
}

#[test]
fn api_02_a_failed_call_is_tried_again_after_a_pause() {
    let desk = Desk::default();
    let pause = Duration::from_millis(100);
    let calls =
        Calls::ordered(4).timer(desk.timer()).retry(Retry::at_most(3).after(pause).doubling());
    let (mut run, seen, ledger) = run!(DataStream::from_stream(stream::iter([1, 2])), calls, desk);
    assert!(run.run().is_none());
    desk.fail(1);
    desk.succeed(2);
    assert!(run.run().is_none());
    assert_eq!(desk.timers(), [pause]);
    assert_eq!((desk.attempts(), ledger.read().held), (vec![1, 2], 2));
    desk.ring(0);
    assert!(run.run().is_none());
    desk.fail(1);
    assert!(run.run().is_none());
    assert_eq!(desk.timers(), [pause * 2]);
    desk.ring(0);
    assert!(run.run().is_none());
    assert_eq!(desk.attempts(), [1, 2, 1, 1]);
    assert!(seen.borrow().is_empty());
    desk.fail(1);
    assert_balanced(&run.run().unwrap().unwrap());
    assert_eq!(*seen.borrow(), [Left::Failure(1), Left::Result(2), END]);
}

#[test]
fn api_02_a_policy_may_look_at_the_error() {
    let desk = Desk::default();
    let policy = |error: &String, attempts: u32| {
        (error == "error 2" && attempts < 2).then_some(Duration::ZERO)
    };
    let calls = Calls::unordered(4).timer(desk.timer()).retry(policy);
    let (mut run, seen, _) = run!(DataStream::from_stream(stream::iter([1, 2])), calls, desk);
    assert!(run.run().is_none());
    desk.fail(1);
    desk.fail(2);
    assert!(run.run().is_none());
    assert_eq!(*seen.borrow(), [Left::Failure(1)]);
    desk.ring(0);
    assert!(run.run().is_none());
    desk.succeed(2);
    assert!(run.run().unwrap().is_ok());
    assert_eq!(seen.borrow()[1..], [Left::Result(2), END]);
}

#[test]
fn api_02_a_record_without_an_answer_in_time_is_an_output_and_its_call_is_dropped() {
    let desk = Desk::default();
    let (timeout, pause) = (Duration::from_secs(5), Duration::from_secs(1));
    let calls = Calls::unordered(4)
        .timer(desk.timer())
        .timeout(timeout)
        .retry(Retry::at_most(9).after(pause));
    let (mut run, seen, _) = run!(DataStream::from_stream(stream::iter([1, 2, 3])), calls, desk);
    assert!(run.run().is_none());
    assert_eq!(desk.timers(), [timeout; 3]);
    desk.fail(2);
    assert!(run.run().is_none());
    desk.ring(0);
    assert!(run.run().is_none());
    assert_eq!(*seen.borrow(), [Left::Timeout(1)]);
    assert!(!desk.is_waited_for(1) && desk.is_waited_for(3));
    // All attempts and pauses together: it is in a pause.
    assert_eq!(desk.timers(), [timeout, timeout, pause]);
    desk.ring(0);
    assert!(run.run().is_none());
    assert_eq!(seen.borrow()[1..], [Left::Timeout(2)]);
    // An answer in the last moment has come; what is left of the call goes.
    desk.ring(0);
    desk.succeed(3);
    assert!(run.run().unwrap().is_ok());
    assert_eq!(seen.borrow()[2..], [Left::Result(3), END]);
    assert!(desk.timers().is_empty());
}

#[test]
fn api_02_an_error_of_the_input_comes_after_the_answers() {
    let desk = Desk::default();
    let input = DataStream::from_try_stream(stream::iter([Ok(1), Err("torn"), Ok(2)]));
    let (mut run, seen, ledger) = run!(input, Calls::ordered(4), desk);
    assert!(run.run().is_none());
    desk.succeed(1);
    assert_eq!(run.run().unwrap().unwrap_err().to_string(), "the stream failed: torn");
    assert_eq!(*seen.borrow(), [Left::Result(1)]);
    assert_balanced(&ledger.read());
}

#[test]
fn api_02_a_panic_is_an_error_and_its_record_has_failed() {
    async fn panics(id: u32) -> Answer {
        assert_ne!(id, 3, "a call");
        std::future::ready(Ok(String::new())).await
    }
    let whole = |id: &u32| panics(*id);
    let before = |id: &u32| {
        assert_ne!(*id, 3, "before the call");
        std::future::ready(Ok::<_, String>(String::new()))
    };
    for function in [true, false] {
        let input = DataStream::from_stream(stream::iter(1..6));
        let calls = Calls::ordered(2);
        let (ledger, error) = if function {
            let streams = input.map_async(calls, before);
            let ledger = streams.ledger_handle();
            (ledger, block_on(streams.results.for_each(drop)).unwrap_err())
        } else {
            let streams = input.map_async(calls, whole);
            let ledger = streams.ledger_handle();
            (ledger, block_on(streams.results.for_each(drop)).unwrap_err())
        };
        assert!(error.to_string().starts_with("a function of the stream panicked"), "{error}");
        let ledger = ledger.read();
        assert_eq!(ledger.failed, 1);
        assert_balanced(&ledger);
    }
}

#[test]
fn api_02_a_run_that_is_dropped_drops_its_calls() {
    let desk = Desk::default();
    let (mut run, seen, ledger) =
        run!(DataStream::from_stream(stream::iter(1..=4)), Calls::ordered(3), desk);
    assert!(run.run().is_none());
    drop(run);
    assert!((1..=3).all(|id| !desk.is_waited_for(id)));
    assert!(seen.borrow().is_empty());
    assert_balanced(&ledger.read());
}

#[test]
fn api_02_answers_go_on_to_windows_and_nothing_is_late_because_a_call_is_slow() {
    let desk = Desk::default();
    let (input, elements) = unbounded();
    let AnsweredStreams { results, failures, timeouts } =
        DataStream::from_elements(elements).map_async(Calls::unordered(8), desk.call());
    failures.discard();
    timeouts.discard();
    let counts = results
        .window_all(Tumbling::of(Duration::from_millis(10)))
        .side_output_late_data()
        .aggregate(Count::new());
    let WindowStreams { results, late } = counts;
    let mut reading = Task::new(async move {
        futures::join!(
            results.map(|count| count.value).collect::<Vec<_>>(),
            late.collect::<Vec<_>>(),
        )
    });
    for element in [at(1), at(2), Element::Mark(wm(15)), at(16)] {
        input.unbounded_send(element).unwrap();
    }
    drop(input);
    assert!(reading.run().is_none());
    for id in [16, 2, 1] {
        desk.succeed(id);
    }
    let (counts, late) = reading.run().unwrap();
    assert_eq!((counts, late.len()), (vec![2, 1], 0));
}

/// A call that is ready at once, or after it has let others go first, waits for nobody.
#[test]
fn api_02_calls_that_wake_themselves_come_to_an_end() {
    async fn rests(n: u32) -> Result<u32, ()> {
        for _ in 0..n % 7 {
            let mut rested = false;
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if std::mem::replace(&mut rested, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        Ok(n)
    }
    for calls in [Calls::ordered(5), Calls::unordered(5), Calls::ordered(2000)] {
        let ordered = format!("{calls:?}").contains("ordered: true");
        let input = DataStream::from_stream(stream::iter(0..3000));
        let AnsweredStreams { results, failures, timeouts } = input.map_async(calls, |n| rests(*n));
        failures.discard();
        timeouts.discard();
        let mut read = block_on(results.map(|(n, _)| n).collect::<Vec<_>>());
        if !ordered {
            read.sort_unstable();
        }
        assert!(read.into_iter().eq(0..3000));
    }
}

#[test]
#[should_panic(expected = "the number of calls at once must be at least 1")]
fn api_02_no_call_at_once_is_a_mistake() {
    _ = Calls::ordered(0);
}

/// What the reference is told.
#[derive(Clone, Copy, Debug)]
enum Input {
    Record,
    Mark(i64),
}

/// How the n-th of the calls that are underway ends.
#[derive(Clone, Copy, Debug)]
enum How {
    Answer,
    Fail,
    TimeOut,
}

/// The same in a few lines: a list of records and marks, from which leaves what may.
struct Reference {
    ordered: bool,
    concurrency: usize,
    input: std::vec::IntoIter<Input>,
    next: u32,
    /// Records with their ends, by the order in which those came; and marks.
    line: Vec<(Left, Option<usize>)>,
    ends: usize,
    left: Vec<Left>,
}

impl Reference {
    fn waiting(&self) -> Vec<u32> {
        let open = self.line.iter().filter(|(_, end)| end.is_none());
        open.filter_map(|(left, _)| if let Left::Result(id) = left { Some(*id) } else { None })
            .collect()
    }

    fn end(&mut self, id: u32, left: Left) {
        let entry = self.line.iter_mut().find(|(entry, _)| *entry == Left::Result(id)).unwrap();
        *entry = (left, Some(self.ends));
        self.ends += 1;
    }

    fn settle(&mut self) {
        loop {
            let is_mark = |(left, _): &(Left, Option<usize>)| matches!(left, Left::Mark(_));
            let segment = self.line.iter().position(is_mark).unwrap_or(self.line.len());
            let among = if self.ordered { segment.min(1) } else { segment };
            let done = self.line[..among].iter().enumerate().filter(|(_, (_, end))| end.is_some());
            let first = done.min_by_key(|(_, (_, end))| *end).map(|(index, _)| index);
            if let Some(index) = first {
                self.left.push(self.line.remove(index).0);
            } else if segment == 0 && !self.line.is_empty() {
                self.left.push(self.line.remove(0).0);
            } else {
                let calls = self.line.iter().filter(|entry| !is_mark(entry)).count();
                if calls == self.concurrency {
                    return;
                }
                match self.input.next() {
                    Some(Input::Record) => {
                        self.line.push((Left::Result(self.next), None));
                        self.next += 1;
                    }
                    Some(Input::Mark(n)) => self.line.push((Left::Mark(wm(n)), None)),
                    None => return,
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn api_02_it_agrees_with_the_reference(
        ordered in proptest::bool::ANY,
        concurrency in 1_usize..5,
        input in prop::collection::vec(
            prop_oneof![3 => Just(Input::Record), 1 => (0_i64..9).prop_map(Input::Mark)],
            0..24,
        ),
        ends in prop::collection::vec(
            (0_usize..8, prop_oneof![Just(How::Answer), Just(How::Fail), Just(How::TimeOut)]),
            24,
        ),
    ) {
        let desk = Desk::default();
        let mut ids = 0..;
        let elements: Vec<_> = input
            .iter()
            .map(|input| match input {
                Input::Record => Element::Record { value: ids.next().unwrap(), at: None },
                Input::Mark(n) => Element::Mark(wm(*n)),
            })
            .collect();
        let calls = if ordered { Calls::ordered(concurrency) } else { Calls::unordered(concurrency) };
        let calls = calls.timer(desk.timer()).timeout(Duration::from_secs(1));
        let source = DataStream::from_elements(stream::iter(elements));
        let (mut run, seen, ledger) = run!(source, calls, desk);
        let mut reference = Reference {
            ordered,
            concurrency,
            input: input.into_iter().chain([Input::Mark(i64::MAX)]).collect::<Vec<_>>().into_iter(),
            next: 0,
            line: Vec::new(),
            ends: 0,
            left: Vec::new(),
        };
        let mut ended = run.run();
        reference.settle();
        for (nth, how) in ends {
            prop_assert_eq!(&*seen.borrow(), &reference.left);
            let waiting = reference.waiting();
            if waiting.is_empty() {
                break;
            }
            prop_assert!(ended.is_none());
            prop_assert!(ledger.read().held <= concurrency as u64);
            prop_assert!(ledger.read().is_balanced());
            let nth = nth % waiting.len();
            let id = waiting[nth];
            match how {
                How::Answer => desk.succeed(id),
                How::Fail => desk.fail(id),
                // The deadlines of those that wait, in the order in which they were set.
                How::TimeOut => desk.ring(nth),
            }
            reference.end(id, match how {
                How::Answer => Left::Result(id),
                How::Fail => Left::Failure(id),
                How::TimeOut => Left::Timeout(id),
            });
            ended = run.run();
            reference.settle();
        }
        prop_assert_eq!(&*seen.borrow(), &reference.left);
        prop_assert!(ended.unwrap().unwrap().is_balanced());
    }
}
