use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[cfg_attr(all(), main)]
    Valid(u32),
}

fn main() {}
