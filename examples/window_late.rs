//! Turnover per product in windows of five minutes that take records for one minute more.
//!
//! A record that comes later than that leaves through its own output and says why it is late.

use futures::executor::block_on;
use futures::{stream, try_join};
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

#[derive(Clone, Debug)]
struct Order {
    product: &'static str,
    amount: i64,
    event_seconds: i64,
}

/// Adds the amounts of a window as they come: the window keeps one number.
struct AmountSum;

impl Aggregate for AmountSum {
    type In = Order;
    type Accumulator = i64;
    type Output = i64;

    fn create(&mut self) -> i64 {
        0
    }
    fn add(&mut self, sum: &mut i64, order: &Order) {
        *sum += order.amount;
    }
    fn merge(&mut self, sum: &mut i64, other: i64) {
        *sum += other;
    }
    fn result(&mut self, sum: &i64) -> i64 {
        *sum
    }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let order = |product, amount, event_seconds| Order { product, amount, event_seconds };
    let incoming = [
        order("tea", 10, 10),
        order("coffee", 30, 20),
        order("tea", 5, 299),
        order("tea", 20, 310), // The watermark reaches 304.999 s: the first window is complete.
        order("tea", 1, 290),  // Within the minute: the window says a corrected sum.
        order("coffee", 7, 400), // The watermark reaches 394.999 s: the minute is over.
        order("tea", 100, 280),
    ];
    let orders = DataStream::from_stream(stream::iter(incoming)).assign_timestamps(
        |order: &Order| Timestamp::from_secs(order.event_seconds),
        Watermarks::bounded_out_of_orderness(Duration::from_secs(5)),
    );

    let WindowStreams { results, late } = orders
        .key_by(|order: &Order| order.product)
        .window(Tumbling::of(Duration::from_secs(300)))
        .allowed_lateness(Duration::from_secs(60))
        .side_output_late_data()
        .aggregate(AmountSum);

    let (mut sums, mut too_late) = (Vec::new(), Vec::new());
    block_on(async { try_join!(results.forward(&mut sums), late.forward(&mut too_late)) })?;

    for WindowResult { key, window, value, pane } in sums {
        let (start, end) = (window.start().as_millis() / 1000, window.end().as_millis() / 1000);
        writeln!(out, "{key:<7}{start:>4} s to {end} s: {value:>3}  ({pane})")?;
    }
    for late in too_late {
        let Order { product, amount, .. } = late.value;
        writeln!(out, "late: {product} {amount}, {late}")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
