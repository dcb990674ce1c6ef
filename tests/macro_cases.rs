//! The cases of the routing macro; each test carries the id of its case.

use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use side_output::prelude::*;

/// Where a number goes.
#[splitter]
#[derive(Debug, PartialEq)]
enum Numbers {
    /// Even ones.
    #[main]
    Even(u32),
    #[output(capacity = 2, overflow = "block", name = "uneven")]
    Odd(String),
    #[tap]
    Seen {
        number: u32,
        text: &'static str,
    },
    Pair(u8, u16),
    Nothing,
}

fn by_parity(n: u32) -> Numbers {
    if n.is_multiple_of(2) { Numbers::Even(n) } else { Numbers::Odd(n.to_string()) }
}

#[test]
fn first() {
    let NumbersStreams { even, uneven, seen, pair, nothing } =
        stream::iter(0..6).split_with(by_parity);
    drop((seen, pair, nothing));
    let (even, odd) =
        block_on(futures::future::join(even.collect::<Vec<_>>(), uneven.collect::<Vec<_>>()));
    assert_eq!(even, [0, 2, 4]);
    assert_eq!(odd, ["1", "3", "5"]);
    let mut streams = stream::iter(0..6).split_with(by_parity).boxed();
    let _odd: DataStream<String> = streams.get_side_output(Numbers::UNEVEN_TAG);
    let mut odd = vec![];
    let ledger = block_on(
        stream::iter(0..6)
            .split_with(by_parity)
            .wire()
            .uneven(&mut odd)
            .even(each(drop))
            .seen(|stream: DataStream<NumbersSeen>| stream.for_each(drop))
            .pair(discard())
            .nothing(discard())
            .run(),
    )
    .unwrap();
    assert!(ledger.is_balanced());
    assert_eq!(odd.len(), 3);
    assert_eq!("uneven".parse(), Ok(NumbersTag::Odd));
    assert_eq!(
        serde_json::to_string(&NumbersTag::ALL).unwrap(),
        r#"["even","uneven","seen","pair","nothing"]"#
    );
}
