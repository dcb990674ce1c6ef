//! The runtime against a reference of ten lines: whatever the input, the capacities, the policies,
//! the order of reading and dropping, and however the input comes, every record is accounted for,
//! and each output is in the order of the input.

mod common;

use common::{assert_balanced, is_subsequence};
use futures::executor::block_on;
use futures::task::noop_waker;
use futures::{Stream, stream};
use proptest::prelude::*;
use side_output::prelude::*;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

/// What the function does with a record.
#[derive(Clone, Copy, Debug)]
enum Act {
    A,
    B,
    Drop,
    Both,
    Tap,
}

/// A step of the schedule.
#[derive(Clone, Copy, Debug)]
enum Step {
    Poll(usize),
    Close(usize),
}

fn acts() -> impl Strategy<Value = Vec<(Act, bool)>> {
    let act = prop_oneof![
        4 => Just(Act::A),
        2 => Just(Act::B),
        1 => Just(Act::Drop),
        1 => Just(Act::Both),
        1 => Just(Act::Tap),
    ];
    // The flag makes the input pending once before the record.
    prop::collection::vec((act, prop::bool::weighted(0.2)), 0..120)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0..3_usize).prop_map(Step::Poll),
        1 => (0..3_usize).prop_map(Step::Close),
    ];
    prop::collection::vec(step, 0..60)
}

/// What each output gets: A, B, and the tap.
fn reference(acts: &[(Act, bool)]) -> [Vec<usize>; 3] {
    let mut outputs = [const { Vec::new() }; 3];
    for (index, (act, _)) in acts.iter().enumerate() {
        match act {
            Act::A => outputs[0].push(index),
            Act::B => outputs[1].push(index),
            Act::Drop => {}
            Act::Both => {
                outputs[0].push(index);
                outputs[1].push(index);
            }
            Act::Tap => {
                outputs[2].push(index);
                outputs[0].push(index);
            }
        }
    }
    outputs
}

/// The input: pending where it is told to be, waking itself.
fn input(acts: Vec<(Act, bool)>) -> impl Stream<Item = (usize, Act)> + Send {
    let mut next = 0;
    let mut waited = false;
    stream::poll_fn(move |cx: &mut TaskContext<'_>| {
        let Some(&(act, pending)) = acts.get(next) else { return Poll::Ready(None) };
        if pending && !std::mem::replace(&mut waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        waited = false;
        next += 1;
        Poll::Ready(Some((next - 1, act)))
    })
}

macro_rules! schedule {
    ($name:ident, $capacity:literal, $overflow:literal, lossy: $lossy:literal) => {
        mod $name {
            use super::*;

            #[splitter]
            enum Outputs {
                #[main]
                #[output(capacity = $capacity, overflow = $overflow)]
                A(usize),
                #[output(capacity = $capacity, overflow = $overflow)]
                B(usize),
                #[tap]
                #[output(capacity = $capacity, overflow = $overflow)]
                Tap(usize),
            }

            fn route((n, act): (usize, Act), cx: &mut Context<Outputs>) -> Vec<Outputs> {
                match act {
                    Act::A => vec![Outputs::A(n)],
                    Act::B => vec![Outputs::B(n)],
                    Act::Drop => vec![],
                    Act::Both => vec![Outputs::A(n), Outputs::B(n)],
                    Act::Tap => {
                        cx.output(Outputs::TAP_TAG, n);
                        vec![Outputs::A(n)]
                    }
                }
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(300))]

                #[test]
                fn any_schedule_accounts_for_every_record(acts in acts(), steps in steps()) {
                    let expected = reference(&acts);
                    let count = acts.len() as u64;
                    let drops = acts.iter().filter(|(act, _)| matches!(act, Act::Drop)).count();
                    let streams = input(acts).split_with(route);
                    let handle = streams.ledger_handle();
                    let OutputsStreams { a, b, tap } = streams.boxed();
                    let mut streams = [Some(a), Some(b), Some(tap)];
                    let mut read = [const { Vec::new() }; 3];
                    let mut ended = [false; 3];
                    let waker = noop_waker();
                    let mut poll = |streams: &mut [Option<DataStream<usize>>; 3], index: usize| {
                        let Some(stream) = &mut streams[index] else { return false };
                        match Pin::new(stream).poll_next(&mut TaskContext::from_waker(&waker)) {
                            Poll::Ready(Some(n)) => {
                                read[index].push(n);
                                true
                            }
                            Poll::Ready(None) => {
                                ended[index] = true;
                                false
                            }
                            Poll::Pending => true,
                        }
                    };
                    for step in steps {
                        match step {
                            Step::Poll(index) => drop(poll(&mut streams, index)),
                            Step::Close(index) => streams[index] = None,
                        }
                        assert_balanced(&handle.read());
                    }
                    // Whoever is left reads to the end.
                    while (0..3).fold(false, |more, index| poll(&mut streams, index) | more) {}
                    let closed = streams.each_ref().map(Option::is_none);
                    drop(streams);

                    let ledger = handle.read();
                    assert_balanced(&ledger);
                    for (index, output) in ledger.outputs.iter().enumerate() {
                        if $lossy {
                            prop_assert!(is_subsequence(&read[index], &expected[index]));
                        } else if closed[index] {
                            prop_assert!(expected[index].starts_with(&read[index]));
                        } else {
                            prop_assert_eq!(&read[index], &expected[index]);
                        }
                        prop_assert_eq!(output.delivered, read[index].len() as u64);
                        prop_assert_eq!(output.buffered, 0);
                    }
                    if !closed.iter().all(|closed| *closed) {
                        prop_assert_eq!(ledger.received, count);
                        prop_assert_eq!(ledger.unrouted, drops as u64);
                        for (index, output) in ledger.outputs.iter().enumerate() {
                            prop_assert_eq!(output.routed, expected[index].len() as u64);
                        }
                    }
                }

                #[test]
                fn wired_gives_the_same(acts in acts()) {
                    let expected = reference(&acts);
                    let mut read = [const { Vec::new() }; 3];
                    let [a, b, tap] = &mut read;
                    let ledger = block_on(
                        input(acts)
                            .split_with(route)
                            .wire()
                            .a(each(|n| a.push(n)))
                            .b(|stream: DataStream<usize>| stream.for_each(move |n| b.push(n)))
                            .tap(tap)
                            .run(),
                    )
                    .unwrap();
                    assert_balanced(&ledger);
                    prop_assert_eq!(&read[0], &expected[0]);
                    if $lossy {
                        prop_assert!(is_subsequence(&read[1], &expected[1]));
                        prop_assert!(is_subsequence(&read[2], &expected[2]));
                    } else {
                        prop_assert_eq!(&read[1..], &expected[1..]);
                    }
                }
            }
        }
    };
}

