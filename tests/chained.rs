//! Stateful steps in a row: what one emits is on time for the next. The case TIME-12.

mod common;

use common::Rng;
use futures::executor::block_on;
use futures::{stream, try_join};
use side_output::prelude::*;
use side_output::{Count, Match, ReconciliationStreams};
use std::collections::BTreeMap;
use std::time::Duration;

/// Key and time in milliseconds.
type Row = (u32, i64);

const WITHIN: i64 = 2000;
const BOUND: i64 = 5000;
const WINDOW: i64 = 10_000;
const GAP: i64 = 15_000;

fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// Rows out of order, but never by more than the bound.
fn rows(seed: u64) -> Vec<Row> {
    let mut rng = Rng(seed);
    let mut below = |bound| i64::try_from(rng.below(bound)).unwrap();
    (0..5000).map(|n| (u32::try_from(below(40)).unwrap(), n * 400 - below(5000))).collect()
}

fn timed(rows: &[Row]) -> DataStream<Row> {
    DataStream::from_stream(stream::iter(rows.to_vec()))
        .assign_timestamps(
            |row: &Row| Timestamp::from_millis(row.1),
            Watermarks::bounded_out_of_orderness(millis(BOUND)),
        )
        .boxed()
}

/// The rows of an outer join: the times of matches, and of what has none.
fn joined(left: &[Row], right: &[Row]) -> Vec<Row> {
    let near = |a: &Row, b: &Row| a.0 == b.0 && (a.1 - b.1).abs() <= WITHIN;
    let mut rows = Vec::new();
    for one in left {
        let matches = right.iter().filter(|other| near(one, other));
        let before = rows.len();
        rows.extend(matches.map(|other| (one.0, one.1.max(other.1))));
        if rows.len() == before {
            rows.push(*one);
        }
    }
    rows.extend(right.iter().filter(|one| !left.iter().any(|other| near(one, other))));
    rows
}

/// Sessions of the windows of rows: key, start, end, rows.
fn sessions(rows: &[Row]) -> Vec<(u32, i64, i64, u64)> {
    let mut windows: BTreeMap<(u32, i64), u64> = BTreeMap::new();
    for (key, time) in rows {
        // A window speaks at its last instant.
        *windows.entry((*key, time.div_euclid(WINDOW) * WINDOW + WINDOW - 1)).or_default() += 1;
    }
    let mut sessions: Vec<(u32, i64, i64, u64)> = Vec::new();
    for ((key, time), count) in windows {
        match sessions.last_mut() {
            Some(last) if last.0 == key && time <= last.2 => {
                last.2 = time + GAP;
                last.3 += count;
            }
            _ => sessions.push((key, time, time + GAP, count)),
        }
    }
    sessions
}

#[test]
fn time_12_a_join_windows_and_sessions_lose_nothing() {
    let (left, right) = (rows(12), rows(21));
    let ReconciliationStreams { matched, unmatched_left, unmatched_right, late_left, late_right } =
        timed(&left)
            .key_by(|row: &Row| row.0)
            .reconcile(timed(&right).key_by(|row: &Row| row.0), millis(WITHIN));
    let latest = |both: Match<Row, Row>| (both.left.0, both.left.1.max(both.right.1));
    let rows = matched.map(latest).boxed().union([unmatched_left.boxed(), unmatched_right.boxed()]);
    let WindowStreams { results, late } = rows
        .key_by(|row: &Row| row.0)
        .window(Tumbling::of(millis(WINDOW)))
        .side_output_late_data()
        .aggregate(Count::new());
    let WindowStreams { results: sessions_found, late: late_counts } = results
        .map(|count| (count.key, count.value))
        .key_by(|count: &(u32, u64)| count.0)
        .window(Session::with_gap(millis(GAP)))
        .side_output_late_data()
        .reduce(|sum: &mut (u32, u64), next| sum.1 += next.1);

    let mut found = Vec::new();
    let lost = block_on(async {
        let ((), left, right, rows, counts) = try_join!(
            sessions_found.for_each(|session| {
                let (start, end) = (session.window.start(), session.window.end());
                found.push((session.key, start.as_millis(), end.as_millis(), session.value.1));
            }),
            late_left.fold(0, |lost, _| *lost += 1),
            late_right.fold(0, |lost, _| *lost += 1),
            late.fold(0, |lost, _| *lost += 1),
            late_counts.fold(0, |lost, _| *lost += 1),
        )?;
        Ok::<_, StreamError>([left, right, rows, counts])
    });
    assert_eq!(lost.unwrap(), [0; 4]);
    found.sort_unstable();
    let expected = sessions(&joined(&left, &right));
    assert!(expected.len() > 100 && expected.iter().any(|session| session.3 > 10));
    assert_eq!(found, expected);
}
