//! Locks while they are held: one place each, which the guard and the keeper share.
//!
//! A *hold* has one owner of its state, the short lock of its place: whose key it is, the lease,
//! and whether the lock is lost. Guards and views name it by place and generation; an id whose
//! generation has passed finds nothing. Places are used again and again, so holding a lock
//! allocates nothing.
//!
//! ```text
//!   free ──begin()──▶ held ──lease over, or gone──▶ lost ──┐
//!    ▲                 └──end(): the claim is taken out─────┤
//!    └──────────────────────────────────────────────────────┘
//! ```
//!
//! *Lost* is final: what was once found to be over is never valid again, whatever a node or a clock
//! says later, because another client may have held the lock in between. Every look at a hold finds
//! its loss, and the look that finds it wakes the waiters and cancels the token before it returns:
//! no task has to come by for that. In the same way whatever brings the end nearer has all who wait
//! for it look again.

use std::sync::Arc;
#[cfg(feature = "tokio-util")]
use std::sync::Weak;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[cfg(feature = "tokio-util")]
use super::alarm::{self, Watched};
use super::claim::Claim;
use super::context::LeaseContext;
use super::hold::{Ended, Hold, Inherited};
use super::hold_id::HoldId;
use super::keeping::Keeping;
use super::key::Key;
use super::resource::Resource;
use super::validity::Validity;
use crate::clock::{Moment, Reading};
use crate::observe::Loss;
use crate::options::Extend;
use crate::report::{Holder, printable};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// What all clones of a locker, its requests and its guards share: the context, and the locks that
/// are held.
pub(crate) struct Leases {
    pub(crate) context: Arc<LeaseContext>,
    slab: Slab<Place>,
    pub(super) keeping: Keeping,
    /// Itself, for the alarm.
    #[cfg(feature = "tokio-util")]
    own: Weak<Self>,
}

/// The place of one hold.
struct Place {
    hold: Mutex<Hold>,
    /// When the keeper looks at it next, in nanoseconds; `Moment::NEVER` while it is free.
    due: AtomicU64,
    /// The lease became shorter, or is known to be revoked, or the hold has ended.
    changed: Notify,
}

impl Leases {
    pub(crate) fn new(context: LeaseContext) -> Arc<Self> {
        let (nodes, needed) = (context.nodes.len(), context.nodes.majority());
        let place = move || Place {
            hold: Mutex::new(Hold::new(Validity::new(nodes, needed))),
            due: AtomicU64::new(Moment::NEVER.as_nanos()),
            changed: Notify::new(),
        };
        Arc::new_cyclic(|_own| Self {
            context: Arc::new(context),
            slab: Slab::new(place),
            keeping: Keeping::new(),
            #[cfg(feature = "tokio-util")]
            own: _own.clone(),
        })
    }

    /// How many locks are held.
    pub(super) fn count(&self) -> usize {
        self.context.held.load(Ordering::SeqCst)
    }

    /// The first hold of which this makes something. Looks at all of them, each under its lock.
    pub(super) fn find<R>(&self, of: impl Fn(&Claim) -> Option<R>) -> Option<R> {
        (0..self.slab.used())
            .find_map(|index| lock(&self.slab.get(index).hold).claim.as_ref().and_then(&of))
    }

    /// Until when a lock of this resource is held, if it is.
    pub(super) fn held_until(
        &self,
        id: HoldId,
        resource: &Resource,
        at: Reading,
    ) -> Option<Moment> {
        let is_meant = |claim: &Claim| claim.resource.is_same(resource);
        self.with(id, |hold| {
            let is_held = hold.claim.as_ref().is_some_and(is_meant) && hold.is_valid(at.stamp);
            is_held.then(|| at.moment(hold.validity.warning()))
        })?
    }

    /// The holder of a key, if that is a guard of this locker's.
    pub(super) fn own_holder(&self, key: &Key) -> Option<Holder> {
        let now = self.context.nodes.clock().stamp();
        let holder = |hold: &mut Hold| {
            let claim = hold.claim.as_ref()?;
            let is_meant = claim.was_owned() && claim.resource.has(key);
            let is_shared = claim.resource.primitive.holders.are_readers();
            (is_meant && hold.is_valid(now)).then(|| Holder {
                owner: Some(printable(self.context.owner.as_bytes())),
                remaining: hold.validity.remaining(now),
                is_shared,
                is_own: true,
                is_revoked: hold.is_revoked(),
            })
        };
        (0..self.slab.used()).find_map(|index| self.at(index, |_, hold| holder(hold)).flatten())
    }

    /// Marks the locks that `is_meant` selects as lost: their keys are being deleted.
    pub(super) fn lose(&self, is_meant: impl Fn(&Claim) -> bool) {
        for index in 0..self.slab.used() {
            self.at(index, |_, hold| {
                if hold.claim.as_ref().is_some_and(&is_meant) {
                    hold.lose(Loss::Gone);
                }
            });
        }
    }

