//! The lock of the concurrent types, which is std's, or loom's when the model is checked; and calls
//! of foreign code that may panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

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
    let mut first = None;
    for waker in wakers {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            first.get_or_insert(panic);
        }
    }
    if let Some(panic) = first {
        resume_unwind(panic);
    }
}
