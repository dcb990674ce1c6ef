use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

fn main() {}
