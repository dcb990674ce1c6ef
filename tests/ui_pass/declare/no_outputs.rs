use side_output::prelude::*;

#[splitter]
pub enum Orders {
    Valid(u32),
}

fn main() {}
