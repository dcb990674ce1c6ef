use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

// FAULT-45
#[splitter(Orders)]
fn split_order(order: u32) -> Orders {
    if order > 99 {
        let route = Orders::Invalid(order);
    }
    let (_late, order) = (Orders::Invalid(order), order);
    let mut last = Orders::Valid(order);
    if order > 9 {
        last = Orders::Invalid(order);
    }
    Orders::Valid(order)
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(split_order);
}
