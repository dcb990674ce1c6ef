use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(payload = Late)]
    Late {
        count: u8,
    },
    Valid(u8),
}

fn main() {}
