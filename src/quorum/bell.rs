//! What has something to do: which connections, and whether the timer rang.
//!
//! One task drives all connections. Each has a *bell* of its own, which its socket and its timers
//! ring, and which wakes that task: a pass polls the connections whose bell has rung and no others.
//! Replies of five nodes come one by one, and without this each of them would cost a look at all
//! five sockets. The task's own timer has one, too.
//!
//! The races:
//! - *A bell that rings while its connection is polled.* It is silenced before the poll, so that
//!   what comes during the poll rings it again; and it has rung before the task is woken, which
//!   registers its waker before it listens.
//! - *A bell that is left ringing.* A set flag suppresses wake-ups: always clear it, whether it is
//!   of use just then or not.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, Ordering};

/// One source of work.
pub(super) struct Bell {
    signal: Arc<Signal>,
    waker: Waker,
}

impl Bell {
    /// A bell that has not rung, for the task that registers with `driver`.
    pub(super) fn new(driver: &Arc<AtomicWaker>) -> Self {
        let signal = Arc::new(Signal { rings: AtomicBool::new(false), driver: driver.clone() });
        let waker = signal.clone().into();
        Self { signal, waker }
    }

    /// Silences it; `true` if it rang.
    pub(super) fn heard(&self) -> bool {
        let rings = &self.signal.rings;
        // Ordering: acquire pairs with the release in `wake_by_ref`. Loaded first, because most
        // bells are silent, and a load is cheaper than a swap.
        rings.load(Ordering::Relaxed) && rings.swap(false, Ordering::AcqRel)
    }

    pub(super) fn ring(&self) {
        self.waker.wake_by_ref();
    }

    /// What rings it.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }
}

struct Signal {
    rings: AtomicBool,
    driver: Arc<AtomicWaker>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // An earlier ring has woken the task, or is about to.
        if !self.rings.swap(true, Ordering::AcqRel) {
            self.driver.wake();
        }
    }
}
