use futures::stream;
use side_output::prelude::*;
use side_output::{Count, MergingTrigger, Trigger, TriggerContext, Verdict};
use std::time::Duration;

struct OnTen;

impl Trigger<u32> for OnTen {
    type State = ();

    fn on_record(
        &mut self,
        record: &u32,
        _: Timestamp,
        (): &mut (),
        _: &mut TriggerContext<'_>,
    ) -> Verdict {
        if *record == 10 { Verdict::Fire } else { Verdict::Continue }
    }
}

impl MergingTrigger<u32> for OnTen {
    fn on_merge(&mut self, (): &mut (), (): (), _: &mut TriggerContext<'_>) {}
}

fn main() {
    let counts = DataStream::from_stream(stream::iter([1, 10]))
        .window_all(Session::with_gap(Duration::from_secs(1)))
        .trigger(OnTen)
        .drop_late_data()
        .aggregate(Count::new());
    drop(counts);
}
