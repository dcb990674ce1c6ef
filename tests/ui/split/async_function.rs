use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

// FAULT-46
async fn look_up(order: u32) -> u32 {
    order
}

#[splitter(Orders)]
async fn split_order(order: u32) -> Orders {
    if look_up(order).await > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
}

#[splitter(Orders)]
fn split_later(order: u32) -> impl Future<Output = Orders> {
    async move {
        if look_up(order).await > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
    }
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(split_order);
}
