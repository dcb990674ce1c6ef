use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};

#[splitter]
enum Orders {
    #[main]
    Order(u32),
}

struct Count;

impl KeyedProcess for Count {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Orders;

    fn on_record(
        &mut self,
        order: u32,
        count: &mut u32,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Orders> {
        *count += 1;
        Orders::Order(order)
    }
}

fn run(orders: DataStream<u32>) {
    let OrdersStreams { order } = orders.key_by(|order: &u32| *order).process(Count);
    order.discard();
}

fn main() {
    let _ = run;
}
