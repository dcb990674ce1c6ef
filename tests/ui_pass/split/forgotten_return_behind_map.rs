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
    if order > 9 {
        return Orders::Invalid(order);
    }
    Orders::Valid(order)
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(split_order);
}
