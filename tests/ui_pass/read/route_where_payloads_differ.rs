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
    drop(match tag {
        OrdersTag::Valid => Orders::Valid(7),
        OrdersTag::Invalid => Orders::Invalid(7.to_string()),
    });
}
