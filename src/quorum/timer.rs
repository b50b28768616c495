//! The driver's timer as its callers see it: when it fires, and whether it must be set anew.
//!
//! One timer serves every deadline on every link. A caller that has queued a command checks that
//! the timer fires no later than the command's deadline. If it does not, the caller requests a new
//! look and wakes the driver. In steady state a caller only loads one word.
//!
//! The races:
//! - *A command is queued behind the look at its link.* The driver clears the timer before it looks
//!   at any link. The link's lock shows the cleared timer to a caller that queues behind the look.
//! - *A caller requests a look while the driver looks.* The driver takes the request before it
//!   looks. A later request stays, and the caller's wake-up starts the pass that takes it.
//! - *A command is queued while another driver starts.* The timer of the last driver never fires
//!   again. It is cleared before the links take commands, so nothing is queued that relies on it.

use crate::clock::Moment;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What callers know of the driver's timer.
pub(super) struct DriverTimer {
    /// When it fires, in nanoseconds; `Moment::NEVER` while it is not set.
    pub(super) fires_at: AtomicU64,
    /// The driver must look at its links and set the timer anew.
    pub(super) requested: AtomicBool,
}

impl DriverTimer {
    /// A timer that is not set.
    pub(super) fn new() -> Self {
        let fires_at = AtomicU64::new(Moment::NEVER.as_nanos());
        Self { fires_at, requested: AtomicBool::new(false) }
    }

    /// Checks that the timer fires in time for a command that was just queued. `true`: it does not,
    /// a look was requested, and the caller wakes the driver.
    pub(super) fn is_late_for(&self, deadline: Moment) -> bool {
        // Ordering: the driver clears the timer before it looks at the links. A caller that queued
        // behind that look sees the cleared timer, through the link's lock.
        if self.fires_at.load(Ordering::SeqCst) <= deadline.as_nanos() {
            return false;
        }
        self.request_look();
        true
    }

    /// Makes the driver's next pass look at its links and set the timer anew.
    pub(super) fn request_look(&self) {
        // A swap, because loom orders a store among another thread's swaps as it never can be. A
        // sequentially consistent store costs the same: on x86-64 it is the same instruction.
        self.requested.swap(true, Ordering::SeqCst);
    }

    /// Sets the timer anew if that was requested or `must` be. `look` is told when the timer was to
    /// fire, and returns when the next deadline is; so does this function if it has looked.
    pub(super) fn set_anew(
        &self,
        must: bool,
        look: impl FnOnce(Moment) -> Moment,
    ) -> Option<Moment> {
        // Ordering: the request is taken, and the timer cleared, before the look.
        if !self.requested.swap(false, Ordering::SeqCst) && !must {
            return None;
        }
        let due = Moment::from_nanos(self.fires_at.load(Ordering::SeqCst));
        self.fires_at.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        let next = look(due);
        if next != Moment::NEVER {
            self.fires_at.store(next.as_nanos(), Ordering::SeqCst);
        }
        Some(next)
    }

    /// Clears what the last driver left, then lets `reopen` open the links to commands.
    pub(super) fn restart(&self, reopen: impl FnOnce()) {
        // Ordering: a caller that queues on a reopened link sees this, through the link's lock.
        self.fires_at.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        reopen();
    }
}
