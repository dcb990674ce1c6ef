//! A service that survives a bad line, a refused write and a lost connection, and stops where it
//! cannot go on: when its disk is full.

use futures::executor::block_on;
use futures::{TryStreamExt as _, stream};
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};

/// A measurement of a device, such as `boiler 81`.
#[derive(Debug)]
struct Reading {
    device: String,
    degrees: i32,
}

#[splitter]
enum Lines {
    #[main]
    Reading(Reading),
    /// A bad line is no error: it is a record, with an output of its own.
    Malformed(String),
}

#[splitter(Lines)]
fn parse(line: &str) -> Lines {
    let parts = line.split_once(' ').and_then(|(device, n)| Some((device, n.parse().ok()?)));
    let Some((device, degrees)) = parts else {
        return Lines::Malformed(line.to_owned());
    };
    Lines::Reading(Reading { device: device.to_owned(), degrees })
}

/// Stands for a database: it refuses what it does not know, and has room for so many rows.
struct Database {
    rows: Vec<Reading>,
    room: usize,
}

enum WriteError {
    /// Of this record alone.
    UnknownDevice(Reading),
    /// Of all that come.
    DiskFull,
}

impl Database {
    fn insert(&mut self, reading: Reading) -> Result<(), WriteError> {
        if self.rows.len() == self.room {
            return Err(WriteError::DiskFull);
        }
        if reading.device == "toaster" {
            return Err(WriteError::UnknownDevice(reading));
        }
        self.rows.push(reading);
        Ok(())
    }
}

/// What comes over each connection, one after the other; the last of them is closed in order.
fn connections() -> [Vec<Result<&'static str, io::ErrorKind>>; 3] {
    [
        vec![
            Ok("boiler 81"),
            Ok("boiler hot"),
            Ok("cellar 12"),
            Err(io::ErrorKind::ConnectionReset),
        ],
        vec![Ok("toaster 190"), Ok("attic 31"), Err(io::ErrorKind::ConnectionAborted)],
        vec![Ok("attic 32"), Ok("boiler 82"), Ok("cellar 13")],
    ]
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut database = Database { rows: Vec::new(), room: 5 };
    for connection in connections() {
        let lines = stream::iter(connection);
        let (mut malformed, mut refused) = (Vec::new(), Vec::new());
        let end = block_on(
            DataStream::from_try_stream(lines.map_err(io::Error::from))
                .split_with(parse)
                .wire()
                .reading(try_each(|reading| match database.insert(reading) {
                    Err(WriteError::UnknownDevice(reading)) => {
                        refused.push(reading);
                        Ok(())
                    }
                    Err(WriteError::DiskFull) => Err("the disk is full"),
                    Ok(()) => Ok(()),
                }))
                .malformed(&mut malformed)
                .run(),
        );
        for line in malformed {
            writeln!(out, "bad line: {line:?}")?;
        }
        for Reading { device, degrees } in refused {
            writeln!(out, "refused: {device} {degrees}")?;
        }
        // However it ended, what was read before is written.
        match end {
            Ok(ledger) => writeln!(out, "the end, after {} lines", ledger.received)?,
            // The input's error, as it was given: connect again.
            Err(StreamError::Failed(cause)) => writeln!(out, "connect again: {cause}")?,
            // A destination's error, with the name of its output.
            Err(error @ StreamError::Destination { .. }) => writeln!(out, "give up: {error}")?,
            Err(error) => return Err(error.into()),
        }
    }
    let hottest = database.rows.iter().map(|reading| reading.degrees).max();
    writeln!(out, "{} rows, at most {} degrees", database.rows.len(), hottest.unwrap_or_default())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
