//! Barriers, idleness, held records and timers at the end. Tests carry the ids of the faults.

mod bare;
mod common;

use self::bare::{Bare, Lines, Seen, at};
use self::common::OneByOne;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::future::join;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use futures_test::future::FutureTestExt as _;
use side_output::operator::{Broadcast, KeyedBroadcast, KeyedCo, Operator, Reconcile};
use side_output::prelude::*;
use side_output::stream::Source;
use side_output::{
    AtEnd, BroadcastContext, BroadcastProcess, Configuration, ContinuousEventTime, Count, Either,
    Element, Global, KeyedBroadcastContext, KeyedBroadcastProcess, KeyedContext, KeyedProcess,
    Mark, Pane, TestClock, Trigger, TriggerContext, Tumbling, Verdict, Watermarks, Window,
    WindowResult,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

fn barrier<T>(id: u64) -> Element<T> {
    Element::Mark(Mark::Barrier(id))
}

fn elements<T: Send + 'static>(elements: impl IntoIterator<Item = Element<T>>) -> DataStream<T> {
    DataStream::from_elements(stream::iter(elements.into_iter().collect::<Vec<_>>()))
}

/// All there is, in order.
fn all<T, Src: Source<T>>(stream: DataStream<T, Src>) -> Vec<Element<T>> {
    block_on(stream.elements().map(Result::unwrap).collect())
}

/// Records and barriers as text, in order; other marks are left out.
fn texts<T: ToString, Src: Source<T>>(stream: DataStream<T, Src>) -> Vec<String> {
    let text = |element| match element {
        Element::Record { value, .. } => Some(T::to_string(&value)),
        Element::Mark(Mark::Barrier(id)) => Some(format!("barrier {id}")),
        Element::Mark(_) => None,
    };
    all(stream).into_iter().filter_map(text).collect()
}

/// Notes what it gets; letters configure it.
struct Note;

impl BroadcastProcess for Note {
    type In = u32;
    type Update = char;
    type Config = char;
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u32,
        config: &char,
        _cx: &mut BroadcastContext<Lines>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{config}{record}"))
    }

    fn on_update(
        &mut self,
        update: char,
        config: &mut Configuration<char>,
        _cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        config.replace(update);
        Lines::main(update)
    }

    fn on_unconfigured(&mut self, record: u32, _cx: &mut Context<Lines>) -> impl Routes<Lines> {
        Lines::main(format!("?{record}"))
    }

    fn hold_back(&self) -> usize {
        10
    }
}

#[test]
fn fault_33_a_higher_barrier_counts_as_the_lower_ones() {
    let one = || elements([barrier(1), Element::record(1, at(1)), barrier(2)]);
    let two = || elements([Element::record(2, at(1)), barrier(2), Element::record(3, at(1))]);
    assert_eq!(texts(one().union(two())), ["2", "barrier 1", "1", "barrier 2", "3"]);
    assert_eq!(texts(two().union(one())), ["2", "barrier 1", "1", "barrier 2", "3"]);
    let show = |number: u32, _: &mut Context<Lines>| Lines::main(number);
    let streams = one().connect(two()).process_with(show, show);
    streams.side.discard();
    streams.note.discard();
    assert_eq!(texts(streams.main), ["2", "barrier 1", "1", "barrier 2", "3"]);
}

#[test]
fn fault_33_an_input_that_has_ended_has_sent_every_barrier() {
    let long = || elements([barrier(1), barrier(2), Element::record(1, at(1)), barrier(4)]);
    let short = || elements([Element::record(2, at(1)), barrier(1)]);
    let expected = ["2", "barrier 1", "barrier 2", "1", "barrier 4"];
    assert_eq!(texts(long().union(short())), expected);
    let show = |number: u32, _: &mut Context<Lines>| Lines::main(number);
    let streams = long().connect(short()).process_with(show, show);
    streams.side.discard();
    streams.note.discard();
    assert_eq!(texts(streams.main), expected);
}

#[test]
fn fault_33_no_barrier_passes_before_the_input_that_is_read_last_has_sent_it() {
    let config = elements([
        Element::record('a', at(1)),
        barrier(1),
        Element::record('b', at(1)),
        barrier(2),
    ]);
    let records = elements([
        Element::record(1, at(1)),
        barrier(1),
        Element::record(2, at(1)),
        barrier(2),
        barrier(3),
    ]);
    let streams = records.connect_broadcast(config).config_first().process(Note);
    streams.side.discard();
    streams.note.discard();
    let expected = ["a", "b", "b1", "barrier 1", "b2", "barrier 2", "barrier 3"];
    assert_eq!(texts(streams.main), expected);
}

