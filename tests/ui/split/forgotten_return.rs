use futures::stream;
use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

#[splitter(Orders)]
fn split_order(order: &str) -> Orders {
    if order.is_empty() {
        // The rest of the function goes on with the same order.
    }
    Orders::Invalid(order.to_owned());
    Orders::Valid(0)
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
