use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(name = "Late-Order")]
    Late(u8),
    #[output(name = late)]
    Later(u8),
}

fn main() {}
