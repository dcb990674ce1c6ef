use super::source::CHUNK;
use super::{BoxSource, DataStream, Source};
use crate::error::StreamError;
use crate::output::Lane;
use crate::time::{Alignment, Barriers, Mark, Timestamp};
use std::fmt;
use std::task::{Context, Poll};

/// Reads several streams as one; see [`DataStream::union`].
pub struct UnionSource<T> {
    inputs: Vec<UnionInput<T>>,
    alignment: Alignment,
    barriers: Barriers,
    /// The input that is asked first.
    next: usize,
    chunk: Lane<T>,
    ended: bool,
}

struct UnionInput<T> {
    /// `None` after its end.
    stream: Option<BoxSource<T>>,
    /// What came after a barrier that the other inputs have not reached yet.
    held: Lane<T>,
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
        let mut inputs = vec![UnionInput::new(BoxSource::new(self))];
        inputs.extend(others.into_inputs().into_iter().map(UnionInput::new));
        let alignment = Alignment::union(inputs.len());
        let (barriers, chunk) = (Barriers::new(inputs.len()), Lane::new());
        let source = UnionSource { inputs, alignment, barriers, next: 0, chunk, ended: false };
        DataStream::new(BoxSource::new(source), "union")
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

impl<T> UnionInput<T> {
    const fn new(stream: BoxSource<T>) -> Self {
        Self { stream: Some(stream), held: Lane::new() }
    }
}

impl<T> Source<T> for UnionSource<T> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Lane<T>,
    ) -> Poll<Result<bool, StreamError>> {
        loop {
            let mut moved = false;
            for turn in 0..self.inputs.len() {
                let input = (self.next + turn) % self.inputs.len();
                match self.poll_input(cx, input, into) {
                    Poll::Ready(Ok(())) => moved = true,
                    // What was taken before goes out first; a failed input fails again.
                    // It is the first to be asked then, or the others could hide it for ever.
                    Poll::Ready(Err(_)) if !into.is_empty() => {
                        self.next = input;
                        return Poll::Ready(Ok(true));
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
                if into.load() >= CHUNK {
                    self.next = (input + 1) % self.inputs.len();
                    return Poll::Ready(Ok(true));
                }
            }
            if self.inputs.iter().all(|input| input.stream.is_none() && input.held.is_empty()) {
                // The time of a union ends with its last input.
                if !std::mem::replace(&mut self.ended, true)
                    && self.alignment.watermark() != Timestamp::MAX
                {
                    into.mark(Mark::Watermark(Timestamp::MAX));
                }
                return Poll::Ready(Ok(!into.is_empty()));
            }
            if !moved {
                let pending = into.is_empty();
                return if pending { Poll::Pending } else { Poll::Ready(Ok(true)) };
            }
        }
    }

    fn discard(&mut self) {
        for stream in self.inputs.iter_mut().filter_map(|input| input.stream.as_mut()) {
            stream.discard();
        }
    }

    fn fail_on_stall(&mut self) {
        for stream in self.inputs.iter_mut().filter_map(|input| input.stream.as_mut()) {
            stream.fail_on_stall();
        }
    }
}

impl<T> UnionSource<T> {
    /// Moves the next chunk of an input; pending also where it has to wait for the others.
    fn poll_input(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        into: &mut Lane<T>,
    ) -> Poll<Result<(), StreamError>> {
        let input = &mut self.inputs[index];
        if self.barriers.is_blocked(index) {
            return Poll::Pending;
        }
        if !input.held.is_empty() {
            let held = std::mem::take(&mut input.held);
            self.merge(index, held, into);
            return Poll::Ready(Ok(()));
        }
        let Some(stream) = &mut input.stream else { return Poll::Pending };
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        match stream.poll_chunk(cx, &mut chunk) {
            Poll::Pending => {
                self.chunk = chunk;
                Poll::Pending
            }
            Poll::Ready(Ok(true)) => {
                self.chunk = self.merge(index, chunk, into);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(false)) => {
                self.chunk = chunk;
                input.stream = None;
                self.align(index, Mark::Watermark(Timestamp::MAX), into);
                self.barriers.on_end(index);
                self.pass_barriers(into);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    /// Appends an input's chunk with what its marks come to; gives back its memory.
    fn merge(&mut self, input: usize, mut chunk: Lane<T>, into: &mut Lane<T>) -> Lane<T> {
        if chunk.marks.is_empty() {
            self.wake(input, into);
            into.append(&mut chunk);
            return chunk;
        }
        let Lane { values, times, marks } = &mut chunk;
        let mut marks = marks.drain(..);
        let mut values = values.drain(..).enumerate();
        let time = |index: usize| times.get(index).copied().unwrap_or(Timestamp::MIN);
        let mut taken = 0;
        for (before, mark) in marks.by_ref() {
            if before > taken {
                self.wake(input, into);
            }
            for (index, value) in values.by_ref().take(before - taken) {
                into.push(value, time(index));
            }
            taken = before;
            if let Mark::Barrier(id) = mark {
                self.barriers.on_barrier(input, id);
                if self.barriers.is_blocked(input) {
                    break;
                }
            }
            self.align(input, mark, into);
        }
        if values.len() > 0 && !self.barriers.is_blocked(input) {
            self.wake(input, into);
            values.for_each(|(index, value)| into.push(value, time(index)));
            drop(marks);
        } else {
            let held = &mut self.inputs[input].held;
            values.for_each(|(index, value)| held.push(value, time(index)));
            held.marks.extend(marks.map(|(at, mark)| (at - taken, mark)));
            self.pass_barriers(into);
        }
        chunk.clear();
        chunk
    }

    /// A record of an idle input wakes it.
    fn wake(&mut self, input: usize, into: &mut Lane<T>) {
        if self.alignment.is_input_idle(input) {
            self.align(input, Mark::Active, into);
        }
    }

    fn align(&mut self, input: usize, mark: Mark, into: &mut Lane<T>) {
        for mark in self.alignment.on_mark(input, mark) {
            into.mark(mark);
        }
    }

    fn pass_barriers(&mut self, into: &mut Lane<T>) {
        while let Some(id) = self.barriers.pass() {
            into.mark(Mark::Barrier(id));
        }
    }
}

impl<T> fmt::Debug for UnionSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnionSource")
            .field("inputs", &self.inputs.len())
            .field("alignment", &self.alignment)
            .finish_non_exhaustive()
    }
}
