#![deny(deprecated)]

use futures::stream;
use side_output::prelude::*;

// FAULT-44: the tag, the field and the method of a deprecated output are deprecated too.
#[splitter]
pub enum Orders {
    Valid(u8),
    #[deprecated(note = "late orders are rejected")]
    Late(u8),
}

fn main() {
    let split = |n: u8| Orders::Valid(n);
    let mut streams = stream::iter([1]).split_with(split);
    drop(streams.get_side_output(Orders::LATE_TAG));
    let OrdersStreams { valid, late } = streams;
    drop((valid, late, OrdersTag::Late));
    drop(stream::iter([1]).split_with(split).wire().valid(discard()).late(discard()).run());
}
