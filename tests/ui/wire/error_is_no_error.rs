use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Orders {
    #[main]
    Valid(u32),
}

struct Refused;

async fn write(orders: DataStream<u32>) -> Result<(), Refused> {
    orders.for_each(drop).await.map_err(|_| Refused)
}

fn main() {
    drop(stream::iter([1]).split_with(Orders::Valid).wire().valid_with(write).run());
    drop(stream::iter([1]).split_with(Orders::Valid).wire().valid(try_each(|_| Err(Refused))).run());
}
