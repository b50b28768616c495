//! When the keeper has to look next, as all tasks that hold locks see it.
//!
//! The race: a task begins a hold, or brings one's look nearer, while the keeper goes to sleep. The
//! task writes `earliest` and then reads the timer; the keeper sets the timer and then reads
//! `earliest`. One of the two sees the other, so no look is slept through.

use crate::clock::Moment;
use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the keeper from outside.
pub(super) struct Keeping {
    pub(super) waker: AtomicWaker,
    /// There is a keeper.
    pub(super) running: AtomicBool,
    /// When something is due next, in nanoseconds.
    pub(super) earliest: AtomicU64,
    /// When the keeper's timer fires; `Moment::NEVER` while it sleeps.
    pub(super) timer: AtomicU64,
}

impl Keeping {
    pub(super) fn new() -> Self {
        Self {
            waker: AtomicWaker::new(),
            running: AtomicBool::new(false),
            earliest: AtomicU64::new(Moment::NEVER.as_nanos()),
            timer: AtomicU64::new(Moment::NEVER.as_nanos()),
        }
    }

    /// Notes that something is due at `at`, and returns whether the keeper was woken for it.
    pub(super) fn note(&self, at: Moment) -> bool {
        // Ordering: the keeper clears `earliest` before it looks through the holds, and sets its
        // timer before it looks at `earliest` again. A task that writes here after that look finds
        // the timer, and wakes the keeper if the timer is too late.
        self.note_silently(at);
        let is_late = self.timer.load(Ordering::SeqCst) > at.as_nanos();
        if is_late {
            self.wake();
        }
        is_late
    }

    pub(super) fn note_silently(&self, at: Moment) {
        // Loaded first, because every acquisition runs this, and few holds are due before all
        // others. Ordering: a task that reads the value from before the keeper cleared it has
        // stored its hold's due time before the keeper looks through the holds.
        if self.earliest.load(Ordering::SeqCst) > at.as_nanos() {
            self.earliest.fetch_min(at.as_nanos(), Ordering::SeqCst);
        }
    }

    pub(super) fn earliest(&self) -> Moment {
        Moment::from_nanos(self.earliest.load(Ordering::SeqCst))
    }

    pub(super) fn timer_at(&self) -> Moment {
        Moment::from_nanos(self.timer.load(Ordering::SeqCst))
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }
}
