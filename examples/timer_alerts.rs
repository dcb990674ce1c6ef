//! Counts the readings of each sensor by the minute. Fewer than expected become an alert on a tap,
//! beside the count.

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;
use side_output::{KeyedContext, KeyedProcess};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

/// A sensor's name and the second of its reading.
type Reading = (&'static str, i64);

#[splitter]
enum Counts {
    #[main]
    Count(String),
    #[tap]
    Alert(String),
}

struct PerMinute {
    expected: u32,
}

impl KeyedProcess for PerMinute {
    type Key = &'static str;
    type In = Reading;
    /// By minute: records of the next one come before the watermark closes this one.
    type State = BTreeMap<i64, u32>;
    type Out = Counts;

    fn on_record(
        &mut self,
        (_, second): Reading,
        counts: &mut BTreeMap<i64, u32>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counts> {
        let minute = second / 60;
        *counts.entry(minute).or_default() += 1;
        // The last instant of the minute; the same timer is set once, however many readings come.
        cx.set_timer(Timestamp::from_millis((minute + 1) * 60_000 - 1));
        None::<Counts>
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        counts: &mut BTreeMap<i64, u32>,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Counts> {
        let (sensor, minute) = (*cx.key(), at.as_millis() / 60_000);
        let readings = counts.remove(&minute).unwrap_or(0);
        if readings < self.expected {
            let missing = self.expected - readings;
            cx.output(Counts::ALERT_TAG, format!("{sensor}, minute {minute}: {missing} missing"));
        }
        Counts::Count(format!("{sensor}, minute {minute}: {readings} readings"))
    }

    fn is_empty(counts: &BTreeMap<i64, u32>) -> bool {
        counts.is_empty()
    }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let readings = [
        ("attic", 5),
        ("cellar", 10),
        ("attic", 25),
        ("cellar", 30),
        ("attic", 45),
        ("attic", 65),
        ("cellar", 70),
        ("cellar", 90),
        ("cellar", 110),
    ];
    let readings = DataStream::from_stream(stream::iter(readings)).assign_timestamps(
        |reading: &Reading| Timestamp::from_secs(reading.1),
        Watermarks::bounded_out_of_orderness(Duration::from_secs(2)),
    );
    let (mut counts, mut alerts) = (Vec::new(), Vec::new());
    block_on(
        readings
            .key_by(|reading: &Reading| reading.0)
            .process(PerMinute { expected: 3 })
            .wire()
            .count(&mut counts)
            .alert(&mut alerts)
            .run(),
    )?;
    for count in counts {
        writeln!(out, "{count}")?;
    }
    for alert in alerts {
        writeln!(out, "ALERT {alert}")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
