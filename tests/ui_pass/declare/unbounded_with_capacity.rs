use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(overflow = "unbounded")]
    Valid(u32),
}

fn main() {}
