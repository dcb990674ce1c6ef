//! The heavier alternatives beside side-output, on workload A of `cargo bench --bench routing`:
//! `cargo run --release [-- --json] [--n N] [--rounds R] [filter]…`.
//!
//! Records, consumers, our own contestants and the table are those of that benchmark.

#[path = "../../common/mod.rs"]
mod common;
#[cfg(feature = "dfir")]
mod dfir;
#[path = "../../routing/records.rs"]
#[allow(dead_code, reason = "only the records of three integers are read")]
mod records;
#[cfg(feature = "renoir")]
mod renoir;
#[path = "../../routing/split.rs"]
#[allow(clippy::ok_expect, reason = "what could not be sent cannot be printed")]
mod split;
mod split_stream_by;
#[cfg(feature = "timely")]
mod timely;

use common::{Options, Table, compete};
use records::{Consumer, Counting, Opaque, Out, Plain};

/// Of the contestants of the library's benchmark, those that are of interest here.
const OURS: [&str; 5] = [
    "hand loop",
    "wired, each",
    "for_each, joined",
    "streams, joined",
    "three filters on a broadcast channel",
];

fn table<C: Consumer + Copy>(name: &'static str, about: &'static str) -> Table<Out> {
    let mut table = split::table::<Plain, C>(name, about);
    table.contestants.retain(|contestant| OURS.contains(&contestant.name));
    split_stream_by::enter::<C>(&mut table);
    #[cfg(feature = "timely")]
    timely::enter::<C>(&mut table);
    #[cfg(feature = "renoir")]
    renoir::enter::<C>(&mut table);
    #[cfg(feature = "dfir")]
    dfir::enter::<C>(&mut table);
    table
}

fn main() {
    let options = Options::from_args(2_000_000);
    compete(table::<Counting>("split", "three integers, counting consumers"), &options);
    compete(table::<Opaque>("opaque", "three integers, opaque consumers"), &options);
}
