//! Orders are valid, invalid, or late: more than a minute behind the watermark.

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

/// An order as it comes in.
#[derive(Clone, Debug)]
struct RawOrder {
    id: Option<&'static str>,
    cents: i64,
    event_seconds: i64,
}

/// An order that can be processed.
#[derive(Debug)]
struct Order {
    id: &'static str,
    cents: i64,
}

/// Where an order goes.
#[splitter]
enum Orders {
    /// Passed validation.
    #[main]
    Valid(Order),
    /// Kept as received, with the reason.
    Invalid { order: RawOrder, reason: &'static str },
    /// More than a minute behind the watermark.
    #[output(capacity = 4096, overflow = "block")]
    Late { order: Order, seconds_behind: i64 },
}

#[splitter(Orders)]
fn split_order(raw: RawOrder, cx: &mut Context<Orders>) -> Orders {
    let Some(id) = raw.id else {
        return Orders::Invalid { order: raw, reason: "no id" };
    };
    if raw.cents <= 0 {
        return Orders::Invalid { order: raw, reason: "not a positive amount" };
    }
    let order = Order { id, cents: raw.cents };
    let at = Timestamp::from_secs(raw.event_seconds);
    let behind = cx.watermark().millis_since(at);
    if behind > 60_000 {
        return Orders::Late { order, seconds_behind: behind / 1000 };
    }
    Orders::Valid(order)
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let raw = |id, cents, event_seconds| RawOrder { id, cents, event_seconds };
    let incoming = [
        raw(Some("o-1"), 2500, 100),
        raw(None, 900, 101),
        raw(Some("o-2"), 0, 103),
        raw(Some("o-3"), 1250, 200),
        raw(Some("o-4"), 4000, 150), // Behind, but by less than a minute.
        raw(Some("o-5"), 750, 102),  // The watermark is at 194.999 s.
    ];
    let orders = DataStream::from_stream(stream::iter(incoming)).assign_timestamps(
        |order: &RawOrder| Timestamp::from_secs(order.event_seconds),
        Watermarks::bounded_out_of_orderness(Duration::from_secs(5)),
    );

    let (mut valid, mut invalid, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let ledger = block_on(
        orders
            .split_with(split_order)
            .wire()
            .valid(&mut valid)
            .invalid(&mut invalid)
            .late(&mut late)
            .run(),
    )?;

    for Order { id, cents } in valid {
        writeln!(out, "valid    {id}: {}.{:02}", cents / 100, cents % 100)?;
    }
    for OrdersInvalid { order, reason } in invalid {
        writeln!(out, "invalid  {reason}: {order:?}")?;
    }
    for OrdersLate { order, seconds_behind } in late {
        writeln!(out, "late     {}: {seconds_behind} s behind the watermark", order.id)?;
    }
    writeln!(out, "{} orders, every one accounted for: {}", ledger.received, ledger.is_balanced())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
