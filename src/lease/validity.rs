//! How long a lock is held: arithmetic over stamps, nothing else.
//!
//! Each node counts the TTL from when the command *arrives*; we count it from when the command was
//! *sent*, and give up the drift margin, for a server's clock may run faster than ours. So our end
//! of a node's lease lies before the node's own, under the stated assumptions: clock rates within
//! the margin, no clock stepped, no node that forgot. The lock is held while a majority of the
//! nodes is certain to hold it: until the q-th latest of these ends.
//!
//! An extension only ever moves a node's end when the node has said so. While one is in flight the
//! old end stands; silence and errors leave it; "I hold no such key" sets it to the past. An
//! extension never shortens a key's life, so a node that has granted holds until the later of the
//! ends it ever gave. (`release_after` may; by then the guard has ended.)

use std::time::Duration;

use crate::clock::{Stamp, nanoseconds};
use crate::options::Drift;
use crate::quorum::NodeMask;

/// Until when a node holds a key that it was told at `sent` to hold for `ttl_nanos`. In
/// nanoseconds, for every acquisition computes it.
pub(crate) fn end(sent: Stamp, ttl_nanos: u64, drift: Drift) -> Stamp {
    sent.plus_nanos(ttl_nanos).less_nanos(drift.nanoseconds_of(ttl_nanos))
}

/// How long before its end a lock counts as lost at least, where that is not too much of its TTL: a
/// timer comes up to 2 ms late, and a busy machine lets a process wait for some more. In
/// nanoseconds, like the other two.
const MARGIN: u64 = 20_000_000;

/// The same for a lock of some milliseconds: above what a timer may be late.
const MARGIN_MIN: u64 = 3_000_000;

/// What each lock of a locker adds, where that comes to more: if all are lost
/// together, as when the nodes cannot be reached, one thread wakes all tasks that wait for that,
/// and runs one after the other.
const MARGIN_PER_LOCK: u64 = 10_000;

/// How long before its end a lock counts as lost, with so many others `held` by its locker. In
/// nanoseconds, like the `ttl`.
pub(crate) fn margin(ttl: u64, drift: Drift, held: usize) -> u64 {
    let lasts = ttl.saturating_sub(drift.nanoseconds_of(ttl));
    let share = (lasts / 20).clamp(MARGIN_MIN, MARGIN);
    let herd = u64::try_from(held).unwrap_or(u64::MAX).saturating_mul(MARGIN_PER_LOCK);
    (ttl / 100).max(share).max(herd.min(lasts / 4))
}

/// For how long a lock is held, by what each node has said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Validity {
    /// Each node's end; [`Stamp::PAST`] where the key is not known to be.
    ends: Box<[Stamp]>,
    needed: usize,
    /// The `needed`-th latest of `ends`: from here on another client may hold the lock.
    end: Stamp,
    /// When the latest command was sent that found the key missing on a node. Answers to earlier
    /// ones may come in later; they know less.
    missed: Stamp,
    /// How long before the end the lock counts as lost, in nanoseconds.
    margin: u64,
}

impl Validity {
    /// No lease yet, on so many nodes, of which so many are needed.
    pub(crate) fn new(nodes: usize, needed: usize) -> Self {
        let ends = vec![Stamp::PAST; nodes].into_boxed_slice();
        Self { ends, needed, end: Stamp::PAST, missed: Stamp::PAST, margin: 0 }
    }

    /// Another lease: these nodes hold the key until `end`, and of the others nothing is known.
    pub(crate) fn begin(&mut self, granted: NodeMask, end: Stamp) {
        let mut count = 0;
        for (known, has_granted) in self.ends.iter_mut().zip(granted.each()) {
            count += usize::from(has_granted);
            *known = if has_granted { end } else { Stamp::PAST };
        }
        self.end = if count >= self.needed { end } else { Stamp::PAST };
        self.missed = Stamp::PAST;
    }

    /// How many nanoseconds before its end the lock counts as lost, from now on; but not before
    /// `warning`, when it would have been lost until now: no extension that succeeds brings the
    /// loss nearer.
    pub(crate) fn set_margin(&mut self, margin: u64, warning: Stamp) {
        self.margin = margin;
        if !self.warning().reaches(warning) {
            self.margin = nanoseconds(warning.until(self.end));
        }
    }

    /// Nodes that were told so at `sent` hold the key until `end` at least.
    pub(crate) fn grant(
        &mut self,
        nodes: impl IntoIterator<Item = usize>,
        sent: Stamp,
        end: Stamp,
    ) {
        if sent != sent.later(self.missed) {
            return;
        }
        for node in nodes {
            if let Some(known) = self.ends.get_mut(node) {
                *known = known.later(end);
            }
        }
        self.end = Stamp::lasting(&self.ends, self.needed);
    }

    /// A node that was asked at `sent` does not hold the key.
    pub(crate) fn lose(&mut self, node: usize, sent: Stamp) {
        self.missed = self.missed.later(sent);
        if let Some(known) = self.ends.get_mut(node) {
            *known = Stamp::PAST;
        }
        self.end = Stamp::lasting(&self.ends, self.needed);
    }

