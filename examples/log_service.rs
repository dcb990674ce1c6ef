//! A log service: JSON lines from any number of sockets are counted by minute and level. Late entries go
//! to a file, with the reason; malformed lines to a channel. Ctrl-C ends it, and all that came is
//! written.
//!
//! ```text
//! cargo run --example log_service -- 127.0.0.1:9000
//! echo '{"at":1700000000000,"level":"warn","text":"hot"}' | nc 127.0.0.1 9000
//! ```

use futures::stream;
use serde::{Deserialize, Serialize};
use side_output::codec::Encode;
use side_output::prelude::*;
use side_output::{Count, Shutdown, write_to};
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const MINUTE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    /// Milliseconds since 1970.
    at: i64,
    level: String,
    text: String,
}

#[splitter]
enum Lines {
    #[main]
    Entry(Entry),
    /// As it came, and what is wrong with it.
    Malformed { line: String, reason: String },
}

#[splitter(Lines)]
fn parse(line: String) -> Lines {
    match serde_json::from_str(&line) {
        Ok(entry) => Lines::Entry(entry),
        Err(error) => Lines::Malformed { line, reason: error.to_string() },
    }
}

/// An entry that came too late as a line of JSON, with the reason.
fn late_entries() -> impl Encode<Late<Entry>, Error = serde_json::Error> {
    |late: &Late<Entry>, into: &mut Vec<u8>| {
        let line = serde_json::json!({ "entry": late.value, "late": late.to_string() });
        serde_json::to_writer(&mut *into, &line)?;
        into.push(b'\n');
        Ok(())
    }
}

/// Reads one connection up to its end, or as long as somebody wants its lines.
async fn read(socket: TcpStream, lines: mpsc::Sender<String>) -> io::Result<()> {
    let mut reader = BufReader::new(socket).lines();
    while let Some(line) = reader.next_line().await? {
        if lines.send(line).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// A connection that breaks ends alone.
async fn accept(listener: TcpListener, lines: mpsc::Sender<String>) -> io::Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(read(socket, lines.clone()));
    }
}

/// Serves until `shutdown`; every count is printed as soon as its minute is over.
pub(crate) async fn serve(
    listener: TcpListener,
    shutdown: &Shutdown,
    late: impl AsyncWrite,
    malformed: mpsc::UnboundedSender<String>,
    out: &mut impl Write,
) -> Result<Ledger, Box<dyn Error>> {
    let (sender, mut lines) = mpsc::channel(1024);
    let accepting = tokio::spawn(accept(listener, sender));
    let mut printed = Ok(());
    let run = shutdown
        .input(stream::poll_fn(move |cx| lines.poll_recv(cx)))
        .split_with(parse)
        .wire()
        .entry_with(async |entries| {
            entries
                .assign_timestamps(
                    |entry: &Entry| Timestamp::from_millis(entry.at),
                    Watermarks::bounded_out_of_orderness(Duration::from_secs(5)),
                )
                .key_by(|entry: &Entry| entry.level.clone())
                .window(Tumbling::of(MINUTE))
                .side_output_late_data()
                .aggregate(Count::new())
                .wire()
                .results(each(|count: WindowResult<String, u64>| {
                    let minute = count.window.start().to_rfc3339().unwrap_or_default();
                    let line = writeln!(out, "{minute} {:<5} {}", count.key, count.value);
                    printed = std::mem::replace(&mut printed, Ok(())).and(line);
                }))
                .late(write_to(late, late_entries()))
                .run()
                .await
        })
        .malformed_with(|lines| {
            lines.for_each(move |LinesMalformed { line, reason }| {
                // Nobody may want to know.
                drop(malformed.send(format!("{line:?}: {reason}")));
            })
        })
        .run();
    let ledger = run.ledger_handle();
    let end = run.await;
    accepting.abort();
    printed?;
    match end {
        Ok(_) | Err(StreamError::Stopped) => Ok(ledger.read()),
        Err(error) => Err(error.into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let late = tokio::fs::File::create("late.jsonl").await?;
    let (sender, mut malformed) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(line) = malformed.recv().await {
            eprintln!("malformed: {line}");
        }
    });
    let shutdown = Shutdown::new();
    let on_ctrl_c = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            // The minute that is not over is counted as far as it came.
            on_ctrl_c.drain();
        }
    });
    let ledger = serve(listener, &shutdown, late, sender, &mut io::stdout()).await?;
    eprintln!("{} lines, {} malformed", ledger.received, ledger["malformed"].routed);
    Ok(())
}
