//! Windows and late data.

use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _, future, stream};
use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use side_output::operator::{Operator, Turn, Windows};
use side_output::output::{Account, Single};
use side_output::prelude::*;
use side_output::{
    Assigner, Calendar, Collect, ContinuousEventTime, Count, Element, EventTime, EveryCount, Mark,
    Purging, TestClock,
};
use std::task::Poll;
use std::time::Duration;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn window(start: i64, end: i64) -> Window {
    Window::new(at(start), at(end))
}

/// Records are their own timestamps; `w(t)` is a watermark.
#[derive(Clone, Copy)]
enum Step {
    R(i64),
    W(i64),
}
use Step::{R, W};

fn script(steps: &[Step]) -> DataStream<i64> {
    let elements: Vec<_> = steps
        .iter()
        .map(|step| match *step {
            R(time) => Element::record(time, at(time)),
            W(time) => Element::watermark(at(time)),
        })
        .collect();
    DataStream::from_elements(stream::iter(elements))
}

/// A window, its records, and which of its results it is.
type Said = (Window, Vec<i64>, Pane);

/// What windows say of a script, and what was late.
fn run<A: Assigner>(assigner: A, lateness: u64, steps: &[Step]) -> (Vec<Said>, Vec<i64>)
where
    A::Trigger: side_output::window::TriggerOf<i64, A::Merging>,
{
    let WindowStreams { results, late } = script(steps)
        .window_all(assigner)
        .allowed_lateness(millis(lateness))
        .side_output_late_data()
        .apply(|(), _, records: &[i64]| records.to_vec());
    let results = results.map(|result| (result.window, result.value, result.pane)).collect();
    block_on(future::join(results, late.map(|late| late.value).collect()))
}

#[test]
fn win_01_with_lateness_sessions_of_one_key_never_overlap() {
    let gap = || Session::with_gap(millis(5));
    let steps = [R(0), W(6), R(3), W(20)];
    // A session that has fired and is gone cannot be joined. The record's own session, [3, 8), is
    // not over at watermark 6, so it opens one, as the trace `session-late-beyond-lateness` has it:
    // with no allowed lateness sessions of one key can overlap. Allowed lateness is what prevents it.
    let (results, late) = run(gap(), 0, &steps);
    assert_eq!(
        results,
        [(window(0, 5), vec![0], Pane::OnTime), (window(3, 8), vec![3], Pane::OnTime),]
    );
    assert!(late.is_empty());

    let (results, late) = run(gap(), 10, &steps);
    assert_eq!(
        results,
        [
            (window(0, 5), vec![0], Pane::OnTime),
            // It replaces [0, 5), which lies within its window.
            (window(0, 8), vec![0, 3], Pane::Late(1)),
        ]
    );
    assert!(late.is_empty());
}

#[test]
fn win_02_a_late_record_never_changes_a_later_session() {
    let steps = [R(0), W(20), R(30), R(1), W(100)];
    let (results, late) = run(Session::with_gap(millis(5)), 0, &steps);
    let windows: Vec<_> =
        results.iter().map(|(window, records, _)| (*window, records.len())).collect();
    assert_eq!(windows, [(window(0, 5), 1), (window(30, 35), 1)]);
    assert_eq!(late, [1]);
}

#[test]
fn win_03_a_record_between_two_sessions_makes_them_one() {
    let steps = [R(0), R(15), W(5), R(8), W(100)];
    let (results, late) = run(Session::with_gap(millis(10)), 0, &steps);
    assert_eq!(results, [(window(0, 25), vec![0, 15, 8], Pane::OnTime)]);
    assert!(late.is_empty());
}

#[test]
fn win_03_results_do_not_depend_on_batching() {
    let elements: Vec<_> = (0..1000i64)
        .map(|n| (n * 7919) % 5000 + n)
        .flat_map(|time| [Element::record(time, at(time)), Element::watermark(at(time - 900))])
        .collect();
    in_batches(&elements, || Session::with_gap(millis(10)));
    in_batches(&elements, || Sliding::of(millis(100)).every(millis(30)));
}

