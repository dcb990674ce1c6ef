use std::{fmt, mem};

/// The key has not been saved yet, or has changed since.
const CHANGED: u8 = 1;
/// The key is in what was saved.
const SAVED: u8 = 1 << 1;
/// The slot stands in the list, whatever is in it now.
const LISTED: u8 = 1 << 2;

/// Which slots of a container have changed since it was saved, and which of the saved keys are gone.
///
/// Both are bounded by what there is and what was saved, however many keys come and go meanwhile.
pub struct Changes<K> {
    marks: Vec<u8>,
    listed: Vec<u32>,
    gone: Vec<K>,
}

/// What has to be written so that what was saved is up to date.
#[derive(Debug)]
pub struct Unsaved<K> {
    /// Saved keys that are gone. Some may be there again, in one of the slots.
    pub gone: Vec<K>,
    /// The slots whose keys are new or have changed.
    pub slots: Vec<u32>,
}

impl<K> Changes<K> {
    /// No changes: what is in `slots` was saved.
    fn since_saving(slots: &[u32]) -> Self {
        let mut changes = Self { marks: Vec::new(), listed: Vec::new(), gone: Vec::new() };
        for slot in slots {
            *changes.mark(*slot) = SAVED;
        }
        changes
    }

    /// What there is to write of a container whose slots are `all_slots`: everything if it is to be,
    /// or if no changes were kept track of so far; that begins with this call.
    pub fn unsaved<Slots: Iterator<Item = u32>>(
        changes: &mut Option<Box<Self>>,
        all: bool,
        all_slots: impl FnOnce() -> Slots,
    ) -> Unsaved<K> {
        match changes {
            Some(changes) if !all => changes.take(),
            changes => {
                let slots: Vec<_> = all_slots().collect();
                *changes = Some(Box::new(Self::since_saving(&slots)));
                Unsaved { gone: Vec::new(), slots }
            }
        }
    }

    fn mark(&mut self, slot: u32) -> &mut u8 {
        let slot = slot as usize;
        if slot >= self.marks.len() {
            self.marks.resize(slot + 1, 0);
        }
        &mut self.marks[slot]
    }

    /// Notes that what is in `slot` is new or changes.
    #[inline(never)]
    pub fn touch(&mut self, slot: u32) {
        let mark = self.mark(slot);
        let is_listed = *mark & LISTED != 0;
        *mark |= CHANGED | LISTED;
        if !is_listed {
            self.listed.push(slot);
        }
    }

    /// Notes that `key` leaves `slot`.
    #[inline(never)]
    pub fn remove(&mut self, slot: u32, key: K) {
        let mark = self.mark(slot);
        let was_saved = *mark & SAVED != 0;
        *mark &= LISTED;
        if was_saved {
            self.gone.push(key);
        }
    }

    /// What there is to write; it counts as saved from now on.
    pub fn take(&mut self) -> Unsaved<K> {
        let marks = &mut self.marks;
        let mut slots = mem::take(&mut self.listed);
        slots.retain(|slot| {
            let mark = &mut marks[*slot as usize];
            let is_changed = *mark & CHANGED != 0;
            *mark = if is_changed { SAVED } else { *mark & SAVED };
            is_changed
        });
        Unsaved { gone: mem::take(&mut self.gone), slots }
    }
}

impl<K> fmt::Debug for Changes<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("listed", &self.listed.len())
            .field("gone", &self.gone.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(changes: &mut Changes<char>) -> (Vec<char>, Vec<u32>) {
        let Unsaved { gone, slots } = changes.take();
        (gone, slots)
    }

    #[test]
    fn what_has_changed_is_there_once_and_only_saved_keys_are_gone() {
        let mut changes = Changes::since_saving(&[0, 1, 2]);
        assert_eq!(take(&mut changes), (vec![], vec![]));
        for slot in [1, 5, 1, 5] {
            changes.touch(slot);
        }
        changes.remove(0, 'a');
        changes.remove(5, 'f');
        // The slots are used again.
        changes.touch(5);
        changes.touch(0);
        assert_eq!(take(&mut changes), (vec!['a'], vec![1, 5, 0]));
        changes.touch(1);
        changes.remove(1, 'b');
        changes.remove(5, 'g');
        assert_eq!(take(&mut changes), (vec!['b', 'g'], vec![]));
        assert_eq!(take(&mut changes), (vec![], vec![]));
    }

    #[test]
    fn keys_that_come_and_go_between_two_saves_leave_nothing_behind() {
        let mut changes = Changes::since_saving(&[]);
        for _ in 0..1000 {
            changes.touch(3);
            changes.remove(3, 'x');
        }
        assert_eq!((changes.listed.len(), changes.gone.len()), (1, 0));
        assert_eq!(take(&mut changes), (vec![], vec![]));
    }
}
