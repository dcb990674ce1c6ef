use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[main]
    Valid(u32),
    #[main]
    Invalid(String),
}

fn main() {}
