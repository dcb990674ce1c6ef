use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capcity = 5)]
    Valid(u32),
    #[output(buffer = 5, name = "bad")]
    Invalid(String),
}

fn main() {}
