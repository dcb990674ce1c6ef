use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(overflow = "drop_oldst")]
    Valid(u32),
    #[output(overflow = "forget")]
    Invalid(String),
    #[output(overflow = 3)]
    Late(u32),
}

fn main() {}
