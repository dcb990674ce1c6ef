use side_output::prelude::*;

// FAULT-41: `super` cannot be a field, so `Super` is called `super_` as well.
#[splitter]
pub enum Orders {
    Super(u8),
    #[allow(non_camel_case_types)]
    Super_(u8),
}

fn main() {}
