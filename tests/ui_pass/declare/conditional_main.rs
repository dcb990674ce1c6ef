use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[main]
    Valid(u32),
}

fn main() {}
