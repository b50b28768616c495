//! When the keeper has to look next, as all tasks that hold locks see it.
//!
//! The race: a task begins a hold, or brings one's look nearer, while the keeper goes to sleep or
//! sets its timer. The task counts its hold, writes when it is `due`, and then reads the timer; the
//! keeper says that it is awake, by a timer that is later than all, and then reads what is held and
//! what is due. One of the two sees the other, so no look is slept through. (Models of it are in
//! `src/lease/tests/sleeping.rs`.)

use std::task::Waker;

use crate::clock::Moment;
use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the keeper from outside.
pub(super) struct Keeping {
    waker: AtomicWaker,
    /// There is a keeper.
    running: AtomicBool,
    /// When something is due next, in nanoseconds.
    earliest: AtomicU64,
    /// When the keeper's timer fires; `Moment::NEVER` while it sleeps.
    timer: AtomicU64,
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

    /// As [`Keeping::note`], by the keeper itself.
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

    pub(super) fn timer(&self) -> Moment {
        Moment::from_nanos(self.timer.load(Ordering::SeqCst))
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Whom to wake.
    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// A keeper starts, unless there is one.
    pub(super) fn handle_start(&self) -> bool {
        !self.running.load(Ordering::Acquire) && !self.running.swap(true, Ordering::AcqRel)
    }

    /// The keeper has ended.
    pub(super) fn handle_stopped(&self) {
        self.timer.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        self.running.store(false, Ordering::Release);
    }

    /// The keeper looks through the holds: what is due is noted anew.
    pub(super) fn handle_look(&self) {
        self.earliest.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
    }

    /// The keeper is about to decide when its timer fires: until then each change wakes it.
    ///
    /// Ordering: published before it reads what is held. A task that begins a hold counts it first,
    /// and then reads the timer: one of the two sees the other.
    pub(super) fn handle_awake(&self) {
        self.timer.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
    }

    /// The keeper's timer is set.
    pub(super) fn handle_armed(&self, timer: Moment) {
        self.timer.store(timer.as_nanos(), Ordering::SeqCst);
    }

    /// The keeper sleeps without a timer. A hold that begins meanwhile wakes it, and then it looks
    /// at all of them.
    pub(super) fn handle_asleep(&self) {
        self.earliest.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
    }
}
