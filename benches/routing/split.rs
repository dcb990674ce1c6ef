//! The contestants of workload A.

use super::records::{
    Consumer, Invalid, Late, Orders, OrdersStreams, Out, Record, classify, out, records,
};
use crate::common::{Contestant, Table, one_thread, two_threads};
use futures::executor::block_on;
use futures::future::ready;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _, join, pin_mut, stream};
use side_output::prelude::*;
use std::convert::Infallible;
use std::hint::black_box;
use std::mem;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use tokio::runtime::Runtime;
use tokio::sync::broadcast::{self, error::RecvError};

pub(crate) fn table<R: Record, C: Consumer>(name: &'static str, about: &'static str) -> Table<Out> {
    let mut table = Table::new(name, about);
    table.run("hand loop", |n| block_on(hand_loop::<R, C>(n)));
    table.run("hand loop, three Vecs of 256", |n| block_on(three_vecs::<R, C>(n, 256)));
    table.run("wired, each", |n| block_on(wired::<R, C>(n)));
    table.run("wired, sinks", |n| block_on(wired_sinks::<R, C>(n)));
    table.run("wired, streams", |n| block_on(wired_streams::<R, C>(n)));
    table.run("for_each, joined", |n| block_on(for_each::<R, C>(n)));
    table.run("for_each, boxed, joined", |n| block_on(boxed::<R, C>(n)));
    table.run("for_each, 3 tasks, 1 thread", |n| tasks::<R, C>(one_thread(), n));
    table.run("for_each, 3 tasks, 2 threads", |n| tasks::<R, C>(two_threads(), n));
    table.run("streams, joined", |n| block_on(streams::<R, C>(n)));
    table.run("streams, 3 tasks, 2 threads", |n| stream_tasks::<R, C>(two_threads(), n));
    table.run("three filters, input read three times", |n| block_on(filters::<R, C>(n)));
    if size_of::<C>() > 0 {
        // Without counting there is no telling what it lost.
        let broadcast = Contestant::new("three filters on a broadcast channel", |n| {
            broadcast::<R, C>(one_thread(), n)
        });
        table.add(broadcast.on_a_part(10).lossy(|out| out.iter().map(|(count, _)| count).sum()));
    }
    table.add(
        Contestant::new("tokio channels, 1 thread", |n| tokio_channels::<R, C>(one_thread(), n))
            .on_a_part(10),
    );
    table.add(
        Contestant::new("tokio channels, 2 threads", |n| tokio_channels::<R, C>(two_threads(), n))
            .on_a_part(10),
    );
    table.run("tokio channels, batches of 256, 1 thread", |n| {
        tokio_batches::<R, C>(one_thread(), n)
    });
    table.run("tokio channels, batches of 256, 2 threads", |n| {
        tokio_batches::<R, C>(two_threads(), n)
    });
    table.add(
        Contestant::new("futures channels, joined", |n| block_on(futures_channels::<R, C>(n)))
            .on_a_part(10),
    );
    table.run("futures channels, batches of 256, joined", |n| block_on(futures_batches::<R, C>(n)));
    table
}

async fn hand_loop<R: Record, C: Consumer>(n: usize) -> Out {
    let (mut valid, mut invalid, mut late) = <(C, C, C)>::default();
    let mut orders = stream::iter(records::<R>(n));
    while let Some(order) = orders.next().await {
        match classify(order) {
            Orders::Valid(order) => valid.valid(order),
            Orders::Invalid(order) => invalid.invalid(order),
            Orders::Late(order) => late.late(order),
        }
    }
    out(&valid, &invalid, &late)
}

/// What a hand loop costs that hands on instead of consuming.
async fn three_vecs<R: Record, C: Consumer>(n: usize, len: usize) -> Out {
    let (mut valid, mut invalid, mut late) = <(C, C, C)>::default();
    let mut orders = stream::iter(records::<R>(n));
    let mut lanes = (Vec::with_capacity(len), Vec::with_capacity(len), Vec::with_capacity(len));
    let mut ended = false;
    while !ended {
        for _ in 0..len {
            let Some(order) = orders.next().await else {
                ended = true;
                break;
            };
            match classify(order) {
                Orders::Valid(order) => lanes.0.push(order),
                Orders::Invalid(order) => lanes.1.push(order),
                Orders::Late(order) => lanes.2.push(order),
            }
        }
        // Whoever reads them may be elsewhere.
        black_box((lanes.0.as_ptr(), lanes.1.as_ptr(), lanes.2.as_ptr()));
        lanes.0.drain(..).for_each(|order| valid.valid(order));
        lanes.1.drain(..).for_each(|order| invalid.invalid(order));
        lanes.2.drain(..).for_each(|order| late.late(order));
    }
    out(&valid, &invalid, &late)
}

