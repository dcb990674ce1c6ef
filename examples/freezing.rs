//! Sensor lines from a TCP socket or a file; below 32 F an alert goes to a tap, beside the reading.
//!
//! ```text
//! cargo run --example freezing                    # a few built-in lines
//! cargo run --example freezing -- sensors.csv     # lines like `cellar,31.5`
//! cargo run --example freezing -- 127.0.0.1:9000  # the same, for example from `nc -l 9000`
//! ```

use futures::stream;
use side_output::Shutdown;
use side_output::prelude::*;
use std::cell::RefCell;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;

const FREEZING_POINT: f64 = 32.0;

#[derive(Debug, PartialEq)]
struct Reading {
    sensor: String,
    fahrenheit: f64,
}

#[splitter]
enum Sensors {
    #[main]
    Reading(Reading),
    /// A copy for whoever must act.
    #[tap]
    Freezing(String),
    /// A line that is no reading, as it came.
    Malformed(String),
}

#[splitter(Sensors)]
fn split_line(line: String, cx: &mut Context<Sensors>) -> Sensors {
    let parsed = line.split_once(',').and_then(|(sensor, fahrenheit)| {
        let fahrenheit = fahrenheit.trim().parse().ok().filter(|degrees: &f64| degrees.is_finite());
        Some(Reading { sensor: sensor.trim().to_owned(), fahrenheit: fahrenheit? })
    });
    let Some(reading) = parsed else {
        return Sensors::Malformed(line);
    };
    if reading.fahrenheit < FREEZING_POINT {
        cx.output(Sensors::FREEZING_TAG, format!("{} is freezing", reading.sensor));
    }
    Sensors::Reading(reading)
}

/// Prints each line's outputs as the line comes in, so that it can watch a socket, until `shutdown`.
pub(crate) async fn run<R>(
    lines: R,
    shutdown: &Shutdown,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>>
where
    R: AsyncBufRead + Unpin + Send + 'static,
{
    let lines = stream::try_unfold(lines.lines(), |mut lines| async {
        Ok::<_, io::Error>(lines.next_line().await?.map(|line| (line, lines)))
    });
    // The destinations are called in the order of the records and share the place to print to.
    let printed = RefCell::new((out, Ok(())));
    let print = |text: String| {
        let (out, result) = &mut *printed.borrow_mut();
        if result.is_ok() {
            *result = writeln!(out, "{text}");
        }
    };
    let run = shutdown
        .try_input(lines)
        .split_with(split_line)
        .wire()
        .reading(each(|reading: Reading| {
            print(format!("{:<8} {:>5.1} F", reading.sensor, reading.fahrenheit));
        }))
        .freezing(each(|alert| print(format!("ALERT    {alert}"))))
        .malformed(each(|line| print(format!("skipped  {line:?}"))))
        .run();
    let ledger = run.ledger_handle();
    match run.await {
        Ok(_) | Err(StreamError::Stopped) => {} // All that was read is printed.
        Err(error) => return Err(error.into()),
    }
    let ledger = ledger.read();
    let (out, result) = printed.into_inner();
    result?;
    writeln!(out, "{} lines, {} alerts", ledger.received, ledger["freezing"].delivered)?;
    Ok(())
}

pub(crate) const SAMPLE: &str = "attic,54.5\ncellar,31.5\ngarage,?\nporch,-4\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let out = &mut io::stdout().lock();
    let shutdown = Shutdown::new();
    let on_ctrl_c = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_ctrl_c.stop();
        }
    });
    match std::env::args().nth(1) {
        None => run(SAMPLE.as_bytes(), &shutdown, out).await,
        Some(file) if Path::new(&file).exists() => {
            run(BufReader::new(tokio::fs::File::open(file).await?), &shutdown, out).await
        }
        Some(address) => {
            run(BufReader::new(TcpStream::connect(address).await?), &shutdown, out).await
        }
    }
}
