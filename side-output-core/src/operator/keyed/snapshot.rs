use super::{Keyed, KeyedCo, KeyedCore};
use crate::operator::snapshot::{MOST, lowest, values, within_a_firing};
use crate::operator::{KeyedCoProcess, KeyedProcess};
use crate::state::{SavedState, Snapshot, SnapshotError, StateChanges, Times};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of the value [`Time`].
const TIME: &str = "time";

/// The table of [`Key`]s.
const KEYS: &str = "keys";

#[derive(Serialize, Deserialize)]
struct Time {
    watermark: Timestamp,
    forwarded: Timestamp,
    horizon: Timestamp,
    idle: bool,
}

/// Times with the order in which they were set.
type Timers = Vec<(Timestamp, u64)>;

/// What there is of one key, to write and to read.
#[derive(Serialize, Deserialize)]
struct Key<S> {
    state: S,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    timers: Timers,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processing_timers: Timers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

impl<F: KeyedCoProcess> KeyedCore<F>
where
    F::Key: Serialize + DeserializeOwned,
    F::State: Serialize + DeserializeOwned,
{
    pub(in crate::operator) fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        if self.firing {
            return Err(within_a_firing(TIME));
        }
        let Self { watermark, forwarded, horizon, idle, .. } = *self;
        to.value(TIME, &Time { watermark, forwarded, horizon, idle })?;
        let unsaved = self.keys.unsaved(to.is_full());
        for key in &unsaved.gone {
            to.remove(KEYS, key, &())?;
        }
        for kept in unsaved.slots.into_iter().filter_map(|slot| self.keys.get(slot)) {
            let entry = Key {
                state: kept.state,
                timers: kept.times.entries().collect(),
                processing_timers: kept.alarms.into_iter().flat_map(Times::entries).collect(),
                expires: kept.expires,
            };
            to.entry(KEYS, kept.key, &(), &entry)?;
        }
        Ok(())
    }

    pub(in crate::operator) fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        if from.is_empty() {
            return Ok(());
        }
        let times: Vec<Time> = values(from, TIME)?;
        self.watermark = lowest(&times, |time| time.watermark);
        self.forwarded = lowest(&times, |time| time.forwarded);
        self.horizon = lowest(&times, |time| time.horizon);
        // The outputs are not idle if one of them is not.
        self.idle = times.iter().any(|time| time.idle);
        for entry in from.read_entries(KEYS) {
            let (key, (), entry): (F::Key, (), Key<F::State>) = entry?;
            let Key { state, timers, processing_timers, expires } = entry;
            check(&timers)?;
            check(&processing_timers)?;
            if self.keys.find(&key).is_some() {
                return Err(SnapshotError::new(KEYS, "a key is there twice"));
            }
            let expires = expires.filter(|_| self.time_to_live.is_some());
            self.keys.restore(key, state, timers, processing_timers, expires);
        }
        drop(self.keys.unsaved(true));
        Ok(())
    }
}

/// Whether these may be the timers of one key.
fn check(timers: &Timers) -> Result<(), SnapshotError> {
    if !timers.is_sorted_by(|(at, _), (next, _)| at < next) {
        return Err(SnapshotError::new(KEYS, "a key's timers are not in order"));
    }
    if timers.iter().any(|(_, order)| *order >= MOST) {
        return Err(SnapshotError::new(KEYS, "the order of timers is out of range"));
    }
    Ok(())
}

impl<F: KeyedProcess, By> Snapshot for Keyed<F, By>
where
    F::Key: Serialize + DeserializeOwned,
    F::State: Serialize + DeserializeOwned,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        self.core.save(to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        self.core.load(from)
    }
}

impl<F: KeyedCoProcess, ByLeft, ByRight> Snapshot for KeyedCo<F, ByLeft, ByRight>
where
    F::Key: Serialize + DeserializeOwned,
    F::State: Serialize + DeserializeOwned,
{
    fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        self.core.save(to)
    }

    fn load(&mut self, from: &SavedState) -> Result<(), SnapshotError> {
        self.core.load(from)
    }
}
