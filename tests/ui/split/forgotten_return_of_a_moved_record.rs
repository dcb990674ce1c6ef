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
fn split_order(order: String) -> Orders {
    if order.is_empty() {
        Orders::Invalid(order);
    }
    Orders::Valid(order.len() as u32)
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1".to_owned(), "x".to_owned()]).split_with(split_order);
    drop((valid, invalid));
}
