use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

fn main() {
    let tag: OrdersTag = "invalid".parse().unwrap();
    drop(tag.route(7));
}
