use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 5)]
    Valid(u32),
    #[output(name = "bad")]
    #[output(capacity = 6)]
    Invalid(String),
    #[tap]
    Seen(u32),
}

fn main() {}
