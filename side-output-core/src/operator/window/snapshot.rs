use super::{
    Aggregated, Applied, Engine, LatePolicy, ProcessLate, Processed, Reduced, WindowBody,
    WindowOperator,
};
use crate::operator::snapshot::{lowest, values, within_a_firing};
use crate::state::{Changes, SavedState, Snapshot, SnapshotError, StateChanges, Unsaved};
use crate::time::Timestamp;
use crate::window::{Aggregate, Assigner, TriggerOf, Window, WindowProcess};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// The name of the value [`Time`].
const TIME: &str = "time";

/// The table of what a [`WindowProcess`] keeps of each key.
const KEYS: &str = "keys";

#[derive(Serialize, Deserialize)]
struct Time {
    watermark: Timestamp,
    horizon: Timestamp,
    engine: Kind,
}

/// The engines keep different things of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Aligned,
    Sliced,
    Sessions,
    General,
}

/// What windows keep of their records can be saved.
///
/// Implemented by what `aggregate`, `reduce`, `apply` and `process` make, where that can be
/// serialized.
#[diagnostic::on_unimplemented(
    message = "what `{Self}` keeps of windows cannot be saved",
    label = "a `uid` asks for state that can be saved",
    note = "derive `Serialize` and `Deserialize` for the key, and for the accumulator, the records or \
            the state of the function"
)]
pub trait SaveBody<K, T>:
    WindowBody<K, T, Contents: Serialize + DeserializeOwned, Side: Serialize + DeserializeOwned>
{
    /// Writes what it keeps beside windows.
    ///
    /// # Errors
    ///
    /// If a value cannot be serialized.
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        _ = to;
        Ok(())
    }

    /// Takes what was saved.
    ///
    /// # Errors
    ///
    /// If that is something else.
    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        _ = from;
        Ok(())
    }
}

impl<K, G, L> SaveBody<K, G::In> for Aggregated<G, L>
where
    K: Clone,
    G: Aggregate<Accumulator: Serialize + DeserializeOwned>,
    L: LatePolicy,
{
}

impl<K, T, R, L> SaveBody<K, T> for Reduced<R, L>
where
    K: Clone,
    T: Clone + Serialize + DeserializeOwned,
    R: FnMut(&mut T, T),
    L: LatePolicy,
{
}

impl<K, T, F, R, L> SaveBody<K, T> for Applied<F, R, L>
where
    K: Clone,
    T: Clone + Serialize + DeserializeOwned,
    F: FnMut(&K, Window, &[T]) -> R,
    L: LatePolicy,
{
}

impl<P, L> SaveBody<P::Key, P::In> for Processed<P, L>
where
    P: WindowProcess<
            Key: Hash + Eq + Clone + Serialize + DeserializeOwned,
            In: Clone + Serialize + DeserializeOwned,
            State: Serialize + DeserializeOwned,
            KeyState: Serialize + DeserializeOwned,
        >,
    L: ProcessLate<P>,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        let unsaved = self.unsaved(to.is_full());
        for key in &unsaved.gone {
            to.remove(KEYS, key, &())?;
        }
        for slot in unsaved.slots {
            if let Some((key, Some(state))) = self.keys.get(slot) {
                to.entry(KEYS, key, &(), state)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        for entry in from.read_entries(KEYS) {
            let (key, (), state): (P::Key, (), P::KeyState) = entry?;
            if self.keys.find(&key).is_some() {
                return Err(SnapshotError::new(KEYS, "a key is there twice"));
            }
            self.keys.enter(&key, || Some(state));
        }
        drop(self.unsaved(true));
        Ok(())
    }
}

impl<P: WindowProcess, L> Processed<P, L> {
    /// What has changed since the last call, or all.
    fn unsaved(&mut self, all: bool) -> Unsaved<P::Key> {
        let keys = &self.keys;
        Changes::unsaved(&mut self.changes, all, || keys.iter().map(|(slot, _)| slot))
    }
}

impl<T, K, F, A, Tr, B> Snapshot for WindowOperator<T, K, F, A, Tr, B>
where
    K: Hash + Eq + Clone + Serialize + DeserializeOwned,
    A: Assigner,
    Tr: TriggerOf<T, A::Merging, State: Serialize + DeserializeOwned>,
    B: SaveBody<K, T>,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        if self.due {
            return Err(within_a_firing(TIME));
        }
        if matches!(self.engine, Engine::Aligned(_) | Engine::Sliced(_)) {
            // Their records only look their key up, and note nothing else.
            to.write_all();
        }
        let (watermark, horizon) = (self.parts.watermark, self.parts.horizon);
        to.value(TIME, &Time { watermark, horizon, engine: self.engine.kind() })?;
        self.parts.body.save(to)?;
        match &mut self.engine {
            Engine::Aligned(aligned) => aligned.save(&self.parts, to),
            Engine::Sliced(sliced) => sliced.save(to),
            Engine::Sessions(sessions) => sessions.save(to),
            Engine::General(general) => general.save(to),
        }
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        if from.is_empty() {
            return Ok(());
        }
        let times: Vec<Time> = values(from, TIME)?;
        let kind = self.engine.kind();
        if let Some(other) = times.iter().map(|time| time.engine).find(|other| *other != kind) {
            let other = format!(
                "these windows are kept as {kind:?}, and what was saved as {other:?}: the assigner, \
                 the trigger or the function is of another kind"
            );
            return Err(SnapshotError::new(TIME, other));
        }
        self.parts.watermark = lowest(&times, |time| time.watermark);
        self.parts.horizon = lowest(&times, |time| time.horizon);
        self.parts.body.load(from)?;
        match &mut self.engine {
            Engine::Aligned(aligned) => aligned.load(&self.parts, from),
            Engine::Sliced(sliced) => sliced.load(&self.parts, from),
            Engine::Sessions(sessions) => sessions.load(&self.parts, from),
            Engine::General(general) => general.load(&self.parts, from),
        }
    }
}

impl<K, C, S, TS> Engine<K, C, S, TS> {
    const fn kind(&self) -> Kind {
        match self {
            Self::Aligned(_) => Kind::Aligned,
            Self::Sliced(_) => Kind::Sliced,
            Self::Sessions(_) => Kind::Sessions,
            Self::General(_) => Kind::General,
        }
    }
}

/// Whether a window that was saved is one.
pub(super) fn check(table: &'static str, window: Window) -> Result<Window, SnapshotError> {
    if window.start() <= window.max_timestamp() {
        Ok(window)
    } else {
        Err(SnapshotError::new(table, "a window ends before it starts"))
    }
}
