use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};

#[splitter]
enum Orders {
    Valid(u32),
}

struct Check;

impl KeyedProcess for Check {
    type Key = u32;
    type In = u32;
    type State = u32;
    type Out = Orders;

    fn on_record(
        &mut self,
        order: u32,
        _count: &mut u32,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Orders> {
        cx.set_timer(Timestamp::MAX);
        Orders::Valid(order)
    }
}