#[track_caller]
fn in_batches<A, F>(elements: &[Element<i64>], assigner: F)
where
    A: Assigner + Send + 'static,
    A::Trigger: side_output::window::TriggerOf<i64, A::Merging, State: Send> + Send + 'static,
    F: Fn() -> A,
{
    let outputs: Vec<Vec<_>> = [1, 7, 1000]
        .into_iter()
        .map(|batch| {
            let chunks: Vec<Vec<_>> = elements.chunks(batch).map(<[_]>::to_vec).collect();
            let pieces = stream::iter(chunks).flat_map(|chunk| {
                // Not ready before each batch.
                stream::once(async {
                    futures_test::future::FutureTestExt::pending_once(future::ready(())).await;
                })
                .flat_map(move |()| stream::iter(chunk.clone()))
            });
            let results = DataStream::from_elements(pieces)
                .window_all(assigner())
                .allowed_lateness(millis(50))
                .drop_late_data()
                .aggregate(Count::new());
            block_on(results.collect())
        })
        .collect();
    assert!(outputs[0].len() > 10);
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}

#[test]
fn win_04_windows_before_1970_start_before_their_records() {
    let second = Tumbling::of(millis(1000));
    for (time, start) in [(-1500, -2000), (-1, -1000), (0, 0)] {
        assert!(second.assign(at(time)).eq([window(start, start + 1000)]));
    }
    assert!(second.offset_millis(300).assign(at(-1)).eq([window(-700, 300)]));
    assert!(second.offset_millis(-700).assign(at(-1)).eq([window(-700, 300)]));
}

#[test]
fn win_05_the_ends_of_time_neither_wrap_nor_panic() {
    let extremes = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX];
    for size in [1, 1000, i64::MAX.unsigned_abs()] {
        for time in extremes {
            let windows: Vec<_> = Tumbling::of(millis(size)).assign(at(time)).collect();
            assert_eq!(windows.len(), 1);
            assert!(windows[0].contains(at(time)), "{time} in {:?}", windows[0]);
            assert!(Session::with_gap(millis(size)).assign(at(time)).all(|w| w.contains(at(time))));
        }
        let steps: Vec<_> = extremes.map(R).to_vec();
        for lateness in [0, i64::MAX.unsigned_abs()] {
            let (results, late) = run(Tumbling::of(millis(size)), lateness, &steps);
            assert_eq!(results.iter().map(|(_, records, _)| records.len()).sum::<usize>(), 5);
            // The lowest instant is no timestamp.
            assert_eq!(late, [i64::MIN]);
            let (results, _) = run(Session::with_gap(millis(size)), lateness, &steps);
            assert_eq!(results.iter().map(|(_, records, _)| records.len()).sum::<usize>(), 5);
            let slide = millis(size.div_ceil(3));
            let sliding = Sliding::of(millis(size)).every(slide);
            let (results, _) = run(sliding, lateness, &steps);
            assert!(results.len() >= 3);
            // The same from slices that they share.
            let counts = script(&steps)
                .window_all(sliding)
                .allowed_lateness(millis(lateness))
                .drop_late_data()
                .aggregate(Count::new());
            let counts: Vec<_> = block_on(counts.map(|c| (c.window, c.value, c.pane)).collect());
            let lengths =
                results.iter().map(|(window, all, pane)| (*window, all.len() as u64, *pane));
            assert!(lengths.eq(counts));
        }
    }
}

#[test]
fn win_06_every_result_says_which_it_is() {
    let steps = [R(1), R(2), W(9), R(3), W(29), R(4)];
    let (results, late) = run(Tumbling::of(millis(10)), 20, &steps);
    assert_eq!(
        results,
        [(window(0, 10), vec![1, 2], Pane::OnTime), (window(0, 10), vec![1, 2, 3], Pane::Late(1)),]
    );
    assert_eq!(late, [4]);

    // What is new since the last result.
    let deltas = script(&steps)
        .window_all(Tumbling::of(millis(10)))
        .allowed_lateness(millis(20))
        .trigger(Purging(EventTime))
        .drop_late_data()
        .aggregate(Count::new());
    let deltas: Vec<_> = block_on(deltas.map(|delta| (delta.value, delta.pane)).collect());
    assert_eq!(deltas, [(2, Pane::OnTime), (1, Pane::Late(1))]);
}

