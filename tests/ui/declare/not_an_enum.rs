use side_output::prelude::*;

#[splitter]
pub struct Orders {
    pub valid: u32,
}

fn main() {}
