//! Malformed JSON goes to a dead letter output with its raw bytes, the reason and the position;
//! the rest of the input goes on.

use futures::executor::block_on;
use futures::stream;
use serde::Deserialize;
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};

#[derive(Debug, Deserialize)]
struct Order {
    id: u32,
    name: String,
}

#[splitter]
enum Parsed {
    #[main]
    Order(Order),
    /// Enough to find the line, to mend it and to hand it back.
    DeadLetter { raw: Vec<u8>, line: u64, offset: u64, reason: String },
}

/// Parses lines, knowing where in the input it is.
fn parser() -> impl FnMut(Vec<u8>) -> Parsed {
    let (mut line, mut next) = (0, 0);
    move |raw: Vec<u8>| {
        let offset = next;
        line += 1;
        next += raw.len() as u64 + 1; // With its line feed.
        match serde_json::from_slice(&raw) {
            Ok(order) => Parsed::Order(order),
            Err(error) => Parsed::DeadLetter { raw, line, offset, reason: error.to_string() },
        }
    }
}

const INPUT: &[u8] = b"{\"id\":1,\"name\":\"tea\"}
{\"id\":2,\"name\":\"cof
{\"id\":-3,\"name\":\"milk\"}
{\"id\":4,\"name\":\"\xff\"}
{\"id\":5}
{\"id\":6,\"name\":\"sugar\"}";

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (mut orders, mut letters) = (Vec::new(), Vec::new());
    let lines = INPUT.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
    let ledger = block_on(
        stream::iter(lines)
            .split_with(parser())
            .wire()
            .order(&mut orders)
            .dead_letter(&mut letters)
            .run(),
    )?;
    for Order { id, name } in orders {
        writeln!(out, "order {id}: {name}")?;
    }
    for ParsedDeadLetter { raw, line, offset, reason } in letters {
        writeln!(out, "dead letter, line {line}, byte {offset}: {reason}")?;
        writeln!(out, "  raw: {}", raw.escape_ascii())?;
        assert!(INPUT[usize::try_from(offset)?..].starts_with(&raw), "the position is exact");
    }
    writeln!(out, "{} of {} lines", ledger["dead_letter"].delivered, ledger.received)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
