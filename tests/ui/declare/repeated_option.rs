use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 5, capacity = 6)]
    Valid(u32),
    #[output(name = "bad")]
    #[output(name = "worse")]
    Invalid(String),
    #[tap]
    #[tap]
    Seen(u32),
}

fn main() {}
