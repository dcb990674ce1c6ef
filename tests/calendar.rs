//! Windows by the calendar of a place and by the clock on the wall: the cases WIN-08 and WIN-10.

use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{Assigner, Count, EventTime, KeyedContext, KeyedProcess, TestClock};
use std::task::{Context as TaskContext, Poll};

/// Records of one second of processing time, counted.
struct BySecond;

#[splitter]
enum Counts {
    #[main]
    Count(u32),
}

impl KeyedProcess for BySecond {
    type Key = ();
    type In = char;
    type State = u32;
    type Out = Counts;

    fn on_record(
        &mut self,
        _: char,
        count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counts> {
        *count += 1;
        let now = cx.now().expect("a clock").as_millis();
        cx.set_processing_timer(Timestamp::from_millis(now - now.rem_euclid(1000) + 1000));
        None::<Counts>
    }

    fn on_processing_timer(
        &mut self,
        _at: Timestamp,
        count: &mut u32,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counts> {
        Counts::Count(std::mem::take(count))
    }
}

#[test]
fn win_08_the_clock_alone_closes_a_window() {
    let clock = TestClock::at(Timestamp::from_millis(250));
    let CountsStreams { mut count } =
        DataStream::from_stream(stream::iter(['x']).chain(stream::pending()))
            .key_by(|_: &char| ())
            .process_with_clock(BySecond, clock.clone());
    let (waker, woken) = futures_test::task::new_count_waker();
    let mut cx = TaskContext::from_waker(&waker);
    assert_eq!(count.poll_next_unpin(&mut cx), Poll::Pending);
    clock.set(Timestamp::from_millis(999));
    assert_eq!((count.poll_next_unpin(&mut cx), woken.get()), (Poll::Pending, 0));
    clock.set(Timestamp::from_millis(1000));
    assert_eq!(woken.get(), 1);
    assert_eq!(count.poll_next_unpin(&mut cx), Poll::Ready(Some(1)));
}

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The days since 1970 on which New York changed its clocks in 2013: 10 March and 3 November.
const CHANGES: [i64; 2] = [15_774, 16_012];

/// When a day of 2013 began in New York, in seconds. The clocks change after midnight.
fn midnight(day: i64) -> i64 {
    let summer = CHANGES[0] < day && day <= CHANGES[1];
    day * DAY + if summer { 4 * HOUR } else { 5 * HOUR }
}

/// Days of New York, or weeks that begin on its Mondays.
#[derive(Clone, Copy)]
enum NewYork {
    Days,
    Weeks,
}

impl Assigner for NewYork {
    type Windows = std::iter::Once<Window>;
    type Trigger = EventTime;

    const DISJOINT: bool = true;

    fn assign(&self, at: Timestamp) -> Self::Windows {
        let seconds = at.as_millis().div_euclid(1000);
        let winter = (seconds - 5 * HOUR).div_euclid(DAY);
        let day = if seconds >= midnight(winter + 1) { winter + 1 } else { winter };
        let (first, days) = match self {
            Self::Days => (day, 1),
            // 1970-01-01 was a Thursday.
            Self::Weeks => (day - (day + 3).rem_euclid(7), 7),
        };
        let start = Timestamp::from_secs(midnight(first));
        std::iter::once(Window::new(start, Timestamp::from_secs(midnight(first + days))))
    }
}

/// The first day and the count of each window over one record an hour, from day to day.
fn hours(windows: NewYork, days: std::ops::Range<i64>) -> Vec<(i64, u64)> {
    let hours = (midnight(days.start)..midnight(days.end)).step_by(3600);
    let counts = DataStream::from_stream(stream::iter(hours))
        .assign_timestamps(|second: &i64| Timestamp::from_secs(*second), Watermarks::monotonous())
        .window_all(windows)
        .drop_late_data()
        .aggregate(Count::new())
        .map(|count| (count.window.start().as_millis() / 1000 / DAY, count.value));
    let mut all = Vec::new();
    block_on(counts.for_each(|count| all.push(count))).unwrap();
    all
}

#[test]
fn win_10_days_and_weeks_of_a_place_are_as_long_as_its_clocks_say() {
    // March from the 1st, and November from the 1st, to the end of the month.
    for (change, length, month) in
        [(CHANGES[0], 23, 15_765..15_796), (CHANGES[1], 25, 16_010..16_040)]
    {
        let days = hours(NewYork::Days, month.clone());
        assert_eq!(days.len(), month.clone().count());
        for (day, count) in days {
            assert_eq!(count, if day == change { length } else { 24 }, "day {day}");
        }
        // Full weeks: from a Monday before the month to a Monday behind it.
        let monday = |day: i64| day - (day + 3).rem_euclid(7);
        let weeks = hours(NewYork::Weeks, monday(month.start)..monday(month.end + 6));
        assert!(weeks.len() >= 5);
        for (first, count) in weeks {
            let changes = (first..first + 7).contains(&change);
            assert_eq!(count, if changes { 144 + length } else { 168 }, "week of day {first}");
        }
    }
}