async fn wired<R: Record, C: Consumer>(n: usize) -> Out {
    let (mut valid, mut invalid, mut late) = <(C, C, C)>::default();
    stream::iter(records::<R>(n))
        .split_with(classify::<R>)
        .wire()
        .valid(each(|order: R| valid.valid(order)))
        .invalid(each(|order: Invalid<R>| invalid.invalid(order)))
        .late(each(|order: Late| late.late(order)))
        .run()
        .await
        .expect("the input cannot fail");
    out(&valid, &invalid, &late)
}

/// A sink that asks for a rest after every 1024 records.
struct Feed<F> {
    eat: F,
    left: u32,
}

const fn feed<F>(eat: F) -> Feed<F> {
    Feed { eat, left: 1024 }
}

impl<T, F: FnMut(T) + Unpin> Sink<T> for Feed<F> {
    type Error = Infallible;

    #[inline]
    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<(), Infallible>> {
        if self.left == 0 {
            self.left = 1024;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn start_send(mut self: Pin<&mut Self>, value: T) -> Result<(), Infallible> {
        self.left -= 1;
        (self.eat)(value);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

async fn wired_sinks<R: Record, C: Consumer>(n: usize) -> Out {
    let (mut valid, mut invalid, mut late) = <(C, C, C)>::default();
    stream::iter(records::<R>(n))
        .split_with(classify::<R>)
        .wire()
        .valid(feed(|order: R| valid.valid(order)))
        .invalid(feed(|order: Invalid<R>| invalid.invalid(order)))
        .late(feed(|order: Late| late.late(order)))
        .run()
        .await
        .expect("neither the input nor the sinks can fail");
    out(&valid, &invalid, &late)
}

async fn wired_streams<R: Record, C: Consumer>(n: usize) -> Out {
    let (mut valid, mut invalid, mut late) = <(C, C, C)>::default();
    let (to_valid, to_invalid, to_late) = (&mut valid, &mut invalid, &mut late);
    stream::iter(records::<R>(n))
        .split_with(classify::<R>)
        .wire()
        .valid(move |stream: DataStream<R>| stream.for_each(move |order| to_valid.valid(order)))
        .invalid(move |stream: DataStream<Invalid<R>>| {
            stream.for_each(move |order| to_invalid.invalid(order))
        })
        .late(move |stream: DataStream<Late>| stream.for_each(move |order| to_late.late(order)))
        .run()
        .await
        .expect("neither the input nor the streams can fail");
    out(&valid, &invalid, &late)
}

async fn for_each<R: Record, C: Consumer>(n: usize) -> Out {
    let OrdersStreams { valid, invalid, late } =
        stream::iter(records::<R>(n)).split_with(classify::<R>);
    let (valid, invalid, late) = join!(
        valid.fold(C::default(), C::valid),
        invalid.fold(C::default(), C::invalid),
        late.fold(C::default(), C::late),
    );
    done(valid, invalid, late)
}

async fn boxed<R: Record, C: Consumer>(n: usize) -> Out {
    let OrdersStreams { valid, invalid, late } =
        stream::iter(records::<R>(n)).split_with(classify::<R>).boxed();
    let (valid, invalid, late) = join!(
        valid.fold(C::default(), C::valid),
        invalid.fold(C::default(), C::invalid),
        late.fold(C::default(), C::late),
    );
    done(valid, invalid, late)
}

fn tasks<R: Record, C: Consumer>(runtime: &Runtime, n: usize) -> Out {
    runtime.block_on(async {
        let OrdersStreams { valid, invalid, late } =
            stream::iter(records::<R>(n)).split_with(classify::<R>);
        let valid = tokio::spawn(valid.fold(C::default(), C::valid));
        let invalid = tokio::spawn(invalid.fold(C::default(), C::invalid));
        let late = tokio::spawn(late.fold(C::default(), C::late));
        done(valid.await.expect(RUNS), invalid.await.expect(RUNS), late.await.expect(RUNS))
    })
}

const RUNS: &str = "no task panics";

fn done<C: Consumer>(
    valid: Result<C, StreamError>,
    invalid: Result<C, StreamError>,
    late: Result<C, StreamError>,
) -> Out {
    const ENDS: &str = "the input cannot fail";
    out(&valid.expect(ENDS), &invalid.expect(ENDS), &late.expect(ENDS))
}

/// Reads a plain stream, whatever it is.
async fn read<T, C: Consumer>(stream: impl Stream<Item = T>, mut eat: impl FnMut(&mut C, T)) -> C {
    let mut consumer = C::default();
    pin_mut!(stream);
    while let Some(value) = stream.next().await {
        eat(&mut consumer, value);
    }
    consumer
}

async fn streams<R: Record, C: Consumer>(n: usize) -> Out {
    let OrdersStreams { valid, invalid, late } =
        stream::iter(records::<R>(n)).split_with(classify::<R>);
    let (valid, invalid, late) =
        join!(read(valid, C::valid), read(invalid, C::invalid), read(late, C::late));
    out(&valid, &invalid, &late)
}

fn stream_tasks<R: Record, C: Consumer>(runtime: &Runtime, n: usize) -> Out {
    runtime.block_on(async {
        let OrdersStreams { valid, invalid, late } =
            stream::iter(records::<R>(n)).split_with(classify::<R>);
        let valid = tokio::spawn(read(valid, C::valid));
        let invalid = tokio::spawn(read(invalid, C::invalid));
        let late = tokio::spawn(read(late, C::late));
        out(&valid.await.expect(RUNS), &invalid.await.expect(RUNS), &late.await.expect(RUNS))
    })
}

fn valid<R>(order: Orders<R>) -> Option<R> {
    if let Orders::Valid(order) = order { Some(order) } else { None }
}

fn invalid<R>(order: Orders<R>) -> Option<Invalid<R>> {
    if let Orders::Invalid(order) = order { Some(order) } else { None }
}

fn late<R>(order: Orders<R>) -> Option<Late> {
    if let Orders::Late(order) = order { Some(order) } else { None }
}

/// Only possible where the input can be read again.
async fn filters<R: Record, C: Consumer>(n: usize) -> Out {
    let orders = || stream::iter(records::<R>(n)).map(classify);
    let valid = read(orders().filter_map(|order| ready(valid(order))), C::valid).await;
    let invalid = read(orders().filter_map(|order| ready(invalid(order))), C::invalid).await;
    let late = read(orders().filter_map(|order| ready(late(order))), C::late).await;
    out(&valid, &invalid, &late)
}

/// A broadcast channel never makes the sender wait: who reads too slowly loses records.
fn broadcast<R: Record, C: Consumer>(runtime: &Runtime, n: usize) -> Out {
    async fn filter<R: Record, T, C: Consumer>(
        mut receiver: broadcast::Receiver<R>,
        mine: fn(Orders<R>) -> Option<T>,
        eat: fn(&mut C, T),
    ) -> C {
        let mut consumer = C::default();
        loop {
            match receiver.recv().await {
                Ok(order) => {
                    if let Some(value) = mine(classify(order)) {
                        eat(&mut consumer, value);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return consumer,
            }
        }
    }
    runtime.block_on(async {
        let (sender, receiver) = broadcast::channel(1024);
        let invalid = tokio::spawn(filter(sender.subscribe(), invalid, C::invalid));
        let late = tokio::spawn(filter(sender.subscribe(), late, C::late));
        let valid = tokio::spawn(filter(receiver, valid, C::valid));
        let mut orders = stream::iter(records::<R>(n));
        let mut sent = 0;
        while let Some(order) = orders.next().await {
            drop(sender.send(order));
            sent += 1;
            if sent % 512 == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(sender);
        out(&valid.await.expect(RUNS), &invalid.await.expect(RUNS), &late.await.expect(RUNS))
    })
}

/// How records are handed over: a bounded channel, or batches in one.
trait Channel<T>: Send + 'static {
    fn send(&mut self, value: T) -> impl Future<Output = ()> + Send;
}

const OPEN: &str = "the receiver lives";

impl<T: Send + 'static> Channel<T> for tokio::sync::mpsc::Sender<T> {
    #[inline]
    async fn send(&mut self, value: T) {
        Self::send(self, value).await.unwrap_or_else(|_| panic!("{OPEN}"));
    }
}

impl<T: Send + 'static> Channel<T> for futures::channel::mpsc::Sender<T> {
    #[inline]
    async fn send(&mut self, value: T) {
        // `send` would wait until the receiver has it.
        self.feed(value).await.expect(OPEN);
    }
}

/// Sends records in batches.
struct Batches<T, K> {
    batch: Vec<T>,
    channel: K,
}

const BATCH: usize = 256;

impl<T, K> Batches<T, K> {
    fn new(channel: K) -> Self {
        Self { batch: Vec::with_capacity(BATCH), channel }
    }
}

impl<T: Send + 'static, K: Channel<Vec<T>>> Channel<T> for Batches<T, K> {
    #[inline]
    async fn send(&mut self, value: T) {
        self.batch.push(value);
        if self.batch.len() == BATCH {
            let batch = mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
            self.channel.send(batch).await;
        }
    }
}

impl<T: Send + 'static, K: Channel<Vec<T>>> Batches<T, K> {
    async fn flush(mut self) {
        self.channel.send(self.batch).await;
    }
}

async fn produce<R: Record, V, I, L>(n: usize, valid: &mut V, invalid: &mut I, late: &mut L)
where
    V: Channel<R>,
    I: Channel<Invalid<R>>,
    L: Channel<Late>,
{
    let mut orders = stream::iter(records::<R>(n));
    while let Some(order) = orders.next().await {
        match classify(order) {
            Orders::Valid(order) => valid.send(order).await,
            Orders::Invalid(order) => invalid.send(order).await,
            Orders::Late(order) => late.send(order).await,
        }
    }
}

/// Reads a channel of batches.
async fn read_batches<T, C: Consumer>(stream: impl Stream<Item = Vec<T>>, eat: fn(&mut C, T)) -> C {
    let all = |consumer: &mut C, batch: Vec<T>| batch.into_iter().for_each(|v| eat(consumer, v));
    read(stream, all).await
}

fn received<T>(mut receiver: tokio::sync::mpsc::Receiver<T>) -> impl Stream<Item = T> {
    stream::poll_fn(move |cx| receiver.poll_recv(cx))
}

fn tokio_channels<R: Record, C: Consumer>(runtime: &Runtime, n: usize) -> Out {
    use tokio::sync::mpsc::channel;
    runtime.block_on(async {
        let (mut to_valid, valid) = channel(1024);
        let (mut to_invalid, invalid) = channel(1024);
        let (mut to_late, late) = channel(1024);
        let valid = tokio::spawn(read(received(valid), C::valid::<R>));
        let invalid = tokio::spawn(read(received(invalid), C::invalid::<R>));
        let late = tokio::spawn(read(received(late), C::late));
        tokio::spawn(async move {
            produce(n, &mut to_valid, &mut to_invalid, &mut to_late).await;
        });
        out(&valid.await.expect(RUNS), &invalid.await.expect(RUNS), &late.await.expect(RUNS))
    })
}

fn tokio_batches<R: Record, C: Consumer>(runtime: &Runtime, n: usize) -> Out {
    use tokio::sync::mpsc::channel;
    runtime.block_on(async {
        let (to_valid, valid) = channel(4);
        let (to_invalid, invalid) = channel(4);
        let (to_late, late) = channel(4);
        let valid = tokio::spawn(read_batches(received(valid), C::valid::<R>));
        let invalid = tokio::spawn(read_batches(received(invalid), C::invalid::<R>));
        let late = tokio::spawn(read_batches(received(late), C::late));
        tokio::spawn(produce_batches::<R, _, _, _>(n, to_valid, to_invalid, to_late));
        out(&valid.await.expect(RUNS), &invalid.await.expect(RUNS), &late.await.expect(RUNS))
    })
}

async fn produce_batches<R: Record, V, I, L>(n: usize, valid: V, invalid: I, late: L)
where
    V: Channel<Vec<R>>,
    I: Channel<Vec<Invalid<R>>>,
    L: Channel<Vec<Late>>,
{
    let (mut valid, mut invalid, mut late) =
        (Batches::new(valid), Batches::new(invalid), Batches::new(late));
    produce(n, &mut valid, &mut invalid, &mut late).await;
    valid.flush().await;
    invalid.flush().await;
    late.flush().await;
}

async fn futures_channels<R: Record, C: Consumer>(n: usize) -> Out {
    use futures::channel::mpsc::channel;
    let (mut to_valid, valid) = channel(1024);
    let (mut to_invalid, invalid) = channel(1024);
    let (mut to_late, late) = channel(1024);
    let (valid, invalid, late, ()) = join!(
        read(valid, C::valid::<R>),
        read(invalid, C::invalid::<R>),
        read(late, C::late),
        async move { produce(n, &mut to_valid, &mut to_invalid, &mut to_late).await },
    );
    out(&valid, &invalid, &late)
}

async fn futures_batches<R: Record, C: Consumer>(n: usize) -> Out {
    use futures::channel::mpsc::channel;
    let (to_valid, valid) = channel(4);
    let (to_invalid, invalid) = channel(4);
    let (to_late, late) = channel(4);
    let (valid, invalid, late, ()) = join!(
        read_batches(valid, C::valid::<R>),
        read_batches(invalid, C::invalid::<R>),
        read_batches(late, C::late),
        produce_batches::<R, _, _, _>(n, to_valid, to_invalid, to_late),
    );
    out(&valid, &invalid, &late)
}
