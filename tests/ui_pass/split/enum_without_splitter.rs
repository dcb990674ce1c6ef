use futures::stream;
use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

fn split_order(order: u32) -> Orders {
    if order > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(split_order);
}
