//! Splitting one stream into typed outputs: the cases SPLIT-01 to SPLIT-16.

mod common;

use common::{Log, Rng, assert_balanced, read2, read3};
use futures::executor::block_on;
use futures::{SinkExt as _, StreamExt as _, stream};
use side_output::prelude::*;
use side_output::{Discarded, discard_noting};

#[splitter]
#[derive(Clone, Debug, PartialEq)]
enum Numbers {
    Even(u32),
    Odd(u32),
}

#[splitter(Numbers)]
fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

#[splitter]
#[derive(Clone, Debug, PartialEq)]
enum Thirds {
    #[main]
    Zero(u32),
    One(u32),
    Two(u32),
}

fn by_third(n: u32) -> Thirds {
    match n % 3 {
        0 => Thirds::Zero(n),
        1 => Thirds::One(n),
        _ => Thirds::Two(n),
    }
}

/// SPLIT-01: (a) is `tests/ui/split/undeclared_variant.rs`; (b) is a name at run time.
#[test]
fn split_01_an_undeclared_name_is_an_error_when_it_is_parsed() {
    let error = "oddd".parse::<NumbersTag>().unwrap_err();
    assert_eq!(error.to_string(), "unknown output `oddd`; expected one of `even`, `odd`");
    // With a typo in a configuration, the error comes with the first record that uses the name.
    let input = stream::iter(1..=3);
    let NumbersStreams { even, odd } = input.split_with(|n: u32| {
        let name = if n.is_multiple_of(2) { "even" } else { "oddd" };
        name.parse::<NumbersTag>().map(|tag| tag.route(n))
    });
    even.discard();
    let error = block_on(odd.for_each(drop)).unwrap_err();
    assert!(error.to_string().contains("`oddd`"), "{error}");
}

/// SPLIT-02: the destructuring pattern and the wiring name a forgotten output when the program is
/// compiled (`tests/ui/wire`); what is dropped at run time is logged with its name, counted, and
/// holds up nobody.
#[test]
fn split_02_an_output_that_is_never_read_is_reported_and_holds_up_nobody() {
    let ((), log) = Log::capture(|| {
        let mut streams = stream::iter(1..=9).split_with(by_third);
        let handle = streams.ledger_handle();
        let one = streams.get_side_output(Thirds::ONE_TAG);
        let zero = streams.get_side_output(Thirds::ZERO_TAG);
        drop(streams);
        assert_eq!(read2(zero, one), (vec![3, 6, 9], vec![1, 4, 7]));
        let ledger = handle.read();
        assert_eq!(ledger["two"].discarded, 3);
        assert_balanced(&ledger);
    });
    assert_eq!(log.texts().len(), 1, "{:?}", log.texts());
    assert!(log.texts()[0].contains("output=\"two\""), "{:?}", log.texts());

    let ((), log) = Log::capture(|| {
        let ThirdsStreams { zero, one, two } = stream::iter(1..=9).split_with(by_third);
        two.discard();
        assert_eq!(read2(zero, one), (vec![3, 6, 9], vec![1, 4, 7]));
    });
    assert!(log.texts().is_empty(), "{:?}", log.texts());
}

/// SPLIT-04: what a union does with time is in `tests/event_time.rs`.
#[test]
fn split_04_merged_outputs_hold_each_record_once() {
    let NumbersStreams { even, odd } = stream::iter(1..=6).split_with(by_parity);
    let mut merged = block_on(even.union(odd).collect::<Vec<_>>());
    merged.sort_unstable();
    assert_eq!(merged, [1, 2, 3, 4, 5, 6]);

    let ThirdsStreams { zero, one, two } = stream::iter(1..=6).split_with(by_third);
    let mut merged = block_on(zero.union(one).union(two).collect::<Vec<_>>());
    merged.sort_unstable();
    assert_eq!(merged, [1, 2, 3, 4, 5, 6]);
}

#[splitter]
enum Sizes {
    Small(u32),
    Big(u32),
}