#[test]
fn win_06_a_final_mark_for_those_who_ask_for_it() {
    let steps = [R(1), R(2), W(9), R(3), W(28), W(29), R(4), R(31)];
    let counts = |trigger| {
        script(&steps)
            .window_all(Tumbling::of(millis(10)))
            .allowed_lateness(millis(20))
            .with_final_panes()
            .trigger(trigger)
            .drop_late_data()
            .aggregate(Count::new())
            .map(|result| (result.window.start(), result.value, result.pane))
    };
    let expected = [
        (at(0), 2, Pane::OnTime),
        (at(0), 3, Pane::Late(1)),
        (at(0), 3, Pane::Final),
        (at(30), 1, Pane::OnTime),
        (at(30), 1, Pane::Final),
    ];
    assert_eq!(block_on(counts(EventTime).collect::<Vec<_>>()), expected);

    // The same from windows that have a trigger of their own, each with its timers.
    let general = script(&steps)
        .window_all(Tumbling::of(millis(10)))
        .trigger(ContinuousEventTime::every(millis(100)))
        .allowed_lateness(millis(20))
        .with_final_panes()
        .drop_late_data()
        .aggregate(Count::new());
    let panes: Vec<_> = block_on(general.map(|result| (result.value, result.pane)).collect());
    assert_eq!(panes.iter().filter(|(_, pane)| *pane == Pane::Final).count(), 2);
    assert!(panes.contains(&(3, Pane::Final)));

    // What was purged is not said again.
    let deltas = script(&steps)
        .window_all(Tumbling::of(millis(10)))
        .allowed_lateness(millis(20))
        .with_final_panes()
        .trigger(Purging(EventTime))
        .drop_late_data()
        .aggregate(Count::new());
    let deltas: Vec<_> = block_on(deltas.map(|delta| (delta.value, delta.pane)).collect());
    assert_eq!(deltas, [(2, Pane::OnTime), (1, Pane::Late(1)), (1, Pane::OnTime)]);
}

#[test]
fn win_06_final_panes_yield_too() {
    let mut operator = Windows::new(Tumbling::of(millis(1000)))
        .with_final_panes()
        .drop_late_data()
        .aggregate(|key: &u32| *key, Count::new());
    let mut out = Counting::default();
    for key in 0..1000 {
        hand(&mut operator, key, 5, &mut out);
    }
    let mut turns = 1;
    while !fire(&mut operator, at(999), 64, &mut out) {
        assert!(out.routes <= turns * 64);
        turns += 1;
    }
    assert_eq!((out.routes, out.account.fired, operator.windows_kept()), (2000, 2000, 0));
}

/// Keeps the results.
#[derive(Default)]
struct Results(Vec<(u32, Window, u64, Pane)>);

impl Collect<Single<WindowResult<u32, u64>>> for Results {
    fn emit(&mut self, Single(result): Single<WindowResult<u32, u64>>, _at: Timestamp) {
        self.0.push((result.key, result.window, result.value, result.pane));
    }
    fn mark(&mut self, _mark: Mark) {}
}

