//! Locks while they are held: one place each, which the guard and the keeper share.
//!
//! A *hold* has one owner of its state, the short lock of its place: whose key it is, the lease,
//! and whether the lock is lost. Guards and views name it by place and generation; an id whose
//! generation has passed finds nothing. Places are used again and again, so holding a lock
//! allocates nothing.
//!
//! ```text
//!   free ──begin()──▶ held ──lease over, or gone──▶ lost ──┐
//!    ▲                 └──────── end(): the ownership is taken out ┤
//!    └───────────────────────────────────────────────────────┘
//! ```
//!
//! *Lost* is final: what was once found to be over is never valid again, whatever a node or a clock
//! says later, because another client may have held the lock in between. Every look at a hold finds
//! its loss, and the look that finds it wakes the waiters and cancels the token before it returns:
//! no task has to come by for that. In the same way whatever brings the end nearer has all who wait
//! for it look again.

mod body;
mod reference;

use std::sync::Arc;
#[cfg(feature = "tokio-util")]
use std::sync::Weak;

use tokio::sync::Notify;

pub(in crate::lock) use body::{Body, Step};
pub(crate) use reference::HoldRef;

#[cfg(feature = "tokio-util")]
use super::alarm;
use super::claim::Ownership;
use super::keeper::Keeping;
use super::lease::Lease;
use crate::clock::Moment;
use crate::observe::Loss;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

/// All locks that a locker's guards hold.
pub(crate) struct Holds {
    slab: Slab<Hold>,
    count: AtomicUsize,
    pub(in crate::lock) keeping: Keeping,
    /// These holds, for the alarm.
    #[cfg(feature = "tokio-util")]
    own: Weak<Self>,
}

/// The place of one hold.
struct Hold {
    body: Mutex<Body>,
    /// When the keeper looks at it next, in nanoseconds; `Moment::NEVER` while it is free.
    due: AtomicU64,
    /// The lease became shorter, or the hold has ended.
    changed: Notify,
}

/// A hold's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(Default))]
pub(in crate::lock) struct Name {
    pub(in crate::lock) index: u32,
    generation: u32,
}

impl Holds {
    pub(crate) fn new(nodes: usize, needed: usize) -> Arc<Self> {
        let hold = move || Hold {
            body: Mutex::new(Body::new(Lease::new(nodes, needed))),
            due: AtomicU64::new(Moment::NEVER.as_nanos()),
            changed: Notify::new(),
        };
        Arc::new_cyclic(|_own| Self {
            slab: Slab::new(hold),
            count: AtomicUsize::new(0),
            keeping: Keeping::new(),
            #[cfg(feature = "tokio-util")]
            own: _own.clone(),
        })
    }

    /// How many locks are held.
    pub(in crate::lock) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The first hold of which this makes something. Looks at all of them, each under its lock.
    pub(in crate::lock) fn find<R>(&self, of: impl Fn(&Ownership) -> Option<R>) -> Option<R> {
        (0..self.slab.used())
            .find_map(|index| lock(&self.slab.get(index).body).ownership.as_ref().and_then(&of))
    }

    /// Marks the locks that `is_meant` selects as lost: their keys are being deleted.
    pub(in crate::lock) fn lose(&self, is_meant: impl Fn(&Ownership) -> bool) {
        for index in 0..self.slab.used() {
            self.at(index, |_, body| {
                if body.ownership.as_ref().is_some_and(&is_meant) {
                    body.lose(Loss::Gone);
                }
            });
        }
    }

    /// All places that may hold something due at `now`, and since when; what is due later is handed
    /// to `later`.
    pub(in crate::lock) fn due(
        &self,
        now: Moment,
        mut later: impl FnMut(Moment),
    ) -> Vec<(u32, Moment)> {
        let mut due = Vec::new();
        for index in 0..self.slab.used() {
            let at = Moment::from_nanos(self.slab.get(index).due.load(Ordering::SeqCst));
            if at <= now {
                due.push((index, at));
            } else if at != Moment::NEVER {
                later(at);
            }
        }
        due
    }

    /// Says when the keeper shall look at a hold next, unless the hold has ended.
    pub(in crate::lock) fn schedule(&self, name: Name, at: Moment) {
        // Under the lock, so that this never reaches the next hold of the place.
        if self.with(name, |_| self.set_due(name.index, at)).is_some() {
            self.keeping.note(at);
        }
    }

