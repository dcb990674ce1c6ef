use side_output::prelude::*;

// FAULT-41: the struct of a variant has the name of a companion.
#[splitter]
pub enum Orders {
    Streams { count: usize },
    Tag { text: String },
    Wiring { text: String },
}

#[splitter(Orders)]
fn split_order(count: usize) -> Orders {
    match count {
        0 => Orders::Tag { text: String::new() },
        1 => Orders::Wiring { text: String::new() },
        _ => Orders::Streams { count },
    }
}

fn main() {}
