use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 5, overflow = "unbounded")]
    Valid(u32),
}

fn main() {}
