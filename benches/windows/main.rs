//! Windows and timers: `cargo bench --bench windows [-- --json] [--n N] [--rounds R] [filter]…`.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "random bits become signed numbers, and counts become ratios"
)]

#[path = "../common/mod.rs"]
mod common;
mod timers;
mod tumbling;

use common::{Options, compete};
use tumbling::SIZE;

fn main() {
    let options = Options::from_args(10_000_000);
    compete(
        tumbling::tumbling("tumbling", "1000 keys, 1 s tumbling sums, 3 % late", 1000, SIZE),
        &options,
    );
    compete(
        tumbling::tumbling("many keys", "1,000,000 keys, 1 s tumbling sums", 1_000_000, SIZE),
        &options,
    );
    // 10 million records each, so that most of the keys are in every window.
    compete(
        tumbling::tumbling(
            "10 million keys",
            "10,000,000 keys, 100 s tumbling sums",
            10_000_000,
            100 * SIZE,
        ),
        &options,
    );
    compete(tumbling::sliding("sliding", "1000 keys, windows of 1 s every 100 ms", 100), &options);
    compete(
        tumbling::sliding("sliding uneven", "1000 keys, windows of 1 s every 300 ms", 300),
        &options,
    );
    compete(
        tumbling::sliding("sliding often", "1000 keys, windows of 1 s every 20 ms", 20),
        &options,
    );
    compete(tumbling::session(), &options);
    compete(timers::fire(), &options);
    compete(timers::delete(), &options);
}
