use futures::stream;
use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

fn invalid(order: &str) -> Orders {
    Orders::Invalid(order.to_owned())
}

#[splitter(Orders)]
#[allow(unused_must_use)]
fn split_order(order: &str) -> Orders {
    if order.is_empty() {
        invalid(order);
    }
    Orders::Valid(0)
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
