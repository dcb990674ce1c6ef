use futures::{StreamExt as _, stream};
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

// FAULT-46
async fn look_up(order: u32) -> (u32, u32) {
    (order, order)
}

#[splitter(Orders)]
fn split_order((order, found): (u32, u32)) -> Orders {
    if found > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
}

fn main() {
    let _streams = stream::iter([1, 10]).then(look_up).split_with(split_order);
}