#[test]
fn win_06_large_windows_that_share_slices_yield_too() {
    const KEYS: u32 = 10_000;
    const ROOM: usize = 64;
    fn results<Op>(mut operator: Op) -> Vec<(u32, Window, u64, Pane)>
    where
        Op: Operator<In = u32, Out = Single<WindowResult<u32, u64>>>,
    {
        let (mut out, mut account) = (Results::default(), Account::new());
        // Slices are [900, 1000), [1000, 1200) and so on. The later ones come first, with other
        // keys in front, and not every key comes to each.
        for (slice, time) in (0..).zip([1500, 900, 1300, 1000, 1200]) {
            for record in (0..KEYS).filter(|record| record % 5 != slice) {
                let key = (record + slice * 3000) % KEYS;
                Turn::new(&mut out, &mut account, 1).record(&mut operator, key, at(time)).unwrap();
            }
        }
        let mut mark = |operator: &mut Op, watermark| {
            let (mut before, mut turns) = (out.0.len(), 1);
            let mark = Mark::Watermark(watermark);
            while !Turn::new(&mut out, &mut account, ROOM).mark(operator, mark).unwrap() {
                assert!(out.0.len() - before <= ROOM);
                before = out.0.len();
                turns += 1;
            }
            turns
        };
        assert!(mark(&mut operator, at(1599)) > 2 * KEYS as usize / ROOM);
        // Everything is freed, and that takes turns too.
        assert!(mark(&mut operator, Timestamp::MAX) > 4 * KEYS as usize / ROOM);
        assert_eq!(operator.held(), 0);
        out.0
    }
    let windows = || {
        Windows::new(Sliding::of(millis(1000)).every(millis(300)))
            .allowed_lateness(millis(500))
            .with_final_panes()
            .drop_late_data()
    };
    let key = |record: &u32| *record;
    let shared = results(windows().aggregate(key, Count::new()));
    let apart = results(windows().apply(key, |_, _, records: &[u32]| records.len() as u64));
    assert!(shared == apart, "the same in the same order");
    assert!(shared.len() > 10 * KEYS as usize);
}

#[test]
fn win_07_the_origin_may_be_far_away() {
    let year_one = -62_135_596_800_000;
    let steps = [R(1_704_067_200_000), R(1_704_067_200_001), R(1_704_067_200_002)];
    let expected = run(Tumbling::of(millis(1)), 0, &steps);
    assert_eq!(expected.0.len(), 3);
    for origin in [year_one, 0, 1_704_067_200_000] {
        assert_eq!(run(Tumbling::of(millis(1)).offset_millis(origin), 0, &steps), expected);
    }
}

#[test]
fn win_08_a_due_window_is_said_without_further_input() {
    let clock = TestClock::at(at(1_000_000));
    let events = stream::iter(["event"]).chain(stream::pending());
    let mut results = DataStream::from_stream(events)
        .stamp_with_clock(clock.clone(), millis(1000))
        .window_all(Tumbling::of(millis(1000)))
        .drop_late_data()
        .aggregate(Count::new());
    let (waker, woken) = futures_test::task::new_count_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(results.poll_next_unpin(&mut cx).is_pending());
    clock.advance(millis(999));
    assert_eq!(woken.get(), 0, "nothing is due");
    assert!(results.poll_next_unpin(&mut cx).is_pending());
    clock.advance(millis(1));
    assert_eq!(woken.get(), 1, "the clock wakes the reader");
    let Poll::Ready(Some(result)) = results.poll_next_unpin(&mut cx) else {
        panic!("the window is over");
    };
    assert_eq!((result.window, result.value), (window(1_000_000, 1_001_000), 1));
    // It goes on, once for each period.
    assert!(results.poll_next_unpin(&mut cx).is_pending());
    clock.advance(millis(1000));
    assert!(woken.get() > 1);
    assert!(results.poll_next_unpin(&mut cx).is_pending());
}

#[test]
fn win_08_a_clock_that_goes_back_takes_no_time_back() {
    let clock = TestClock::at(at(5_500));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut elements =
        DataStream::from_stream(receiver).stamp_with_clock(clock.clone(), millis(1000)).elements();
    let (waker, woken) = futures_test::task::new_count_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut poll = |elements: &mut side_output::stream::Elements<_, _>| {
        let mut seen = Vec::new();
        while let Poll::Ready(Some(element)) = elements.poll_next_unpin(&mut cx) {
            seen.push(element.unwrap());
        }
        seen
    };
    sender.unbounded_send('a').unwrap();
    let first = [Element::watermark(at(4_999)), Element::record('a', at(5_500))];
    assert_eq!(poll(&mut elements), first);
    clock.set(at(-7_000));
    sender.unbounded_send('b').unwrap();
    assert_eq!(poll(&mut elements), [Element::record('b', at(5_500))]);
    // The alarm rings, and by the time somebody looks the clock was set back again.
    let before = woken.get();
    clock.set(at(6_000));
    assert!(woken.get() > before);
    clock.set(at(5_800));
    assert_eq!(poll(&mut elements), []);
    let before = woken.get();
    clock.set(at(6_000));
    assert!(woken.get() > before, "an alarm that rang too early is set again");
    assert_eq!(poll(&mut elements), [Element::watermark(at(5_999))]);
    drop(sender);
    assert_eq!(poll(&mut elements), [Element::watermark(Timestamp::MAX)]);
}

