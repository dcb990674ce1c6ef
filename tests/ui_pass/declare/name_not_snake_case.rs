use side_output::prelude::*;

#[splitter]
pub enum Orders {
    #[output(name = "late_order")]
    Late(u8),
    Later(u8),
}

fn main() {}
