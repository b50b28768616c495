//! One leader among several candidates: [`Locker::elect`].
//!
//! ```text
//!  candidate ──lock acquired, its fence is the term──▶ leads ──its work returns──▶ resigns
//!      ▲                                                 │
//!      └──────────── stops, the work is dropped ◀────────┘ not extended in time, or it is gone
//! ```
//!
//! A leader stops before its lock ends, by what [`lost`](LockGuard::lost) keeps as a reserve. With
//! a
//! [`lock_delay`](Election::lock_delay) the lock lives for longer on the nodes: no other begins
//! before the old leader has had that time to end what it cannot drop.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::fence::Fence;
use crate::lock::{Held, LockGuard, LockKey, Locker};
use crate::options::Extend;

/// How long a lock lives that is not extended, unless set otherwise.
const TTL: Duration = Duration::from_secs(10);

/// What lies between two tries while too few nodes can be reached.
const PAUSE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// Longer than any process runs.
const ALWAYS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// One leader among several candidates: [`Locker::elect`]. Cheap to clone; clones are the same
/// candidate to those who [watch](Self::watch) it, and different ones to the nodes.
#[derive(Clone)]
#[must_use = "a candidate stands when `lead` is awaited"]
pub struct Election {
    locker: Locker,
    role: Box<[u8]>,
    ttl: Duration,
    lock_delay: Duration,
    term: Arc<watch::Sender<Option<Fence>>>,
}

/// Who leads, as the nodes say: [`Election::observe`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Leader {
    /// Its name, as [`LockerBuilder::owner`](crate::LockerBuilder::owner) has it.
    pub name: Option<Box<str>>,
    /// Its term; `None` where too few nodes told.
    pub term: Option<Fence>,
    /// How long its lock lives unless it is extended.
    pub remaining: Duration,
}

/// What a leader leads by: handed to its work.
#[derive(Clone, Debug)]
pub struct Term {
    held: Held,
    fence: Fence,
}

impl Locker {
    /// Makes this process a candidate for a role that one process has at a time.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// # async fn schedule(_: quorlock::recipe::Term) -> Result<(), quorlock::Error> { Ok(()) }
    /// // Waits to be the leader, and stands again when it is not any more; never returns, unless
    /// // the work does.
    /// locker.elect("scheduler").lead(|term| schedule(term)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// The role is a key as for [`lock`](Self::lock), and who leads holds its lock, with a fence.
    pub fn elect(&self, role: impl AsRef<[u8]>) -> Election {
        Election {
            locker: self.clone(),
            role: role.as_ref().into(),
            ttl: TTL,
            lock_delay: Duration::ZERO,
            term: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Election {
    /// How long a leader leads on that cannot reach a majority of the nodes, and how long there is
    /// none when its process dies, together with the [`lock_delay`](Self::lock_delay). It is
    /// extended at a third of that. Default: 10 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// For how long there is no leader after one that could not extend its lock, or died: time for
    /// what it has started and cannot drop. Nothing is waited for when a leader resigns, nor where
    /// the lock is gone from the nodes, as by [`Locker::force_release`]. Default: none. See
    /// [`LockRequest::lock_delay`](crate::LockRequest::lock_delay).
    pub fn lock_delay(self, lock_delay: Duration) -> Self {
        Self { lock_delay, ..self }
    }

    /// Waits until this process is the leader, and does the work while it is. When the lead is
    /// lost, the work is dropped and the process is a candidate again: the work is begun anew with
    /// the next term. When the work returns, the process resigns: the lock is released, and the
    /// next candidate woken.
    ///
    /// The work is dropped between two steps, and before another can lead. A step that runs for
    /// longer is not interrupted; where that could harm, it checks [`Term::is_valid`] first, and
    /// what it writes to compares the [`fence`](Term::fence).
    ///
    /// While too few nodes can be reached, it goes on trying.
    ///
    /// # Errors
    ///
    /// Those of the work. Those of acquiring (as of [`LockRequest`](crate::LockRequest)) that do
    /// not pass: [`is_authentication`](Error::is_authentication),
    /// [`is_misuse`](Error::is_misuse), [`is_closed`](Error::is_closed) (also without a tokio
    /// runtime).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work and resigns.
    pub async fn lead<F, Fut, T, E>(&self, mut work: F) -> Result<T, E>
    where
        F: FnMut(Term) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        loop {
            let (guard, term) = self.campaign().await?;
            // Dropped before the guard, so that none watches a term that another may have.
            let watched = Watched::begin(&self.term, term.fence);
            let done = guard.protect(work(term)).await;
            drop(watched);
            if let Ok(done) = done {
                // Work that is done is done, whatever the nodes say of the release.
                let _ = guard.release().await;
                return done;
            }
        }
    }

    /// The term that this process leads by, `None` while it does not: for health checks and
    /// metrics. It is told before the work begins, and after it was dropped; a process that was
    /// stopped may be told late. Work asks its [`Term`].
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Option<Fence>> {
        self.term.subscribe()
    }

    /// Who leads, as a majority of the nodes says; `None` where none does. Two round trips, and no
    /// candidature: any process may look. Where the lead changes between the two, the term may be
    /// the next one's.
    ///
    /// # Errors
    ///
    /// As [`Locker::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn observe(&self) -> Result<Option<Leader>, Error> {
        let inspection = self.locker.inspect(&self.role).await?;
        Ok(inspection.holder().map(|holder| Leader {
            name: holder.owner.clone(),
            term: inspection.fence(),
            remaining: holder.remaining,
        }))
    }

    /// Waits to hold the role's lock.
    async fn campaign(&self) -> Result<(LockGuard, Term), Error> {
        if !Clock::default().can_sleep() {
            return Err(Error::closed("a candidate stands on a tokio runtime with time enabled"));
        }
        loop {
            let request = self.locker.lock(&self.role).ttl(self.ttl).lock_delay(self.lock_delay);
            let request = request.auto_extend(Extend::Forever).fenced();
            let request = request.wait_forever().unavailable_wait(ALWAYS);
            let failed = match request.await {
                Ok(guard) => {
                    let (held, fence) = (Held::new(&guard), guard.fence());
                    let none = || Error::closed("the lock has no fence");
                    let term = Term { held, fence: fence.ok_or_else(none)? };
                    return Ok((guard, term));
                }
                Err(error) => error,
            };
            if !failed.is_retryable() {
                return Err(failed);
            }
            let (clock, [low, high]) = (Clock::default(), PAUSE);
            let pause = Entropy::from_system()?.between(low, high);
            clock.sleep_until(clock.now().plus(pause)).await;
        }
    }
}

impl Term {
    /// Its number, above that of every term before: the lock's [fence](LockGuard::fence).
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether this process leads still: reads the clocks. Check it right before a step that must
    /// not be done by two.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.held.is_valid()
    }

    /// How long this process leads on if nothing is extended, and the work goes on; zero when it
    /// does not lead.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held.until_lost()
    }
}

/// Shows a term to those who watch, until it is dropped.
struct Watched<'a>(&'a watch::Sender<Option<Fence>>, Fence);

impl<'a> Watched<'a> {
    fn begin(shown: &'a watch::Sender<Option<Fence>>, term: Fence) -> Self {
        shown.send_replace(Some(term));
        Self(shown, term)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        // Another clone may lead by now.
        self.0.send_if_modified(|shown| shown.take_if(|term| *term == self.1).is_some());
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = LockKey::new(self.role.to_vec());
        f.debug_struct("Election").field("role", &role).finish_non_exhaustive()
    }
}
