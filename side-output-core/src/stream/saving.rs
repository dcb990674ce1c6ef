//! What ties an operator or a source to the job that it is part of. Outside of a job, and without
//! the feature `job`, it is nothing.

use crate::error::StreamError;
use crate::operator::Operator;
#[cfg(feature = "job")]
use crate::output::Splitter as _;
use crate::time::Alignment;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

#[cfg(not(feature = "job"))]
pub use self::absent::JobLink;
#[cfg(not(feature = "job"))]
use self::absent::Part;
#[cfg(feature = "job")]
pub use super::job::JobLink;
#[cfg(feature = "job")]
use super::job::Part;
#[cfg(feature = "job")]
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};

/// What there is none of without the feature `job`.
#[cfg(not(feature = "job"))]
mod absent {
    use crate::error::StreamError;
    use std::convert::Infallible;
    use std::marker::PhantomData;

    /// The job that a stream is part of.
    #[derive(Clone, Debug)]
    pub struct JobLink(Infallible);

    impl JobLink {
        pub(crate) const fn at(&self, _step: &str) -> Self {
            match self.0 {}
        }

        pub(crate) const fn hold(&self, _held: bool) {
            match self.0 {}
        }
    }

    /// An operator's part in the checkpoints of a job.
    pub(crate) struct Part<X>(Infallible, PhantomData<fn(X)>);

    impl<X> Part<X> {
        pub(crate) const fn barrier(&self, _x: &X, _checkpoint: u64) -> Result<(), StreamError> {
            match self.0 {}
        }

        pub(crate) const fn end(&self, _x: &X) -> Result<(), StreamError> {
            match self.0 {}
        }
    }
}

/// Saves `X` when a barrier passes, if it is part of a job.
pub struct Saving<X> {
    part: Option<Box<Part<X>>>,
    of: PhantomData<fn(&mut X)>,
}

impl<X> Saving<X> {
    /// It is not saved.
    pub(super) const NONE: Self = Self { part: None, of: PhantomData };

    /// Saves `x` for this checkpoint: before its barrier goes on.
    #[cold]
    pub(super) fn barrier(&mut self, x: &mut X, checkpoint: u64) -> Result<(), StreamError> {
        self.part.as_mut().map_or(Ok(()), |part| part.barrier(x, checkpoint))
    }

    /// Saves `x` for all checkpoints to come: its input has ended.
    #[cold]
    pub(super) fn end(&mut self, x: &mut X) -> Result<(), StreamError> {
        self.part.as_mut().map_or(Ok(()), |part| part.end(x))
    }
}

#[cfg(feature = "job")]
impl<X> Saving<X> {
    pub(super) fn new(part: Part<X>) -> Self {
        Self { part: Some(Box::new(part)), of: PhantomData }
    }

    /// What the library owns is saved by its place in the pipeline: after `link`, as `step`.
    pub(super) fn by_place(
        link: Option<JobLink>,
        step: &str,
        x: &mut X,
        save: fn(&mut X, &mut StateChanges) -> Result<(), SnapshotError>,
        load: fn(&mut X, &SavedState) -> Result<(), SnapshotError>,
    ) -> Self {
        link.map_or(Self::NONE, |link| link.at(step).tie_place(x, save, load))
    }
}

impl Saving<Alignment> {
    /// The times of several inputs are saved by their place: after `link`, as `step`.
    pub(super) fn of_alignment(
        link: Option<JobLink>,
        step: &str,
        alignment: &mut Alignment,
    ) -> Self {
        #[cfg(feature = "job")]
        return Self::by_place(link, step, alignment, Alignment::save, Alignment::load);
        #[cfg(not(feature = "job"))]
        {
            _ = (link, step, alignment);
            Self::NONE
        }
    }
}

/// Holds back the checkpoints of a job.
#[derive(Debug)]
pub(super) struct Hold(Option<JobLink>);

impl Hold {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(link: Option<JobLink>) -> Self {
        if let Some(link) = &link {
            link.hold(true);
        }
        Self(link)
    }

    /// Lets checkpoints be made again.
    pub(super) fn release(&mut self) {
        if let Some(link) = self.0.take() {
            link.hold(false);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release();
    }
}

impl<X> fmt::Debug for Saving<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Saving")
    }
}

/// How the state of an operator is named: [not at all](Unnamed), or by a [`Uid`].
pub trait Naming<Op> {
    /// Ties the operator to its job, if it is part of one.
    #[doc(hidden)]
    fn tie(self, link: Option<JobLink>, op: &mut Op, at: &'static Location<'static>) -> Saving<Op>;
}

/// The state has no name: it is not saved. In a job it must have one.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Unnamed;

impl<Op: Operator> Naming<Op> for Unnamed {
    fn tie(self, link: Option<JobLink>, op: &mut Op, at: &'static Location<'static>) -> Saving<Op> {
        _ = (&link, op, at);
        #[cfg(feature = "job")]
        if let Some(link) = link
            && Op::STATEFUL
        {
            link.refuse_unnamed::<Op>(at);
        }
        Saving::NONE
    }
}

/// The state is the library's own: a job saves it by the place of the operator in the pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByPlace;

#[cfg(feature = "job")]
impl<Op: Operator + Snapshot> Naming<Op> for ByPlace {
    fn tie(self, link: Option<JobLink>, op: &mut Op, _: &'static Location<'static>) -> Saving<Op> {
        Saving::by_place(link, Op::Out::NAME, op, Op::save, Op::load)
    }
}

#[cfg(not(feature = "job"))]
impl<Op: Operator> Naming<Op> for ByPlace {
    fn tie(self, _: Option<JobLink>, _: &mut Op, _: &'static Location<'static>) -> Saving<Op> {
        Saving::NONE
    }
}

/// The name under which a function's state is saved, with the version of its types.
#[cfg(feature = "job")]
#[derive(Clone, Debug)]
pub struct Uid {
    pub(super) name: String,
    pub(super) version: u32,
}

#[cfg(feature = "job")]
impl Uid {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), version: 1 }
    }
}

#[cfg(feature = "job")]
impl<Op: Snapshot> Naming<Op> for Uid {
    fn tie(self, link: Option<JobLink>, op: &mut Op, at: &'static Location<'static>) -> Saving<Op> {
        link.map_or(Saving::NONE, |link| link.tie_uid(self, op, at))
    }
}