schedule!(one, 1, "block", lossy: false);
schedule!(two, 2, "block", lossy: false);
schedule!(seven, 7, "block", lossy: false);
schedule!(many, 1024, "block", lossy: false);
schedule!(oldest_one, 1, "drop_oldest", lossy: true);
schedule!(oldest_seven, 7, "drop_oldest", lossy: true);
schedule!(newest_one, 1, "drop_newest", lossy: true);
schedule!(newest_seven, 7, "drop_newest", lossy: true);

/// FAULT-26: capacities and policies that are given at run time hold, at every step.
mod at_run_time {
    use super::*;
    use side_output::Overflow;

    #[splitter]
    enum Outputs {
        #[main]
        A(usize),
        B(usize),
        #[tap]
        Tap(usize),
    }

    fn route((n, act): (usize, Act), cx: &mut Context<Outputs>) -> Option<Outputs> {
        match act {
            Act::A => Some(Outputs::A(n)),
            Act::B => Some(Outputs::B(n)),
            Act::Drop => None,
            Act::Both => {
                cx.output(Outputs::TAP_TAG, n);
                Some(Outputs::B(n))
            }
            Act::Tap => {
                cx.output(Outputs::TAP_TAG, n);
                Some(Outputs::A(n))
            }
        }
    }

    fn limits() -> impl Strategy<Value = [(usize, Overflow); 3]> {
        let overflow = prop_oneof![
            Just(Overflow::Block),
            Just(Overflow::DropOldest),
            Just(Overflow::DropNewest),
            Just(Overflow::Unbounded),
        ];
        prop::array::uniform3((1..12_usize, overflow))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn fault_26_no_output_holds_more_than_it_was_given(
            acts in acts(),
            polls in prop::collection::vec(0..3_usize, 0..200),
            limits in limits(),
        ) {
            let OutputsStreams { a, b, tap } = input(acts).split_with(route);
            let handle = a.ledger_handle().unwrap();
            let [of_a, of_b, of_tap] = limits;
            let mut streams = [
                a.capacity(of_a.0).overflow(of_a.1).boxed(),
                b.capacity(of_b.0).overflow(of_b.1).boxed(),
                tap.capacity(of_tap.0).overflow(of_tap.1).boxed(),
            ];
            let waker = noop_waker();
            for index in polls {
                let stream = Pin::new(&mut streams[index]);
                _ = stream.poll_next(&mut TaskContext::from_waker(&waker));
                let ledger = handle.read();
                assert_balanced(&ledger);
                for (output, (capacity, overflow)) in ledger.outputs.iter().zip(limits) {
                    prop_assert!(
                        output.buffered <= capacity as u64 || overflow == Overflow::Unbounded,
                        "{output:?} holds more than {capacity}"
                    );
                    let drops = matches!(overflow, Overflow::DropOldest | Overflow::DropNewest);
                    prop_assert!(drops || output.dropped == 0);
                }
            }
        }
    }
}
