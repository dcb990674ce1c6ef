use futures::stream;
use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};

#[splitter]
enum Orders {
    Valid(u32),
}

struct Check;

impl KeyedProcess for Check {
    type Key = String;
    type In = u32;
    type State = u32;
    type Out = Orders;

    fn on_record(
        &mut self,
        order: u32,
        _count: &mut u32,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Orders> {
        Orders::Valid(order)
    }
}

fn main() {
    let orders = DataStream::from_stream(stream::iter([1, 2]));
    drop(orders.key_by(|order| *order % 10).process(Check));
}
