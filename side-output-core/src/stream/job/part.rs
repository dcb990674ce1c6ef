use super::core::JobCore;
use crate::error::StreamError;
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges};
use crate::stream::Board;
use crate::stream::saving::{Saving, Uid};
use std::any::type_name;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The job that a stream is part of, and where in it the stream stands: the names of the source and
/// of the steps since then.
#[derive(Clone)]
pub struct JobLink {
    core: Arc<JobCore>,
    path: Arc<str>,
}

impl JobLink {
    pub(super) fn new(core: Arc<JobCore>, path: &str) -> Self {
        Self { core, path: path.into() }
    }

    /// The place after one more step.
    #[must_use]
    pub(crate) fn at(&self, step: &str) -> Self {
        Self { core: Arc::clone(&self.core), path: format!("{}/{step}", self.path).into() }
    }

    /// Refuses to run the job: an operator has state and no name.
    pub(crate) fn refuse_unnamed<Op>(&self, at: &Location<'_>) {
        self.core.refuse(format!(
            "{at}: `{}` has state, which needs a name to be saved under: write `.uid(\"...\")` \
             before the method that brings the function",
            short_name::<Op>(),
        ));
    }

    /// Notes an operator, whose outputs must all end somewhere.
    pub(crate) fn add_board(&self, at: &'static Location<'static>, board: Arc<Board>) {
        self.core.add_board(at, board);
    }

    /// Holds back checkpoints, or lets them be made again.
    pub(crate) fn hold(&self, held: bool) {
        self.core.hold(held);
    }

    /// Refuses to run the job, with this step in it.
    pub(crate) fn refuse(&self, at: &Location<'_>, why: &str) {
        self.core.refuse(format!("{at}: {why}"));
    }

    pub(crate) fn tie_uid<Op: Snapshot>(
        &self,
        uid: Uid,
        op: &mut Op,
        at: &'static Location<'static>,
    ) -> Saving<Op> {
        self.tie(uid.name, uid.version, Some(at), op, Op::save, Op::load)
    }

    pub(crate) fn tie_place<X>(
        &self,
        x: &mut X,
        save: fn(&mut X, &mut StateChanges) -> Result<(), SnapshotError>,
        load: fn(&mut X, &SavedState) -> Result<(), SnapshotError>,
    ) -> Saving<X> {
        let name = self.core.free_place(&self.path);
        self.tie(name, 1, None, x, save, load)
    }

    fn tie<X>(
        &self,
        name: String,
        version: u32,
        at: Option<&'static Location<'static>>,
        x: &mut X,
        save: fn(&mut X, &mut StateChanges) -> Result<(), SnapshotError>,
        load: fn(&mut X, &SavedState) -> Result<(), SnapshotError>,
    ) -> Saving<X> {
        let Some((index, saved)) = self.core.add_operator(&name, version, at) else {
            return Saving::NONE;
        };
        if let Some(saved) = saved
            && let Err(error) = load(x, &saved)
        {
            self.core.refuse(error.of(&name).to_string());
        }
        let core = Arc::clone(&self.core);
        Saving::new(Part { core, name, index, save, ended: false })
    }
}

/// The name of a type without the paths and parameters.
fn short_name<X>() -> &'static str {
    let name = type_name::<X>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

impl fmt::Debug for JobLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobLink").field(&self.path).finish()
    }
}

/// An operator's part in the checkpoints of a job.
pub struct Part<X> {
    core: Arc<JobCore>,
    name: String,
    index: usize,
    save: fn(&mut X, &mut StateChanges) -> Result<(), SnapshotError>,
    ended: bool,
}

impl<X> Part<X> {
    pub(crate) fn barrier(&mut self, x: &mut X, checkpoint: u64) -> Result<(), StreamError> {
        let changes = self.save(x)?;
        self.core.saved(self.index, checkpoint, changes);
        Ok(())
    }

    pub(crate) fn end(&mut self, x: &mut X) -> Result<(), StreamError> {
        if !self.ended {
            let changes = self.save(x)?;
            self.ended = true;
            self.core.operator_ended(self.index, Some(changes));
        }
        Ok(())
    }

    fn save(&self, x: &mut X) -> Result<StateChanges, StreamError> {
        let mut changes = StateChanges::new(self.core.wants_all(self.index));
        (self.save)(x, &mut changes).map_err(|error| StreamError::failed(error.of(&self.name)))?;
        Ok(changes)
    }
}

/// An operator that nobody reads any more does not change, and holds up no checkpoint.
impl<X> Drop for Part<X> {
    fn drop(&mut self) {
        if !self.ended {
            self.core.operator_ended(self.index, None);
        }
    }
}

impl<X> fmt::Debug for Part<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}