#[test]
fn split_05_splits_nest() {
    let NumbersStreams { even, odd } = stream::iter(1..=8).split_with(by_parity);
    let SizesStreams { small, big } =
        even.split_with(|n: u32| if n > 4 { Sizes::Big(n) } else { Sizes::Small(n) });
    assert_eq!(read3(odd, small, big), (vec![1, 3, 5, 7], vec![2, 4], vec![6, 8]));
}

#[test]
fn split_05_five_levels_lose_nothing() {
    let mut level: Vec<DataStream<u32>> = vec![DataStream::from_stream(stream::iter(1..=1000))];
    for bit in 0..5 {
        level = level
            .into_iter()
            .flat_map(|stream| {
                let NumbersStreams { even, odd } = stream
                    .split_with(move |n: u32| {
                        if (n >> bit) & 1 == 0 { Numbers::Even(n) } else { Numbers::Odd(n) }
                    })
                    .boxed();
                [even, odd]
            })
            .collect();
    }
    assert_eq!(level.len(), 32);
    let leaves = block_on(futures::future::join_all(
        level.into_iter().map(futures::StreamExt::collect::<Vec<_>>),
    ));
    let mut all: Vec<u32> = leaves.concat();
    all.sort_unstable();
    assert_eq!(all, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn split_06_a_deliberate_discard_is_silent_and_counted() {
    let (ledger, log) = Log::capture(|| {
        block_on(
            stream::iter(0..10)
                .split_with(|n: u32| match n {
                    0..4 => Thirds::Zero(n),
                    4..8 => Thirds::One(n),
                    _ => Thirds::Two(n),
                })
                .wire()
                .zero(each(drop))
                .one(each(drop))
                .two(discard())
                .run(),
        )
        .unwrap()
    });
    assert_eq!(ledger["two"].discarded, 2);
    assert_balanced(&ledger);
    assert_eq!(log.above_debug(), 0, "{:?}", log.texts());
}

#[splitter]
#[derive(Debug)]
enum Copies {
    #[tap]
    A(i32),
    #[tap]
    B(i32),
    Unmatched(i32),
}

/// SPLIT-07: a variant is one choice; every match takes taps, and a `clone` where a record goes to
/// two of them.
#[test]
fn split_07_exclusive_and_every_match_are_both_there() {
    #[splitter]
    enum First {
        A(i32),
        B(i32),
        Unmatched(i32),
    }
    let FirstStreams { a, b, unmatched } = stream::iter([5, 20, -1]).split_with(|x: i32| match x {
        x if x > 0 => First::A(x),
        x if x > 10 => First::B(x),
        x => First::Unmatched(x),
    });
    assert_eq!(read3(a, b, unmatched), (vec![5, 20], vec![], vec![-1]));

    let CopiesStreams { a, b, unmatched } =
        stream::iter([5, 20, -1]).split_with(|x: i32, cx: &mut Context<Copies>| {
            let mut matched = false;
            if x > 0 {
                cx.output(Copies::A_TAG, x);
                matched = true;
            }
            if x > 10 {
                cx.output(Copies::B_TAG, x);
                matched = true;
            }
            (!matched).then_some(Copies::Unmatched(x))
        });
    assert_eq!(read3(a, b, unmatched), (vec![5, 20], vec![20], vec![-1]));
}

#[test]
fn split_08_routed_is_neither_an_error_nor_a_loss() {
    #[splitter]
    enum Checked {
        #[main]
        Good(u32),
        Errors(u32),
    }
    let (ledger, log) = Log::capture(|| {
        let mut errors = Vec::new();
        block_on(
            stream::iter(0..10)
                .split_with(|n: u32| if n < 3 { Checked::Errors(n) } else { Checked::Good(n) })
                .wire()
                .good(each(drop))
                .errors(&mut errors)
                .run(),
        )
        .unwrap()
    });
    assert_eq!(ledger["errors"].routed, 3);
    assert_eq!(ledger["errors"].discarded, 0);
    assert_eq!(ledger.failed, 0);
    assert_eq!(log.above_debug(), 0, "{:?}", log.texts());
}

#[splitter]
enum Reasoned {
    #[main]
    Good(u64),
    Rejected {
        value: u64,
        reason: String,
    },
}

fn reject(n: u64) -> Reasoned {
    if n == 1 {
        Reasoned::Good(n)
    } else {
        Reasoned::Rejected { value: n, reason: "col_ip invalid: garbage".to_owned() }
    }
}

#[test]
fn split_09_the_reason_belongs_to_the_record() {
    let ReasonedStreams { good, rejected } = stream::iter([0]).split_with(reject);
    good.discard();
    let rejected = block_on(rejected.collect::<Vec<_>>());
    assert_eq!(rejected[0].reason, "col_ip invalid: garbage");
    assert_eq!(rejected[0].value, 0);

    let mut hooked = Vec::new();
    let mut suppressed = 0;
    let input = stream::iter(std::iter::repeat_n(0, 1_000_000));
    let ledger = block_on(
        input
            .split_with(reject)
            .wire()
            .good(discard())
            .rejected(discard_noting(|note: Discarded<'_, ReasonedRejected>| {
                hooked.push(note.value.reason.clone());
                suppressed += note.suppressed;
            }))
            .run(),
    )
    .unwrap();
    assert_eq!(hooked[0], "col_ip invalid: garbage");
    // Ten, and one at each power of two from 16 to 524288.
    assert_eq!(hooked.len(), 10 + 16);
    assert_eq!(suppressed, 524_288 - 26);
    assert_eq!(ledger["rejected"].discarded, 1_000_000);
}

#[test]
fn split_10_the_remainder_is_explicit_and_the_first_match_wins() {
    #[splitter]
    enum Names {
        A(&'static str),
        B(&'static str),
        Default(&'static str),
    }
    let NamesStreams { a, b, default } =
        stream::iter(["A1", "B1", "C1"]).split_with(|name: &'static str| {
            if name.starts_with('A') {
                Names::A(name)
            } else if name.starts_with('B') {
                Names::B(name)
            } else {
                Names::Default(name)
            }
        });
    assert_eq!(read3(a, b, default), (vec!["A1"], vec!["B1"], vec!["C1"]));

    let NamesStreams { a, b, default } =
        stream::iter(["A1"]).split_with(|name: &'static str| match name {
            any if !any.is_empty() => Names::B(any),
            name if name.starts_with('A') => Names::A(name),
            rest => Names::Default(rest),
        });
    assert_eq!(read3(a, b, default), (vec![], vec!["A1"], vec![]));
}

#[test]
fn split_11_each_record_leaves_exactly_once() {
    let mut rng = Rng(11);
    let ThirdsStreams { zero, one, two } =
        stream::iter(1..=1000).split_with(move |n: u32| match rng.below(3) {
            0 => Thirds::Zero(n),
            1 => Thirds::One(n),
            _ => Thirds::Two(n),
        });
    let (zero, one, two) = read3(zero, one, two);
    let mut all = [zero, one, two].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn split_11_emissions_beside_the_route_are_counted() {
    let streams = stream::iter([7]).split_with(|x: i32, cx: &mut Context<Copies>| {
        cx.output(Copies::A_TAG, x);
        Copies::Unmatched(x)
    });
    let handle = streams.ledger_handle();
    let CopiesStreams { a, b, unmatched } = streams;
    read3(a, b, unmatched);
    let ledger = handle.read();
    assert_eq!(ledger.received, 1);
    assert_eq!(ledger.outputs.iter().map(|output| output.routed).sum::<u64>(), 2);
    assert!(ledger["a"].tap);
    assert_balanced(&ledger);
}

#[test]
fn split_12_each_output_is_usable_alone_once_the_others_are_discarded() {
    let NumbersStreams { even, odd } = stream::iter(1..=10).split_with(by_parity);
    odd.discard();
    assert_eq!(block_on(even.collect::<Vec<_>>()), [2, 4, 6, 8, 10]);
    let NumbersStreams { even, odd } = stream::iter(1..=10).split_with(by_parity);
    even.discard();
    assert_eq!(block_on(odd.collect::<Vec<_>>()), [1, 3, 5, 7, 9]);
}

#[splitter]
#[derive(Debug)]
enum Dedup {
    #[main]
    Unique(u32),
    Duplicates(u32),
}

/// A reusable step returns main with its side outputs attached.
fn dedup(stream: impl futures::Stream<Item = u32> + Send + 'static) -> DedupStreams {
    let mut seen = std::collections::HashSet::new();
    stream
        .split_with(
            move |n: u32| if seen.insert(n) { Dedup::Unique(n) } else { Dedup::Duplicates(n) },
        )
        .boxed()
}

#[test]
fn split_13_main_chains_on_and_the_sides_stay_available() {
    let mut streams = dedup(stream::iter([1, 1, 2]));
    let duplicates = streams.get_side_output(Dedup::DUPLICATES_TAG);
    let main = streams.unique.map(|n| n * 10);
    assert_eq!(read2(main, duplicates), (vec![10, 20], vec![1]));
}

#[test]
fn split_14_every_way_to_consume_holds_the_same_records() {
    let sides = || {
        let NumbersStreams { even, odd } = stream::iter(1..=9).split_with(by_parity);
        even.discard();
        odd
    };
    let expected = vec![1, 3, 5, 7, 9];
    assert_eq!(block_on(sides().collect::<Vec<_>>()), expected, "collect");

    let mut records = Vec::new();
    block_on(sides().for_each(|n| records.push(n))).unwrap();
    assert_eq!(records, expected, "for_each");

    let fold = sides().fold(Vec::new(), Vec::push);
    assert_eq!(block_on(fold).unwrap(), expected, "fold");

    let mut records = Vec::new();
    block_on(sides().for_each_chunk(|chunk| records.extend(chunk))).unwrap();
    assert_eq!(records, expected, "for_each_chunk");

    let mut records = Vec::new();
    block_on(sides().forward(&mut records)).unwrap();
    assert_eq!(records, expected, "forward to a sink");

    let (sender, receiver) = futures::channel::mpsc::channel(1);
    let sink = sender.sink_map_err(StreamError::failed);
    let (sent, records) =
        block_on(futures::future::join(sides().forward(sink), receiver.collect::<Vec<_>>()));
    sent.unwrap();
    assert_eq!(records, expected, "forward to a channel of one");

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let task = runtime.spawn(sides().collect::<Vec<_>>());
    assert_eq!(block_on(task).unwrap(), expected, "spawned on a task");

    let merged = DataStream::from_stream(stream::empty()).union(sides());
    assert_eq!(block_on(merged.collect::<Vec<_>>()), expected, "merged");

    let zipped = sides().zip(stream::iter(0..)).map(|(n, _)| n);
    assert_eq!(block_on(zipped.collect::<Vec<_>>()), expected, "zipped");

    let mut streams = stream::iter(1..=9).split_with(by_parity);
    let side = streams.get_side_output(Numbers::ODD_TAG);
    drop(streams);
    assert_eq!(block_on(side.collect::<Vec<_>>()), expected, "main dropped");

    let mut records = Vec::new();
    block_on(
        stream::iter(1..=9).split_with(by_parity).wire().even(discard()).odd(&mut records).run(),
    )
    .unwrap();
    assert_eq!(records, expected, "wired");

    let results = sides().results().map(Result::unwrap);
    assert_eq!(block_on(results.collect::<Vec<_>>()), expected, "results");
}

/// SPLIT-15, with a scheduler's pseudo-random delays instead of sleeps.
#[test]
fn split_15_the_end_comes_after_the_last_record() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        for seed in 0..10_000 {
            let mut rng = Rng(seed);
            let input = stream::iter(1..=4).then(move |n: u32| {
                let yields = rng.below(4);
                async move {
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                    n
                }
            });
            let NumbersStreams { even, odd } = input.split_with(by_parity);
            let even = tokio::spawn(even.collect::<Vec<_>>());
            let odd = tokio::spawn(odd.collect::<Vec<_>>());
            assert_eq!(even.await.unwrap(), [2, 4], "seed {seed}");
            assert_eq!(odd.await.unwrap(), [1, 3], "seed {seed}");
        }
    });
}

