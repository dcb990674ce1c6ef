use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};

#[splitter]
enum Orders {
    #[main]
    Order(u32),
}

struct Remind;

impl KeyedProcess for Remind {
    type Key = u32;
    type In = u32;
    type State = ();
    type Out = Orders;

    fn on_record(
        &mut self,
        order: u32,
        _state: &mut (),
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Orders> {
        cx.set_timer(Timestamp::from_secs(60));
        Orders::Order(order)
    }
}

fn main() {
    let _ = Remind;
}
