use side_output::prelude::*;

#[splitter(visibility = pub, crat = side_output, vis, Orders)]
pub enum Orders {
    Valid(u32),
}

fn main() {}