/// Passes records on.
struct Pass;

impl KeyedProcess for Pass {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u32,
        (): &mut (),
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::main(record)
    }
}

#[test]
fn fault_19_a_barrier_behind_the_end_of_time_passes_the_partitions() {
    let input =
        stream::iter([Element::watermark(Timestamp::MAX), barrier(1), Element::record(7, at(1))]);
    // All of it comes at once, so that partitions have ended when their barriers are looked at.
    let input = async { input }.pending_once().flatten_stream();
    let streams = DataStream::from_elements(input)
        .key_by(|record: &u32| *record)
        .parallel(3)
        .process(|| Pass);
    streams.side.discard();
    streams.note.discard();
    let ledger = streams.main.ledger_handle().expect("an operator");
    assert_eq!(texts(streams.main), ["barrier 1", "7"]);
    assert!(ledger.read().is_balanced(), "{:?}", ledger.read());
}

#[test]
fn fault_34_a_strategy_has_an_idleness_of_its_own() {
    let input = || {
        elements([
            Element::record(1, at(1)),
            Element::Mark(Mark::Idle),
            Element::Mark(Mark::Active),
            Element::watermark(Timestamp::MAX),
            Element::watermark(Timestamp::MAX),
        ])
    };
    let stamp = |_: &u32| at(10);
    let expected =
        [Element::record(1, at(10)), Element::watermark(at(9)), Element::watermark(Timestamp::MAX)];
    let plain = input().assign_timestamps(stamp, Watermarks::monotonous());
    assert_eq!(all(plain), expected);
    let (timeout, clock) = (Duration::from_secs(1), TestClock::at(at(0)));
    let idle = Watermarks::monotonous().with_idleness(timeout, clock.clone());
    assert_eq!(all(input().assign_timestamps(stamp, idle)), expected);
    let bounded = Watermarks::monotonous().max_future_skew(timeout, clock);
    let streams = input().assign_timestamps(stamp, bounded);
    streams.future_skew.discard();
    assert_eq!(all(streams.records), expected);
}

#[test]
fn fault_34_a_window_that_its_evictor_emptied_has_no_final_result() {
    let windows = || {
        elements([Element::record(1, at(1)), Element::watermark(at(9))])
            .window_all(Tumbling::of(Duration::from_millis(10)))
            .allowed_lateness(Duration::from_millis(10))
            .with_final_panes()
            .keep_last(0)
            .drop_late_data()
    };
    let expected = [(0, Pane::OnTime)];
    let count = |(): &(), _: Window, records: &[u32]| records.len();
    let results = windows().apply(count).map(|result| (result.value, result.pane));
    assert_eq!(block_on(results.collect::<Vec<_>>()), expected);
    let results = windows().trigger(OneByOne).apply(count);
    let results = results.map(|result| (result.value, result.pane));
    assert_eq!(block_on(results.collect::<Vec<_>>()), expected);
}

