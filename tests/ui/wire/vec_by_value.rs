use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

fn split_order(order: u32) -> Orders {
    if order > 9 { Orders::Invalid(order.to_string()) } else { Orders::Valid(order) }
}

fn main() {
    let wiring = stream::iter([1, 10]).split_with(split_order).wire();
    drop(wiring.valid(Vec::new()).invalid(discard()).run());
}
