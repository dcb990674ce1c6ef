use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Numbers {
    #[main]
    Even(u64),
    Odd(u64),
}

fn by_parity(n: u64) -> Numbers {
    if n & 1 == 0 { Numbers::Even(n) } else { Numbers::Odd(n) }
}

async fn sum(numbers: DataStream<u64>) -> Result<u64, StreamError> {
    numbers.fold(0, |sum, n| *sum += n).await
}

fn main() {
    let NumbersStreams { even, odd } = stream::iter(0..9).split_with(by_parity);
    odd.discard();
    drop(sum(even));
}
