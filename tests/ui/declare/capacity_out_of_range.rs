use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 0)]
    Valid(u32),
    #[output(capacity = 100_000_000_000_000_000_000)]
    Invalid(String),
    #[output(capacity = -1)]
    Late(u32),
    #[output(capacity = "many")]
    Seen(u32),
}

fn main() {}