    /// As [`Holds::schedule`], for a caller that works on the hold, and notes it afterwards.
    pub(in crate::lock) fn set_due(&self, index: u32, at: Moment) {
        self.slab.get(index).due.store(at.as_nanos(), Ordering::SeqCst);
    }

    /// Whether a place is due at just that moment: it has not been scheduled anew.
    pub(in crate::lock) fn is_due_at(&self, index: u32, at: Moment) -> bool {
        self.slab.get(index).due.load(Ordering::SeqCst) == at.as_nanos()
    }

    /// Works on the state of what a place holds now, and tells of a loss that the work has found.
    pub(in crate::lock) fn at<R>(
        &self,
        index: u32,
        work: impl FnOnce(Name, &mut Body) -> R,
    ) -> Option<R> {
        let place = &self.slab.get(index).body;
        let (name, result, signal, is_nearer) = {
            let mut body = lock(place);
            let name = Name { index, generation: body.generation };
            let before = body.lease.warning();
            let result = body.ownership.is_some().then(|| work(name, &mut body));
            let is_nearer = !body.lease.warning().reaches(before);
            (name, result, body.new_signal(), is_nearer)
        };
        if let Some(signal) = signal {
            signal.send();
            self.notify(index);
            // Not before it has been sent: a look that comes meanwhile sends it too.
            let mut body = lock(place);
            if body.generation == name.generation {
                body.set_signalled();
            }
        } else if is_nearer {
            self.notify(index);
            #[cfg(feature = "tokio-util")]
            if lock(place).alarm.is_some() {
                self.set_alarm(name);
            }
        }
        result
    }

    /// Has the alarm look at a hold when its lease is over.
    #[cfg(feature = "tokio-util")]
    fn set_alarm(&self, name: Name) {
        let runtime = lock(&self.slab.get(name.index).body).runtime.clone();
        alarm::set(self.own.clone(), name, runtime);
    }

    /// Works on the state of a hold; `None` when it has ended.
    pub(in crate::lock) fn with<R>(
        &self,
        name: Name,
        work: impl FnOnce(&mut Body) -> R,
    ) -> Option<R> {
        self.at(name.index, |found, body| (found == name).then(|| work(body))).flatten()
    }

    /// Why a hold that has ended had been lost before, as long as no other has ended in its place.
    pub(in crate::lock) fn former_loss(&self, name: Name) -> Option<Loss> {
        let body = lock(&self.slab.get(name.index).body);
        let is_latest = body.generation == name.generation.wrapping_add(1);
        body.former_loss.filter(|_| is_latest)
    }

    /// Wakes the tasks that wait for the loss of a hold, to look again.
    pub(in crate::lock) fn notify(&self, index: u32) {
        self.slab.get(index).changed.notify_waiters();
    }

    /// As [`Holds::notify`], for all.
    pub(in crate::lock) fn notify_all(&self) {
        (0..self.slab.used()).for_each(|index| self.notify(index));
    }

    /// Ends a hold: its ownership is the caller's, who lets go of the key.
    pub(in crate::lock) fn end(&self, name: Name) -> Option<Ended> {
        let hold = self.slab.get(name.index);
        let (ended, signal) = {
            let mut body = lock(&hold.body);
            if body.generation != name.generation {
                return None;
            }
            let began = body.began;
            let (ownership, signal, untold) = body.end()?;
            (Ended { ownership, began, untold }, signal)
        };
        hold.due.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        hold.changed.notify_waiters();
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.slab.release(name.index);
        signal.send();
        Some(ended)
    }

    /// Takes the locks from their holders, for a locker that is shut down: `each` lets go of a key,
    /// and its guard finds that it has lost it.
    pub(in crate::lock) fn close_all(&self, mut each: impl FnMut(&mut Body)) {
        let places = 0..self.slab.used();
        // All are told before the first key goes.
        for index in places.clone() {
            self.at(index, |_, body| body.lose(Loss::Closed));
        }
        for index in places {
            self.at(index, |_, body| {
                body.lose(Loss::Closed);
                each(body);
            });
        }
    }
}

/// What a hold leaves.
pub(super) struct Ended {
    pub(super) ownership: Ownership,
    pub(super) began: Moment,
    /// Why the lock was lost, if the observers have not been told.
    pub(super) untold: Option<Loss>,
}
