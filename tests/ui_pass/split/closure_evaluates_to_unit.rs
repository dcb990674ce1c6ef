use futures::stream;
use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

fn main() {
    let OrdersStreams { valid, invalid } =
        stream::iter([1, 2]).split_with(|order: u32| Orders::Valid(order));
    drop((valid, invalid));
}
