//! The locker: where locks are asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquire::Order;
use super::builder::LockerBuilder;
use super::inspect::{self, Inspection};
use super::key::Key;
use super::request::LockRequest;
use crate::error::Error;
use crate::options::Options;
use crate::quorum::NodeSet;
use crate::report::NodeReport;

/// Locks on one node or on a quorum of nodes. Cheap to clone; all clones share their connections.
///
/// Building one does no I/O, and works with every node down. Connections are made in the background
/// from the first use on, which must be on a tokio runtime with I/O and time enabled; they belong
/// to that runtime. When it ends, the next use from another one connects anew. On a current-thread
/// runtime nothing moves, no release either, while nobody drives it.
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
    inner: Arc<Inner>,
}

/// What all clones of a locker, its requests and its guards share.
pub(crate) struct Inner {
    pub(crate) nodes: Arc<NodeSet>,
    pub(crate) options: Options,
    /// The holder's full name, as it stands in each value.
    pub(crate) owner: Arc<str>,
}

impl Locker {
    /// A locker on one server. The lock is as safe as that server: when it fails, or fails over to
    /// a replica, a lock may be lost or be held twice.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when the URL cannot be right.
    pub fn single(url: impl AsRef<str>) -> Result<LockerBuilder, Error> {
        LockerBuilder::single(url.as_ref())
    }

    /// A locker on 1 to 15 independent masters, of which a majority must grant a lock (Redlock).
    /// Five are a good choice: they bear the loss of two. Replicas of one another and nodes of a
    /// Cluster are not independent, and are refused when they connect.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when there is no URL, more than 15, one that cannot be
    /// right, or one twice.
    pub fn quorum<U>(urls: U) -> Result<LockerBuilder, Error>
    where
        U: IntoIterator,
        U::Item: AsRef<str>,
    {
        LockerBuilder::quorum(urls)
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// Asks for the lock of this key: any bytes but none, at most 4,096 of them with the prefix.
    /// Keys are compared byte by byte. Nothing happens until the request is awaited.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        let Inner { options, .. } = &*self.inner;
        let key = key.as_ref();
        let order = Key::new(&options.prefix, key).map(|key| Order {
            locker: self.inner.clone(),
            key,
            ttl: options.ttl,
            wait: options.wait,
        });
        LockRequest::new(order)
    }

    /// Connects, and waits until every node is usable; at the `deadline`, a majority is enough.
    /// Optional: the first lock connects too. Returns each node's state.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable) when fewer than a majority are usable at the
    /// `deadline`, [`is_authentication`](Error::is_authentication) as soon as there can be none for
    /// want of a right; both name each node and its reason. [`is_closed`](Error::is_closed)
    /// without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; connecting goes on.
    pub async fn ready(&self, deadline: Duration) -> Result<Vec<NodeReport>, Error> {
        self.inner.nodes.ready(deadline).await
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
        let key = Key::new(&self.inner.options.prefix, key.as_ref())?;
        Ok(inspect::look(self.inner.clone(), key).await)
    }

    /// The name under which this locker's locks are held: what
    /// [`owner`](LockerBuilder::owner) set, the host, and the process.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.inner.owner
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("nodes", &self.inner.nodes)
            .field("owner", &self.inner.owner)
            .finish_non_exhaustive()
    }
}
