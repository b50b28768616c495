//! What a holder has in hand: the guard, and its release.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use super::handles::HandleCount;
use super::key::LockKey;
use super::reading::{DOWNGRADE, READ};
use crate::error::Error;
use crate::fence::Fence;
use crate::lease::{
    Claim, Downgrading, Ended, HoldRef, OwnerToken, Release, Releasing, downgrade, hand_on,
};
use crate::observe::{Event, Loss};
use crate::report::NodeReport;

/// A held lock. Dropping it releases it.
///
/// The lock is held until its [`deadline`](Self::deadline): a lease, not a mutex. While the guard
/// lives the lease is extended at a third of the TTL (see [`Extend`](crate::Extend)), and the
/// deadline moves on. When that fails, because too few nodes can be reached or a majority has lost
/// the key, the lock is *lost*, for good: [`lost`](Self::lost) resolves before another client may
/// hold it. Work that must not overlap runs under [`protect`](Self::protect), or checks
/// [`is_valid`](Self::is_valid) before each step that others see, and still needs a last line of
/// defence where it writes (a version, a constraint).
///
/// The lease is measured by a clock that goes on while the machine is suspended, where the system
/// has one, and by the wall clock beside it: whichever says that the time is over is believed.
///
/// Dropping the guard writes the release to the connections and does not wait for the nodes; it
/// never blocks, and works on any thread. `let _ = guard` drops it on the spot; name it `let
/// _guard` to keep it. A process that ends right after a drop may end before the kernel has sent
/// it: prefer [`release`](Self::release) there, or end with
/// [`Locker::shutdown`](crate::Locker::shutdown).
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct LockGuard {
    pub(super) hold: HoldRef,
    pub(super) handles: HandleCount,
}

impl LockGuard {
    #[inline]
    pub(crate) fn new(hold: HoldRef) -> Self {
        Self { hold, handles: HandleCount::one() }
    }

    /// The key, as it was asked for, without the locker's prefix; of several keys all of them, with
    /// commas between.
    #[must_use]
    pub fn key(&self) -> LockKey {
        LockKey::new(self.hold.key())
    }

    /// Each key of a lock of several ([`lock_all`](crate::Locker::lock_all)), sorted; of another
    /// lock its key.
    #[must_use]
    pub fn keys(&self) -> Vec<LockKey> {
        self.hold.keys().into_iter().map(LockKey::new).collect()
    }

    /// The numbers of the slots that it has, from 0 on, each below the number of slots; none for a
    /// lock that was not asked for by [`Locker::slots`](crate::Locker::slots). They stay the same
    /// while the lock is held, and no other guard has one of them meanwhile. None, too, when a
    /// shutdown has ended the lock.
    #[must_use]
    pub fn slots(&self) -> Vec<u16> {
        self.hold.claim(|claim| claim.resource.slot_numbers().to_vec()).unwrap_or_default()
    }

