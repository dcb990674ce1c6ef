use side_output::Process;
use side_output::prelude::*;

#[splitter]
enum Orders {
    Valid(u32),
}

struct Check;

impl Process for Check {
    type In = u32;
    type Out = Orders;

    fn on_record(&mut self, order: u32, cx: &mut Context<Orders>) -> impl Routes<Orders> {
        cx.set_timer(Timestamp::MAX);
        Orders::Valid(order)
    }
}

fn main() {}
