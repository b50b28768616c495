//! When is an operation decided? Pure arithmetic over counts.
//!
//! A *vote* is what one node did: granted, refused (certainly nothing was applied), or unknown (it
//! may have been applied, or a part of it was). A *verdict* follows from the votes as soon as no
//! further vote can change it: with early quorum, no caller waits for a slow or hung node. This
//! also settles even numbers of nodes: with four nodes, two refusals decide.

use crate::node_vote::NodeVote;

/// What one node's reply means for the operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vote {
    Granted,
    Refused,
    Unknown,
}

impl Vote {
    /// How what a node did is counted.
    pub(crate) fn of(vote: NodeVote) -> Self {
        match vote {
            NodeVote::Granted => Self::Granted,
            NodeVote::Held
            | NodeVote::Gone
            | NodeVote::Refused
            | NodeVote::Down
            | NodeVote::Suspect
            | NodeVote::Full
            | NodeVote::NotAsked
            | NodeVote::Quarantined
            | NodeVote::Revoked
            | NodeVote::DurabilityMismatch => Self::Refused,
            // One without its fence has to be let go of like one that may have been granted.
            NodeVote::None
            | NodeVote::Silent
            | NodeVote::Disconnected
            | NodeVote::Failed
            | NodeVote::Unfenced => Self::Unknown,
        }
    }
}

/// What all votes together mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pending,
    Won,
    Lost,
}

/// How an operation is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// How many vote; at most [`Rule::VOTERS_MAX`].
    pub(crate) voters: u8,
    /// How many grants win.
    pub(crate) needed: u8,
    /// What must have happened for it to be lost.
    pub(crate) patience: Patience,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Lost as soon as the grants that are still possible are too few.
    Early,
    /// Lost when all have voted: for operations whose failure is reported node by node.
    All,
}

impl Rule {
    pub(crate) const VOTERS_MAX: usize = 15;

    /// More than half, also for even numbers.
    pub(crate) fn majority(voters: usize) -> usize {
        voters / 2 + 1
    }

    /// The verdict of `granted` grants among `cast` votes.
    pub(crate) fn verdict(self, granted: u32, cast: u32) -> Verdict {
        let (voters, needed) = (u32::from(self.voters), u32::from(self.needed));
        let pending = voters.saturating_sub(cast);
        let open = match self.patience {
            Patience::Early => granted + pending >= needed,
            Patience::All => pending > 0,
        };
        if granted >= needed {
            Verdict::Won
        } else if open {
            Verdict::Pending
        } else {
            Verdict::Lost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(voters: u8, patience: Patience) -> Rule {
        let needed = u8::try_from(Rule::majority(voters.into())).unwrap();
        Rule { voters, needed, patience }
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let majorities: Vec<_> = (1..=7).map(Rule::majority).collect();
        assert_eq!(majorities, [1, 2, 2, 3, 3, 4, 4]);
    }

    /// The oracle tries every way in which the missing votes could still fall.
    fn oracle(voters: u32, granted: u32, cast: u32) -> Verdict {
        let needed = voters / 2 + 1;
        let outcomes: Vec<bool> =
            (0..=voters - cast).map(|more| granted + more >= needed).collect();
        match (outcomes.iter().all(|won| *won), outcomes.iter().any(|won| *won)) {
            (true, _) => Verdict::Won,
            (_, false) => Verdict::Lost,
            _ => Verdict::Pending,
        }
    }

    #[test]
    fn early_verdicts_are_those_that_no_vote_can_change() {
        for voters in 1..=15_u8 {
            for cast in 0..=u32::from(voters) {
                for granted in 0..=cast {
                    let verdict = rule(voters, Patience::Early).verdict(granted, cast);
                    assert_eq!(verdict, oracle(voters.into(), granted, cast));
                }
            }
        }
    }

    /// What a node does with an acquisition.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum State {
        /// It grants.
        Up,
        /// Another holds the key there.
        Taken,
        /// It says nothing until its deadline.
        Hung,
    }

    /// What anybody would say who sees all nodes at once.
    fn verdict_of(nodes: &[State]) -> Verdict {
        let is_won = 2 * nodes.iter().filter(|node| **node == State::Up).count() > nodes.len();
        if is_won { Verdict::Won } else { Verdict::Lost }
    }

    /// Every mask of up, taken and hung. Those that answer do so in any order, of which only the
    /// counts matter, so every pair of counts on the way is looked at; those that hang vote last.
    #[test]
    fn every_mask_of_nodes_up_taken_and_hung_has_the_right_verdict() {
        let (mut masks, mut early) = (0, 0);
        for voters in 1..=7_u8 {
            let rule = rule(voters, Patience::Early);
            for mask in 0..3_u32.pow(voters.into()) {
                let digit = |place: u8| mask / 3_u32.pow(place.into()) % 3;
                let states = [State::Up, State::Taken, State::Hung];
                let nodes: Vec<_> = (0..voters).map(|node| states[digit(node) as usize]).collect();
                let count = |state| nodes.iter().filter(|node| **node == state).count() as u32;
                let (up, taken) = (count(State::Up), count(State::Taken));
                let wanted = verdict_of(&nodes);
                for granted in 0..=up {
                    for refused in 0..=taken {
                        let verdict = rule.verdict(granted, granted + refused);
                        assert!(verdict == Verdict::Pending || verdict == wanted, "{nodes:?}");
                        early += u32::from(verdict != Verdict::Pending);
                    }
                }
                let is_majority = |votes: u32| 2 * votes > u32::from(voters);
                // Decided by those that answer: what the hung ones would say changes nothing.
                let certain = is_majority(up) || !is_majority(u32::from(voters) - taken);
                let answered = rule.verdict(up, up + taken);
                assert_eq!(answered != Verdict::Pending, certain, "{nodes:?}");
                assert_eq!(rule.verdict(up, voters.into()), wanted, "{nodes:?}");
                masks += 1;
            }
        }
        assert_eq!(masks, 3_279, "3 + 9 + … + 2,187");
        assert!(early > masks);
    }

    #[test]
    fn a_patient_loss_waits_for_every_vote_and_a_win_for_none() {
        let rule = rule(5, Patience::All);
        assert_eq!(rule.verdict(0, 4), Verdict::Pending);
        assert_eq!(rule.verdict(2, 5), Verdict::Lost);
        assert_eq!(rule.verdict(3, 3), Verdict::Won);
    }
}