#[test]
fn win_08_time_from_a_clock_replaces_time_from_upstream() {
    let clock = TestClock::at(at(10));
    let upstream = [
        Element::watermark(at(70)),
        Element::Mark(Mark::Idle),
        Element::record('a', at(99)),
        Element::Mark(Mark::Barrier(1)),
    ];
    let elements = DataStream::from_elements(stream::iter(upstream))
        .stamp_with_clock(clock, millis(4))
        .elements();
    assert_eq!(
        block_on(elements.map(Result::unwrap).collect::<Vec<_>>()),
        [
            Element::watermark(at(7)),
            Element::record('a', at(10)),
            Element::Mark(Mark::Barrier(1)),
            Element::watermark(Timestamp::MAX),
        ]
    );
}

#[test]
fn win_09_hours_are_stretches_of_absolute_time() {
    // The day on which the clocks of Chicago go back: 2022-11-06, 05:00 UTC to 06:00 UTC next day.
    let start = 1_667_710_800;
    let minutes = (0..25 * 60).map(move |minute| start + minute * 60);
    let hours = DataStream::from_stream(stream::iter(minutes))
        .assign_timestamps(|s| Timestamp::from_secs(*s), Watermarks::monotonous())
        .window_all(Tumbling::of(Duration::from_hours(1)))
        .drop_late_data()
        .aggregate(Count::new());
    let hours: Vec<_> = block_on(hours.collect());
    assert_eq!(hours.len(), 25);
    assert!(hours.iter().all(|hour| hour.value == 60));
    assert!(hours.windows(2).all(|pair| pair[0].window.end() == pair[1].window.start()));
}

/// An hour each, from the first day of a month in New York to the first of the next, in UTC.
fn hours_of(from: &str, to: &str) -> Vec<i64> {
    let second = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
    (second(from)..second(to)).step_by(3600).collect()
}

/// How many hours each window holds, with the local date on which it starts.
fn count_hours(hours: Vec<i64>, unit: fn(Date) -> (Date, Date)) -> Vec<(Date, u64)> {
    let zone = TimeZone::get("America/New_York").unwrap();
    let local = zone.clone();
    let civil = move |at: Timestamp| {
        let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap();
        instant.to_zoned_datetime(local.clone()).date()
    };
    let date = civil.clone();
    let calendar = Calendar::new(move |at| {
        let (first, next) = unit(date(at));
        let midnight = |date: Date| {
            let start = date.to_zoned_datetime(zone.clone()).unwrap();
            Timestamp::from_millis(start.timestamp().as_millisecond())
        };
        Window::new(midnight(first), midnight(next))
    });
    let counts = DataStream::from_stream(stream::iter(hours))
        .assign_timestamps(|s| Timestamp::from_secs(*s), Watermarks::monotonous())
        .window_all(calendar)
        .drop_late_data()
        .aggregate(Count::new());
    block_on(counts.map(|count| (civil(count.window.start()), count.value)).collect())
}

fn day(day: Date) -> (Date, Date) {
    (day, day.tomorrow().unwrap())
}

/// Weeks start on Sunday.
fn week(day: Date) -> (Date, Date) {
    let into = i64::from(day.weekday().to_sunday_zero_offset());
    let first = day.saturating_sub(into.days());
    (first, first.saturating_add(7.days()))
}

