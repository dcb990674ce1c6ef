use side_output::prelude::*;

const NOTHING: usize = 0;

#[splitter]
pub enum Orders {
    #[output(capacity = NOTHING)]
    Valid(u32),
}

fn main() {}
