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
    let route = |id: u32| {
        if id == 0 {
            return Orders::Invalid(order.to_owned());
        }
        Orders::Valid(id)
    };
    route(order.parse().unwrap_or(0))
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
