//! One round of an extension: what its answers do to the time that is held, and to whom something
//! is sent behind it. Pure: votes and stamps come in as arguments, masks of nodes go out.
//!
//! ```text
//!  Extend(Digest) ──a node lacks the script──▶ Extend(Whole), to it and to those still silent
//!        │  └──────────┬──────────────────────────┘
//!        │        a majority confirms, a node has lost the key
//!        │             ▼
//!        └─────────▶ Heal, to those nodes
//! ```

use std::time::Duration;

use super::primitive::ScriptForm;
use super::validity::Validity;
use crate::clock::Stamp;
use crate::node_vote::NodeVote;
use crate::quorum::NodeMask;

/// What a round sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Extend(ScriptForm),
    /// The keys are set again where they were missing.
    Heal,
}

/// What was sent, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) kind: Kind,
    /// The clocks, read before it was sent.
    pub(super) sent: Stamp,
    pub(super) ttl: Duration,
    /// Until when the lock is held if a majority grants this.
    pub(super) end: Stamp,
    /// Nodes that the whole script has been sent to behind this.
    rescripted: NodeMask,
}

/// Nodes without our value, of a lock that a majority has just confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Missing {
    /// They have lost the key.
    pub(super) empty: NodeMask,
    /// They hold another value.
    pub(super) others: NodeMask,
}

impl Round {
    pub(super) fn new(kind: Kind, sent: Stamp, ttl: Duration, end: Stamp) -> Self {
        Self { kind, sent, ttl, end, rescripted: NodeMask::NONE }
    }

    /// Enters what the nodes have answered by now; to be called again when more have. `margin` is
    /// that of a lock with this TTL, in nanoseconds.
    pub(super) fn handle_votes(
        &self,
        votes: impl Iterator<Item = (usize, NodeVote)>,
        validity: &mut Validity,
        margin: u64,
    ) {
        let warning = validity.warning();
        for (node, vote) in votes {
            match (vote, self.kind) {
                (NodeVote::Granted, _) => validity.grant([node], self.sent, self.end),
                (NodeVote::Gone | NodeVote::Held, Kind::Extend(_)) => {
                    validity.lose(node, self.sent);
                }
                _ => {} // where it was revoked it lives until its end
            }
        }
        // The margin is a share of the TTL that the lock has, not of one that it was not given.
        if validity.end().reaches(self.end) {
            validity.set_margin(margin, warning);
        }
    }

    /// Nodes to be sent the whole script: those that have forgotten it, and with them those that
    /// have not answered yet, for they may have forgotten it as well. Each is named once.
    pub(super) fn poll_rescript(
        &mut self,
        votes: impl Iterator<Item = (usize, NodeVote)>,
        lacks_script: impl Fn(usize) -> bool,
    ) -> Option<NodeMask> {
        if self.kind != Kind::Extend(ScriptForm::Digest) {
            return None;
        }
        let (mut forgot, mut silent) = (NodeMask::NONE, NodeMask::NONE);
        for (node, vote) in votes.filter(|(node, _)| !self.rescripted.has(*node)) {
            match vote {
                NodeVote::Refused if lacks_script(node) => forgot = forgot.with(node),
                NodeVote::None => silent = silent.with(node),
                _ => {}
            }
        }
        if forgot.is_empty() {
            return None;
        }
        self.rescripted = self.rescripted.or(forgot).or(silent);
        Some(forgot.or(silent))
    }

    /// Nodes that may be given the keys again: none unless `needed` have just confirmed them.
    pub(super) fn poll_missing(
        &self,
        votes: impl Iterator<Item = (usize, NodeVote)>,
        needed: usize,
    ) -> Option<Missing> {
        let Kind::Extend(_) = self.kind else { return None };
        let mut holders = 0;
        let mut missing = Missing { empty: NodeMask::NONE, others: NodeMask::NONE };
        for (node, vote) in votes {
            match vote {
                NodeVote::Granted => holders += 1,
                NodeVote::Gone => missing.empty = missing.empty.with(node),
                NodeVote::Held => missing.others = missing.others.with(node),
                _ => {}
            }
        }
        (holders >= needed).then_some(missing)
    }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use super::*;
    use NodeVote::{Gone, Granted, Held, None as Pending, Refused};

