use futures::stream;
use side_output::prelude::*;
use side_output::{Count, Tumbling};
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
enum Device {
    Phone,
    Desktop,
}

pub fn main() {
    let clicks = stream::iter([(Device::Phone, 1), (Device::Desktop, 2)]);
    let _counts = DataStream::from_stream(clicks)
        .assign_timestamps(
            |click: &(Device, i64)| Timestamp::from_secs(click.1),
            Watermarks::monotonous(),
        )
        .key_by(|click: &(Device, i64)| click.0.clone())
        .window(Tumbling::of(Duration::from_secs(60)))
        .drop_late_data()
        .uid("clicks")
        .aggregate(Count::new());
}
