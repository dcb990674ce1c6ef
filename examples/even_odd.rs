//! Even and odd numbers: a split without a main output, read by two consumers at once.

use futures::executor::block_on;
use futures::{stream, try_join};
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};

#[splitter]
enum Numbers {
    Even(u64),
    Odd(u64),
}

#[splitter(Numbers)]
fn by_parity(number: u64) -> Numbers {
    if number.is_multiple_of(2) { Numbers::Even(number) } else { Numbers::Odd(number) }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let NumbersStreams { even, odd } = stream::iter(1..=10).split_with(by_parity);
    let mut evens = Vec::new();
    let ((), odd_sum) = block_on(async {
        try_join!(even.forward(&mut evens), odd.fold(0, |sum, number| *sum += number))
    })?;
    writeln!(out, "even: {evens:?}")?;
    writeln!(out, "sum of the odd ones: {odd_sum}")?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
