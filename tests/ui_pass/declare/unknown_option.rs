use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 5)]
    Valid(u32),
    #[output(capacity = 5, name = "bad")]
    Invalid(String),
}

fn main() {}
