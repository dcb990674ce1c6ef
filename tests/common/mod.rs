//! Helpers of the integration tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use futures::executor::block_on;
use futures::future::join;
use futures::{Stream, StreamExt as _};
use side_output::prelude::*;
use side_output::{EventTime, MergingTrigger, Trigger, TriggerContext, Verdict};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Reads two outputs together.
pub(crate) fn read2<A, B>(a: impl Stream<Item = A>, b: impl Stream<Item = B>) -> (Vec<A>, Vec<B>) {
    block_on(join(a.collect(), b.collect()))
}

/// Reads three outputs together.
pub(crate) fn read3<A, B, C>(
    a: impl Stream<Item = A>,
    b: impl Stream<Item = B>,
    c: impl Stream<Item = C>,
) -> (Vec<A>, Vec<B>, Vec<C>) {
    block_on(futures::future::join3(a.collect(), b.collect(), c.collect()))
}

/// Asserts that every record is accounted for.
#[track_caller]
pub(crate) fn assert_balanced(ledger: &Ledger) {
    assert!(ledger.is_balanced(), "{ledger:#?}");
}

/// Whether `part` is `whole` with some records left out.
pub(crate) fn is_subsequence<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|record| whole.any(|other| other == record))
}

/// What [`EventTime`] does, in the engine that keeps windows one by one.
pub(crate) struct OneByOne;

impl<T> Trigger<T> for OneByOne
where
    EventTime: Trigger<T, State = ()>,
{
    type State = ();

    fn on_record(
        &mut self,
        record: &T,
        at: Timestamp,
        state: &mut (),
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        EventTime.on_record(record, at, state, cx)
    }

    fn on_timer(&mut self, at: Timestamp, state: &mut (), cx: &mut TriggerContext<'_>) -> Verdict {
        Trigger::<T>::on_timer(&mut EventTime, at, state, cx)
    }
}

impl<T> MergingTrigger<T> for OneByOne
where
    EventTime: MergingTrigger<T, State = ()>,
{
    fn on_merge(&mut self, state: &mut (), other: (), cx: &mut TriggerContext<'_>) {
        MergingTrigger::<T>::on_merge(&mut EventTime, state, other, cx);
    }
}

/// A small deterministic generator for schedules.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn index(&mut self, len: u32) -> usize {
        usize::try_from(self.below(u64::from(len))).unwrap()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Log events by level, and the text of those from warnings up.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<LogState>);

#[derive(Default)]
struct LogState {
    above_debug: AtomicU64,
    texts: Mutex<Vec<String>>,
}

impl Log {
    /// Runs `f` with the log switched on for this thread.
    pub(crate) fn capture<R>(f: impl FnOnce() -> R) -> (R, Self) {
        let log = Self::default();
        let result = tracing::subscriber::with_default(log.clone(), f);
        (result, log)
    }

    pub(crate) fn above_debug(&self) -> u64 {
        self.0.above_debug.load(Ordering::SeqCst)
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.texts.lock().unwrap().clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() >= tracing::Level::DEBUG {
            return;
        }
        self.0.above_debug.fetch_add(1, Ordering::SeqCst);
        self.0.texts.lock().unwrap().push(text_of(event));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// The fields of a log event.
pub(crate) fn text_of(event: &tracing::Event<'_>) -> String {
    let mut text = Text(String::new());
    event.record(&mut text);
    text.0
}

struct Text(String);

impl tracing::field::Visit for Text {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write as _;
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
