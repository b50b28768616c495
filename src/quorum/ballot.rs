//! The votes on one operation, in one atomic word.
//!
//! ```text
//!  63            32   31      30    29 28 … 3 2  1 0
//! ┌────────────────┬─────┬─────────┬─────────────────┐
//! │   generation   │  –  │ decided │ node 14 … node 0│   a vote: 00 none, 01 granted,
//! └────────────────┴─────┴─────────┴─────────────────┘           10 refused, 11 unknown
//! ```
//!
//! The races, and what settles each:
//! - *Vote against vote.* Two nodes' votes may arrive on two threads (the driver's, and that of a
//!   caller whose link was closed). Each is one compare-and-swap; the one that turns `Pending` into
//!   a verdict also sets `decided`, so exactly one of them wakes the waiting caller.
//! - *Late vote for a reused slot.* A reply may come long after its caller has gone and the slot
//!   serves another operation. The vote names the generation it was cast for, and a word of another
//!   generation does not take it.
//! - *Twice the same node.* The first vote of a node stands: one that was silent until its deadline
//!   stays unknown even if it answers after all.

use super::mask::NodeMask;
use super::tally::{Rule, Verdict, Vote};
use crate::sync::atomic::{AtomicU64, Ordering};

const DECIDED: u64 = 1 << 30;
const VOTES: u64 = DECIDED - 1;
/// The lower bit of each vote.
const LOWER: u32 = 0x1555_5555;

/// How many of the lower bits are set: in half the instructions of `count_ones` on processors that
/// have none of their own for it, and each reply counts the votes twice. The sum of two neighbours
/// is one hexadecimal digit of `pairs`, and a product with ones adds up all digits in the highest
/// one: 15 at most, so nothing is carried.
const fn count(lower: u32) -> u32 {
    let pairs = (lower & 0x3333_3333) + (lower >> 2 & 0x3333_3333);
    pairs.wrapping_mul(0x1111_1111) >> 28
}

/// The nodes whose lower bits these are. All move together: each step halves the gaps.
const fn nodes(lower: u32) -> NodeMask {
    let pairs = (lower | lower >> 1) & 0x3333_3333;
    let fours = (pairs | pairs >> 2) & 0x0f0f_0f0f;
    let eights = (fours | fours >> 4) & 0x00ff_00ff;
    NodeMask::from_bits((eights | eights >> 8) as u16)
}

/// A snapshot of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Votes(u64);

impl Votes {
    pub(crate) const fn fresh(generation: u32) -> Self {
        Self((generation as u64) << 32)
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) const fn is_decided(self) -> bool {
        self.0 & DECIDED != 0
    }

    /// The vote of a node, if it has voted.
    pub(crate) fn of(self, node: usize) -> Option<Vote> {
        match (self.0 >> (2 * node)) & 0b11 {
            0b01 => Some(Vote::Granted),
            0b10 => Some(Vote::Refused),
            0b11 => Some(Vote::Unknown),
            _ => None,
        }
    }

    /// How many granted.
    pub(crate) const fn granted(self) -> u32 {
        count(self.lower_bits_of(Vote::Granted))
    }

    /// How many have voted.
    pub(crate) const fn cast(self) -> u32 {
        let votes = (self.0 & VOTES) as u32;
        count((votes | (votes >> 1)) & LOWER)
    }

    /// The nodes that have voted like this.
    pub(crate) const fn by(self, vote: Vote) -> NodeMask {
        nodes(self.lower_bits_of(vote))
    }

    const fn lower_bits_of(self, vote: Vote) -> u32 {
        let lower = (self.0 & VOTES) as u32;
        let higher = lower >> 1;
        let both = match vote {
            Vote::Granted => lower & !higher,
            Vote::Refused => higher & !lower,
            Vote::Unknown => lower & higher,
        };
        both & LOWER
    }

    fn with(self, node: usize, vote: Vote) -> Self {
        let bits = match vote {
            Vote::Granted => 0b01,
            Vote::Refused => 0b10,
            Vote::Unknown => 0b11,
        };
        Self(self.0 | bits << (2 * node))
    }

    const fn decided(self) -> Self {
        Self(self.0 | DECIDED)
    }
}

/// What became of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cast {
    /// Another operation has the slot, or the node had voted.
    Ignored,
    /// It counts, and did not decide.
    Counted,
    /// It decided: the task that cast it wakes the caller.
    Decided,
}

/// The word.
#[derive(Debug)]
pub(crate) struct Ballot(AtomicU64);

impl Ballot {
    pub(crate) fn new(generation: u32) -> Self {
        Self(AtomicU64::new(Votes::fresh(generation).0))
    }

    pub(crate) fn votes(&self) -> Votes {
        // Ordering: pairs with the release in `cast`; what the voters wrote beside is visible.
        Votes(self.0.load(Ordering::Acquire))
    }

