use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(overflow = "drop_oldest")]
    Valid(u32),
    #[output(overflow = "drop_newest")]
    Invalid(String),
    #[output(overflow = "block")]
    Late(u32),
}

fn main() {}