    const DIGEST: Kind = Kind::Extend(ScriptForm::Digest);
    const TTL: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Stamp {
        Stamp::from_millis(millis)
    }

    fn sent(kind: Kind) -> Round {
        Round::new(kind, at(1_000), TTL, at(11_000))
    }

    fn votes<const N: usize>(votes: [NodeVote; N]) -> impl Iterator<Item = (usize, NodeVote)> {
        votes.into_iter().enumerate()
    }

    fn mask(nodes: &[usize]) -> NodeMask {
        nodes.iter().fold(NodeMask::NONE, |mask, node| mask.with(*node))
    }

    /// A lease that all of three nodes have granted until the fifth second.
    fn validity() -> Validity {
        let mut validity = Validity::new(3, 2);
        validity.grant(0..3, at(0), at(5_000));
        validity
    }

    #[test]
    fn a_majority_moves_the_end_and_a_minority_does_not() {
        for (answers, end) in [
            ([Granted, Granted, Pending], 11_000),
            ([Granted, Pending, Pending], 5_000),
            ([Granted, Held, Pending], 5_000),
            ([Granted, Gone, Granted], 11_000),
        ] {
            let mut validity = validity();
            sent(DIGEST).handle_votes(votes(answers), &mut validity, 0);
            assert_eq!(validity.end(), at(end), "{answers:?}");
        }
        let mut lost = validity();
        sent(DIGEST).handle_votes(votes([Gone, Held, Granted]), &mut lost, 0);
        assert!(lost.is_gone(), "two of three do not hold it");
        let mut healed = validity();
        sent(Kind::Heal).handle_votes(votes([Held, Held, Granted]), &mut healed, 0);
        assert_eq!(healed.end(), at(5_000), "what was not set again says nothing of the others");
    }

    #[test]
    fn the_margin_is_that_of_the_ttl_only_where_the_lock_was_given_it() {
        let margin = 100_000_000;
        for (answers, warning) in
            [([Granted, Granted, Pending], 10_900), ([Granted, Pending, Pending], 5_000)]
        {
            let mut validity = validity();
            sent(DIGEST).handle_votes(votes(answers), &mut validity, margin);
            assert_eq!(validity.warning(), at(warning), "{answers:?}");
        }
    }

    #[test]
    fn the_whole_script_goes_to_who_forgot_it_and_to_who_is_silent_once_each() {
        let mut round = sent(DIGEST);
        let lacks = |node| node == 1;
        assert_eq!(round.poll_rescript(votes([Granted, Pending, Pending]), lacks), None);
        assert_eq!(round.poll_rescript(votes([Refused, Pending, Held]), lacks), None, "denied");
        let answers = [Granted, Refused, Pending];
        assert_eq!(round.poll_rescript(votes(answers), lacks), Some(mask(&[1, 2])));
        assert_eq!(round.poll_rescript(votes(answers), lacks), None, "told already");
        let all = [Refused, Refused, Refused];
        assert_eq!(round.poll_rescript(votes(all), |_| true), Some(mask(&[0])));
        for kind in [Kind::Extend(ScriptForm::Whole), Kind::Heal] {
            let mut round = sent(kind);
            assert_eq!(round.poll_rescript(votes(all), |_| true), None, "{kind:?}");
        }
    }

    #[test]
    fn keys_are_given_again_only_where_a_majority_has_confirmed_them() {
        let round = sent(DIGEST);
        let missing = |empty: &[usize], others: &[usize]| Missing {
            empty: mask(empty),
            others: mask(others),
        };
        for (answers, expected) in [
            ([Granted, Granted, Gone], Some(missing(&[2], &[]))),
            ([Held, Granted, Granted], Some(missing(&[], &[0]))),
            ([Granted, Granted, Granted], Some(missing(&[], &[]))),
            ([Granted, Gone, Gone], None),
            ([Granted, Pending, Gone], None),
            ([Granted, Refused, Gone], None),
        ] {
            assert_eq!(round.poll_missing(votes(answers), 2), expected, "{answers:?}");
        }
        let heal = sent(Kind::Heal);
        assert_eq!(heal.poll_missing(votes([Granted, Granted, Gone]), 2), None);
    }
}
