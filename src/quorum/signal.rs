//! Which connections have something to do.
//!
//! One task drives all connections. Each has a *signal* of its own, which its socket and its timers
//! raise, and which wakes that task: a pass polls the connections whose signal is raised and no
//! others. Replies of five nodes come one by one, and without this each of them would cost a look
//! at all five sockets.
//!
//! The race: *a signal raised while its connection is polled.* It is taken down before the poll, so
//! that what comes during the poll raises it again; and it is raised before the task is woken,
//! which registers its waker before it looks at the signals.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, Ordering};

/// One connection's signal.
pub(super) struct Signal {
    raised: AtomicBool,
    /// The task that drives the connection.
    driver: Arc<AtomicWaker>,
}

impl Signal {
    /// A signal that nobody has raised.
    pub(super) fn new(driver: &Arc<AtomicWaker>) -> Arc<Self> {
        Arc::new(Self { raised: AtomicBool::new(false), driver: driver.clone() })
    }

    /// Takes the signal down; `true` if it was raised.
    pub(super) fn take(&self) -> bool {
        // Ordering: acquire pairs with the release of whoever raised it. Looked at first, because
        // most signals are down, and a look is cheaper than a swap.
        self.raised.load(Ordering::Relaxed) && self.raised.swap(false, Ordering::AcqRel)
    }

    /// What raises it.
    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        self.clone().into()
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Whoever raised it before has woken the task, or is about to.
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.driver.wake();
        }
    }
}
