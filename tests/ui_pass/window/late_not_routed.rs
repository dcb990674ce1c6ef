use futures::stream;
use side_output::prelude::*;
use std::time::Duration;

#[splitter]
enum Sums {
    #[main]
    Sum(u32),
    Late(u32),
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

impl RouteLate for Add {
    fn on_late(&mut self, late: Late<u32>) -> impl Routes<Sums> {
        Sums::Late(late.value)
    }
}

fn main() {
    let numbers = DataStream::from_stream(stream::iter([1, 2]));
    let windows = numbers.window_all(Tumbling::of(Duration::from_secs(1)));
    let _sums = windows.side_output_late_data().process(Add);
}
