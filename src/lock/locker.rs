//! The locker: where locks are asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::all::ALL;
use super::guard::LockGuard;
use super::mutex::MUTEX;
use super::reading::READ;
use super::request::LockRequest;
use super::slotted::CHOOSING;
use crate::error::Error;
use crate::lease::{
    AcquireSpec, Fate, LeaseContext, Leases, OwnerToken, Release, Resource, Revocation, Shutdown,
    initialise, inspect, revoke, shut_down, takeover,
};
use crate::options::Options;
use crate::report::{Inspection, NodeHealth, NodeReport, WaitStats};

/// Locks on one node or on a quorum of nodes. Cheap to clone; all clones share their connections.
///
/// Building one does no I/O, and works with every node down. Connections are made in the background
/// from the first use on, which must be on a tokio runtime with I/O and time enabled; they belong
/// to that runtime. When it ends, the next use from another one connects anew. On a current-thread
/// runtime nothing proceeds, not even a release, while no thread drives it.
///
/// ```no_run
/// # async fn example() -> Result<(), quorlock::Error> {
/// use quorlock::Locker;
///
/// let locker = Locker::quorum(["redis://a:6379", "redis://b:6379", "redis://c:6379"])?.build()?;
/// let guard = locker.lock("order:42").await?;
/// // … the work …
/// let found = guard.release().await?;
/// assert!(found.is_released());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Locker {
    leases: Arc<Leases>,
}

impl Locker {
    pub(crate) fn of(context: LeaseContext) -> Self {
        Self { leases: Leases::new(context) }
    }

    /// What its clones share, for rooms above that build something other than a lock on it.
    pub(crate) fn leases(&self) -> &Arc<Leases> {
        &self.leases
    }

