//! How long a lock is held: arithmetic over moments, nothing else.
//!
//! Each node counts the TTL from when the command *arrives*; we count it from when the command was
//! *sent*, and give up the drift margin, for a server's clock may run faster than ours. So our
//! lease ends before any node's does, under the stated assumptions: clock rates within the margin,
//! no clock stepped, no node that forgot. Our own clock is the monotonic one: it stands still while
//! the machine is suspended, which counts as running too slowly.

use std::time::Duration;

use crate::clock::Moment;
use crate::options::Drift;

/// The time for which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lease {
    /// From here on another client may hold the lock.
    pub(crate) end: Moment,
    /// When a holder should be told that the end is near. Timers come up to 2 ms late: to be told
    /// before the end, one must be set to before it.
    pub(crate) warning: Moment,
}

impl Lease {
    /// The lease of an acquisition whose first command was sent at `sent`.
    pub(crate) fn new(sent: Moment, ttl: Duration, drift: Drift) -> Self {
        let end = sent.plus(ttl).less(drift.of(ttl));
        let margin = (ttl / 100).max(Duration::from_millis(3));
        Self { end, warning: end.less(margin).max(sent) }
    }

    /// Whether the lock is held at `now`, which must have been read after the deciding reply.
    pub(crate) fn is_valid(self, now: Moment) -> bool {
        now < self.end
    }

    pub(crate) fn remaining(self, now: Moment) -> Duration {
        self.end.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFT: Drift = Drift { permille: 10, floor: Duration::from_millis(2) };

    fn at(millis: u64) -> Moment {
        Moment::default().plus(Duration::from_millis(millis))
    }

    #[test]
    fn a_lease_counts_from_sending_and_ends_a_margin_early() {
        let lease = Lease::new(at(1_000), Duration::from_secs(10), DRIFT);
        assert_eq!(lease.end, at(11_000 - 102));
        assert_eq!(lease.warning, at(11_000 - 102 - 100));
        assert!(lease.is_valid(at(10_897)));
        assert!(!lease.is_valid(at(10_898)));
        assert_eq!(lease.remaining(at(10_000)), Duration::from_millis(898));
        assert_eq!(lease.remaining(at(20_000)), Duration::ZERO);
    }

    #[test]
    fn a_short_lease_warns_not_before_it_began() {
        let lease = Lease::new(at(1_000), Duration::from_millis(5), DRIFT);
        assert_eq!(lease.warning, at(1_000));
        assert!(lease.end > at(1_002) && lease.end < at(1_003));
    }
}
