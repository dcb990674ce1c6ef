use super::{General, Kept};
use crate::operator::snapshot::MOST;
use crate::operator::window::Parts;
use crate::operator::window::snapshot::check;
use crate::state::{Changes, SavedState, SnapshotError, StateChanges, Unsaved};
use crate::time::Timestamp;
use crate::window::{Firings, Window};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// The table of [`Saved`], by key and age: windows that merge change, and their age stays.
const WINDOWS: &str = "windows";

/// A window, to write and to read.
#[derive(Serialize, Deserialize)]
struct Saved<C, S, TS> {
    window: Window,
    /// Nothing after a purge. In a tuple, since what is kept may be an option itself.
    contents: Option<(C,)>,
    side: S,
    trigger: TS,
    timers: Vec<Timestamp>,
    firings: Firings,
}

impl<K, C, S, TS> General<K, C, S, TS>
where
    K: Hash + Eq + Clone + Serialize + DeserializeOwned,
    C: Serialize + DeserializeOwned,
    S: Default + Serialize + DeserializeOwned,
    TS: Default + Serialize + DeserializeOwned,
{
    pub(in super::super) fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        let unsaved = self.unsaved(to.is_full());
        for (key, age) in &unsaved.gone {
            to.remove(WINDOWS, key, age)?;
        }
        for kept in unsaved.slots.into_iter().filter_map(|slot| self.slots.get(slot)) {
            let Kept { owner, window, contents, side, state, timers, firings, age } = kept;
            let Some((key, _)) = self.keys.get(*owner) else { continue };
            let mut timers = timers.clone();
            timers.sort_unstable();
            let saved = Saved {
                window: *window,
                contents: contents.as_ref().map(|contents| (contents,)),
                side,
                trigger: state,
                timers,
                firings: *firings,
            };
            to.entry(WINDOWS, key, age, &saved)?;
        }
        Ok(())
    }

    pub(in super::super) fn load<A, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        for entry in from.read_entries(WINDOWS) {
            let (key, age, saved): (K, u64, Saved<C, S, TS>) = entry?;
            let Saved { window, contents, side, trigger, timers, firings } = saved;
            if age >= MOST {
                return Err(SnapshotError::new(WINDOWS, "the order of windows is out of range"));
            }
            check(WINDOWS, window)?;
            if !timers.is_sorted_by(|at, next| at < next) {
                return Err(SnapshotError::new(WINDOWS, "a window's timers are not in order"));
            }
            let owner = self.keys.enter(&key, Vec::new);
            let (_, slots) = self.keys.get(owner).expect("the key that was entered");
            let is_it = |slot: &u32| self.slots.get(*slot).is_some_and(|k| k.window == window);
            if slots.iter().any(is_it) {
                return Err(SnapshotError::new(WINDOWS, "a key has a window twice"));
            }
            self.opened = self.opened.max(age + 1);
            let contents = contents.map(|(contents,)| contents);
            let own = timers.clone();
            let slot = self.insert(Kept {
                owner,
                window,
                contents,
                side,
                state: trigger,
                timers,
                firings,
                age,
            });
            let cleanup = window.cleanup(parts.lateness);
            self.timers.extend(own.into_iter().chain([cleanup]).map(|at| (at, age, slot)));
        }
        drop(self.unsaved(true));
        Ok(())
    }

    /// What has changed since the last call, or all.
    fn unsaved(&mut self, all: bool) -> Unsaved<(K, u64)> {
        Changes::unsaved(&mut self.changes, all, || self.slots.iter().map(|(slot, _)| slot))
    }
}