    /// Casts a node's vote for the operation of `generation`. Inlined, as every reply is one.
    #[inline(always)]
    pub(crate) fn cast(&self, generation: u32, node: usize, vote: Vote, rule: Rule) -> Cast {
        let mut votes = self.votes();
        loop {
            if votes.generation() != generation || votes.of(node).is_some() {
                return Cast::Ignored;
            }
            let mut next = votes.with(node, vote);
            let verdict = || rule.verdict(next.granted(), next.cast());
            let decides = !next.is_decided() && verdict() != Verdict::Pending;
            if decides {
                next = next.decided();
            }
            // Ordering: release publishes what the voter wrote about its node before the vote;
            // acquire, so that the deciding voter has seen what all voters before it wrote.
            let swapped =
                self.0.compare_exchange_weak(votes.0, next.0, Ordering::AcqRel, Ordering::Acquire);
            match swapped {
                Ok(_) if decides => return Cast::Decided,
                Ok(_) => return Cast::Counted,
                Err(found) => votes = Votes(found),
            }
        }
    }

    /// Ends the operation: from now on its late votes are ignored. Returns the next generation.
    pub(crate) fn retire(&self) -> u32 {
        // Only the holder of the slot changes its generation, so it cannot change in between.
        let next = self.votes().generation().wrapping_add(1);
        // Ordering: a swap, not a store, so that a vote is either before it, and gone, or behind
        // it, and of a generation that does not match.
        self.0.swap(Votes::fresh(next).0, Ordering::AcqRel);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Patience;
    use super::*;

    const RULE: Rule = Rule { voters: 5, needed: 3, patience: Patience::Early };

    #[test]
    fn every_set_of_lower_bits_is_counted_and_its_nodes_are_named() {
        let mut lower = 0;
        loop {
            assert_eq!(count(lower), lower.count_ones(), "{lower:#x}");
            let one_by_one = (0..15).filter(|node| lower >> (2 * node) & 1 == 1);
            assert!(nodes(lower).nodes().eq(one_by_one), "{lower:#x}");
            // The next larger number with no bit but these.
            lower = (lower | !LOWER).wrapping_add(1) & LOWER;
            if lower == 0 {
                break;
            }
        }
    }

    #[test]
    fn the_same_vote_twice_changes_nothing() {
        for vote in [Vote::Granted, Vote::Refused, Vote::Unknown] {
            let votes = Votes::fresh(7).with(3, vote);
            assert_eq!((votes.with(3, vote), votes.of(3)), (votes, Some(vote)));
            assert_eq!(votes.decided().decided(), votes.decided());
        }
    }

    #[test]
    fn the_third_grant_decides_and_later_votes_only_count() {
        let ballot = Ballot::new(7);
        assert_eq!(ballot.cast(7, 0, Vote::Granted, RULE), Cast::Counted);
        assert_eq!(ballot.cast(7, 4, Vote::Granted, RULE), Cast::Counted);
        assert_eq!(ballot.cast(7, 1, Vote::Refused, RULE), Cast::Counted);
        assert!(!ballot.votes().is_decided());
        assert_eq!(ballot.cast(7, 2, Vote::Granted, RULE), Cast::Decided);
        assert_eq!(ballot.cast(7, 3, Vote::Unknown, RULE), Cast::Counted);
        let votes = ballot.votes();
        assert_eq!((votes.granted(), votes.cast()), (3, 5));
        assert_eq!(votes.of(1), Some(Vote::Refused));
        assert_eq!(votes.of(3), Some(Vote::Unknown));
    }

    #[test]
    fn a_node_votes_once_and_only_in_its_generation() {
        let ballot = Ballot::new(1);
        assert_eq!(ballot.cast(1, 0, Vote::Unknown, RULE), Cast::Counted);
        assert_eq!(ballot.cast(1, 0, Vote::Granted, RULE), Cast::Ignored);
        assert_eq!(ballot.retire(), 2);
        assert_eq!(ballot.cast(1, 1, Vote::Granted, RULE), Cast::Ignored);
        assert_eq!(ballot.votes(), Votes::fresh(2));
    }

    #[test]
    fn fifteen_nodes_fit() {
        let rule = Rule { voters: 15, needed: 8, patience: Patience::All };
        let ballot = Ballot::new(u32::MAX);
        for node in 0..15 {
            ballot.cast(u32::MAX, node, Vote::Unknown, rule);
        }
        let votes = ballot.votes();
        assert_eq!((votes.granted(), votes.cast(), votes.is_decided()), (0, 15, true));
        assert_eq!(votes.generation(), u32::MAX);
        assert_eq!(ballot.retire(), 0);
    }
}