    /// Asks for the lock of this key: any bytes but none, at most 4,096 of them with the prefix.
    /// Keys are compared byte by byte; none may end in `quorlock:epoch`, `quorlock:quarantine`,
    /// `quorlock:queue`, `quorlock:beats`, `quorlock:fence`, `quorlock:readers`, `quorlock:gate` or
    /// `quorlock:written`, which are the nodes' own. Nothing happens until the request is awaited.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        self.request(self.leases.context.resource(&MUTEX, key.as_ref()))
    }

    /// Asks for one lock of several keys, all or nothing: where one of them is held, none is taken.
    /// It excludes, and is excluded by, every lock of one of these keys. Their order means nothing,
    /// and requests that share keys cannot deadlock. Extended and released as one. From 1 to 64
    /// keys, each given once, and each as for [`lock`](Self::lock). Nothing happens until the
    /// request is awaited.
    ///
    /// Such a lock is not [adopted](Self::adopt), nor released by its token. An error that
    /// [`is_contended`](Error::is_contended) names the key that is in the way.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// let guard = locker.lock_all(["account:1", "account:2"]).await?;
    /// // … the transfer …
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> LockRequest {
        self.request(self.leases.context.resources(&ALL, keys))
    }

    /// Asks for a read lock of this key: any number of clients may have one at once, and none has a
    /// write lock meanwhile, nor any other lock of the key. Each read lock has its own TTL, and is
    /// extended, lost and released by itself. Keys are as for [`lock`](Self::lock), but for those
    /// with a brace that ends no tag. Nothing happens until the request is awaited.
    ///
    /// Those that have to wait do so in the order of their arrival. Once a writer is the first that
    /// waits, readers that come later wait behind it. Which writers can be kept out, and which
    /// tasks wait for themselves, is in [`readers`](crate::manual::readers).
    ///
    /// A read lock is not [adopted](Self::adopt), and does not become a write lock: two readers
    /// that both wanted that would wait for each other. Release it, ask for
    /// [`write`](Self::write), and look again at what was read. It has no fence: who only reads
    /// sends nothing that a store could compare. When awaited, the request fails as misuse for such
    /// a key, and where it is to be [`fenced`](LockRequest::fenced).
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// let guard = locker.read("prices").await?;
    /// // … what must not change meanwhile …
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn read(&self, key: impl AsRef<[u8]>) -> LockRequest {
        // Not by `request`: it has no fence, also where the locker's locks have one.
        LockRequest::new(self.spec(self.leases.context.read_resource(&READ, key.as_ref())))
    }

    /// Asks for a write lock of this key: the same as [`lock`](Self::lock), by the name that goes
    /// with [`read`](Self::read).
    pub fn write(&self, key: impl AsRef<[u8]>) -> LockRequest {
        self.lock(key)
    }

    /// A request for some slots of a key. It has no fence, also where the locker's locks have one.
    pub(super) fn of_slots(&self, key: &[u8], of: (u16, u16)) -> LockRequest {
        LockRequest::new(self.spec(self.leases.context.slots_resource(&CHOOSING, key, of)))
    }

    /// A request for what cannot be asked for.
    pub(super) fn refused(&self, error: Error) -> LockRequest {
        self.request(Err(error))
    }

    #[inline]
    fn request(&self, resource: Result<Resource, Error>) -> LockRequest {
        let request = LockRequest::new(self.spec(resource));
        if self.leases.context.options.fenced { request.fenced() } else { request }
    }

    #[inline]
    fn spec(&self, resource: Result<Resource, Error>) -> Result<AcquireSpec, Error> {
        let LeaseContext { options, .. } = &*self.leases.context;
        resource.map(|resource| AcquireSpec {
            leases: self.leases.clone(),
            resource,
            ttl: options.ttl,
            wait: options.wait,
            unavailable_wait: options.unavailable_wait,
            own_retry: None,
            extend: options.extend,
            fenced: false,
            fair: false,
        })
    }

    /// Connects, and waits until every node is usable; after `timeout`, a majority is enough.
    /// Optional: the first lock connects too. Returns each node's state.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable) when fewer than a majority are usable after
    /// `timeout`, [`is_authentication`](Error::is_authentication) as soon as there can be none for
    /// want of a right; both name each node and its reason. [`is_misuse`](Error::is_misuse) when a
    /// node belongs to a deployment of another [`Durability`](crate::Durability),
    /// [`is_closed`](Error::is_closed) without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; connecting goes on.
    pub async fn ready(&self, timeout: Duration) -> Result<Vec<NodeReport>, Error> {
        self.leases.context.nodes.ready(timeout).await
    }

    /// Each node's state now: [`Connected`](crate::report::Outcome::Connected), or
    /// [`Down`](crate::report::Outcome::Down) and why; how long its latest answer took; and what
    /// its server said of itself when it was connected to: kind and version, role and mode,
    /// persistence, eviction, clock.
    ///
    /// It is what the connections know by themselves: nothing is sent and nothing is waited for, so
    /// a node that hangs counts as connected until something that was asked of it has gone
    /// unanswered for 5 s, or for as long as its timeout where that is longer. Before the first use
    /// no node is connected; [`ready`](Self::ready) changes that.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) {
    /// for node in locker.health() {
    ///     println!("{node}"); // a:6379 is connected (valkey 9.1.2, master, standalone)
    ///     let server = node.server.unwrap_or_default();
    ///     if server.maxmemory_policy.is_some_and(|policy| &*policy != "noeviction") {
    ///         println!("  it may delete a lock that is held");
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Vec<NodeHealth> {
        self.leases.context.nodes.health()
    }

    /// How acquisitions of this locker and its clones have waited for others: how many wait now,
    /// and what has woken those that did. Costs a few loads.
    #[must_use]
    pub fn stats(&self) -> WaitStats {
        self.leases.context.stats()
    }

    /// Puts the nodes of a new [`Durability::Volatile`](crate::Durability::Volatile) deployment
    /// into service at once; without it, a node that has never voted first waits for the longest
    /// TTL.
    /// **For an operator who knows that no client holds a lock**, once, by hand: with all nodes
    /// restarted it lifts the very quarantine that protects their locks. A program must not do it
    /// when it starts. Where locks are fenced, ten seconds must have passed since the last of them,
    /// or the longest TTL, if that is less: so far ahead of the nodes' clocks fences can be.
    ///
    /// Returns each node's part. It does nothing where all nodes are in service. A task that waits
    /// for a lock meanwhile may wait until the quarantine would have ended.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when some nodes are in service and others are not (the
    /// deployment is at work, and those come back by themselves), for another longest TTL or
    /// something else under the names of the nodes' own keys, and under
    /// [`Durability::Persistent`](crate::Durability::Persistent). Nothing was changed then.
    /// [`is_unavailable`](Error::is_unavailable) or
    /// [`is_authentication`](Error::is_authentication) unless every node could do it; those that
    /// did are in service. [`is_closed`](Error::is_closed).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves each node as it is by then, in service or not.
    pub async fn initialise(&self) -> Result<Vec<NodeReport>, Error> {
        initialise::initialise(&self.leases.context).await
    }

    /// Asks every node who holds the key and for how long. Takes no lock.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when there can be no such key. A node that does not answer
    /// is no error; its state says so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn inspect(&self, key: impl AsRef<[u8]>) -> Result<Inspection, Error> {
        let key = self.leases.context.key(key.as_ref())?;
        Ok(inspect::look(self.leases.clone(), key, true, inspect::Extent::AllNodes).await)
    }

    /// Takes over the lock that is held under this token, from a guard here or in another process.
    /// The lock is given another value and at least the locker's TTL; the token is worth nothing
    /// afterwards, so of all who have it one takes the lock over. Released when the guard is
    /// dropped. One round trip, and another to confirm it where it was waited for.
    ///
    /// A lock that was left behind, by [`forget`](LockGuard::forget) or
    /// [`shutdown_leaving`](Self::shutdown_leaving), is taken over at once. With the token of a
    /// guard that may live ([`owner_token`](LockGuard::owner_token)) this completes when the time
    /// is over that the lock had left by then, and a majority has said once more that it holds the
    /// new value, so that never two guards are valid at once; that guard finds its lock lost at its
    /// next extension, or before.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost) when so many nodes do not hold the key under this token that no
    /// majority can, [`is_revoked`](Error::is_revoked) when it was [revoked](Self::revoke).
    /// Otherwise it is not known, and can be tried again with the same token:
    /// [`is_contended`](Error::is_contended) when adoptions met one another on different nodes,
    /// [`is_unavailable`](Error::is_unavailable), [`is_too_slow`](Error::is_too_slow),
    /// [`is_full`](Error::is_full), [`is_authentication`](Error::is_authentication),
    /// [`is_misuse`](Error::is_misuse) (for another [`Durability`](crate::Durability) among
    /// others), [`is_closed`](Error::is_closed). Every node that was given the new value is given
    /// the token's value back, as soon as it can be reached; the keys may live for longer than
    /// before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future puts the token's value back, like an error. A guard that was released in
    /// the meantime has released nothing then: the lock ends with its TTL.
    pub async fn adopt(
        &self,
        key: impl AsRef<[u8]>,
        token: &OwnerToken,
    ) -> Result<LockGuard, Error> {
        self.leases.context.check_open()?;
        let Options { ttl, extend, fenced, .. } = &self.leases.context.options;
        let resource = self.leases.context.resource(&MUTEX, key.as_ref())?;
        if *fenced {
            resource.check_fences()?;
        }
        let adopted =
            takeover::adopt(&self.leases, resource, token, *ttl, (*extend, *fenced)).await;
        adopted.map(LockGuard::new)
    }

    /// Releases the lock that this token stands for, from any process: where the key holds the
    /// token's value it is deleted, and another client's lock is left as it is. For a lock that was
    /// left with its token ([`forget`](LockGuard::forget)) and is not to be adopted.
    ///
    /// A guard that lives under the token loses its lock: one of this locker at once, one of
    /// another process at its next extension, or at its deadline where it is not extended. Until
    /// then two clients may believe that they hold the lock.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a key or a token that cannot be,
    /// [`is_closed`](Error::is_closed) without a runtime or behind a shutdown. What the nodes found
    /// is no error: see [`Release`]. Once more behind [`Release::Unknown`], it may find
    /// [`Release::Expired`]: what was deleted the first time.
    ///
    /// # Cancel safety
    ///
    /// The release is sent to every node at the first poll; dropping the future later only means
    /// that what they answered is not known.
    pub async fn release_by_token(
        &self,
        key: impl AsRef<[u8]>,
        token: &OwnerToken,
    ) -> Result<Release, Error> {
        // Nodes of another deployment delete as well as any.
        self.leases.context.check_not_closed()?;
        if token.value().is_empty() {
            return Err(Error::misuse("the token is empty; give the one of the lock"));
        }
        let resource = self.leases.context.resource(&MUTEX, key.as_ref())?;
        takeover::release(&self.leases, resource, token).await
    }

    /// Asks the holder of this lock to let go of it. The lock is not extended from then on: it ends
    /// when it would have ended by then, if the holder does not [release](LockGuard::release) it
    /// before. Until that it excludes all others as before, so nothing overlaps; wait for the lock
    /// as for any other. The holder is told by [`LockGuard::revoked`], its observers by
    /// [`Event::Revoked`](crate::Event::Revoked).
    ///
    /// This cannot be taken back, and asking again changes nothing. `None` when no client holds the
    /// lock. Of a lock of several keys ([`lock_all`](Self::lock_all)) one of its keys is enough;
    /// the holder of a slot is asked by [`Slots::revoke`](crate::Slots::revoke). A lock that was
    /// revoked is not [adopted](Self::adopt) any more.
    ///
    /// What a node forgets, as in a restart without persistence, it forgets of this too.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when there can be no such key, when readers hold the lock
    /// ([`read`](Self::read)), and when its holder is no quorlock, which would not understand.
    /// Otherwise it is not known whether the lock goes on; the holder may have been told:
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) when no majority answered,
    /// [`is_contended`](Error::is_contended) when one holder followed another meanwhile,
    /// [`is_closed`](Error::is_closed) without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the lock is revoked, on all nodes or on some.
    pub async fn revoke(&self, key: impl AsRef<[u8]>) -> Result<Option<Revocation>, Error> {
        let key = self.leases.context.key(key.as_ref())?;
        revoke::revoke(&self.leases.context, &key).await
    }

    /// Deletes the key on every node, whichever client holds the lock: for an operator who knows
    /// that its holder is gone for good. A holder that is not gone learns of it at its next
    /// extension, by [`lost`](LockGuard::lost), and works on unprotected until then.
    ///
    /// Returns each node's part: [`Granted`](crate::report::Outcome::Granted) where there was a
    /// key.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) when no majority answered;
    /// [`is_misuse`](Error::is_misuse), [`is_closed`](Error::is_closed).
    ///
    /// # Cancel safety
    ///
    /// The command is sent to every node at the first poll. Dropping the future later changes
    /// nothing.
    pub async fn force_release(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeReport>, Error> {
        let key = self.leases.context.key(key.as_ref())?;
        takeover::force_release(&self.leases.context, &key).await
    }

    /// Ends the locker's work, in all its clones. No clone acquires any more, tasks that wait for a
    /// lock are told, held locks are released, and everything that was ever sent is waited for, no
    /// longer than `timeout`. Guards that still live find their lock lost. What a node is still
    /// [owed](Shutdown::owed) then is reported, and is sent while the locker lives.
    ///
    /// # Errors
    ///
    /// [`is_closed`](Error::is_closed) without a runtime. Nodes that cannot be reached are no
    /// error; what is found says so.
    ///
    /// # Cancel safety
    ///
    /// Everything is sent at the first poll. Dropping the future later only ends the waiting.
    pub async fn shutdown(&self, timeout: Duration) -> Result<Shutdown, Error> {
        shut_down(&self.leases, Fate::Release, timeout).await
    }

    /// As [`shutdown`](Self::shutdown), and leaves the locks that are held to their expiry: for
    /// work that goes on elsewhere, or must not be taken up before a TTL has passed.
    ///
    /// # Errors
    ///
    /// As [`shutdown`](Self::shutdown).
    ///
    /// # Cancel safety
    ///
    /// As [`shutdown`](Self::shutdown).
    pub async fn shutdown_leaving(&self, timeout: Duration) -> Result<Shutdown, Error> {
        shut_down(&self.leases, Fate::Leave, timeout).await
    }

    /// The name under which this locker's locks are held: what
    /// [`owner`](crate::LockerBuilder::owner) set, the host, and the process.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.leases.context.owner
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("nodes", &self.leases.context.nodes)
            .field("owner", &self.leases.context.owner)
            .finish_non_exhaustive()
    }
}
