use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[main]
    #[tap]
    Valid(u32),
}

fn main() {}
