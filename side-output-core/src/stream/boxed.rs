use super::chunk::{Chunk, Filling};
use super::source::CHUNK;
use super::{Behind, Fed, Intake, JobLink, LedgerHandle, Source};
use crate::error::StreamError;
use crate::stream::Lane;
use std::fmt;
use std::task::Context;

/// Any source of `T`, boxed: one virtual call for each chunk.
pub struct BoxSource<T> {
    source: Box<dyn Fill<T> + Send>,
    chunk: Chunk<T>,
    /// How the source ended; the chunk comes first.
    end: Option<Result<(), StreamError>>,
}

/// A [`Source`] as a trait object: what it hands out fills a chunk.
pub(super) trait Fill<T> {
    /// Fills an empty lane with what is ready.
    fn fill(&mut self, cx: &mut Context<'_>, into: &mut Lane<T>) -> Fed;

    fn unread(&mut self, records: usize);

    fn discard(&mut self);

    fn fail_on_stall(&mut self);

    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        None
    }

    fn is_reported(&self) -> bool {
        false
    }

    fn ledger(&self) -> Option<LedgerHandle>;

    fn job(&self) -> Option<JobLink> {
        None
    }

    fn behind(&self, behind: &mut Behind) {
        behind.ledgers.extend(self.ledger());
    }
}

struct Filled<Src>(Src);

impl<T, Src: Source<T>> Fill<T> for Filled<Src> {
    fn fill(&mut self, cx: &mut Context<'_>, into: &mut Lane<T>) -> Fed {
        self.0.feed(cx, &mut Filling::new(into, CHUNK))
    }

    fn unread(&mut self, records: usize) {
        self.0.unread(records);
    }

    fn discard(&mut self) {
        self.0.discard();
    }

    fn fail_on_stall(&mut self) {
        self.0.fail_on_stall();
    }

    fn take_inputs(&mut self) -> Option<Vec<BoxSource<T>>> {
        self.0.take_inputs()
    }

    fn is_reported(&self) -> bool {
        self.0.is_reported()
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.0.ledger()
    }

    fn job(&self) -> Option<JobLink> {
        self.0.job()
    }

    fn behind(&self, behind: &mut Behind) {
        self.0.behind(behind);
    }
}

impl<T> BoxSource<T> {
    /// Boxes `source`.
    pub fn new(source: impl Source<T> + Send + 'static) -> Self {
        Self::from_fill(Filled(source))
    }

    pub(super) fn from_fill(source: impl Fill<T> + Send + 'static) -> Self {
        Self { source: Box::new(source), chunk: Chunk::new(), end: None }
    }
}

impl<T> BoxSource<T> {
    /// Itself, or its inputs if it is a union that was not read yet.
    pub(super) fn into_inputs(mut self) -> Vec<Self> {
        self.take_inputs().unwrap_or_else(|| vec![self])
    }
}

impl<T> Source<T> for BoxSource<T> {
    #[inline]
    fn feed<K: Intake<T>>(&mut self, cx: &mut Context<'_>, intake: &mut K) -> Fed {
        let Self { source, chunk, end } = self;
        chunk.feed_from(intake, |chunk, _| {
            if let Some(end) = end {
                return Fed::from(end.clone());
            }
            let lane = chunk.recycle();
            let fed = source.fill(cx, lane);
            let empty = lane.is_empty();
            chunk.load();
            match fed {
                Fed::End => *end = Some(Ok(())),
                Fed::Failed(error) => *end = Some(Err(error)),
                // A source that has had its share lets the poll end.
                Fed::More | Fed::Pending if empty => return fed,
                Fed::More | Fed::Pending => {}
            }
            match end {
                Some(end) if empty => Fed::from(end.clone()),
                _ => Fed::More,
            }
        })
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        self.chunk.pop()
    }

    fn resumes() -> bool {
        true
    }

    fn unread(&mut self, records: usize) {
        self.source.unread(records);
    }

    fn discard(&mut self) {
        self.source.discard();
    }

    fn fail_on_stall(&mut self) {
        self.source.fail_on_stall();
    }

    fn take_inputs(&mut self) -> Option<Vec<Self>> {
        self.source.take_inputs()
    }

    fn is_reported(&self) -> bool {
        self.source.is_reported()
    }

    fn ledger(&self) -> Option<LedgerHandle> {
        self.source.ledger()
    }

    fn job(&self) -> Option<JobLink> {
        self.source.job()
    }

    fn behind(&self, behind: &mut Behind) {
        self.source.behind(behind);
    }
}

impl<T> Drop for BoxSource<T> {
    fn drop(&mut self) {
        let unread = self.chunk.len();
        if unread > 0 {
            self.source.unread(unread);
        }
    }
}

impl<T> fmt::Debug for BoxSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxSource")
    }
}
