//! What a release found, by what the nodes say.

use std::future::poll_fn;

use crate::quorum::{Election, Found, NodeMask};
use crate::report::NodeReport;

/// What a release found.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "a lock that had expired or was taken says that the work may have overlapped"]
pub enum Release {
    /// A majority of the nodes held the key and deleted it, or will let it expire as asked: the
    /// lock was ours to the end.
    Released,
    /// The key was gone from too many nodes: the lock had expired, or its key had been deleted.
    Expired,
    /// Another client holds the lock.
    Taken,
    /// There are other [handles](crate::LockGuard::share) of the lock, so nothing was sent: the
    /// last one releases it.
    Shared,
    /// Too few nodes answered. What they still hold ends with the TTL, or as it was asked for.
    Unknown(Vec<NodeReport>),
}

/// A release on its way.
pub(crate) struct Releasing {
    pub(super) election: Election,
    /// Nodes on which we may have deleted the key before.
    pub(super) unsure: NodeMask,
}

impl Releasing {
    /// What the nodes have found by now; `None` when too few have said so.
    pub(super) fn found(&self) -> Option<Release> {
        Release::from_found(self.election.found(self.unsure), self.election.needed())
    }

    /// What the nodes have found, when enough of them have said so.
    pub(crate) async fn finish(self) -> Release {
        poll_fn(|cx| self.election.poll_verdict(cx)).await;
        self.found().unwrap_or_else(|| Release::Unknown(self.election.report()))
    }
}

impl Release {
    /// Whether the lock was held until its release. `false` for [`Shared`](Self::Shared), which is
    /// no sign of a loss.
    #[must_use]
    pub fn is_released(&self) -> bool {
        matches!(self, Self::Released)
    }

    /// What the nodes' answers mean; `None` when they are too few to mean anything.
    fn from_found(found: Found, needed: usize) -> Option<Self> {
        let Found { granted: deleted, gone, held: taken, not_asked, unknown } = found;
        // Nodes that had refused the acquisition were not asked: they hold no key of ours.
        let clear = deleted + gone + not_asked;
        if deleted >= needed {
            Some(Self::Released)
        } else if deleted + unknown >= needed {
            // Those that have not told may have deleted it, too: it may have been ours to the end.
            None
        } else if gone > 0 && clear >= needed {
            Some(Self::Expired)
        } else if taken > 0 && clear + taken >= needed {
            Some(Self::Taken)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_says_what_it_found() {
        let of_five = |granted, gone, held, not_asked| {
            let unknown = 5 - granted - gone - held - not_asked;
            Release::from_found(Found { granted, held, gone, not_asked, unknown }, 3)
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
        // Two deleted it and the third may have: the lock may have been ours to the end, though a
        // node had never heard of it, or had granted the key to another client's failed attempt.
        assert!(of_five(2, 2, 0, 0).is_none());
        assert!(of_five(2, 1, 1, 0).is_none());
        assert!(of_five(2, 0, 1, 1).is_none());
        // One deleted it and one may have: no majority can have had it.
        assert!(matches!(of_five(1, 3, 0, 0), Some(Release::Expired)));
        assert!(matches!(of_five(1, 0, 2, 1), Some(Release::Taken)));
        // A majority without the key does not make it expired, nor taken, where no node says so.
        assert!(matches!(of_five(2, 0, 2, 1), Some(Release::Taken)));
        assert!(of_five(2, 0, 0, 3).is_none());
    }
}
