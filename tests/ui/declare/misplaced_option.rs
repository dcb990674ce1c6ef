use side_output::prelude::*;

#[splitter(capacity = 5)]
pub enum Orders {
    #[output(main)]
    Valid(u32),
    #[main(capacity = 5)]
    Invalid(String),
}

fn main() {}
