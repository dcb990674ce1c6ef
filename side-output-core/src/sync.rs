//! The lock of the concurrent types, which is std's, or loom's when the model is checked; and calls
//! of foreign code that may panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use std::thread;

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;

pub(crate) use imp::MutexGuard;

/// A mutex that a panic elsewhere does not poison: what it guards is kept consistent by never
/// running foreign code under the lock.
#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Runs foreign code on a thread that serves others too, which its panic must not end. The panic
/// was reported by the hook by then.
pub(crate) fn contain(f: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(f)));
}

/// Wakes all, also if some of the wakers panic; the first panic goes on afterwards.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    let mut shelter = Shelter::default();
    for waker in wakers {
        shelter.run(|| waker.wake());
    }
    shelter.leave();
}

/// Several calls of foreign code that all take place, also if some of them panic.
#[must_use]
#[derive(Default)]
pub(crate) struct Shelter {
    first: Option<Box<dyn Any + Send>>,
}

impl Shelter {
    pub(crate) fn run(&mut self, f: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
            self.first.get_or_insert(panic);
        }
    }

    /// Whether one of them panicked.
    pub(crate) const fn is_hit(&self) -> bool {
        self.first.is_some()
    }

    /// The first panic.
    pub(crate) fn panic(self) -> Option<Box<dyn Any + Send>> {
        self.first
    }

    /// The first panic goes on, unless one is underway already: a second one would end the program.
    pub(crate) fn leave(self) {
        if let Some(panic) = self.first
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
