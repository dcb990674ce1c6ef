use futures::stream;
use side_output::prelude::*;
use std::time::Duration;

#[splitter]
enum Sums {
    Sum(u32),
}

struct Add;

impl WindowProcess for Add {
    type Key = ();
    type In = u32;
    type State = ();
    type KeyState = ();
    type Out = Sums;

    fn process(
        &mut self,
        (): &(),
        records: &[u32],
        _: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Sums> {
        Sums::Sum(records.iter().sum())
    }
}

pub(crate) fn checked() {
    let windows = DataStream::from_stream(stream::iter([1, 2]))
        .window_all(Tumbling::of(Duration::from_secs(1)));
    drop(windows.drop_late_data().process(Add));
}