#[test]
fn win_10_days_and_weeks_of_a_calendar_are_as_long_as_the_zone_says() {
    let march = || hours_of("2013-03-01T05:00:00Z", "2013-04-01T04:00:00Z");
    let november = || hours_of("2013-11-01T04:00:00Z", "2013-12-01T05:00:00Z");
    for (hours, days, change, length) in
        [(march(), 31, date(2013, 3, 10), 23), (november(), 30, date(2013, 11, 3), 25)]
    {
        let counted = count_hours(hours, day);
        assert_eq!(counted.len(), days);
        for (day, hours) in counted {
            assert_eq!(hours, if day == change { length } else { 24 }, "{day}");
        }
    }
    for (hours, change, length) in
        [(march(), date(2013, 3, 10), 167), (november(), date(2013, 11, 3), 169)]
    {
        let counted = count_hours(hours, week);
        // The first and the last week are not all of the month's.
        let full = &counted[1..counted.len() - 1];
        assert!(full.iter().any(|(first, _)| *first == change));
        for (first, hours) in full {
            assert_eq!(*hours, if *first == change { length } else { 168 }, "{first}");
        }
    }
}

#[test]
fn win_10_fixed_windows_do_not_follow_the_zone() {
    let hours = hours_of("2013-03-01T05:00:00Z", "2013-04-01T04:00:00Z");
    let offset = 5 * 3_600_000;
    let days = DataStream::from_stream(stream::iter(hours))
        .assign_timestamps(|s| Timestamp::from_secs(*s), Watermarks::monotonous())
        .window_all(Tumbling::of(Duration::from_hours(24)).offset_millis(offset))
        .drop_late_data()
        .aggregate(Count::new());
    let days: Vec<u64> = block_on(days.map(|day| day.value).collect());
    assert_eq!((days.len(), days[9], days[30]), (31, 24, 23));
}

/// Counts what an operator emits.
#[derive(Default)]
struct Counting {
    routes: usize,
    marks: Vec<Mark>,
    account: Account,
}

impl<S> Collect<S> for Counting {
    fn emit(&mut self, _route: S, _at: Timestamp) {
        self.routes += 1;
    }
    fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }
}

/// Hands a record to an operator.
fn hand<Op: Operator>(operator: &mut Op, record: Op::In, millis: i64, out: &mut Counting) {
    let mut account = out.account;
    Turn::new(&mut *out, &mut account, 1).record(operator, record, at(millis)).unwrap();
    out.account = account;
}

/// Lets an operator fire by about `room` routes; whether it is done with the watermark.
fn fire<Op: Operator>(
    operator: &mut Op,
    watermark: Timestamp,
    room: usize,
    out: &mut Counting,
) -> bool {
    let mut account = out.account;
    let mark = Mark::Watermark(watermark);
    let done = Turn::new(&mut *out, &mut account, room).mark(operator, mark).unwrap();
    out.account = account;
    done
}

#[test]
fn win_11_firing_yields_and_goes_on() {
    let mut operator = Windows::new(Tumbling::of(millis(1000)))
        .drop_late_data()
        .aggregate(|key: &u32| *key, Count::new());
    let mut out = Counting::default();
    for key in 0..100_000 {
        hand(&mut operator, key, 5, &mut out);
    }
    let mut turns = 0;
    loop {
        turns += 1;
        let before = out.routes;
        let done = fire(&mut operator, Timestamp::MAX, 512, &mut out);
        assert!(out.routes - before <= 512);
        if done {
            break;
        }
        assert!(out.marks.is_empty(), "the watermark overtook its results");
    }
    assert_eq!(out.routes, 100_000);
    assert!(turns >= 195);
    assert_eq!(out.marks.len(), 1);
    assert_eq!(operator.windows_kept(), 0);
}

#[test]
fn win_11_other_tasks_run_while_windows_fire() {
    let records: Vec<_> = (0..100_000i64).map(|key| Element::record(key, at(5))).collect();
    let results = DataStream::from_elements(stream::iter(records))
        .key_by(|key| *key)
        .window(Tumbling::of(millis(1000)))
        .drop_late_data()
        .aggregate(Count::new());
    let mut polls = 0;
    let other = future::poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let mut seen = 0;
    block_on(future::select(Box::pin(results.for_each(|_| seen += 1)), other));
    assert_eq!(seen, 100_000);
    assert!(polls > 3, "{polls}");
}

#[test]
fn win_12_results_carry_their_bounds_and_key() {
    let results = script(&[R(0), R(700_000)])
        .key_by(|_| "k")
        .window(Tumbling::of(millis(1_200_000)))
        .drop_late_data()
        .aggregate(Count::new());
    let results: Vec<_> = block_on(results.collect());
    assert_eq!(
        results,
        [WindowResult { key: "k", window: window(0, 1_200_000), value: 2, pane: Pane::OnTime }]
    );
}