    /// All places that may hold something due at `now`, and since when; what is due later is handed
    /// to `later`.
    pub(super) fn due(&self, now: Moment, mut later: impl FnMut(Moment)) -> Vec<(u32, Moment)> {
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
    pub(super) fn schedule(&self, id: HoldId, at: Moment) {
        // Under the lock, so that this never reaches the next hold of the place.
        if self.with(id, |_| self.set_due(id.index, at)).is_some() {
            self.keeping.note(at);
        }
    }

    /// As [`Leases::schedule`], for a caller that works on the hold, and notes it afterwards.
    pub(super) fn set_due(&self, index: u32, at: Moment) {
        self.slab.get(index).due.store(at.as_nanos(), Ordering::SeqCst);
    }

    /// Whether a place is due at just that moment: it has not been scheduled anew.
    pub(super) fn is_due_at(&self, index: u32, at: Moment) -> bool {
        self.slab.get(index).due.load(Ordering::SeqCst) == at.as_nanos()
    }

    /// Puts what an acquisition has won where a shutdown and the keeper find it, and says when the
    /// keeper has to look at it first.
    #[inline]
    pub(super) fn begin(
        &self,
        claim: Claim,
        inherited: Option<Inherited>,
        extend: Extend,
        at: Reading,
    ) -> (HoldId, Moment) {
        let index = self.slab.claim();
        self.context.held.fetch_add(1, Ordering::SeqCst);
        let place = self.slab.get(index);
        let mut hold = lock(&place.hold);
        hold.begin(claim, inherited, extend, at.now, &self.context);
        let due = hold.next_look(&self.context, at);
        place.due.store(due.as_nanos(), Ordering::SeqCst);
        (HoldId { index, generation: hold.generation }, due)
    }

    /// Works on the state of what a place holds now, and tells of a loss that the work has found.
    pub(super) fn at<R>(&self, index: u32, work: impl FnOnce(HoldId, &mut Hold) -> R) -> Option<R> {
        let place = &self.slab.get(index).hold;
        let (id, result, signal, turn, is_nearer) = {
            let mut hold = lock(place);
            let id = HoldId { index, generation: hold.generation };
            let (before, was_revoked) = (hold.validity.warning(), hold.is_revoked());
            let result = hold.claim.is_some().then(|| work(id, &mut hold));
            let is_news = hold.is_revoked() && !was_revoked;
            let is_nearer = is_news || !hold.validity.warning().reaches(before);
            let signal = hold.new_signal();
            let turn = hold.claim.as_mut().filter(|_| signal.is_some());
            let turn = turn.and_then(|claim| claim.take_turn());
            (id, result, signal, turn, is_nearer)
        };
        if let Some(signal) = signal {
            if let Some(turn) = turn {
                self.context.turns().pass(turn);
            }
            signal.send();
            self.notify(index);
            // Not before it has been sent: a look that comes meanwhile sends it too.
            let mut hold = lock(place);
            if hold.generation == id.generation {
                hold.set_signalled();
            }
        } else if is_nearer {
            self.notify(index);
            #[cfg(feature = "tokio-util")]
            if lock(place).alarm.is_some() {
                self.set_alarm(id);
            }
        }
        result
    }

    /// Has the alarm look at a hold when its lease is over.
    #[cfg(feature = "tokio-util")]
    pub(super) fn set_alarm(&self, id: HoldId) {
        let runtime = lock(&self.slab.get(id.index).hold).runtime.clone();
        alarm::set(self.own.clone(), id, runtime);
    }

    /// Works on the state of a hold; `None` when it has ended.
    pub(super) fn with<R>(&self, id: HoldId, work: impl FnOnce(&mut Hold) -> R) -> Option<R> {
        self.at(id.index, |found, hold| (found == id).then(|| work(hold))).flatten()
    }

    /// Why a hold that has ended had been lost before, as long as no other has ended in its place.
    pub(super) fn former_loss(&self, id: HoldId) -> Option<Loss> {
        lock(&self.slab.get(id.index).hold).former_loss(id.generation)
    }

    /// Completes when the lease of what a place holds has become shorter, when it is known to be
    /// revoked, or when the hold has ended.
    pub(super) fn changed(&self, id: HoldId) -> Notified<'_> {
        self.slab.get(id.index).changed.notified()
    }

    /// Wakes the tasks that wait for the loss of a hold, to look again.
    pub(super) fn notify(&self, index: u32) {
        self.slab.get(index).changed.notify_waiters();
    }

    /// As [`Leases::notify`], for all.
    pub(super) fn notify_all(&self) {
        (0..self.slab.used()).for_each(|index| self.notify(index));
    }

    /// Ends a hold: its claim is the caller's, who lets go of the key.
    #[inline]
    pub(super) fn end(&self, id: HoldId, claim: &mut Option<Claim>) -> Option<Ended> {
        self.end_with(id, claim, |_| ())
    }

    /// As [`end`](Self::end), with a last look at the hold.
    #[inline]
    pub(super) fn end_with(
        &self,
        id: HoldId,
        claim: &mut Option<Claim>,
        look: impl FnOnce(&mut Hold),
    ) -> Option<Ended> {
        let place = self.slab.get(id.index);
        let ended = {
            let mut hold = lock(&place.hold);
            if hold.generation != id.generation {
                return None;
            }
            look(&mut hold);
            hold.end(claim)?
        };
        place.due.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        place.changed.notify_waiters();
        self.context.held.fetch_sub(1, Ordering::SeqCst);
        self.slab.release(id.index);
        ended.signal.send();
        Some(ended)
    }

    /// Takes the locks from their holders, for a locker that is shut down: `each` lets go of a key,
    /// and its guard finds that it has lost it.
    pub(super) fn close_all(&self, mut each: impl FnMut(&mut Hold)) {
        let places = 0..self.slab.used();
        // All are told before the first key goes.
        for index in places.clone() {
            self.at(index, |_, hold| {
                hold.has_expired_to_delay(); // which is found before it counts as closed
                hold.lose(Loss::Closed);
            });
        }
        for index in places {
            self.at(index, |_, hold| {
                hold.lose(Loss::Closed);
                each(hold);
            });
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        // The keeper finds them gone, and ends.
        self.keeping.wake();
    }
}

#[cfg(feature = "tokio-util")]
impl Watched for Leases {
    fn plan_alarm(&self, id: HoldId, at: Reading, rang: Option<Moment>) -> Option<Moment> {
        self.with(id, |hold| hold.plan_alarm(at, rang)).flatten()
    }
}
