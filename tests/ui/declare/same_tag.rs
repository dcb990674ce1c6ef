use side_output::prelude::*;

// FAULT-41: the tag of `Late` has the name of another variant.
#[splitter]
pub enum Orders {
    #[allow(non_camel_case_types)]
    LATE_TAG(u8),
    Late(u8),
}

fn main() {}
