use futures::stream;
use side_output::Count;
use side_output::prelude::*;
use std::time::Duration;

fn main() {
    let numbers = DataStream::from_stream(stream::iter([1, 2]));
    let windows = numbers.key_by(|number| number % 2).window(Tumbling::of(Duration::from_secs(1)));
    let WindowStreams { results, late } = windows.side_output_late_data().aggregate(Count::new());
    drop((results, late));
}
