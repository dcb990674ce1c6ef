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
        return Orders::Invalid(order.to_owned());
    } else if let Ok(id) = order.parse() {
        return Orders::Valid(id);
    }
    Orders::Invalid(order.to_owned())
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