/// A stream that has its next record after it was asked so many times, and at once.
fn asked(records: std::ops::Range<u32>, times: u32) -> impl Stream<Item = u32> + Send {
    let (mut records, mut asked) = (records, 0);
    stream::poll_fn(move |cx| {
        if asked < times {
            asked += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        asked = 0;
        Poll::Ready(records.next())
    })
}

#[test]
fn fault_28_a_busy_reader_makes_no_input_idle() {
    let second = Duration::from_secs(1);
    let stamp = |second: &u32| Timestamp::from_secs(i64::from(*second));
    for times in 0..5 {
        let clock = TestClock::at(at(0));
        let strategy = Watermarks::monotonous().with_idleness(10 * second, clock.clone());
        let input = DataStream::from_stream(asked(0..20, times)).assign_timestamps(stamp, strategy);
        let ahead = DataStream::from_stream(stream::iter([5000]).chain(stream::pending()))
            .assign_timestamps(stamp, Watermarks::monotonous());
        let mut records = input.union(ahead).elements();
        for expected in 0..20 {
            loop {
                let element = block_on(records.next()).expect("a record").expect("no error");
                match element {
                    Element::Record { value: 5000, .. } => {}
                    Element::Record { value, .. } => {
                        assert_eq!(value, expected);
                        break;
                    }
                    Element::Mark(Mark::Watermark(time)) => assert!(time < at(20_000), "{time}"),
                    Element::Mark(mark) => panic!("{mark:?} of an input that has records"),
                }
            }
            clock.advance(60 * second);
        }
    }
}

#[test]
fn fault_28_time_does_not_advance_over_records_that_a_busy_reader_has_not_asked_for() {
    let second = Duration::from_secs(1);
    let stamp = |second: &u32| Timestamp::from_secs(i64::from(*second));
    for times in 0..5 {
        let clock = TestClock::at(at(0));
        let mut records = DataStream::from_stream(asked(0..20, times))
            .assign_timestamps(stamp, Watermarks::monotonous())
            .advance_when_idle(10 * second, clock.clone())
            .elements();
        let mut watermark = Timestamp::MIN;
        while let Some(element) = block_on(records.next()) {
            match element.expect("no error") {
                Element::Record { at, .. } => {
                    assert!(at > Some(watermark), "{at:?} is late at {watermark}");
                    clock.advance(60 * second);
                }
                Element::Mark(Mark::Watermark(time)) => watermark = time,
                Element::Mark(_) => {}
            }
        }
        assert_eq!(watermark, Timestamp::MAX);
    }
}

#[test]
fn fault_28_an_input_without_records_is_idle_however_often_it_wakes_its_reader() {
    let second = Duration::from_secs(1);
    let clock = TestClock::at(at(0));
    let wakes = Arc::new(Mutex::new(Waker::noop().clone()));
    let stored = Arc::clone(&wakes);
    let silent = stream::poll_fn(move |cx| {
        stored.lock().unwrap().clone_from(cx.waker());
        Poll::<Option<u32>>::Pending
    });
    let strategy = Watermarks::monotonous().with_idleness(10 * second, clock.clone());
    let mut records =
        DataStream::from_stream(silent).assign_timestamps(|_| at(0), strategy).elements();
    let mut cx = task::Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(records.poll_next_unpin(&mut cx).is_pending());
        clock.advance(5 * second);
        wakes.lock().unwrap().wake_by_ref();
    }
    let element = records.poll_next_unpin(&mut cx).map(|element| element.unwrap().unwrap());
    assert_eq!(element, Poll::Ready(Element::Mark(Mark::Idle)));
}

#[test]
fn fault_32_at_the_end_of_a_clocks_time_everything_waits() {
    let second = Duration::from_secs(1);
    let stamp = |second: &u32| Timestamp::from_secs(i64::from(*second));
    let input = || DataStream::from_stream(stream::iter([1, 2]).chain(stream::pending()));
    for behind in [0, 1, 500, 1000, 2000] {
        let clock = TestClock::at(Timestamp::MAX.saturating_sub_millis(behind));
        let mut stamped = input().stamp_with_clock(clock.clone(), second).elements();
        let mut advanced = input()
            .assign_timestamps(stamp, Watermarks::monotonous())
            .advance_when_idle(second, clock.clone())
            .elements();
        let strategy = Watermarks::monotonous().with_idleness(second, clock.clone());
        let mut idle = input().assign_timestamps(stamp, strategy).elements();
        let streams =
            input().key_by(|record: &u32| *record).process_with_clock(Beat, clock.clone());
        streams.side.discard();
        streams.note.discard();
        let mut beats = streams.main.elements();
        // Each stands still after a while, and does not wake its reader.
        let woken = Woken::new();
        for _ in 0..2 {
            let waker = Waker::from(Arc::clone(&woken));
            let mut cx = task::Context::from_waker(&waker);
            let mut most = 100;
            while stamped.poll_next_unpin(&mut cx).is_ready()
                || advanced.poll_next_unpin(&mut cx).is_ready()
                || idle.poll_next_unpin(&mut cx).is_ready()
                || beats.poll_next_unpin(&mut cx).is_ready()
            {
                most -= 1;
                assert!(most > 0, "it goes on for ever");
            }
            woken.reset();
            assert!(stamped.poll_next_unpin(&mut cx).is_pending());
            assert!(advanced.poll_next_unpin(&mut cx).is_pending());
            assert!(idle.poll_next_unpin(&mut cx).is_pending());
            assert!(beats.poll_next_unpin(&mut cx).is_pending());
            assert!(!woken.is_set(), "it wakes itself for ever");
            clock.set(Timestamp::MAX);
        }
    }
}

