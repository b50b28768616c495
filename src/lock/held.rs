//! The view of a held lock that `run` lends its closure.

use std::fmt;
use std::time::{Duration, Instant};

use super::guard::LockGuard;
use super::key::LockKey;
use crate::error::Error;
use crate::fence::Fence;
use crate::lease::HoldRef;
#[cfg(all(test, feature = "testing"))]
use crate::lease::OwnerToken;
use crate::observe::Loss;
use crate::report::NodeReport;

/// What [`LockRequest::run`](crate::LockRequest::run) lends to its closure: the lock's time,
/// without the right to end it. It outlives the lock without harm: then it says that it is lost.
#[derive(Clone)]
pub struct Held {
    hold: HoldRef,
    key: LockKey,
    fence: Option<Fence>,
    slots: Box<[u16]>,
}

impl Held {
    pub(crate) fn new(guard: &LockGuard) -> Self {
        let (key, fence, slots) = (guard.key(), guard.fence(), guard.slots().into());
        Self { hold: guard.hold.clone(), key, fence, slots }
    }

    /// How long the lock is still held, if it is, without the effect that asking has.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_left(&self) -> Option<Duration> {
        self.hold.looks_left()
    }

    /// Why the lock is lost, if it is, without the effect that asking has.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_lost(&self) -> Option<Loss> {
        self.hold.looks_lost()
    }

    /// As [`Held::is_valid`], without the effect that asking has.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_valid(&self) -> bool {
        self.hold.looks_valid()
    }

    /// As [`LockGuard::owner_token`], without the effect that asking has.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_token(&self) -> OwnerToken {
        self.hold.looks_token()
    }

    /// As [`LockGuard::key`]; also when the lock has been released.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// As [`LockGuard::slots`]; also when the lock has been released.
    #[must_use]
    pub fn slots(&self) -> &[u16] {
        &self.slots
    }

    /// As [`LockGuard::fence`]; also when the lock has been released.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// As [`LockGuard::votes`]; none when the lock has been released.
    #[must_use]
    pub fn votes(&self) -> Vec<NodeReport> {
        self.hold.votes()
    }

    /// As [`LockGuard::is_valid`].
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// As [`LockGuard::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// As [`LockGuard::deadline`].
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.hold.deadline()
    }

    /// As [`LockGuard::lost`]; also when the lock has been released, as [`Loss::Released`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn lost(&self) -> Loss {
        self.hold.lost().await
    }

    /// As [`LockGuard::revoked`]; also when the lock has been released.
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::revoked`].
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// As [`LockGuard::is_revoked`]; `false`, too, when the lock has been released.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.hold.is_revoked()
    }

    /// How long until [`lost`](Self::lost) completes, if nothing is extended.
    pub(crate) fn until_lost(&self) -> Duration {
        self.hold.until_warning()
    }

    /// As [`LockGuard::cancellation`].
    #[cfg(feature = "tokio-util")]
    #[must_use]
    pub fn cancellation(&self) -> tokio_util::sync::CancellationToken {
        self.hold.cancellation()
    }

    /// As [`LockGuard::extend`].
    ///
    /// # Errors
    ///
    /// As [`LockGuard::extend`]; [`is_lost`](Error::is_lost) also when the lock has been released.
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::extend`].
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.hold.extend_to(ttl).await
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("key", &self.key)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