    /// The fence of a lock that was asked for as [`fenced`](crate::LockRequest::fenced): a number
    /// above that of every holder before this one, and below that of every one after. It stays the
    /// same while the lock is held. Whatever is written under the lock carries it, and what is
    /// written to refuses a write whose fence is below the highest that it has seen: so a holder
    /// who was paused past the end of its lock cannot write over what a later one wrote.
    ///
    /// `None` for a lock that is not fenced, and after a [`downgrade`](Self::downgrade).
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.hold.claim(Claim::fence).flatten()
    }

    /// What it takes to release the lock, or to [`adopt`](crate::Locker::adopt) it. Each guard has
    /// another one. Adopting the lock of a guard that lives takes as long as its time lasts, and
    /// that guard loses it; [`forget`](Self::forget) gives a token that is adopted at once.
    #[must_use]
    pub fn owner_token(&self) -> OwnerToken {
        self.hold.token()
    }

    /// Whether the lock is held, by the clocks, now. Once `false`, it stays so. It is `false` from
    /// the instant at which [`lost`](Self::lost) tells of the loss, a margin before
    /// [`deadline`](Self::deadline).
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// The time until [`deadline`](Self::deadline); zero when the lock is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// From when on another client may hold the lock, if it is not extended. The margin for clock
    /// drift is already taken off, the one for late timers is not: see [`lost`](Self::lost).
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.hold.deadline()
    }

    /// What each node did with the acquisition, as far as it has answered by now, and how long each
    /// took to answer. A node that had not when the majority was there is
    /// [`Pending`](crate::report::Outcome::Pending), and later what it became.
    #[must_use]
    pub fn votes(&self) -> Vec<NodeReport> {
        self.hold.votes()
    }

    /// Completes when the lock is lost: before another client may hold it, whatever the network
    /// does, and at once when a majority of the nodes says that it does not hold it any more. Any
    /// number of tasks may wait. A loss is final: no extension takes it back. Says why the lock was
    /// lost.
    ///
    /// The lock counts as lost a little before [`deadline`](Self::deadline): by 1 % of the TTL, and
    /// 20 ms at least (of a TTL below 400 ms a twentieth, 3 ms at least), because timers come late
    /// and a busy machine lets a process wait. Or by 10 µs for each lock that the locker holds,
    /// where that is more, up to a quarter of the time: all may be lost together. From that instant
    /// on [`is_valid`](Self::is_valid) is `false` too, and tokens are cancelled. Should the machine
    /// be suspended, or its clock be set, it completes within 100 ms after that.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn lost(&self) -> Loss {
        self.hold.lost().await
    }

    /// Completes when another client asks the holder to let go of the lock
    /// ([`Locker::revoke`](crate::Locker::revoke), [`Slots::revoke`](crate::Slots::revoke)), also
    /// if that is for one of its several keys or slots, and when the lock is lost. Finish what is
    /// being done, and [release](Self::release) it: once a majority of the nodes is marked, nothing
    /// extends it any more, and it ends at its [`deadline`](Self::deadline). Where a minority alone
    /// is marked it is still extended. Any number of tasks may wait.
    ///
    /// While a task waits it is told at once, if the holder's connections speak RESP3 and may
    /// listen to its channel. Otherwise the next extension tells it, within a third of the TTL. A
    /// lock that is not extended is told by its channel alone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing. What comes by the channel while no task waits is told
    /// by the next extension.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Whether the holder was asked to let go of the lock, as far as that is known here: see
    /// [`revoked`](Self::revoked).
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.hold.is_revoked()
    }

    /// Does the work while the lock is held; when the lock is lost, drops the work.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost) when the lock was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work; the lock stays held.
    pub async fn protect<W: Future>(&self, work: W) -> Result<W::Output, Error> {
        self.hold.protect(work).await.ok_or_else(|| self.hold.lost_error())
    }

    /// As [`protect`](Self::protect), for work that may fail by itself: its error and that of a
    /// lost lock become one.
    ///
    /// # Errors
    ///
    /// That of the work, and one that [`is_lost`](Error::is_lost).
    ///
    /// # Cancel safety
    ///
    /// As [`protect`](Self::protect).
    pub async fn try_protect<W, T, E>(&self, work: W) -> Result<T, E>
    where
        W: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.protect(work).await?
    }

    /// A token that is cancelled when the lock is lost, and when its last handle ends: for work
    /// that is told by such tokens when to stop. A thread of its own sees to that, so it comes in
    /// time also when the runtime is blocked or has ended.
    #[cfg(feature = "tokio-util")]
    #[must_use]
    pub fn cancellation(&self) -> tokio_util::sync::CancellationToken {
        self.hold.cancellation()
    }

    /// Lets the lock live for `ttl` from now on, and extends it by that from then on. Never
    /// shortens its life, and never makes a key that is gone.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost) when the lock is held no more, or its loss has been told, which
    /// is not taken back. Otherwise it is held until [`deadline`](Self::deadline), which no failure
    /// moves on, and which comes nearer only where nodes say that they do not hold the key:
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) when no majority extended it in time,
    /// [`is_revoked`](Error::is_revoked) when the lock was [revoked](crate::Locker::revoke),
    /// [`is_misuse`](Error::is_misuse) for a TTL that cannot be, [`is_closed`](Error::is_closed)
    /// without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the deadline where it was; nodes may keep the key for longer.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.hold.extend_to(ttl).await
    }

    /// Turns a write lock into a read lock, in one round trip and without a gap: no other writer
    /// has the lock before this reader and all others have ended. Readers that are next in the
    /// queue are woken; those behind a writer that waits wait on.
    ///
    /// Stop writing before the call: from then on other readers may have the lock. Its TTL counts
    /// from now, and so do the limit of [`Extend::For`](crate::Extend::For) and the time of
    /// [`release_after`](Self::release_after). It has no fence. Observers are told of a release and
    /// of an acquisition, and a token of `cancellation` that was taken before is cancelled.
    ///
    /// # Errors
    ///
    /// The lock is released, or was lost before. [`is_misuse`](Error::is_misuse) for a lock of
    /// several keys, a read lock, a key with a brace that ends no tag, and a lock of which there
    /// are other [handles](Self::share), which have it still;
    /// [`is_lost`](Error::is_lost) when it was lost, or a majority does not hold it;
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) when no majority did it in time;
    /// [`is_too_slow`](Error::is_too_slow) when nothing of the TTL was left;
    /// [`is_closed`](Error::is_closed) without a runtime, or when the locker was shut down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock.
    pub async fn downgrade(self) -> Result<Self, Error> {
        if self.handles.has_others() {
            return Err(Error::misuse("other handles have the lock; downgrade the last one"));
        }
        let lost = || self.hold.lost_error();
        let shared = self.hold.claim(|claim| claim.resource.downgraded(&READ));
        let shared = shared.ok_or_else(lost)??;
        let extend = self.hold.extends().filter(|_| self.is_valid()).ok_or_else(lost)?;
        let _downgrading = Downgrading::begin(self.hold.leases());
        let mut claim = None;
        let ended = self.hold.end(&mut claim).ok_or_else(lost)?;
        self.tell_end(&ended, &claim);
        let (claim, leases) = (claim.ok_or_else(lost)?, self.hold.leases().clone());
        let started = leases.context.nodes.clock().now();
        let guard = Self::new(downgrade(&leases, claim, (shared, DOWNGRADE), extend).await?);
        guard.tell_acquired(started);
        Ok(guard)
    }

    /// Another handle of this lock, for a part of the work that may outlast this one. The lock is
    /// released when the last of them is, or is dropped; they extend it together, have one
    /// [fence](Self::fence) and one token, and lose it together.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// let guard = locker.lock("order:42").await?;
    /// let part = guard.share();
    /// std::thread::spawn(move || println!("{:?} left", part.remaining()));
    /// guard.release().await?; // the lock, when the thread has ended as well
    /// # Ok(()) }
    /// ```
    pub fn share(&self) -> Self {
        Self { hold: self.hold.clone(), handles: self.handles.another() }
    }

    /// Releases the lock and waits for a majority of the nodes to say so. Where there are other
    /// [handles](Self::share), this one ends, and no node is told: [`Release::Shared`].
    ///
    /// An extension that is on its way is overtaken by nothing: the release stands behind it. A
    /// node that does not answer is waited for no longer than its deadline; its key ends with its
    /// TTL.
    ///
    /// # Errors
    ///
    /// [`is_closed`](Error::is_closed) when there is no runtime to wait on. The release has been
    /// written to the connections all the same. [`is_lost`](Error::is_lost) when the locker was
    /// shut down: the lock was released then, or left as asked. Also when the lock was lost, and
    /// other handles are left.
    ///
    /// # Cancel safety
    ///
    /// The release is sent to every node at the first poll. Dropping the future before that, or
    /// after it, releases the lock; only what the nodes answered is then not known.
    pub async fn release(mut self) -> Result<Release, Error> {
        if let Some(shared) = self.end_handle() {
            return shared;
        }
        match self.begin_release()? {
            Some(releasing) => Ok(releasing.finish().await),
            None => Ok(Release::Released),
        }
    }

    /// Ends the guard and keeps the lock from other clients until `min_hold` after its acquisition.
    /// For a job that may be over before another machine's clock says that it is due. Each node
    /// lets the key expire at that time by its own clock, also where the TTL was longer; this
    /// process need not stay. If `min_hold` is over or the lock is lost, this is
    /// [`release`](Self::release).
    ///
    /// [`Release::Released`] says that a majority will let it expire then, and nothing else says
    /// so: a node that was not reached keeps the key for what is left of its TTL, which may be less
    /// than `min_hold`. It is asked once.
    ///
    /// On a handle that is not the last, `min_hold` has no effect: [`Release::Shared`]. Call it on
    /// the last one.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a time that no TTL may have, as above the longest TTL of
    /// [`Durability::Volatile`](crate::Durability::Volatile); the lock is then left to its TTL, and
    /// no longer extended. [`is_closed`](Error::is_closed) and [`is_lost`](Error::is_lost) as for a
    /// release; without a runtime, too, the lock is left to its TTL.
    ///
    /// # Cancel safety
    ///
    /// The nodes are told at the first poll. Dropping the future before that releases the lock.
    /// After it, what they answered is not known, and a lock that was gone already may leave its
    /// key on a minority until `min_hold` is over.
    pub async fn release_after(mut self, min_hold: Duration) -> Result<Release, Error> {
        let left = self.hold.left_of(min_hold);
        if left.is_zero() || !self.is_valid() {
            return self.release().await;
        }
        if let Some(shared) = self.end_handle() {
            return shared;
        }
        if let Err(misuse) = self.hold.admit_life(left) {
            drop(self.forget());
            return Err(misuse);
        }
        let (mut claim, lost) = (None, || self.hold.lost_error());
        let ended = self.hold.end(&mut claim).ok_or_else(lost)?;
        let expiring = claim.as_mut().ok_or_else(lost)?.expire(left);
        // Told when the command is sent: a panic of the observer's must not have the key deleted.
        self.tell_end(&ended, &claim);
        let found = expiring?.finish().await;
        if matches!(found, Release::Expired | Release::Taken) {
            claim.as_mut().map(Claim::let_go_after_all);
        }
        Ok(found)
    }

    /// Ends every [handle](Self::share) of the lock, and leaves its keys to their expiry, without
    /// further extension. Returns what it takes to release the lock, or to
    /// [`adopt`](crate::Locker::adopt) it, at once and one time. A lock that a
    /// [`shutdown`](crate::Locker::shutdown) has released is gone already; its token does not say
    /// that it was left behind. That of a lock of several keys is neither adopted nor released by
    /// it: its keys end with their TTL.
    pub fn forget(self) -> OwnerToken {
        let (token, mut claim) = (self.owner_token(), None);
        self.hold.end(&mut claim);
        claim.map_or(token, |mut claim| claim.leave())
    }

    /// Ends this handle; what its release is told where it is not the last.
    fn end_handle(&mut self) -> Option<Result<Release, Error>> {
        // Before: another handle may be the last by then, and end the hold.
        let lost = (self.handles.has_others() && !self.is_valid()).then(|| self.hold.lost_error());
        let is_last = self.handles.end();
        (!is_last).then(|| lost.map_or(Ok(Release::Shared), Err))
    }

    /// Ends the hold and asks the nodes to let go of the key; `None`: the next of this process has
    /// it.
    fn begin_release(&self) -> Result<Option<Releasing>, Error> {
        let mut claim = None;
        if !self.end(&mut claim) {
            return Err(self.hold.lost_error());
        }
        // The claim's drop tells the nodes, where there is no runtime to ask on.
        claim.as_mut().map(Claim::release).transpose()
    }

    /// Ends the hold and tells of it, and hands the lock on where that is asked for: then there is
    /// no claim any more. `false`: the hold has ended before.
    #[inline]
    fn end(&self, claim: &mut Option<Claim>) -> bool {
        if self.hold.may_be_handed_on() {
            return self.end_and_hand_on(claim);
        }
        let ended = self.hold.end(claim);
        ended.inspect(|ended| self.tell_end(ended, claim)).is_some()
    }

    fn end_and_hand_on(&self, claim: &mut Option<Claim>) -> bool {
        let Some((ended, inherited)) = self.hold.part(claim) else { return false };
        self.tell_end(&ended, claim);
        *claim = claim.take().and_then(|claim| hand_on(claim, inherited));
        true
    }

    fn tell_acquired(&self, started: crate::clock::Moment) {
        let context = self.hold.context();
        let subject = |claim: &Claim| {
            context.options.observers.tell(|| Event::Acquired {
                lock: context.subject(&claim.resource),
                tries: 1,
                waited: context.nodes.clock().now().since(started),
                fence: None,
                votes: claim.election.report(),
            });
        };
        self.hold.claim(subject);
    }

    fn tell_end(&self, ended: &Ended, claim: &Option<Claim>) {
        let Some(claim) = claim else { return };
        let context = self.hold.context();
        context.options.observers.tell(|| Event::Released {
            lock: context.subject(&claim.resource),
            held: context.nodes.clock().now().since(ended.began),
        });
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.handles.end() {
            // The claim's own drop tells the nodes.
            self.end(&mut None);
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", &self.key())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