/// Emits a beat every second of a clock.
struct Beat;

impl KeyedProcess for Beat {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        _record: u32,
        _beats: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        cx.set_processing_timer(cx.now().unwrap() + Duration::from_secs(1));
        None::<Lines>
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        beats: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        *beats += 1;
        cx.set_processing_timer(at + Duration::from_secs(1));
        Lines::main(*beats)
    }
}

/// A waker that notes that it was called.
struct Woken(AtomicBool);

impl Woken {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(false)))
    }

    fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The same function, keyed.
struct NoteByKey;

impl KeyedBroadcastProcess for NoteByKey {
    type Key = u32;
    type In = u32;
    type Update = char;
    type Config = char;
    type State = ();
    type Out = Lines;

    fn on_record(
        &mut self,
        record: u32,
        config: &char,
        (): &mut (),
        _cx: &mut KeyedBroadcastContext<Self>,
    ) -> impl Routes<Lines> {
        Lines::main(format!("{config}{record}"))
    }

    fn on_update(
        &mut self,
        update: char,
        config: &mut Configuration<char>,
        cx: &mut Context<Lines>,
    ) -> impl Routes<Lines> {
        Note.on_update(update, config, cx).into_vec()
    }

    fn on_unconfigured(&mut self, record: u32, cx: &mut Context<Lines>) -> impl Routes<Lines> {
        Note.on_unconfigured(record, cx).into_vec()
    }

    fn hold_back(&self) -> usize {
        Note.hold_back()
    }
}

/// Runs `check` with the operator of a [`Note`], and with that of a [`NoteByKey`].
macro_rules! both {
    ($check:ident) => {
        $check(Bare::new(Broadcast::new(Note)));
        $check(Bare::new(KeyedBroadcast::new(|record: &u32| *record, NoteByKey)));
    };
}

#[test]
fn fault_29_no_watermark_and_no_idleness_passes_held_records() {
    fn check(mut op: Bare<impl Operator<In = Either<u32, char>, Out = Lines>>) {
        let route = |text: &str, at: i64| Seen::Route(Lines::main(text), at);
        op.watermark(5).record(Either::Left(1), 10).watermark(20);
        op.mark(Mark::Idle).mark(Mark::Barrier(1)).watermark(30);
        assert_eq!(op.out.seen, [Seen::Watermark(5), Seen::Other(Mark::Barrier(1))]);
        op.out.seen.clear();
        // Nobody downstream was told of the idleness that ends here.
        op.mark(Mark::Active).record(Either::Left(2), 11);
        assert_eq!(op.out.seen, []);
        op.mark(Mark::Idle).record(Either::Right('a'), 40);
        let released = [route("a", 40), route("a1", 10), route("a2", 11)];
        assert_eq!(op.out.seen[..3], released);
        assert_eq!(op.out.seen[3..], [Seen::Watermark(30), Seen::Other(Mark::Idle)]);
        op.out.seen.clear();
        op.mark(Mark::Active).mark(Mark::Idle);
        assert_eq!(op.out.seen, [Seen::Other(Mark::Active), Seen::Other(Mark::Idle)]);
    }
    both!(check);
}

#[test]
fn fault_29_a_held_record_is_not_late_where_its_stream_is_united_with_another() {
    let (config, configs) = mpsc::unbounded();
    let (record, records) = mpsc::unbounded();
    let streams = DataStream::from_elements(records)
        .connect_broadcast(DataStream::from_elements(configs))
        .process(Note);
    streams.side.discard();
    streams.note.discard();
    let ahead = [Element::record("other".to_owned(), at(5000)), Element::watermark(at(5000))];
    let ahead = DataStream::from_elements(stream::iter(ahead).chain(stream::pending()));
    let mut united = streams.main.boxed().union(ahead).elements();
    let mut read = || {
        let mut seen = Vec::new();
        while let Some(element) = united.next().now_or_never() {
            seen.push(element.expect("no end").expect("no error"));
        }
        seen
    };
    record.unbounded_send(Element::record(1, at(10))).unwrap();
    record.unbounded_send(Element::Mark(Mark::Idle)).unwrap();
    config.unbounded_send(Element::Mark(Mark::Idle)).unwrap();
    assert_eq!(read(), [Element::record("other".to_owned(), at(5000))]);
    config.unbounded_send(Element::record('a', at(20))).unwrap();
    let released =
        [Element::record("a".to_owned(), at(20)), Element::record("a1".to_owned(), at(10))];
    assert_eq!(read(), released);
    config.unbounded_send(Element::Mark(Mark::Idle)).unwrap();
    assert_eq!(read(), [Element::watermark(at(5000))]);
}

