//! Events, reported as they happen: for logs, metrics, and tests.
//!
//! An [`Observer`] is handed each [`Event`] on the thread on which it happened, outside every lock
//! of ours. Without an observer no event is built.

#[cfg(feature = "tracing")]
mod tracing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tracing")]
pub use self::tracing::TracingObserver;

use crate::error::Error;
use crate::fence::Fence;
pub use crate::loss::Loss;
use crate::report::{Fault, Holder, NodeReport, Persistence};

/// Receives events; see [`LockerBuilder::observer`](crate::LockerBuilder::observer).
///
/// It is called on the path of the operation that the event is about, and on the task that reads
/// the connections: it must not block. A panic in it unwinds into its caller.
pub trait Observer: Send + Sync {
    /// Something has happened.
    fn on_event(&self, event: &Event<'_>);
}

/// Something that has happened to a lock or a node.
///
/// `lock` says which lock it was, `held` for how long it had been held, `tries` counts from 1.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields of one name mean one thing, said above")]
pub enum Event<'a> {
    /// A lock was acquired, `waited` after it was asked for.
    #[non_exhaustive]
    Acquired {
        lock: Subject<'a>,
        tries: u32,
        waited: Duration,
        /// The lock's fence, if it has one.
        fence: Option<Fence>,
        /// What each node had done by then.
        votes: Vec<NodeReport>,
    },
    /// The lock is held, by another client or by the very locker that asks (`holder` says which);
    /// the caller waits for it. Told once, at the first try that found it held.
    #[non_exhaustive]
    Waiting { lock: Subject<'a>, holder: Option<&'a Holder>, waited: Duration },
    /// A try has failed; the next one comes after `pause`.
    #[non_exhaustive]
    Retrying { lock: Subject<'a>, tries: u32, pause: Duration, error: &'a Error },
    /// The caller's time is up, or trying again cannot help.
    #[non_exhaustive]
    GaveUp { lock: Subject<'a>, tries: u32, waited: Duration, error: &'a Error },
    /// A majority has extended the lock's life; `remaining` is left of it now.
    #[non_exhaustive]
    Extended { lock: Subject<'a>, held: Duration, remaining: Duration, votes: Vec<NodeReport> },
    /// No majority extended the lock's life in time. It is still held for `remaining`, and
    /// extending is tried again until then.
    #[non_exhaustive]
    ExtensionFailed {
        lock: Subject<'a>,
        held: Duration,
        remaining: Duration,
        votes: Vec<NodeReport>,
    },
    /// The lock is no longer held, although its guard has not released it.
    #[non_exhaustive]
    Lost {
        lock: Subject<'a>,
        held: Duration,
        reason: Loss,
        /// How late this process's timers were when it was found out, if they were: its runtime was
        /// blocked, the machine was suspended, or its clock was set.
        stalled: Option<Duration>,
    },
    /// The holder releases the lock: the commands are on their way to the nodes.
    #[non_exhaustive]
    Released { lock: Subject<'a>, held: Duration },
    /// The lock has been held for as long as [`Extend`](crate::Extend) allows; it is extended no
    /// more and will end with its TTL.
    #[non_exhaustive]
    HeldTooLong { lock: Subject<'a>, held: Duration, remaining: Duration },
    /// The holder is asked to let go of the lock ([`Locker::revoke`](crate::Locker::revoke)). If
    /// it does not, the lock is lost when what remains is over, unless a minority of the nodes
    /// alone is marked. Reported once.
    #[non_exhaustive]
    Revoked { lock: Subject<'a>, held: Duration, remaining: Duration },
    /// A node is down: its last connection has ended, or the first attempt to connect has failed.
    /// Reported once, not for each further attempt.
    #[non_exhaustive]
    NodeDown { node: &'a str, class: &'static str, fault: &'a Fault },
    /// A node that was just connected to deletes keys when its memory is full, locks among them:
    /// its `maxmemory-policy` is another than `noeviction`. No lock on it can be relied on.
    #[non_exhaustive]
    Evicts { node: &'a str, class: &'static str, policy: &'a str },
    /// A node that was just connected to may come back without its locks when it stops, and the
    /// locker relies on that it does not ([`Durability::Persistent`](crate::Durability)): two
    /// clients can hold one lock then. Told once for each of the server's processes. See
    /// [`Persistence::may_forget`](crate::report::Persistence::may_forget).
    #[non_exhaustive]
    Forgets { node: &'a str, class: &'static str, persistence: &'a Persistence },
    /// A server rejected the native delete (`DELIFEQ`) though it had advertised it: a proxy stands
    /// before an older server, or a right was taken away. The script was sent instead, and this
    /// connection uses the script from now on. Reported once for each connection.
    #[non_exhaustive]
    NativeRejected { node: &'a str, class: &'static str, error: &'a str },
    /// A node that was reported down is connected. Reported once for each
    /// [`NodeDown`](Self::NodeDown): a node that connects at its first attempt is not reported.
    #[non_exhaustive]
    NodeUp { node: &'a str, class: &'static str },
}

impl<'a> Event<'a> {
    /// Which lock it happened to; `None` for what happens to a node.
    #[must_use]
    pub fn lock(&self) -> Option<Subject<'a>> {
        match self {
            Self::Acquired { lock, .. }
            | Self::Waiting { lock, .. }
            | Self::Retrying { lock, .. }
            | Self::GaveUp { lock, .. }
            | Self::Extended { lock, .. }
            | Self::ExtensionFailed { lock, .. }
            | Self::Lost { lock, .. }
            | Self::Released { lock, .. }
            | Self::HeldTooLong { lock, .. }
            | Self::Revoked { lock, .. } => Some(*lock),
            Self::NodeDown { .. }
            | Self::Evicts { .. }
            | Self::Forgets { .. }
            | Self::NativeRejected { .. }
            | Self::NodeUp { .. } => None,
        }
    }

    /// The class of the lock, or of the node's locker: see
    /// [`LockerBuilder::class`](crate::LockerBuilder::class).
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::NodeDown { class, .. }
            | Self::Evicts { class, .. }
            | Self::Forgets { class, .. }
            | Self::NativeRejected { class, .. }
            | Self::NodeUp { class, .. } => class,
            of_a_lock => of_a_lock.lock().map_or("", |lock| lock.class),
        }
    }
}

/// Which lock an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Subject<'a> {
    /// The key as the caller gave it, without the locker's prefix.
    pub key: &'a [u8],
    /// The full name of the locker that asks for the lock.
    pub owner: &'a str,
    /// What kind of lock the caller says it is, by
    /// [`LockRequest::class`](crate::LockRequest::class); empty where nothing was said.
    pub class: &'static str,
}

impl<'a> Subject<'a> {
    pub(crate) const fn new(key: &'a [u8], owner: &'a str, class: &'static str) -> Self {
        Self { key, owner, class }
    }
}

/// The observers, and the class of events that have no other.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    all: Vec<Arc<dyn Observer>>,
    /// The class of the nodes, and of locks whose request names none.
    pub(crate) class: &'static str,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.all.push(observer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Reports an event, which is built only if there is an observer.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if self.all.is_empty() {
            return;
        }
        let event = event();
        for observer in &self.all {
            observer.on_event(&event);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.all.len())
    }
}
