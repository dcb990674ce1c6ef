use futures::stream;
use side_output::prelude::*;

// MACRO-13: the ten uses below add no errors of their own.
#[splitter]
enum Orders {
    Valid(u32),
    #[output(capacity = 0)]
    Invalid(String),
}

fn split_order(order: u32) -> Orders {
    if order > 9 { Orders::Invalid(order.to_string()) } else { Orders::Valid(order) }
}

fn main() {
    let mut streams = stream::iter([1, 10]).split_with(split_order);
    drop::<DataStream<String>>(streams.get_side_output(Orders::INVALID_TAG));
    let OrdersStreams { valid, invalid } = streams;
    drop((valid, invalid, OrdersTag::Invalid.name(), OrdersTag::ALL));
    let wiring = stream::iter([1, 10]).split_with(split_order).wire();
    drop(wiring.valid(discard()).invalid(discard()).run());
}
