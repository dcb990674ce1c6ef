use futures::stream;
use side_output::prelude::*;
use side_output::Count;
use std::time::Duration;

fn main() {
    let numbers = DataStream::from_stream(stream::iter([1, 2]));
    let windows = numbers.key_by(|number| number % 2).window(Tumbling::of(Duration::from_secs(1)));
    let WindowStreams { results, late } = windows.aggregate(Count::new());
    drop((results, late));
}
