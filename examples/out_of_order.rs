//! Records A to I come out of order. A bound of five seconds puts all but one of them right.

use futures::executor::block_on;
use futures::{stream, try_join};
use side_output::prelude::*;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

/// A letter and the second in which it was written.
type Letter = (char, i64);

#[splitter]
enum Seen {
    #[main]
    Letter(Letter),
    /// What was known when the letter came.
    #[tap]
    Note(String),
}

#[splitter(Seen)]
fn note(letter: Letter, cx: &mut Context<Seen>) -> Seen {
    let watermark = match cx.watermark().known() {
        Some(at) => format!("{} ms", at.as_millis()),
        None => "none yet".to_owned(),
    };
    cx.output(
        Seen::NOTE_TAG,
        format!("{} of second {:>2}, watermark {watermark}", letter.0, letter.1),
    );
    Seen::Letter(letter)
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let letters = [
        ('A', 1),
        ('C', 4),
        ('B', 2),
        ('E', 11),
        ('D', 8), // Behind E, but the watermark is at 5.999 s.
        ('G', 16),
        ('F', 9), // The window [0 s, 10 s) was complete when G came.
        ('I', 24),
        ('H', 20),
    ];
    let letters = DataStream::from_stream(stream::iter(letters)).assign_timestamps(
        |letter: &Letter| Timestamp::from_secs(letter.1),
        Watermarks::bounded_out_of_orderness(Duration::from_secs(5)),
    );
    let SeenStreams { letter, note } = letters.split_with(note);
    let WindowStreams { results, late } = letter
        .window_all(Tumbling::of(Duration::from_secs(10)))
        .side_output_late_data()
        .apply(|(), _window, letters: &[Letter]| {
            let mut letters = letters.to_vec();
            letters.sort_by_key(|letter| letter.1);
            letters.into_iter().map(|letter| letter.0).collect::<String>()
        });

    // The outputs feed each other, so they are read together.
    let (mut notes, mut words, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    block_on(async {
        try_join!(note.forward(&mut notes), results.forward(&mut words), late.forward(&mut lost))
    })?;

    for note in notes {
        writeln!(out, "{note}")?;
    }
    for result in words {
        writeln!(out, "window {} in order: {}", result.window, result.value)?;
    }
    for late in lost {
        writeln!(out, "late: {}, {late}", late.value.0)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
