//! Orders wait ten minutes for their payment. Whatever finds no partner has an output of its own.

use futures::executor::block_on;
use futures::{FutureExt as _, stream};
use side_output::prelude::*;
use side_output::{Element, KeyedCoProcess, KeyedContext};
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;
use tokio::task::yield_now;

const WAIT: Duration = Duration::from_mins(10);

struct Order {
    id: String,
    ts: Timestamp,
}

struct Pay {
    order_id: String,
}

struct MatchResult {
    order: Order,
    pay: Pay,
}

struct Reconcile;

#[splitter]
enum Reconciled {
    #[main]
    Matched(MatchResult),
    UnmatchedOrder(Order),
    UnmatchedPay(Pay),
}

impl KeyedCoProcess for Reconcile {
    type Key = String;
    type Left = Order;
    type Right = Pay;
    type State = Option<Order>; // One value per key.
    type Out = Reconciled;

    fn on_left(
        &mut self,
        order: Order,
        pending: &mut Option<Order>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciled> {
        cx.set_timer(order.ts + WAIT);
        pending.replace(order).map(Reconciled::UnmatchedOrder) // A replaced order is not lost.
    }

    fn on_right(
        &mut self,
        pay: Pay,
        pending: &mut Option<Order>,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciled> {
        match pending.take() {
            Some(order) => Reconciled::Matched(MatchResult { order, pay }),
            None => Reconciled::UnmatchedPay(pay),
        }
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        pending: &mut Option<Order>,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Reconciled> {
        // Not the timer of an order that was matched or replaced.
        pending.take_if(|order| order.ts + WAIT <= at).map(Reconciled::UnmatchedOrder)
    }

    fn is_empty(pending: &Option<Order>) -> bool {
        pending.is_none()
    }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let at = Timestamp::from_secs;
    let order = |id: &str, s| Element::record(Order { id: id.into(), ts: at(s) }, at(s));
    let pay = |id: &str, s| Element::record(Pay { order_id: id.into() }, at(s));
    let orders = [order("o-1", 0), order("o-2", 5), Element::watermark(Timestamp::MAX)];
    // o-2 is paid after 11 minutes, o-3 is no order.
    let payments = [pay("o-1", 60), Element::watermark(at(605)), pay("o-2", 660), pay("o-3", 661)];
    // Payments come a moment later; between streams that are ready, nothing says which is first.
    let payments = yield_now().map(|()| stream::iter(payments)).flatten_stream();
    let orders = DataStream::from_elements(stream::iter(orders)).key_by(|o: &Order| o.id.clone());
    let payments = DataStream::from_elements(payments).key_by(|p: &Pay| p.order_id.clone());
    let (mut matched, mut unpaid, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    block_on(
        orders
            .connect(payments)
            .process(Reconcile)
            .wire()
            .matched(&mut matched)
            .unmatched_order(&mut unpaid)
            .unmatched_pay(&mut unknown)
            .run(),
    )?;
    for MatchResult { order, pay } in matched {
        writeln!(out, "order {} is matched by the payment of {}", order.id, pay.order_id)?;
    }
    for Order { id, ts } in unpaid {
        writeln!(out, "order {id} of {ts:?} ms was not paid within 10 minutes")?;
    }
    for Pay { order_id } in unknown {
        writeln!(out, "payment of {order_id}: no order waits for it")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
