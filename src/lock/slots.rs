//! A key that as many may have at once as it has slots.

use super::locker::Locker;
use super::request::LockRequest;
use crate::error::Error;
use crate::lease::{Revocation, revoke};

/// A key that several may have at once, but no more than it has slots: [`Locker::slots`]. For what
/// bears so many at a time and no more, as a service that is called, or a device.
///
/// Each slot is a lock of its own, with its own TTL, that is extended, lost and released by itself.
/// Which one it is, the guard says ([`LockGuard::slots`](crate::LockGuard::slots)): a number from 0
/// on, which no one else has meanwhile. So slots are also a way to hand out numbers, as ports or
/// shards.
///
/// **Every process must use the same number of slots**: no more hold the key at once than the
/// largest number that any of them uses. It can be raised at any time; where it is lowered, holders
/// of slots above the new number keep theirs until they let go.
///
/// Those that have to wait do so in the order of their arrival, and are woken. One that wants many
/// waits at the head of the queue until so many are free at once, and those behind it wait, too;
/// see [`slots`](crate::manual::slots).
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
/// // No more than four calls at once, of all processes together.
/// let calls = locker.slots("printer:7", 4);
/// let guard = calls.acquire().await?;
/// println!("on line {}", guard.slots()[0]);
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Slots {
    locker: Locker,
    key: Box<[u8]>,
    count: u16,
}

impl Locker {
    /// Lets `count` holders have this key at once: see [`Slots`]. From 1 to 64. Keys are as for
    /// [`lock`](Self::lock), but for those with a brace that ends no tag. The lock of the key
    /// itself has nothing to do with its slots.
    pub fn slots(&self, key: impl AsRef<[u8]>, count: u16) -> Slots {
        Slots { locker: self.clone(), key: key.as_ref().into(), count }
    }
}

impl Slots {
    /// Asks for one slot. Nothing happens until the request is awaited.
    ///
    /// The request is an error, [`is_misuse`](Error::is_misuse), for a number of slots or a
    /// key that cannot be, and where it is to be [`fenced`](LockRequest::fenced): a store that
    /// refuses all but the latest holder has one holder. An error that
    /// [`is_contended`](Error::is_contended) names no holder.
    pub fn acquire(&self) -> LockRequest {
        self.acquire_many(1)
    }

    /// Asks for `weight` slots as one lock, all or nothing: from 1 to as many as there are. Tasks
    /// that each ask once cannot deadlock; one that asks again with slots in hand may wait for
    /// itself.
    ///
    /// The request is an error as for [`acquire`](Self::acquire), also for a weight that cannot be.
    pub fn acquire_many(&self, weight: u16) -> LockRequest {
        self.locker.of_slots(&self.key, (self.count, weight))
    }

    /// Asks the holder of this slot to let go of it, as [`Locker::revoke`] asks the holder of a
    /// lock. The slot is the number that the holder's guard tells
    /// ([`LockGuard::slots`](crate::LockGuard::slots)), from 0 on.
    ///
    /// `None` when no client holds this slot. A holder of several slots
    /// ([`acquire_many`](Self::acquire_many)) has them as one lock: it is asked to let go of them
    /// all, and none of them is extended from then on. Holders of other slots are not asked.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// let calls = locker.slots("printer:7", 4);
    /// if let Some(revocation) = calls.revoke(2).await? {
    ///     println!("line 2 is free in {:?} at most", revocation.over_in);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a slot that is not below the number of slots, and for a
    /// number of slots or a key that cannot be; before anything is sent. Else as for
    /// [`Locker::revoke`]; such an error names the slot's own key, as `{printer:7}:slot:2`.
    ///
    /// # Cancel safety
    ///
    /// As for [`Locker::revoke`]: dropping the future leaves open whether the slot is revoked, on
    /// all nodes or on some.
    pub async fn revoke(&self, slot: u16) -> Result<Option<Revocation>, Error> {
        let context = &self.locker.leases().context;
        let key = context.slot_key(&self.key, self.count, slot)?;
        revoke::revoke(context, &key).await
    }

    /// How many slots the key has.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }
}
