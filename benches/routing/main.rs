//! Splitting a stream: `cargo bench --bench routing [-- --json] [--n N] [--rounds R] [filter]…`.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "random bits become signed numbers, and counts become ratios"
)]

mod chain;
#[path = "../common/mod.rs"]
mod common;
mod outputs;
mod records;
mod split;

use common::{Options, compete};
use records::{Counting, Opaque, Owned, Plain};

fn main() {
    let options = Options::from_args(10_000_000);
    compete(
        split::table::<Plain, Counting>("split", "three integers, counting consumers"),
        &options,
    );
    compete(split::table::<Plain, Opaque>("opaque", "three integers, opaque consumers"), &options);
    compete(
        split::table::<Owned, Counting>("owned", "with a 40-byte string, counting consumers"),
        &options,
    );
    compete(outputs::table(), &options);
    compete(chain::chain(), &options);
    compete(chain::event_time(), &options);
}