#[test]
fn fault_29_records_that_wait_for_their_match_are_not_left_behind_by_idleness() {
    let within = Duration::from_millis(10);
    let by_key = |record: &(u32, i64)| record.0;
    let mut op = Bare::new(KeyedCo::new(by_key, by_key, Reconcile::new(within)));
    op.record(Either::Left((1, 10)), 10).mark(Mark::Idle);
    assert_eq!(op.out.seen, []);
    op.mark(Mark::Active).watermark(100).mark(Mark::Idle);
    assert_eq!(op.out.seen[1..], [Seen::Watermark(90), Seen::Other(Mark::Idle)]);
}

#[test]
fn fault_30_held_records_flow_when_the_configuration_has_ended_without_one() {
    fn check(mut op: Bare<impl Operator<In = Either<u32, char>, Out = Lines>>) {
        op.record(Either::Left(1), 10).watermark(20);
        op.input_end(0);
        assert_eq!(op.texts(), [""; 0]);
        op.input_end(1);
        assert_eq!(op.out.seen, [Seen::Route(Lines::main("?1"), 10), Seen::Watermark(20)]);
        op.out.seen.clear();
        // There is nothing to wait for.
        assert_eq!(op.record(Either::Left(2), 30).texts(), ["?2"]);
    }
    both!(check);
    for config in [vec![], vec![Element::watermark(at(15))]] {
        let records = elements([Element::record(1, at(10)), Element::record(2, at(20))]);
        let streams = DataStream::from_elements(
            stream::iter([Element::record(0, at(5))]).chain(stream::pending()),
        )
        .union(records)
        .connect_broadcast(elements(config))
        .process(Note);
        streams.side.discard();
        streams.note.discard();
        let ledger = streams.main.ledger_handle().expect("an operator");
        // The records never end.
        let texts: Vec<_> = block_on(streams.main.take(3).collect());
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|text| text.starts_with('?')), "{texts:?}");
        assert_eq!((ledger.read().held, ledger.read().is_balanced()), (0, true));
    }
}

/// A timer that sets itself again by a minute, so often at most.
struct Minutes(u32, AtEnd);

impl KeyedProcess for Minutes {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Lines;

