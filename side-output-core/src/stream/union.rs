use super::merge::Merge;
use super::{Behind, BoxSource, DataStream, Fed, Intake, Source};
use crate::time::{Alignment, Mark, Timestamp};
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::task::Context;

/// Reads several streams as one; see [`DataStream::union`].
pub struct UnionSource<T> {
    /// `None` after its end.
    inputs: Vec<Option<BoxSource<T>>>,
    merge: Merge<T>,
    /// How many of the last records came from which input, in their order: those that may be unread.
    handed: Vec<(usize, usize)>,
    /// It was read: what its inputs have said so far is in the merge.
    read: bool,
}

impl<T> UnionSource<T> {
    fn new(inputs: Vec<BoxSource<T>>) -> Self {
        let merge = Merge::new(Alignment::union(inputs.len()), inputs.len());
        Self {
            inputs: inputs.into_iter().map(Some).collect(),
            merge,
            handed: Vec::new(),
            read: false,
        }
    }
}

impl<T, Src: Source<T>> DataStream<T, Src> {
    /// All records of this stream and of `others`, as they come.
    ///
    /// The inputs take turns, a chunk each. The union's watermark is the lowest of its inputs';
    /// idle inputs and those that have ended do not hold it back. It only ever grows: a watermark
    /// that goes back is dropped here, also of a single input. See [`Alignment`] for the rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use futures::{StreamExt, stream};
    /// use side_output::prelude::*;
    ///
    /// let odd = DataStream::from_stream(stream::iter([1, 3]));
    /// let even = DataStream::from_stream(stream::iter([2, 4]));
    /// let mut all: Vec<u32> = block_on(odd.union(even).collect());
    /// all.sort();
    /// assert_eq!(all, [1, 2, 3, 4]);
    /// ```
    pub fn union(self, others: impl UnionInputs<T>) -> DataStream<T>
    where
        T: Send + 'static,
        Src: Send + 'static,
    {
        let mut inputs = vec![BoxSource::new(self)];
        inputs.extend(others.into_inputs());
        // A union of a union is one of all their inputs, which then share equally.
        let inputs = inputs.into_iter().flat_map(BoxSource::into_inputs).collect();
        DataStream::new(BoxSource::new(UnionSource::new(inputs)), "union")
    }
}

/// What [`DataStream::union`] takes: another stream, or an array or `Vec` of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be united with a stream of `{T}`",
    label = "expected a `DataStream<{T}>`, or an array or `Vec` of them",
    note = "streams of different types are united after `map`, or connected with `connect`"
)]
pub trait UnionInputs<T> {
    /// The sources of the streams.
    fn into_inputs(self) -> Vec<BoxSource<T>>;
}

impl<T, Src> UnionInputs<T> for DataStream<T, Src>
where
    T: Send + 'static,
    Src: Source<T> + Send + 'static,
{
    fn into_inputs(self) -> Vec<BoxSource<T>> {
        vec![BoxSource::new(self)]
    }
}

impl<T: Send + 'static, const N: usize> UnionInputs<T> for [DataStream<T>; N] {
    fn into_inputs(self) -> Vec<BoxSource<T>> {
        self.into_iter().map(BoxSource::new).collect()
    }
}

impl<T: Send + 'static> UnionInputs<T> for Vec<DataStream<T>> {
    fn into_inputs(self) -> Vec<BoxSource<T>> {
        self.into_iter().map(BoxSource::new).collect()
    }
}

impl<T> Source<T> for UnionSource<T> {
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { inputs, merge, handed, read } = self;
        *read = true;
        handed.clear();
        merge.feed(
            inputs,
            intake,
            |merge, inputs, input, intake| {
                let mut counting = Counting { intake, records: 0 };
                let merged =
                    merge.read(input, &mut inputs[input], |value| value, cx, &mut counting);
                handed.push((input, counting.records));
                merged
            },
            |inputs| inputs.iter().all(Option::is_none),
        )
    }

    fn resumes() -> bool {
        true
    }

    fn unread(&mut self, mut records: usize) {
        while records > 0
            && let Some((input, count)) = self.handed.pop()
        {
            let unread = count.min(records);
            records -= unread;
            if unread < count {
                self.handed.push((input, count - unread));
            }
            if let Some(source) = &mut self.inputs[input] {
                source.unread(unread);
            }
        }
    }

    fn discard(&mut self) {
        self.inputs.iter_mut().flatten().for_each(BoxSource::discard);
    }

    fn fail_on_stall(&mut self) {
        self.inputs.iter_mut().flatten().for_each(BoxSource::fail_on_stall);
    }

    fn is_reported(&self) -> bool {
        self.inputs.iter().flatten().all(BoxSource::is_reported)
    }

    fn behind(&self, behind: &mut Behind) {
        self.merge.behind(behind);
        self.inputs.iter().flatten().for_each(|input| input.behind(behind));
    }

    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        if self.read || self.inputs.iter().any(Option::is_none) {
            return None;
        }
        mem::take(&mut self.inputs).into_iter().collect()
    }
}

/// Counts the records that an input hands on.
struct Counting<'a, K> {
    intake: &'a mut K,
    records: usize,
}

impl<T, K: Intake<T>> Intake<T> for Counting<'_, K> {
    #[inline]
    fn record(&mut self, value: T, at: Timestamp) -> ControlFlow<()> {
        self.records += 1;
        self.intake.record(value, at)
    }

    fn mark(&mut self, mark: Mark) -> ControlFlow<()> {
        self.intake.mark(mark)
    }
}

impl<T> fmt::Debug for UnionSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnionSource").field("merge", &self.merge).finish_non_exhaustive()
    }
}
