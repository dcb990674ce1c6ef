//! Payments are split, what was refused is split again, a window counts one of the side outputs,
//! and everything is united again.

use futures::executor::block_on;
use futures::stream;
use side_output::Count;
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

#[derive(Clone, Debug)]
struct Payment {
    second: i64,
    cents: u32,
    code: u32,
}

#[splitter]
enum Payments {
    #[main]
    Accepted(Payment),
    Refused(Payment),
}

#[splitter(Payments)]
fn split_payment(payment: Payment) -> Payments {
    if payment.code == 0 { Payments::Accepted(payment) } else { Payments::Refused(payment) }
}

#[splitter]
enum Refusals {
    /// May work when tried again.
    Temporary(Payment),
    Final(Payment),
}

#[splitter(Refusals)]
fn split_refusal(payment: Payment) -> Refusals {
    if payment.code < 500 { Refusals::Final(payment) } else { Refusals::Temporary(payment) }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let payment = |second, cents, code| Payment { second, cents, code };
    let incoming = [
        payment(1, 500, 0),
        payment(12, 120, 503),
        payment(30, 90, 402),
        payment(45, 80, 503),
        payment(61, 700, 0),
        payment(62, 300, 504),
    ];
    let payments = DataStream::from_stream(stream::iter(incoming)).assign_timestamps(
        |payment: &Payment| Timestamp::from_secs(payment.second),
        Watermarks::monotonous(),
    );

    let PaymentsStreams { accepted, refused } = payments.split_with(split_payment);
    let RefusalsStreams { temporary, r#final } = refused.split_with(split_refusal);
    // Side outputs have timestamps and watermarks as any other stream has.
    let outages = temporary
        .window_all(Tumbling::of(Duration::from_secs(60)))
        .drop_late_data()
        .aggregate(Count::new());

    let accepted = accepted.map(|payment| format!("{} accepted", payment.cents));
    let refused =
        r#final.map(|payment| format!("{} refused, code {}", payment.cents, payment.code));
    let outages =
        outages.map(|count| format!("{} to try again in the minute {}", count.value, count.window));
    let all = accepted.boxed().union([refused.boxed(), outages.boxed()]);

    let mut lines = Vec::new();
    block_on(all.forward(&mut lines))?;
    lines.sort(); // The streams of a union take turns; nothing orders them among each other.
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
