//! MACRO-17: a crate without the standard library's prelude can declare and route.

#![no_std]

extern crate side_output as so;

use so::prelude::*;

/// Where a number goes.
#[splitter]
#[derive(Debug, PartialEq)]
enum Numbers {
    #[main]
    Even(u32),
    #[tap]
    Odd {
        number: u32,
    },
    Zero,
}

#[splitter(Numbers)]
fn by_parity(number: u32) -> Option<Numbers> {
    match number {
        0 => Some(Numbers::Zero),
        1 => None,
        _ if number.is_multiple_of(2) => Some(Numbers::Even(number)),
        _ => Some(Numbers::Odd { number }),
    }
}

#[test]
fn macro_17_without_std() {
    assert_eq!(by_parity(0), Some(Numbers::Zero));
    assert_eq!(by_parity(1), None);
    assert_eq!(by_parity(2).map(|route| route.tag()), Some(NumbersTag::Even));
    assert_eq!(NumbersOdd { number: 3 }.number, 3);
    assert_eq!("zero".parse(), Ok(NumbersTag::Zero));
    let streams = futures::stream::iter([0, 2]).split_with(by_parity);
    let run = streams.wire().even(discard()).odd(discard()).zero(discard()).run();
    assert!(futures::executor::block_on(run).unwrap().is_balanced());
}
