use futures::stream;
use side_output::prelude::SplitExt as _;

#[derive(Debug)]
enum Orders {
    Valid(u32),
    Invalid(u32),
}

fn main() {
    let _streams = stream::iter([1, 10]).split_with(|order: u32| {
        if order > 9 { Orders::Invalid(order) } else { Orders::Valid(order) }
    });
}