    /// Whether the nodes hold the lock at `now`.
    #[cfg(test)]
    pub(crate) fn is_valid(&self, now: Stamp) -> bool {
        now.is_before(self.end)
    }

    /// From here on another client may hold the lock.
    pub(crate) fn end(&self) -> Stamp {
        self.end
    }

    /// When the lock counts as lost: a margin before another client may hold it.
    pub(crate) fn warning(&self) -> Stamp {
        self.end.less_nanos(self.margin)
    }

    pub(crate) fn remaining(&self, now: Stamp) -> Duration {
        now.until(self.end)
    }

    /// Whether so many nodes are known not to hold the key that no time has to pass for the lock to
    /// be lost.
    pub(crate) fn is_gone(&self) -> bool {
        self.end == Stamp::PAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFT: Drift = Drift { permille: 10, floor: Duration::from_millis(2) };
    const MILLIS: u64 = 1_000_000;
    const TTL: u64 = 10_000 * MILLIS;

    fn at(millis: u64) -> Stamp {
        Stamp::from_millis(millis)
    }

    fn granted(by: &[usize], sent: u64) -> Validity {
        let mut validity = Validity::new(5, 3);
        validity.set_margin(margin(TTL, DRIFT, 1), Stamp::PAST);
        validity.grant(by.iter().copied(), at(sent), end(at(sent), TTL, DRIFT));
        validity
    }

    #[test]
    fn a_lease_counts_from_sending_and_ends_a_margin_early() {
        let validity = granted(&[0, 1, 4], 1_000);
        assert_eq!(validity.end(), at(11_000 - 102));
        assert_eq!(validity.warning(), at(11_000 - 102 - 100));
        assert!(validity.is_valid(at(10_897)));
        assert!(!validity.is_valid(at(10_898)));
        assert_eq!(validity.remaining(at(10_000)), Duration::from_millis(898));
        assert_eq!(validity.remaining(at(20_000)), Duration::ZERO);
    }

    #[test]
    fn a_lock_among_very_many_counts_as_lost_earlier() {
        let millis = |held| margin(TTL, DRIFT, held) / MILLIS;
        assert_eq!([1, 10_000, 24_000].map(millis), [100, 100, 240]);
        assert_eq!(margin(TTL, DRIFT, usize::MAX), (TTL - DRIFT.nanoseconds_of(TTL)) / 4);
    }

    #[test]
    fn an_extension_among_more_locks_brings_no_loss_nearer() {
        let ttl = 1_000 * MILLIS;
        let mut validity = Validity::new(3, 2);
        validity.grant(0..3, at(0), end(at(0), ttl, DRIFT));
        validity.set_margin(margin(ttl, DRIFT, 1), Stamp::PAST);
        let before = validity.warning();
        assert_eq!(before, at(988 - 20));
        for (sent, warning) in [(10, 968), (100, 1_088 - 247)] {
            validity.grant(0..3, at(sent), end(at(sent), ttl, DRIFT));
            validity.set_margin(margin(ttl, DRIFT, 100_000), before);
            assert_eq!(validity.warning(), at(warning).later(before));
        }
        validity.grant(0..3, at(900), end(at(900), ttl, DRIFT));
        validity.set_margin(margin(ttl, DRIFT, 100_000), before);
        assert_eq!(validity.warning(), at(1_888 - 247));
    }

    #[test]
    fn fewer_than_a_majority_hold_nothing() {
        let validity = granted(&[0, 1], 1_000);
        assert!(validity.is_gone() && !validity.is_valid(at(1_000)));
    }

    #[test]
    fn an_extension_by_a_minority_changes_nothing_and_by_a_majority_all() {
        let mut validity = granted(&[0, 1, 2], 1_000);
        let new = end(at(5_000), TTL, DRIFT);
        validity.grant([0, 3], at(5_000), new);
        assert_eq!(validity.end(), at(10_898), "the third latest end is an old one");
        validity.grant([1], at(5_000), new);
        assert_eq!(validity.end(), new);
    }

    #[test]
    fn a_later_grant_never_shortens() {
        let mut validity = granted(&[0, 1, 2], 1_000);
        let shorter = end(at(1_100), 1_000 * MILLIS, DRIFT);
        for node in 0..3 {
            validity.grant([node], at(1_100), shorter);
        }
        assert_eq!(validity.end(), at(10_898));
    }

    #[test]
    fn nodes_that_lost_the_key_count_at_once() {
        let mut validity = granted(&[0, 1, 2, 3], 1_000);
        validity.lose(3, at(1_500));
        assert!(validity.is_valid(at(2_000)), "three are left");
        validity.lose(0, at(1_500));
        assert!(validity.is_gone(), "two are not a majority");
        validity.grant([0], at(1_400), end(at(1_400), TTL, DRIFT));
        assert!(validity.is_gone(), "an answer to an earlier question knows less");
        validity.grant([0], at(2_000), end(at(2_000), TTL, DRIFT));
        assert!(validity.is_valid(at(2_000)), "a node that got it back counts again");
    }
}
