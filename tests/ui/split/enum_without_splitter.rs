use side_output::prelude::*;

#[derive(Debug)]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

#[splitter(Orders)]
fn split_order(order: u32) -> Orders {
    if order > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
}

fn main() {
    drop(split_order(1));
}
