//! What a holder has in hand: the guard, its release, and the view that `run` lends its closure.

use std::fmt;
use std::future::poll_fn;
use std::time::{Duration, Instant};

use super::claim::Claim;
use super::lease::Lease;
use crate::clock::Clock;
use crate::error::Error;
use crate::quorum::Found;
use crate::report::NodeReport;

/// A held lock. Dropping it releases it.
///
/// The lock is held until [`deadline`](Self::deadline) at the latest: a lease, not a mutex. After
/// it another client may hold the lock, whatever this process is doing. The clock is the monotonic
/// one, which stands still while a machine is suspended: a guard that has slept through its end
/// with its machine still believes in itself. Work that must not overlap
/// checks [`is_valid`](Self::is_valid) before each step that others see, and still needs a last
/// line of defence where it writes (a version, a constraint).
///
/// Dropping the guard writes the release to the connections and does not wait for the nodes; it
/// never blocks, and works on any thread. `let _ = guard` drops it on the spot; name it
/// `let _guard` to keep it. A process that ends right after a drop may end before the kernel has
/// sent it: prefer [`release`](Self::release) there.
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct LockGuard {
    claim: Claim,
    lease: Lease,
}

impl LockGuard {
    pub(crate) fn new(claim: Claim, lease: Lease) -> Self {
        Self { claim, lease }
    }

    /// The key, as it was asked for, without the locker's prefix.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.claim.key().given()
    }

    /// The value that the nodes hold under the key: whoever knows it can release the lock.
    #[must_use]
    pub fn owner_token(&self) -> OwnerToken {
        OwnerToken(self.claim.value())
    }

    /// Whether the lock is still held, by the clock, now.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.lease.is_valid(self.claim.now())
    }

    /// How long it is still held; zero when it no longer is.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining(self.claim.now())
    }

    /// Until when it is held. The margin for clock drift is already taken off.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.clock().instant(self.lease.end)
    }

    /// What each node did, as far as it has answered by now.
    #[must_use]
    pub fn votes(&self) -> Vec<NodeReport> {
        self.claim.report()
    }

    /// Releases the lock and waits for a majority of the nodes to say so.
    ///
    /// A node that does not answer is waited for no longer than its deadline; its key ends with its
    /// TTL.
    ///
    /// # Errors
    ///
    /// [`is_closed`](Error::is_closed) when there is no runtime to wait on. The release has been
    /// written to the connections all the same.
    ///
    /// # Cancel safety
    ///
    /// The release is sent to every node at the first poll. Dropping the future before that, or
    /// after it, releases the lock; only what the nodes answered is then not known.
    pub async fn release(self) -> Result<Release, Error> {
        let election = self.claim.release()?;
        poll_fn(|cx| election.poll_verdict(cx)).await;
        let release = Release::from_found(election.found(), election.needed());
        Ok(release.unwrap_or_else(|| Release::Unknown(election.report())))
    }

    /// Keeps the lock until its TTL ends, without this guard. Returns what it takes to release it.
    pub fn forget(self) -> OwnerToken {
        let token = self.owner_token();
        self.claim.forget();
        token
    }

    pub(crate) fn clock(&self) -> Clock {
        self.claim.locker().nodes.clock()
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", &String::from_utf8_lossy(self.key()))
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// What a release found.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "a lock that had expired or was taken says that the work may have overlapped"]
pub enum Release {
    /// A majority of the nodes held the key and deleted it: the lock was ours to the end.
    Released,
    /// The key was gone from too many nodes: the lock had expired, or somebody had deleted it.
    Expired,
    /// Another client holds the lock.
    Taken,
    /// Too few nodes answered. What they still hold ends with the TTL.
    Unknown(Vec<NodeReport>),
}

impl Release {
    /// Whether the lock was held until its release.
    #[must_use]
    pub fn is_released(&self) -> bool {
        matches!(self, Self::Released)
    }

    /// What the nodes' answers mean; `None` when they are too few to mean anything.
    fn from_found(found: Found, needed: usize) -> Option<Self> {
        let Found { granted: deleted, gone, held: taken, not_asked } = found;
        // Nodes that had refused the acquisition were not asked: they hold no key of ours.
        let clear = deleted + gone + not_asked;
        if deleted >= needed {
            Some(Self::Released)
        } else if gone > 0 && clear >= needed {
            Some(Self::Expired)
        } else if taken > 0 && clear + taken >= needed {
            Some(Self::Taken)
        } else {
            None
        }
    }
}

/// The value of a held key. Whoever has it can release the lock, so it does not show in `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerToken(String);

impl OwnerToken {
    /// The value, as the nodes hold it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

/// What [`LockRequest::run`](crate::LockRequest::run) lends to its closure: the lock's time,
/// without the right to end it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    lease: Lease,
    clock: Clock,
}

impl Held {
    pub(crate) fn new(guard: &LockGuard) -> Self {
        Self { lease: guard.lease(), clock: guard.clock() }
    }

    /// Whether the lock is still held, by the clock, now.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.lease.is_valid(self.clock.now())
    }

    /// How long it is still held; zero when it no longer is.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining(self.clock.now())
    }

    /// Until when it is held.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.clock.instant(self.lease.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_says_what_it_found() {
        let of_five = |granted, gone, held, not_asked| {
            Release::from_found(Found { granted, held, gone, not_asked }, 3)
        };
        // A majority deleted it; who is still to answer does not matter.
        assert!(matches!(of_five(3, 0, 0, 0), Some(Release::Released)));
        // Two deleted it, one is silent, two never had it: whether the third kept it is not known.
        assert!(of_five(2, 0, 0, 2).is_none());
        // It was gone from a majority.
        assert!(matches!(of_five(2, 3, 0, 0), Some(Release::Expired)));
        // Another's value stands on a majority.
        assert!(matches!(of_five(0, 2, 3, 0), Some(Release::Taken)));
        // Too few answered.
        assert!(of_five(2, 0, 0, 0).is_none());
    }

    #[test]
    fn a_token_does_not_show_in_debug() {
        assert_eq!(format!("{:?}", OwnerToken("canary".into())), "OwnerToken(…)");
    }
}
