//! What has something to do: which connections, and whether the timer fired.
//!
//! One task drives all connections. Each has a *ready flag*, which its socket and its timers set,
//! and which wakes that task: a pass polls the connections whose flag is set and no others.
//! Replies of five nodes come one by one, and without this each of them would cost a look at all
//! five sockets. The task's own timer has a flag, too.
//!
//! The races:
//! - *A flag that is set while its connection is polled.* It is cleared before the poll, so that
//!   what comes during the poll sets it again; and it is set before the task is woken, which
//!   registers its waker before it looks.
//! - *A flag that stays set.* It suppresses wake-ups: always clear it, whether it is of use just
//!   then or not.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, Ordering};

/// One source of work.
pub(super) struct ReadyFlag {
    signal: Arc<Signal>,
    waker: Waker,
}

impl ReadyFlag {
    /// A flag that is not set, for the task that registers with `driver`.
    pub(super) fn new(driver: &Arc<AtomicWaker>) -> Self {
        let signal = Arc::new(Signal { is_set: AtomicBool::new(false), driver: driver.clone() });
        let waker = signal.clone().into();
        Self { signal, waker }
    }

    /// Clears it; `true` if it was set.
    pub(super) fn take(&self) -> bool {
        let is_set = &self.signal.is_set;
        // Ordering: acquire pairs with the release in `wake_by_ref`. Loaded first, because most
        // flags are clear, and a load is cheaper than a swap.
        is_set.load(Ordering::Relaxed) && is_set.swap(false, Ordering::AcqRel)
    }

    pub(super) fn set(&self) {
        self.waker.wake_by_ref();
    }

    /// What sets it.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }
}

struct Signal {
    is_set: AtomicBool,
    driver: Arc<AtomicWaker>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Who set it before has woken the task, or is about to.
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.driver.wake();
        }
    }
}
