use side_output::Calls;
use std::time::Duration;

fn main() {
    let _calls = Calls::ordered(8).timeout(Duration::from_secs(5));
}
