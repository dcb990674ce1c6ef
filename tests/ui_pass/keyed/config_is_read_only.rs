use side_output::prelude::*;
use side_output::{BroadcastContext, BroadcastProcess, Configuration};

#[splitter]
enum Orders {
    Small(u32),
    Large(u32),
}

struct Limit;

impl BroadcastProcess for Limit {
    type In = u32;
    type Update = u32;
    type Config = u32;
    type Out = Orders;

    fn on_record(
        &mut self,
        amount: u32,
        limit: &u32,
        _cx: &mut BroadcastContext<Orders>,
    ) -> impl Routes<Orders> {
        if amount > *limit { Orders::Large(amount) } else { Orders::Small(amount) }
    }

    fn on_update(
        &mut self,
        update: u32,
        limit: &mut Configuration<u32>,
        _cx: &mut Context<Orders>,
    ) -> impl Routes<Orders> {
        limit.replace(update);
        None::<Orders>
    }

    fn on_unconfigured(&mut self, amount: u32, _cx: &mut Context<Orders>) -> impl Routes<Orders> {
        Orders::Small(amount)
    }
}

fn main() {
    let _ = Limit;
}