#[test]
fn split_16_a_partition_hands_out_what_it_rejects() {
    #[derive(Debug, PartialEq)]
    struct NotClone(u32);

    #[splitter]
    enum Kept<T> {
        #[main]
        Kept(T),
        Rest(T),
    }
    let KeptStreams { kept, rest } = stream::iter((1..=5).map(NotClone))
        .split_with(|x: NotClone| if x.0 > 3 { Kept::Kept(x) } else { Kept::Rest(x) });
    let (kept, rest) = read2(kept, rest);
    assert_eq!(kept, [NotClone(4), NotClone(5)]);
    assert_eq!(rest, [NotClone(1), NotClone(2), NotClone(3)]);
}

/// The losses that the macro cannot tell by the text of the function; `docs/compile-errors.md`
/// lists them.
mod fault_45 {
    use super::*;
    use Thirds::{One, Two};

    fn helper(n: u32) -> Thirds {
        Two(n)
    }

    fn maybe(n: u32) -> Option<Thirds> {
        Some(n).filter(|n| *n < 100).map(Two)
    }

    /// Loses the routes of six records, and one of the two of the seventh.
    #[splitter(Thirds)]
    #[expect(
        unused_qualifications,
        unused_assignments,
        clippy::let_underscore_must_use,
        reason = "the losses are the case"
    )]
    fn lossy(n: u32) -> Option<Thirds> {
        match n {
            0 => {
                maybe(n);
            }
            1 => {
                #[allow(unused_must_use, reason = "an allowed loss is the case")]
                {
                    helper(n);
                }
            }
            2 => {
                let _ = helper(n);
            }
            3 => drop(helper(n)),
            4 => {
                let _ = One(n);
            }
            5 => drop(Vec::from([Thirds::Two(n)])),
            _ => {
                let mut route = Thirds::One(n);
                route = Thirds::Two(n);
                return Some(route);
            }
        }
        None
    }

    #[test]
    fn fault_45_a_route_that_is_lost_is_in_the_ledger() {
        let streams = stream::iter(0..7).split_with(lossy);
        let run = streams.wire().zero(discard()).one(discard()).two(discard()).run();
        let ledger = block_on(run).unwrap();
        assert_balanced(&ledger);
        assert_eq!((ledger.received, ledger.unrouted), (7, 6));
        assert_eq!(ledger["two"].routed, 1);
    }
}

