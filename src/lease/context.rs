//! What lies beneath every lease: the nodes, the options, and whether the locker was shut down.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::durability::Volatile;
use super::key::Key;
use super::validity;
use crate::error::Error;
use crate::observe::Subject;
use crate::options::Options;
use crate::quorum::NodeSet;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What every command needs to be sent: the nodes, the options, the holder's name.
pub(crate) struct LeaseContext {
    pub(crate) nodes: Arc<NodeSet>,
    pub(crate) options: Options,
    /// What locks are acquired with where the servers may forget.
    pub(crate) volatile: Option<Volatile>,
    /// The holder's full name, as it stands in each value.
    pub(crate) owner: Arc<str>,
    /// How many locks are held.
    pub(super) held: AtomicUsize,
    /// The locker was shut down.
    pub(super) closing: AtomicBool,
    /// Tells those who wait that it was.
    on_close: Notify,
}

impl LeaseContext {
    pub(crate) fn new(nodes: NodeSet, options: Options, owner: Arc<str>) -> Self {
        let held = AtomicUsize::new(0);
        let (closing, on_close) = (AtomicBool::new(false), Notify::new());
        let (nodes, volatile) = (Arc::new(nodes), Volatile::new(&options));
        Self { nodes, options, volatile, owner, held, closing, on_close }
    }

    /// Refuses to acquire for a locker that was shut down, and beside a node of another deployment.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.check_not_closed()?;
        self.nodes.check_fit()
    }

    /// Refuses to work for a locker that was shut down.
    pub(crate) fn check_not_closed(&self) -> Result<(), Error> {
        match self.is_closed() {
            true => Err(Error::closed("the locker was shut down; build another one")),
            false => Ok(()),
        }
    }

    /// Refuses to wait where there is no timer to wait by.
    pub(crate) fn check_can_sleep(&self) -> Result<(), Error> {
        if self.nodes.can_sleep() { Ok(()) } else { Err(Error::no_runtime()) }
    }

    /// Refuses a TTL that no lock of this locker can have; what has to be known of a longer one
    /// than usual is told to the nodes.
    pub(crate) fn admit_ttl(&self, ttl: Duration) -> Result<(), Error> {
        self.options.check_ttl(ttl)?;
        if ttl > self.options.ttl {
            self.nodes.extend_horizon(self.options.undo_horizon(ttl));
        }
        Ok(())
    }

    /// The key of a lock, as the caller gives it.
    pub(crate) fn key(&self, given: &[u8]) -> Result<Key, Error> {
        let mut key = Key::new(&self.options.prefix, given)?;
        key.class = self.options.observers.class;
        Ok(key)
    }

    /// What observers are told of which lock it is.
    pub(crate) fn subject<'a>(&'a self, key: &'a Key) -> Subject<'a> {
        Subject::new(key.given(), &self.owner, key.class)
    }

    /// How long before its end a lock with this TTL counts as lost.
    pub(crate) fn margin(&self, ttl: Duration) -> Duration {
        validity::margin(ttl, self.options.drift, self.held.load(Ordering::SeqCst))
    }

    fn is_closed(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Completes when the locker is shut down.
    pub(crate) async fn closed(&self) {
        let mut closed = pin!(self.on_close.notified());
        closed.as_mut().enable();
        if !self.is_closed() {
            closed.await;
        }
    }

    pub(crate) fn close(&self) {
        // Ordering: before the holds are looked through; see `HoldRef::begin`.
        self.closing.store(true, Ordering::SeqCst);
        self.on_close.notify_waiters();
    }
}