#[test]
fn keys_fire_in_the_order_in_which_they_came() {
    let names = ["zoe", "ann", "bob", "ann", "eve"];
    let records: Vec<_> = names.map(|name| Element::record(name, at(5))).to_vec();
    let results = DataStream::from_elements(stream::iter(records))
        .key_by(|name| *name)
        .window(Tumbling::of(millis(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let keys: Vec<_> = block_on(results.map(|result| result.key).collect());
    assert_eq!(keys, ["zoe", "ann", "bob", "eve"]);
}

#[test]
fn early_results_are_counted() {
    let results = script(&[R(1), W(2), R(3), W(4), W(9)])
        .window_all(Tumbling::of(millis(10)))
        .trigger(ContinuousEventTime::every(millis(2)))
        .drop_late_data()
        .aggregate(Count::new());
    let panes: Vec<_> = block_on(results.map(|result| (result.value, result.pane)).collect());
    assert_eq!(panes[0], (1, Pane::Early(1)));
    assert_eq!(panes[1], (2, Pane::Early(2)));
    assert_eq!(panes.last(), Some(&(2, Pane::OnTime)));
}

#[test]
fn the_last_records_are_kept() {
    let results = script(&[R(1), R(2), R(3), W(9)])
        .window_all(Tumbling::of(millis(10)))
        .keep_last(2)
        .drop_late_data()
        .apply(|(), _, records| records.to_vec());
    assert_eq!(block_on(results.map(|result| result.value).collect::<Vec<_>>()), [[2, 3]]);
}

/// Counts the firings of each key, three at most.
struct Firings;

impl WindowProcess for Firings {
    type Key = ();
    type In = i64;
    type State = u32;
    type KeyState = u32;
    type Out = Single<(u32, u32, usize, Timestamp)>;

    fn process(
        &mut self,
        (): &(),
        records: &[i64],
        cx: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Self::Out> {
        *cx.state() += 1;
        *cx.key_state().get_or_insert_default() += 1;
        let all = cx.key_state().unwrap_or(0);
        if all == 3 {
            *cx.key_state() = None;
        }
        Single((*cx.state(), all, records.len(), cx.watermark()))
    }
}

#[test]
fn functions_have_state_of_the_window_and_of_the_key() {
    let steps = [R(1), W(9), R(2), R(11), W(19), R(21), W(29)];
    let fired = script(&steps)
        .window_all(Tumbling::of(millis(10)))
        .allowed_lateness(millis(5))
        .drop_late_data()
        .process(Firings);
    assert_eq!(
        block_on(fired.collect::<Vec<_>>()),
        [(1, 1, 1, at(9)), (2, 2, 2, at(9)), (1, 3, 1, at(19)), (1, 1, 1, at(29)),]
    );
}

#[test]
fn dropped_late_records_are_counted() {
    let results = script(&[W(100), R(1), R(2), R(101)])
        .window_all(Tumbling::of(millis(10)))
        .drop_late_data()
        .aggregate(Count::new());
    let ledger = results.ledger_handle().unwrap();
    assert_eq!(block_on(results.count()), 1);
    let ledger = ledger.read();
    assert_eq!((ledger.received, ledger.late, ledger.unrouted, ledger.fired), (3, 2, 3, 1));
    assert!(ledger.is_balanced());
}

#[test]
fn a_record_without_a_timestamp_is_late_and_says_so() {
    let WindowStreams { results, late } = DataStream::from_stream(stream::iter([1]))
        .window_all(Tumbling::of(millis(10)))
        .side_output_late_data()
        .aggregate(Count::new());
    results.discard();
    let late: Vec<Late<i32>> = block_on(late.collect());
    assert_eq!(late[0].to_string(), "without a timestamp; `assign_timestamps` gives it one");
}

#[test]
fn boxed_window_streams_name_only_what_they_carry() {
    let streams: WindowStreams<(), u64, i64> = script(&[R(1)])
        .window_all(Tumbling::of(millis(10)))
        .side_output_late_data()
        .aggregate(Count::new())
        .boxed();
    streams.late.discard();
    assert_eq!(block_on(streams.results.count()), 1);
}

#[test]
fn state_of_a_million_keys_is_freed_at_cleanup_time() {
    const KEYS: u32 = 1_000_000;
    let mut out = Counting::default();
    let mut finish = |operator: &mut dyn FnMut(Timestamp, &mut Counting) -> bool, mark| {
        while !operator(at(mark), &mut out) {}
    };

    let mut tumbling = Windows::new(Tumbling::of(millis(1000)))
        .allowed_lateness(millis(500))
        .drop_late_data()
        .aggregate(|key: &u32| *key, Count::new());
    let mut nowhere = Counting::default();
    for key in 0..KEYS {
        hand(&mut tumbling, key, 7, &mut nowhere);
    }
    let mut drive = |mark, out: &mut Counting| fire(&mut tumbling, mark, 4096, out);
    finish(&mut drive, 999);
    finish(&mut drive, 1498);
    assert_eq!(tumbling.windows_kept(), KEYS as usize);
    let mut drive = |mark, out: &mut Counting| fire(&mut tumbling, mark, 4096, out);
    finish(&mut drive, 1499);
    assert_eq!(tumbling.windows_kept(), 0);

    let mut sessions = Windows::new(Session::with_gap(millis(1000)))
        .drop_late_data()
        .aggregate(|key: &u32| *key, Count::new());
    for key in 0..KEYS / 10 {
        hand(&mut sessions, key, 7, &mut nowhere);
    }
    assert_eq!(sessions.windows_kept(), KEYS as usize / 10);
    let mut drive = |mark, out: &mut Counting| fire(&mut sessions, mark, 4096, out);
    finish(&mut drive, 1005);
    finish(&mut drive, 1006);
    assert_eq!(sessions.windows_kept(), 0);
    assert_eq!(out.routes, KEYS as usize + KEYS as usize / 10);
}

#[test]
fn a_count_trigger_merges_with_its_sessions() {
    let results = script(&[R(0), R(15), R(8)])
        .window_all(Session::with_gap(millis(10)))
        .trigger(EveryCount::new(3))
        .drop_late_data()
        .aggregate(Count::new());
    let results: Vec<_> = block_on(results.map(|result| (result.window, result.value)).collect());
    assert_eq!(results, [(window(0, 25), 3)]);
}

#[test]
fn nothing_is_ready_before_a_watermark() {
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut results = DataStream::from_elements(receiver)
        .window_all(Tumbling::of(millis(10)))
        .drop_late_data()
        .aggregate(Count::new());
    sender.unbounded_send(Element::record(1, at(1))).unwrap();
    assert!(results.next().now_or_never().is_none());
    sender.unbounded_send(Element::watermark(at(9))).unwrap();
    assert!(results.next().now_or_never().is_some());
}

/// The last number that came.
struct Last;

impl Aggregate for Last {
    type In = i64;
    type Accumulator = i64;
    type Output = i64;

    const IN_ORDER: bool = true;

    fn create(&mut self) -> i64 {
        0
    }

    fn add(&mut self, last: &mut i64, number: &i64) {
        *last = *number;
    }

    fn merge(&mut self, last: &mut i64, other: i64) {
        *last = other;
    }

    fn result(&mut self, last: &i64) -> i64 {
        *last
    }
}

#[test]
fn in_overlapping_windows_the_last_record_is_the_last_that_came() {
    let windows = || {
        script(&[R(25), R(5), R(15)])
            .window_all(Sliding::of(millis(30)).every(millis(10)))
            .drop_late_data()
    };
    let mut reduced = Vec::new();
    block_on(windows().reduce(|last: &mut i64, next| *last = next).for_each(|result| {
        reduced.push((result.window, result.value));
    }))
    .unwrap();
    assert_eq!(reduced[2], (window(0, 30), 15));
    let last = windows().aggregate(Last);
    let last: Vec<_> = block_on(last.map(|result| (result.window, result.value)).collect());
    assert_eq!(last, reduced);
}
