//! The guard of a held lock.

use std::fmt;
use std::time::{Duration, Instant};

use super::park;
use crate::error::Error;
use crate::fence::Fence;
use crate::lease::{OwnerToken, Release};
use crate::lock::{self, LockKey};
use crate::observe::Loss;
use crate::report::NodeReport;

/// A held lock. Dropping it releases it, on any thread, and never waits.
///
/// As [`crate::LockGuard`], whose documentation says what a lock is and is not. It is extended by
/// the locker's own thread while it lives. Work that must not overlap looks at
/// [`is_valid`](Self::is_valid) before each step that others see: a thread cannot be stopped.
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct LockGuard {
    guard: lock::LockGuard,
}

impl LockGuard {
    pub(super) fn new(guard: lock::LockGuard) -> Self {
        Self { guard }
    }

    /// As [`crate::LockGuard::key`].
    #[must_use]
    pub fn key(&self) -> LockKey {
        self.guard.key()
    }

    /// As [`crate::LockGuard::keys`].
    #[must_use]
    pub fn keys(&self) -> Vec<LockKey> {
        self.guard.keys()
    }

    /// As [`crate::LockGuard::slots`].
    #[must_use]
    pub fn slots(&self) -> Vec<u16> {
        self.guard.slots()
    }

    /// As [`crate::LockGuard::fence`].
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.guard.fence()
    }

    /// As [`crate::LockGuard::owner_token`].
    #[must_use]
    pub fn owner_token(&self) -> OwnerToken {
        self.guard.owner_token()
    }

    /// As [`crate::LockGuard::is_valid`].
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.guard.is_valid()
    }

    /// As [`crate::LockGuard::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// As [`crate::LockGuard::deadline`].
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.guard.deadline()
    }

    /// As [`crate::LockGuard::votes`].
    #[must_use]
    pub fn votes(&self) -> Vec<NodeReport> {
        self.guard.votes()
    }

    /// As [`crate::LockGuard::cancellation`]: for async work that this thread's lock protects.
    #[cfg(feature = "tokio-util")]
    #[must_use]
    pub fn cancellation(&self) -> tokio_util::sync::CancellationToken {
        self.guard.cancellation()
    }

    /// Waits until the lock is lost, as [`crate::LockGuard::lost`] tells it, and no longer than
    /// `timeout`: then `None`.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn wait_for_loss(&self, timeout: Duration) -> Result<Option<Loss>, Error> {
        park::wait_for(self.guard.lost(), timeout)
    }

    /// Waits until another client asks the holder to let go of the lock, or it is lost, as
    /// [`crate::LockGuard::revoked`] tells it, and no longer than `timeout`. Says whether that has
    /// happened.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn wait_for_revocation(&self, timeout: Duration) -> Result<bool, Error> {
        park::wait_for(self.guard.revoked(), timeout).map(|told| told.is_some())
    }

    /// As [`crate::LockGuard::is_revoked`].
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.guard.is_revoked()
    }

    /// As [`crate::LockGuard::extend`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        park::wait(self.guard.extend(ttl))?
    }

    /// As [`crate::LockGuard::downgrade`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures: the lock
    /// is released then.
    pub fn downgrade(self) -> Result<Self, Error> {
        park::wait(self.guard.downgrade())?.map(Self::new)
    }

    /// As [`crate::LockGuard::release`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures: the lock
    /// is released all the same, and what the nodes found is not known.
    pub fn release(self) -> Result<Release, Error> {
        park::wait(self.guard.release())?
    }

    /// As [`crate::LockGuard::release_after`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures: the lock
    /// is released then.
    pub fn release_after(self, min_hold: Duration) -> Result<Release, Error> {
        park::wait(self.guard.release_after(min_hold))?
    }

    /// As [`crate::LockGuard::share`].
    pub fn share(&self) -> Self {
        Self { guard: self.guard.share() }
    }

    pub(super) fn as_async(&self) -> &lock::LockGuard {
        &self.guard
    }

    /// As [`crate::LockGuard::forget`].
    pub fn forget(self) -> OwnerToken {
        self.guard.forget()
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
