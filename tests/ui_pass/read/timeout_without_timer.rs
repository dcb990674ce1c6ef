use side_output::Calls;
use std::time::Duration;

fn main() {
    let _calls =
        Calls::ordered(8).timer(|_| std::future::ready(())).timeout(Duration::from_secs(5));
}
