use std::collections::BTreeSet;
use std::{fmt, mem};

/// Bytes of a page, at most.
const BYTES: usize = 1 << 16;

/// No slot.
const NONE: u32 = u32::MAX;

/// Entries in numbered slots, which are used again.
///
/// Slots stand in pages. A page without entries is freed, but for one.
///
/// # Examples
///
/// ```
/// use side_output::state::Slab;
///
/// let mut slab = Slab::new();
/// let (a, b) = (slab.insert("a"), slab.insert("b"));
/// assert_eq!(slab.remove(a), Some("a"));
/// assert_eq!(slab.insert("c"), a);
/// assert!(slab.iter().eq([(a, &"c"), (b, &"b")]));
/// ```
pub struct Slab<T> {
    pages: Vec<Page<T>>,
    len: usize,
    /// Pages with memory and a free slot.
    open: Vec<u32>,
    /// Pages that were freed.
    freed: BTreeSet<u32>,
}

struct Page<T> {
    slots: Vec<Slot<T>>,
    /// The first free slot.
    free: u32,
    len: u32,
}

enum Slot<T> {
    Used(T),
    /// The next free slot.
    Free(u32),
}

impl<T> Page<T> {
    const NEW: Self = Self { slots: Vec::new(), free: NONE, len: 0 };

    #[inline(always)]
    fn insert(&mut self, entry: T) -> u32 {
        self.len += 1;
        if let Some(place) = self.slots.get_mut(self.free as usize)
            && let Slot::Free(next) = *place
        {
            *place = Slot::Used(entry);
            return mem::replace(&mut self.free, next);
        }
        self.slots.push(Slot::Used(entry));
        Slab::<T>::number(self.slots.len() - 1)
    }
}

impl<T> Slab<T> {
    /// Binary digits of a slot's place in its page.
    const SHIFT: u32 = {
        let entries = BYTES / size_of::<Slot<T>>();
        if entries < 16 { 4 } else { entries.ilog2() }
    };

    const MASK: u32 = (1 << Self::SHIFT) - 1;

    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { pages: Vec::new(), len: 0, open: Vec::new(), freed: BTreeSet::new() }
    }

    fn number(number: usize) -> u32 {
        u32::try_from(number).ok().filter(|number| *number != NONE).expect("fewer than 2^32 slots")
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All slots are below.
    #[inline]
    #[must_use]
    pub fn end(&self) -> usize {
        let Some((last, before)) = self.pages.split_last() else { return 0 };
        (before.len() << Self::SHIFT) + last.slots.len()
    }

    /// Puts an entry into a free slot.
    ///
    /// # Panics
    ///
    /// With the entry number 2^32.
    #[inline]
    pub fn insert(&mut self, entry: T) -> u32 {
        let number = match self.open.last() {
            Some(page) => *page,
            None => self.open_page(),
        };
        let page = &mut self.pages[number as usize];
        let place = page.insert(entry);
        if page.len > Self::MASK {
            self.open.pop();
        }
        self.len += 1;
        number << Self::SHIFT | place
    }

    #[cold]
    fn open_page(&mut self) -> u32 {
        let number = self.freed.pop_first().unwrap_or_else(|| {
            self.pages.push(Page::NEW);
            // So that the last slot of the page is a number too.
            (Self::number(self.pages.len() << Self::SHIFT) - 1) >> Self::SHIFT
        });
        if number > 0 {
            self.pages[number as usize].slots.reserve_exact(1 << Self::SHIFT);
        }
        self.open.push(number);
        number
    }

    /// The entry in `slot`.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&T> {
        let page = self.pages.get((slot >> Self::SHIFT) as usize)?;
        match page.slots.get((slot & Self::MASK) as usize)? {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// The entry in `slot`.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let page = self.pages.get_mut((slot >> Self::SHIFT) as usize)?;
        match page.slots.get_mut((slot & Self::MASK) as usize)? {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Takes the entry out of `slot`, which is free after that.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let number = slot >> Self::SHIFT;
        let page = self.pages.get_mut(number as usize)?;
        let place = page.slots.get_mut((slot & Self::MASK) as usize)?;
        if matches!(place, Slot::Free(_)) {
            return None;
        }
        let Slot::Used(entry) = mem::replace(place, Slot::Free(page.free)) else { return None };
        page.free = slot & Self::MASK;
        let was_full = page.len > Self::MASK;
        page.len -= 1;
        self.len -= 1;
        if was_full {
            self.open.push(number);
        }
        if page.len == 0 {
            self.close_page(number);
        }
        Some(entry)
    }

    /// A page has become empty.
    #[cold]
    fn close_page(&mut self, number: u32) {
        if self.len == 0 && self.pages.len() > 1 {
            *self = Self::new();
        } else if self.open.len() > 1 {
            self.open.retain(|page| *page != number);
            self.freed.insert(number);
            self.pages[number as usize] = Page::NEW;
            while self
                .pages
                .len()
                .checked_sub(1)
                .is_some_and(|last| self.freed.remove(&u32::try_from(last).unwrap_or(NONE)))
            {
                self.pages.pop();
            }
        }
    }

    /// The entries with their slots, in the order of these.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.pages).flat_map(|(number, page)| {
            (0..).zip(&page.slots).filter_map(move |(place, slot)| match slot {
                Slot::Used(entry) => Some((number << Self::SHIFT | place, entry)),
                Slot::Free(_) => None,
            })
        })
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 to a page.
    type Large = [u64; 1 << 10];

    const fn large(n: u64) -> Large {
        [n; 1 << 10]
    }

    fn pages(slab: &Slab<Large>) -> usize {
        slab.pages.iter().filter(|page| page.slots.capacity() > 0).count()
    }

    #[test]
    fn slots_are_used_again() {
        let mut slab = Slab::new();
        let slots: Vec<u32> = (0..40).map(|n| slab.insert(large(n))).collect();
        assert!(slots.iter().copied().eq(0..40));
        assert_eq!((slab.len(), slab.end(), pages(&slab)), (40, 40, 3));
        for slot in [3, 20, 4] {
            assert_eq!(slab.remove(slot).map(|entry| entry[0]), Some(slot.into()));
            assert!(slab.remove(slot).is_none() && slab.get(slot).is_none());
        }
        let mut slots: Vec<u32> = (40..43).map(|n| slab.insert(large(n))).collect();
        slots.sort_unstable();
        assert_eq!(slots, [3, 4, 20]);
        assert!(slab.iter().map(|(slot, _)| slot).eq(0..40));
        assert!(slab.get(1000).is_none() && slab.get_mut(1000).is_none());
    }

    #[test]
    fn pages_are_freed_as_soon_as_they_are_empty() {
        let mut slab = Slab::new();
        (0..160).for_each(|n| _ = slab.insert(large(n)));
        assert_eq!(pages(&slab), 10);
        for slot in 0..160 {
            assert!(slab.remove(slot).is_some());
            let used = 10 - (slot as usize + 1) / 16;
            assert!(pages(&slab) <= used + 1, "{} pages after {slot}", pages(&slab));
        }
        assert_eq!((slab.len(), slab.end(), pages(&slab)), (0, 0, 0));
        let slots: Vec<u32> = (0..160).map(|n| slab.insert(large(n))).collect();
        assert_eq!((slab.len(), slab.end(), pages(&slab)), (160, 160, 10));
        assert!(slots.iter().all(|slot| slab.get(*slot).is_some()));
    }
}