mod fault_04 {
    use super::*;

    #[splitter]
    #[derive(Debug, PartialEq)]
    enum Orders {
        #[main]
        Valid(u32),
        #[tap]
        Seen(u32),
    }

    /// Emits even numbers to the tap, and returns the tap's route for every third.
    fn split(n: u32, cx: &mut Context<Orders>) -> Orders {
        if n.is_multiple_of(2) {
            cx.output(Orders::SEEN_TAG, n);
        }
        if n.is_multiple_of(3) { Orders::Seen(n + 100) } else { Orders::Valid(n) }
    }

    #[test]
    fn fault_04_a_tap_that_is_returned_is_the_route_of_its_record() {
        let streams = stream::iter(0..6).split_with(split);
        let handle = streams.ledger_handle();
        let OrdersStreams { valid, seen } = streams;
        let (valid, seen) =
            block_on(async { futures::join!(valid.collect::<Vec<_>>(), seen.collect::<Vec<_>>()) });
        assert_eq!((valid, seen), (vec![1, 2, 4, 5], vec![0, 100, 2, 103, 4]));
        let ledger = handle.read();
        assert_balanced(&ledger);
        assert_eq!((ledger.received, ledger.tapped, ledger.extra), (6, 3, 0));

        let run = stream::iter(0..6).split_with(split).wire().valid(discard()).seen(discard());
        let ledger = block_on(run.run()).unwrap();
        assert_balanced(&ledger);
        assert_eq!((ledger.tapped, ledger["seen"].routed), (3, 5));
    }

    /// The tap is emitted before the route is returned: its destination's panic must not lose it.
    #[test]
    fn fault_04_a_destination_of_a_tap_that_panics_leaves_the_ledger_balanced() {
        let streams = stream::iter(0..6).split_with(split);
        let handle = streams.ledger_handle();
        let fail = |n: u32| assert!(n < 2, "no more than one");
        let run = streams.wire().valid(discard()).seen(each(fail)).run();
        drop(block_on(run).unwrap_err());
        assert_balanced(&handle.read());
    }
}
