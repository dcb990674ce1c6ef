use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

// FAULT-45
#[splitter(Orders)]
fn split_order(order: u32) -> Vec<Orders> {
    if order > 9 {
        vec![Orders::Invalid(order)];
    }
    vec![Orders::Valid(order)]
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(split_order);
}
