//! split-stream-by splits in two: three outputs take two of them.

use crate::common::Table;
use crate::records::{Consumer, Invalid, Late, Orders, Out, Record, classify, out, records};
use futures::executor::block_on;
use futures::{Stream, StreamExt as _, join, pin_mut, stream};
use split_stream_by::{Either, SplitStreamByMapExt as _};

pub(crate) fn enter<R: Record, C: Consumer>(table: &mut Table<Out>) {
    table.run("split-stream-by, joined", |n| block_on(plain::<R, C>(n)));
    table.run("split-stream-by, buffers of 1024, joined", |n| block_on(buffered::<R, C>(n)));
}

type Sides<R> = Either<R, Either<Invalid<R>, Late>>;

#[inline]
fn side<R: Record>(record: R) -> Sides<R> {
    match classify(record) {
        Orders::Valid(record) => Either::Left(record),
        Orders::Invalid(invalid) => Either::Right(Either::Left(invalid)),
        Orders::Late(late) => Either::Right(Either::Right(late)),
    }
}

async fn plain<R: Record, C: Consumer>(n: usize) -> Out {
    let (valid, rest) = stream::iter(records::<R>(n)).split_by_map(side::<R>);
    let (invalid, late) = rest.split_by_map(|side| side);
    consume::<R, C>(valid, invalid, late).await
}

async fn buffered<R: Record, C: Consumer>(n: usize) -> Out {
    let (valid, rest) = stream::iter(records::<R>(n)).split_by_map_buffered::<1024>(side::<R>);
    let (invalid, late) = rest.split_by_map_buffered::<1024>(|side| side);
    consume::<R, C>(valid, invalid, late).await
}

async fn consume<R: Record, C: Consumer>(
    valid: impl Stream<Item = R>,
    invalid: impl Stream<Item = Invalid<R>>,
    late: impl Stream<Item = Late>,
) -> Out {
    let (valid, invalid, late) =
        join!(read(valid, C::valid), read(invalid, C::invalid), read(late, C::late));
    out::<C>(&valid, &invalid, &late)
}

async fn read<T, C: Consumer>(stream: impl Stream<Item = T>, mut eat: impl FnMut(&mut C, T)) -> C {
    let mut consumer = C::default();
    pin_mut!(stream);
    while let Some(value) = stream.next().await {
        eat(&mut consumer, value);
    }
    consumer
}
