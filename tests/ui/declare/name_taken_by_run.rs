use side_output::prelude::*;

#[splitter]
pub enum Orders {
    Run(u8),
    #[output(name = "run")]
    Other(u8),
}

fn main() {}
