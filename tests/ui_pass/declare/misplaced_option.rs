use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[main]
    Valid(u32),
    #[output(capacity = 5)]
    Invalid(String),
}

fn main() {}
