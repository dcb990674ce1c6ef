use super::{Kept, NONE, Session, Sessions};
use crate::operator::snapshot::MOST;
use crate::operator::window::Parts;
use crate::operator::window::snapshot::check;
use crate::state::{Changes, SavedState, SnapshotError, StateChanges, Unsaved};
use crate::time::Timestamp;
use crate::window::{Firings, Window};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// The table of [`Saved`], by key and age: sessions grow, and their age stays.
const WINDOWS: &str = "windows";

/// A session, to write and to read.
#[derive(Serialize, Deserialize)]
struct Saved<C, S> {
    window: Window,
    contents: C,
    side: S,
    firings: Firings,
}

impl<K, C, S> Sessions<K, C, S>
where
    K: Hash + Eq + Clone + Serialize + DeserializeOwned,
    C: Serialize + DeserializeOwned,
    S: Default + Serialize + DeserializeOwned,
{
    pub(in super::super) fn save(&mut self, to: &mut StateChanges) -> Result<(), SnapshotError> {
        let unsaved = self.kept.unsaved(to.is_full());
        for (key, age) in &unsaved.gone {
            to.remove(WINDOWS, key, age)?;
        }
        for session in unsaved.slots.into_iter().filter_map(|slot| self.kept.slots.get(slot)) {
            let Session { key, window, contents, side, firings, age, .. } = session;
            let saved = Saved { window: *window, contents, side, firings: *firings };
            to.entry(WINDOWS, key, age, &saved)?;
        }
        Ok(())
    }

    pub(in super::super) fn load<A, Tr, B>(
        &mut self,
        parts: &Parts<A, Tr, B>,
        from: &SavedState,
    ) -> Result<(), SnapshotError> {
        let mut sessions = Vec::new();
        for entry in from.read_entries(WINDOWS) {
            let (key, age, saved): (K, u64, Saved<C, S>) = entry?;
            if age >= MOST {
                return Err(SnapshotError::new(WINDOWS, "the order of sessions is out of range"));
            }
            check(WINDOWS, saved.window)?;
            sessions.push((key, age, saved));
        }
        // Each is the newest one of its key when it is put in.
        sessions.sort_by_key(|(_, _, saved)| saved.window.start());
        for (key, age, Saved { window, contents, side, firings }) in sessions {
            let hash = parts.hash.of(&key);
            let older = self.find(hash, &key);
            if older != NONE && self.kept.get(older).window.touches(&window) {
                return Err(SnapshotError::new(WINDOWS, "two sessions of a key are one"));
            }
            let slot = self.kept.restore(
                Session {
                    key,
                    window,
                    contents,
                    side,
                    firings,
                    age,
                    timer: Timestamp::MAX,
                    due: window.max_timestamp() > parts.watermark,
                    newer: NONE,
                    older,
                },
                parts.lateness,
            );
            if older == NONE {
                self.index.insert(hash, slot);
            } else {
                self.index.replace(hash, older, slot);
            }
        }
        drop(self.kept.unsaved(true));
        Ok(())
    }
}

impl<K, C, S> Kept<K, C, S> {
    /// What has changed since the last call, or all.
    fn unsaved(&mut self, all: bool) -> Unsaved<(K, u64)> {
        Changes::unsaved(&mut self.changes, all, || self.slots.iter().map(|(slot, _)| slot))
    }

    fn restore(&mut self, session: Session<K, C, S>, lateness: i64) -> u32 {
        let (older, next) = (session.older, session.next(lateness));
        self.opened = self.opened.max(session.age + 1);
        let slot = self.slots.insert(session);
        self.link(slot, older);
        self.set(slot, next);
        slot
    }
}
