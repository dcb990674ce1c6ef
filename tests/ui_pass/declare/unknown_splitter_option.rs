use side_output::prelude::*;

#[splitter(crate = side_output, vis = pub)]
pub enum Orders {
    Valid(u32),
}

fn main() {}
