use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// A waker that notes that it was called.
#[derive(Debug)]
pub(super) struct Bell {
    rang: AtomicBool,
    waker: Waker,
}

impl Bell {
    pub(super) fn new(waker: &Waker) -> Arc<Self> {
        Arc::new(Self { rang: AtomicBool::new(false), waker: waker.clone() })
    }

    /// Whether it would wake the same task.
    pub(super) fn is_for(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    pub(super) fn rang(&self) -> bool {
        self.rang.load(Ordering::Acquire)
    }

    /// Whether it rang since this was called last.
    pub(super) fn take(&self) -> bool {
        self.rang.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}
