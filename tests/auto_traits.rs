//! `Send`, `Sync` and `Unpin` of the public types, when what they hold has them.

use futures::stream;
use side_output::prelude::*;
use side_output::{
    Configured, Element, KeyContext, LedgerHandle, Mark, OutputLedger, OutputSpec, Overflow,
    UnknownTag,
};
use std::rc::Rc;

fn all<T: ?Sized + Send + Sync + Unpin>() {}
fn send<T: Send>(_: &T) {}
fn send_unpin<T: Send + Unpin>(value: T) -> T {
    value
}

#[splitter]
enum Numbers {
    Even(u32),
    Odd(u32),
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n) }
}

#[test]
fn values_are_send_sync_and_unpin() {
    all::<Timestamp>();
    all::<Mark>();
    all::<Element<u32>>();
    all::<Ledger>();
    all::<OutputLedger>();
    all::<LedgerHandle>();
    all::<OutputSpec>();
    all::<Overflow>();
    all::<UnknownTag>();
    all::<StreamError>();
    all::<NumbersTag>();
    all::<Context<Numbers, [(); 0]>>();
    all::<Context<Numbers>>();
}

#[test]
fn streams_and_their_futures_are_send_and_unpin() {
    let NumbersStreams { even, odd } = send_unpin(stream::iter(0..4).split_with(by_parity));
    let even = send_unpin(even);
    drop(send_unpin(even.driver()));
    send(&even.for_each(drop));
    let odd: DataStream<u32> = send_unpin(odd.boxed());
    let odd = send_unpin(odd.map(|n| n + 1).filter(|n| *n > 1).inspect(|_| {}));
    send(&odd.fold(0, |sum, n| *sum += n));

    let NumbersStreams { even, odd } = stream::iter(0..4).split_with(by_parity);
    drop(send_unpin(even.results()));
    drop(send_unpin(odd.elements()));

    let NumbersStreams { even, odd } = stream::iter(0..4).split_with(by_parity);
    send(&even.forward(Vec::new()));
    send(&odd.for_each_chunk(|_| {}));

    let run = stream::iter(0..4)
        .split_with(by_parity)
        .wire()
        .even(discard())
        .odd(|stream: DataStream<u32>| stream.for_each(drop))
        .run();
    drop(send_unpin(run));
}

#[test]
fn an_input_that_is_not_unpin_or_not_send_is_fine() {
    let NumbersStreams { even, odd } = stream::unfold(0, |n| async move {
        let shared = Rc::new(n);
        std::future::ready(()).await;
        (n < 4).then_some((*shared, n + 1))
    })
    .split_with(by_parity);
    odd.discard();
    let read = futures::executor::block_on(futures::StreamExt::collect::<Vec<_>>(even));
    assert_eq!(read, [0, 2]);
}

/// Two implementations for a type with a size, so that `_` is ambiguous, and one for any other.
trait HasNoSize<Which> {
    fn is_true() {}
}
struct OnlySized;
impl<T: ?Sized> HasNoSize<()> for T {}
impl<T> HasNoSize<OnlySized> for T {}

/// What has no size cannot be replaced through a reference: neither taps nor keys nor timers move
/// to another record. `tests/ui/split/context_replaced.rs` is what the compiler says.
#[test]
fn fault_47_contexts_that_are_lent_have_no_size() {
    <Context<Numbers> as HasNoSize<_>>::is_true();
    <KeyContext<u8, Numbers> as HasNoSize<_>>::is_true();
    <BroadcastContext<Numbers> as HasNoSize<_>>::is_true();
    <Configured<KeyContext<u8, Numbers>> as HasNoSize<_>>::is_true();
}
