//! The heavier alternatives beside side-output, on workload A of `cargo bench --bench routing`:
//! `cargo run --release [-- --json] [--n N] [--rounds R] [filter]…`.
//!
//! Records, consumers, our own contestants and the table are those of that benchmark.

#[path = "../../common/mod.rs"]
mod common;
#[cfg(feature = "dfir")]
mod dfir;
#[path = "../../routing/records.rs"]
#[allow(dead_code, reason = "some is for the library's own benchmark")]
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
use records::{Consumer, Counting, Opaque, Out, Owned, Plain, Record};

/// Of the contestants of the library's benchmark, those that are of interest here.
const OURS: [&str; 7] = [
    "hand loop",
    "wired, each",
    "for_each, joined",
    "for_each, 3 tasks, 2 threads",
    "streams, joined",
    "tokio channels, 2 threads",
    "three filters on a broadcast channel",
];

/// Our own contestants, and those that take records of any type.
fn table<R: Record, C: Consumer + Copy>(name: &'static str, about: &'static str) -> Table<Out> {
    let mut table = split::table::<R, C>(name, about);
    table.contestants.retain(|contestant| OURS.contains(&contestant.name));
    split_stream_by::enter::<R, C>(&mut table);
    #[cfg(feature = "timely")]
    timely::enter::<R, C>(&mut table);
    table
}

fn plain<C: Consumer + Copy>(name: &'static str, about: &'static str) -> Table<Out> {
    #[allow(unused_mut, reason = "the others are features")]
    let mut table = table::<Plain, C>(name, about);
    #[cfg(feature = "renoir")]
    renoir::enter::<C>(&mut table);
    #[cfg(feature = "dfir")]
    dfir::plain::<C>(&mut table);
    table
}

/// renoir has no part in it: its steps ask for records that can be serialized.
fn owned<C: Consumer + Copy>(name: &'static str, about: &'static str) -> Table<Out> {
    #[allow(unused_mut, reason = "the others are features")]
    let mut table = table::<Owned, C>(name, about);
    #[cfg(feature = "dfir")]
    dfir::owned::<C>(&mut table);
    table
}

fn main() {
    let options = Options::from_args(2_000_000);
    compete(plain::<Counting>("split", "three integers, counting consumers"), &options);
    compete(plain::<Opaque>("opaque", "three integers, opaque consumers"), &options);
    compete(owned::<Counting>("owned", "with a 40-byte string, counting consumers"), &options);
}
