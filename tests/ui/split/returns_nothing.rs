use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

#[splitter(Orders)]
fn split_order(order: u32) {
    let _order = order;
}

fn main() {
    split_order(1);
}
