//! What barriers must be, whatever happens: no party passes a round before all have come. And where
//! a round can be broken, no party is told that it is passed while another is told that it is
//! broken.

use std::collections::{BTreeMap, BTreeSet};

use super::violation::{Kind, Violation};

/// What a party was told of a round, and when, in nanoseconds of true time.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// It has passed; otherwise the round is broken.
    pub(super) passed: bool,
}

/// A round of a barrier.
#[derive(Default)]
struct Round {
    /// The names that may have arrived.
    arriving: BTreeSet<String>,
    told: Vec<Told>,
}

#[derive(Default)]
pub(super) struct Barriers {
    rounds: BTreeMap<String, Round>,
}

impl Barriers {
    /// A party is about to arrive at a round.
    pub(super) fn arriving(&mut self, round: &str, name: &str) {
        self.rounds.entry(round.into()).or_default().arriving.insert(name.into());
    }

    /// A party was told of a round for this number of parties, on which everything lasts for this
    /// long. Returns what is wrong with that.
    pub(super) fn told(
        &mut self,
        round: &str,
        (parties, lasts): (usize, u64),
        told: Told,
    ) -> Vec<Violation> {
        let record = self.rounds.entry(round.into()).or_default();
        let mut wrong = Vec::new();
        let come = record.arriving.len();
        if told.passed && come < parties {
            let what = format!("`{round}` is passed by {parties}, and {come} have come");
            wrong.push(Violation { kind: Kind::OpenEarly, what });
        }
        // What one was told stood at some time of its call, and lasts from then on: the other one
        // must find it, should its call be over by the end of that.
        let lasts_for = |one: &Told, other: &Told| other.ended <= one.began.saturating_add(lasts);
        let contradicts = |other: &&Told| {
            other.passed != told.passed && lasts_for(other, &told) && lasts_for(&told, other)
        };
        if record.told.iter().any(|other| contradicts(&other)) {
            let what = format!("`{round}` is passed for one party, and broken for another");
            wrong.push(Violation { kind: Kind::BrokenAndPassed, what });
        }
        record.told.push(told);
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with what one is told of a round for two, on which everything lasts for 100.
    fn told(
        barriers: &mut Barriers,
        name: &str,
        (began, ended, passed): (u64, u64, bool),
    ) -> Vec<Kind> {
        barriers.arriving("b/0", name);
        let wrong = barriers.told("b/0", (2, 100), Told { began, ended, passed });
        wrong.into_iter().map(|violation| violation.kind).collect()
    }

    #[test]
    fn what_is_wrong_with_a_round_is_found() {
        let mut barriers = Barriers::default();
        assert_eq!(told(&mut barriers, "a", (0, 5, true)), [Kind::OpenEarly]);
        let mut barriers = Barriers::default();
        assert_eq!(told(&mut barriers, "a", (0, 50, false)), []);
        assert_eq!(told(&mut barriers, "b", (10, 60, false)), [], "both are told the same");
        assert_eq!(told(&mut barriers, "b", (60, 70, true)), [Kind::BrokenAndPassed]);
        let mut barriers = Barriers::default();
        barriers.arriving("b/0", "b");
        assert_eq!(told(&mut barriers, "a", (0, 50, true)), []);
        assert_eq!(told(&mut barriers, "b", (90, 101, false)), [], "it may have ended by then");
        assert_eq!(told(&mut barriers, "b", (90, 100, false)), [Kind::BrokenAndPassed]);
        let mut barriers = Barriers::default();
        barriers.arriving("b/0", "b");
        assert_eq!(told(&mut barriers, "a", (0, 30, false)), []);
        assert_eq!(told(&mut barriers, "b", (20, 95, true)), [Kind::BrokenAndPassed], "at once");
        assert_eq!(
            barriers.told("b/1", (1, 100), Told { began: 0, ended: 1, passed: true }).len(),
            1
        );
    }
}