    fn on_record(
        &mut self,
        _record: u32,
        _minutes: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        cx.set_timer(cx.timestamp().unwrap_or_default() + Duration::from_mins(1));
        cx.set_timer(Timestamp::MAX);
        None::<Lines>
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        minutes: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Lines> {
        if at == Timestamp::MAX {
            return Lines::side(*minutes);
        }
        *minutes += 1;
        if *minutes < self.0 {
            cx.set_timer(at + Duration::from_mins(1));
        }
        Lines::main(*minutes)
    }

    fn timers_at_end(&self) -> AtEnd {
        self.1
    }
}

fn minutes(most: u32, at_end: AtEnd) -> (Result<u32, StreamError>, Ledger) {
    let input = [
        Element::record(1, at(0)),
        Element::watermark(at(200_000)),
        Element::record(2, at(250_000)),
    ];
    let streams = elements(input).key_by(|record: &u32| *record).process(Minutes(most, at_end));
    streams.note.discard();
    let ledger = streams.main.ledger_handle().expect("an operator");
    let (mut count, mut ends) = (0, 0);
    let (main, side) =
        (streams.main.for_each(|_| count += 1), streams.side.for_each(|_| ends += 1));
    let (end, _) = block_on(join(main, side));
    let end = end.map(|()| assert_eq!(ends, 2));
    (end.map(|()| count), ledger.read())
}

#[test]
fn fault_31_timers_that_never_stop_are_an_error_at_the_end() {
    for renewals in [10, 1000] {
        let (end, ledger) = minutes(u32::MAX, AtEnd::Fire { renewals });
        let error = end.unwrap_err().to_string();
        assert!(error.contains("faults_time::Minutes") && error.contains("Lines"), "{error}");
        assert!(error.contains(&renewals.to_string()), "{error}");
        assert!(ledger.is_balanced(), "{ledger:?}");
        // Three minutes had passed for the first key before the end; then both keys go on.
        assert_eq!(ledger.fired, u64::from(3 + 2 * renewals));
    }
    let (end, ledger) = minutes(u32::MAX, AtEnd::default());
    assert!(end.unwrap_err().to_string().contains("100000"), "{ledger:?}");
}

#[test]
fn fault_31_timers_that_stop_fire_at_the_end_or_are_dropped_and_counted() {
    let (end, ledger) = minutes(13, AtEnd::Fire { renewals: 12 });
    assert_eq!((end.unwrap(), ledger.timers_dropped), (26, 0));
    // Key 1 has set 10 of its timers at the end, and key 2 has set 12.
    assert!(minutes(13, AtEnd::Fire { renewals: 11 }).0.is_err());
    let (end, ledger) = minutes(u32::MAX, AtEnd::Drop);
    assert_eq!((end.unwrap(), ledger.timers_dropped), (3, 2));
    assert!(ledger.is_balanced() && ledger.to_string().contains("2 timers dropped"), "{ledger}");
}

/// Fires again and again.
struct Again;

impl Trigger<u32> for Again {
    type State = ();

    fn on_record(
        &mut self,
        _: &u32,
        at: Timestamp,
        (): &mut (),
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        cx.register_timer(at + Duration::from_mins(1));
        Verdict::Continue
    }

    fn on_timer(&mut self, at: Timestamp, (): &mut (), cx: &mut TriggerContext<'_>) -> Verdict {
        cx.register_timer(at + Duration::from_mins(1));
        Verdict::Fire
    }
}

#[test]
fn fault_31_periodic_triggers_end_with_their_input() {
    let input = || elements([Element::record(1, at(1000)), Element::watermark(at(25_000))]);
    let ten_seconds = ContinuousEventTime::every(Duration::from_secs(10));
    let read = |results: DataStream<WindowResult<(), u64>>| {
        let ledger = results.ledger_handle().expect("an operator");
        let panes: Vec<_> = block_on(results.map(|result| result.pane).collect());
        assert!(ledger.read().is_balanced(), "{:?}", ledger.read());
        (panes, ledger.read().timers_dropped)
    };
    let early = |count: u32| (1..=count).map(Pane::Early).collect::<Vec<_>>();
    let all = input().window_all(Global).trigger(ten_seconds).drop_late_data();
    let all = all.aggregate(Count::new()).boxed();
    assert_eq!(read(all), ([early(2), vec![Pane::OnTime]].concat(), 0));
    let day = |at_end| {
        let day = input().window_all(Tumbling::of(Duration::from_hours(24)));
        let day = day.trigger(ten_seconds).timers_at_end(at_end).drop_late_data();
        day.aggregate(Count::new()).boxed()
    };
    // As in Flink.
    assert_eq!(read(day(AtEnd::default())), ([early(8639), vec![Pane::OnTime]].concat(), 0));
    assert_eq!(read(day(AtEnd::Drop)), ([early(2), vec![Pane::OnTime]].concat(), 1));
    let again = input().window_all(Global).trigger(Again).drop_late_data();
    let end = block_on(again.aggregate(Count::new()).for_each(drop));
    assert!(end.unwrap_err().to_string().contains("faults_time::Again"));
}

#[test]
fn fault_35_processing_timers_that_are_left_at_the_end_are_counted() {
    let clock = TestClock::at(at(0));
    let input = DataStream::from_stream(stream::iter([1, 2, 2]));
    let streams = input.key_by(|record: &u32| *record).process_with_clock(Beat, clock);
    streams.side.discard();
    streams.note.discard();
    let ledger = streams.main.ledger_handle().expect("an operator");
    assert_eq!(block_on(streams.main.count()), 0);
    let ledger = ledger.read();
    assert_eq!((ledger.timers_left, ledger.held, ledger.is_balanced()), (2, 2, true));
    assert!(ledger.to_string().contains("2 left"), "{ledger}");
}
