//! `--advise`: what bound and lateness the data asks for.

use super::hourly::{self, BOUND, LATENESS};
use super::job::{Job, explain, scheduled};
use side_output::{Advice, Timestamp, Watermarks};
use std::fmt::Write as _;
use std::time::Duration;

/// Hours to try.
const BOUNDS: [u64; 5] = [0, 1, 2, 4, 8];
const LATENESSES: [u64; 6] = [0, 1, 2, 4, 8, 24];

/// Reads the flights without doing anything with them, and says how far behind they come.
pub(crate) async fn advise(job: &Job) -> Result<Advice, String> {
    let rows = job.rows().await?;
    let timestamps: Vec<Timestamp> = rows
        .fold(Vec::new(), |timestamps, row| timestamps.extend(row.is_ok().then(|| scheduled(&row))))
        .await
        .map_err(explain)?;
    Ok(Watermarks::advise(timestamps))
}

/// The advice, and what windows of an hour would lose.
pub(crate) fn report(advice: &Advice) -> String {
    let mut text = format!("{advice}\n\nflights lost to windows of an hour, by lateness\nbound");
    for lateness in LATENESSES {
        write(&mut text, format_args!("{lateness:>8} h"));
    }
    for bound in BOUNDS {
        write(&mut text, format_args!("\n{bound:>3} h"));
        for lateness in LATENESSES {
            let lost = advice.lost(
                hourly::windows(),
                Duration::from_hours(bound),
                Duration::from_hours(lateness),
            );
            write(&mut text, format_args!("{lost:>10}"));
        }
    }
    let lost = advice.lost(hourly::windows(), BOUND, LATENESS);
    let (bound, lateness) = (BOUND.as_secs() / 3600, LATENESS.as_secs() / 3600);
    write(
        &mut text,
        format_args!(
            "\n\nThis job uses a bound of {bound} h and a lateness of {lateness} h: {lost} lost."
        ),
    );
    text
}

fn write(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all that is written to it");
}
