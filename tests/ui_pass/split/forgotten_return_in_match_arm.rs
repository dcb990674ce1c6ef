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
    match order.parse::<u32>() {
        Ok(0) => {
            return Orders::Invalid(order.to_owned());
        }
        Err(_) => {}
        Ok(_) => {}
    }
    match order.len() {
        0 => Orders::Invalid(order.to_owned()),
        _ => Orders::Valid(1),
    }
}

fn main() {
    let OrdersStreams { valid, invalid } = stream::iter(["1", "x"]).split_with(split_order);
    drop((valid, invalid));
}
