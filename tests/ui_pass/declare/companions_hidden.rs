use side_output::prelude::*;

#[splitter(vis = pub)]
pub enum Orders {
    Valid(u32),
}

fn main() {}
