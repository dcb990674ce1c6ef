use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(name = "runs")]
    Run(u8),
    Other(u8),
}

fn main() {}
