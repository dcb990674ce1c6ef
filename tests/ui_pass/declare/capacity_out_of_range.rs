use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(capacity = 1)]
    Valid(u32),
    #[output(capacity = 100_000)]
    Invalid(String),
    #[output(overflow = "unbounded")]
    Late(u32),
    #[output(capacity = 2 * 8)]
    Seen(u32),
}

fn main() {}
