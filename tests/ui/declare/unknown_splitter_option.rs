use side_output::prelude::*;

#[splitter(visibility = pub, crat = side_output, vis)]
pub enum Orders {
    Valid(u32),
}

fn main() {}
