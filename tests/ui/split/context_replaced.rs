use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
    #[tap]
    Seen(u32),
}

// FAULT-47: what is emitted to a tap stays with its record.
fn main() {
    let mut kept = Context::new();
    let _streams = stream::iter([1, 10]).split_with(move |order: u32, cx: &mut Context<Orders>| {
        cx.output(Orders::SEEN_TAG, order);
        std::mem::swap(cx, &mut kept);
        Orders::Valid(order)
    });
}
