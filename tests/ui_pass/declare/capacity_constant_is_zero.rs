use side_output::prelude::*;

const SOMETHING: usize = 1;

#[splitter]
pub enum Orders {
    #[output(capacity = SOMETHING)]
    Valid(u32),
}

fn main() {}
