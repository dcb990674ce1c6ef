use super::merge::Merge;
use super::{Behind, BoxSource, DataStream, Fed, Intake, JobLink, Source};
use crate::time::Alignment;
use std::fmt;
use std::mem;
use std::task::Context;

/// Reads several streams as one; see [`DataStream::union`].
pub struct UnionSource<T> {
    inputs: Vec<BoxSource<T>>,
    merge: Merge<T>,
    /// It was read: what its inputs have said so far is in the merge.
    read: bool,
}

impl<T> UnionSource<T> {
    fn new(inputs: Vec<BoxSource<T>>) -> Self {
        let mut merge = Merge::new(Alignment::union(inputs.len()), inputs.len());
        merge.tie(inputs.iter().find_map(BoxSource::job), "union");
        Self { inputs, merge, read: false }
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
        let Self { inputs, merge, read } = self;
        *read = true;
        merge.feed(inputs, intake, |merge, inputs, input, intake| {
            merge.read(input, &mut inputs[input], |value| value, cx, intake)
        })
    }

    fn resumes() -> bool {
        true
    }

    fn unread(&mut self, records: usize) {
        let Self { inputs, merge, .. } = self;
        merge.take_back(records, |input, records| inputs[input].unread(records));
    }

    fn discard(&mut self) {
        self.inputs.iter_mut().for_each(BoxSource::discard);
    }

    fn fail_on_stall(&mut self) {
        self.inputs.iter_mut().for_each(BoxSource::fail_on_stall);
    }

    fn job(&self) -> Option<JobLink> {
        self.inputs.iter().find_map(BoxSource::job)
    }

    fn is_reported(&self) -> bool {
        self.merge.failed().is_some_and(|input| self.inputs[input].is_reported())
    }

    fn behind(&self, behind: &mut Behind) {
        self.merge.behind(behind);
        self.inputs.iter().for_each(|input| input.behind(behind));
    }

    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        if self.read { None } else { Some(mem::take(&mut self.inputs)) }
    }
}

impl<T> Drop for UnionSource<T> {
    fn drop(&mut self) {
        for input in self.merge.waiting() {
            self.inputs[input].unread(1);
        }
    }
}

impl<T> fmt::Debug for UnionSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnionSource").field("merge", &self.merge).finish_non_exhaustive()
    }
}
