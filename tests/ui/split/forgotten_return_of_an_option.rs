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
fn split_order(order: &str) -> Option<Orders> {
    if order.is_empty() {
        Some(Orders::Invalid(order.to_owned()));
    }
    None
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
