//! Nothing is allocated per record: what a run of any length allocates is the same but for a few
//! buffers that find their size.

use allocation_counter::measure;
use futures::executor::block_on;
use futures::{StreamExt as _, join, stream};
use side_output::prelude::*;
use side_output::{Aggregate, Assigner, Tumbling, Watermarks};
use std::time::Duration;

#[splitter]
enum Numbers {
    #[main]
    Rest(u64),
    Third((u64, &'static str)),
    Seventh([u64; 2]),
}

fn route(n: u64) -> Numbers {
    match n {
        n if n.is_multiple_of(7) => Numbers::Seventh([n, n / 7]),
        n if n.is_multiple_of(3) => Numbers::Third((n, "third")),
        n => Numbers::Rest(n),
    }
}

/// Fails if ten times the records cost more than a hundred allocations more.
#[track_caller]
fn assert_steady(run: impl Fn(u64)) {
    let few = measure(|| run(100_000)).count_total;
    let many = measure(|| run(1_000_000)).count_total;
    assert!(many <= few + 100, "{few} allocations, and {many} with ten times the records");
}

#[test]
fn wired() {
    assert_steady(|n| {
        let run = stream::iter(0..n)
            .split_with(route)
            .wire()
            .rest(each(|_| ()))
            .third(futures::sink::drain())
            .seventh(discard())
            .run();
        assert_eq!(block_on(run).expect("no errors").received, n);
    });
}

#[test]
fn for_each() {
    assert_steady(|n| {
        let NumbersStreams { rest, third, seventh } = stream::iter(0..n).split_with(route);
        let read = async {
            join!(rest.for_each(|_| ()), third.for_each(|_| ()), seventh.for_each(|_| ()))
        };
        assert!(matches!(block_on(read), (Ok(()), Ok(()), Ok(()))));
    });
}

#[test]
fn boxed() {
    assert_steady(|n| {
        let NumbersStreams { rest, third, seventh } = stream::iter(0..n).split_with(route).boxed();
        let read = async {
            join!(rest.for_each(|_| ()), third.for_each(|_| ()), seventh.for_each(|_| ()))
        };
        assert!(matches!(block_on(read), (Ok(()), Ok(()), Ok(()))));
    });
}

#[test]
fn plain_streams() {
    assert_steady(|n| {
        let NumbersStreams { rest, third, seventh } = stream::iter(0..n).split_with(route);
        let counts = block_on(async { join!(rest.count(), third.count(), seventh.count()) });
        assert_eq!((counts.0 + counts.1 + counts.2) as u64, n);
    });
}

#[derive(Clone, Copy)]
struct Sum;

impl Aggregate for Sum {
    type In = u64;
    type Accumulator = u64;
    type Output = u64;

    fn create(&mut self) -> u64 {
        0
    }

    fn add(&mut self, sum: &mut u64, value: &u64) {
        *sum += value;
    }

    fn merge(&mut self, sum: &mut u64, other: u64) {
        *sum += other;
    }

    fn result(&mut self, sum: &u64) -> u64 {
        *sum
    }
}

fn assert_windows_steady<A>(assigner: A, windows: u64)
where
    A: Assigner + Copy,
    A::Trigger: side_output::window::TriggerOf<u64, A::Merging>,
{
    assert_steady(|n| {
        let WindowStreams { results, late } = DataStream::from_stream(stream::iter(0..n))
            .assign_timestamps(
                |n: &u64| Timestamp::from_millis(n.cast_signed()),
                Watermarks::monotonous(),
            )
            .key_by(|n: &u64| n % 10)
            .window(assigner)
            .side_output_late_data()
            .aggregate(Sum);
        let sum = results.fold(0, |sum, result| *sum += result.value);
        let (sum, late) = block_on(async { join!(sum, late.for_each(|_| ())) });
        assert_eq!(sum.expect("no errors"), windows * n * (n - 1) / 2);
        late.expect("no errors");
    });
}

#[test]
fn windows() {
    assert_windows_steady(Tumbling::of(Duration::from_secs(1)), 1);
}

#[test]
fn windows_that_overlap() {
    assert_windows_steady(
        Sliding::of(Duration::from_secs(1)).every(Duration::from_millis(100)),
        10,
    );
}
