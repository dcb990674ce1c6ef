use side_output::Process;
use side_output::prelude::*;

#[splitter]
enum Orders {
    #[main]
    Order(u32),
}

struct Remind;

impl Process for Remind {
    type In = u32;
    type Out = Orders;

    fn on_record(&mut self, order: u32, cx: &mut Context<Orders>) -> impl Routes<Orders> {
        cx.set_timer(Timestamp::from_secs(60));
        Orders::Order(order)
    }
}

fn main() {
    let _ = Remind;
}
