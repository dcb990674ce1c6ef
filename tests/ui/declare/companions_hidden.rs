use side_output::prelude::*;

#[splitter(vis = pub(crate))]
pub enum Orders {
    Valid(u32),
}

fn main() {}
