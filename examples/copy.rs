//! One stream copied to two outputs. Taps take copies; an exclusive output could not.

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};

#[splitter]
enum Copies {
    /// For the archive.
    #[tap]
    Archive(String),
    /// For the index.
    #[tap]
    Index(String),
}

#[splitter(Copies)]
fn copy(text: String, cx: &mut Context<Copies>) -> Option<Copies> {
    cx.output(Copies::ARCHIVE_TAG, text.clone());
    cx.output(Copies::INDEX_TAG, text);
    None // No output is exclusive, so there is no route to return.
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let texts = ["one", "two", "three"].map(str::to_owned);
    let (mut archive, mut index) = (Vec::new(), Vec::new());
    let ledger = block_on(
        stream::iter(texts).split_with(copy).wire().archive(&mut archive).index(&mut index).run(),
    )?;
    writeln!(out, "archive: {}", archive.join(", "))?;
    writeln!(out, "index:   {}", index.join(", "))?;
    writeln!(
        out,
        "{} records in, {} copies out",
        ledger.received,
        ledger["archive"].delivered + ledger["index"].delivered
    )?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
