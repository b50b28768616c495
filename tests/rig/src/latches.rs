//! What clients were told of latches, and whether that can be: pure.
//!
//! A latch is never open before so many parties have arrived, never closed again once a call has
//! found it open, and blind to none that has certainly arrived; each for as long as the latch
//! lasts. Lines of different clients come in any order, so all of it is judged when they are over.

use std::collections::BTreeMap;

/// What one call was told, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatchLook {
    pub(crate) latch: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    /// How many of the parties had not arrived; none where it was open.
    pub(crate) missing: usize,
    /// Who arrived by this call, if any did.
    pub(crate) party: Option<String>,
}

/// One latch.
#[derive(Default)]
struct Record {
    /// Since when a party may have arrived.
    arriving: BTreeMap<String, u64>,
    looks: Vec<LatchLook>,
}

/// All latches of a run, each for the same number of parties and of the same TTL.
pub(crate) struct Latches {
    parties: usize,
    /// For how long an arrival counts at least, and a latch stays open, in nanoseconds.
    lasts: u64,
    latches: BTreeMap<String, Record>,
}

impl Latches {
    pub(crate) fn new(parties: usize, lasts: u64) -> Self {
        Self { parties, lasts, latches: BTreeMap::new() }
    }

    /// A party is about to arrive.
    pub(crate) fn arriving(&mut self, latch: &str, party: &str, at: u64) {
        let record = self.latches.entry(latch.into()).or_default();
        let since = record.arriving.entry(party.into()).or_insert(at);
        *since = at.min(*since);
    }

    pub(crate) fn looked(&mut self, look: &LatchLook) {
        self.latches.entry(look.latch.clone()).or_default().looks.push(look.clone());
    }

    /// How many latches were found open.
    pub(crate) fn opened(&self) -> usize {
        let is_open = |record: &&Record| record.looks.iter().any(|look| look.missing == 0);
        self.latches.values().filter(is_open).count()
    }

    /// What is wrong with all that was told.
    pub(crate) fn judge(&self) -> Vec<String> {
        let looks = self.latches.values().flat_map(|record| {
            let wrong = |look| self.wrong(record, look);
            record.looks.iter().filter_map(wrong)
        });
        looks.collect()
    }

    fn wrong(&self, record: &Record, look: &LatchLook) -> Option<String> {
        let (parties, name) = (self.parties, &look.latch);
        // What was so before the look began, and still was when it ended.
        let holds = |other: &&LatchLook| {
            other.ended < look.began && look.ended <= other.began.saturating_add(self.lasts)
        };
        if look.missing == 0 {
            let came = record.arriving.values().filter(|at| **at <= look.ended).count();
            let is_early = came < parties;
            return is_early.then(|| format!("{name} is open for {parties}, and {came} have come"));
        }
        let before = || record.looks.iter().filter(holds);
        if before().any(|other| other.missing == 0) {
            return Some(format!("{name} was open, and is closed at {} ns", look.ended));
        }
        let arrived = before().filter_map(|other| other.party.as_ref());
        let mut there: Vec<_> = arrived.chain(&look.party).collect();
        there.sort_unstable();
        there.dedup();
        let (there, missing) = (there.len(), look.missing);
        let is_blind = missing + there > parties;
        is_blind.then(|| format!("{missing} of {parties} miss at {name}, and {there} are there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges looks at a latch for two, on which everything lasts for 100; `-` only looks.
    fn judge(looks: &[(&str, u64, u64, usize)]) -> Vec<String> {
        let mut latches = Latches::new(2, 100);
        for (party, began, ended, missing) in looks {
            let (latch, party) = ("l".to_owned(), (*party != "-").then(|| (*party).to_owned()));
            if let Some(party) = &party {
                latches.arriving("l", party, *began);
            }
            let (began, ended, missing) = (*began, *ended, *missing);
            latches.looked(&LatchLook { latch, began, ended, missing, party });
        }
        latches.judge()
    }

    #[test]
    fn a_latch_that_opens_when_all_have_come_is_fine_in_any_order_of_arrival() {
        let mut looks = [
            ("a", 0, 5, 1),
            ("-", 4, 9, 2),
            ("-", 6, 9, 1),
            ("b", 10, 20, 0),
            ("a", 19, 22, 1),
            ("-", 21, 30, 0),
            ("-", 115, 130, 2),
        ];
        assert_eq!(judge(&looks), [""; 0]);
        looks.reverse();
        assert_eq!(judge(&looks), [""; 0]);
    }

    #[test]
    fn what_is_wrong_with_a_latch_is_found() {
        assert_eq!(judge(&[("a", 0, 5, 0)]), ["l is open for 2, and 1 have come"]);
        assert_eq!(judge(&[("a", 0, 5, 0), ("b", 6, 9, 0)]).len(), 1, "b came later");
        let blind = ["2 of 2 miss at l, and 1 are there"];
        assert_eq!(judge(&[("a", 0, 5, 1), ("-", 6, 9, 2)]), blind);
        assert_eq!(judge(&[("a", 0, 5, 2)]), blind, "it has arrived itself");
        assert_eq!(judge(&[("a", 0, 5, 1), ("a", 6, 9, 1), ("-", 10, 11, 1)]), [""; 0]);
        let closed = judge(&[("a", 0, 5, 1), ("b", 6, 9, 0), ("-", 10, 106, 1)]);
        assert_eq!(closed, ["l was open, and is closed at 106 ns"]);
        assert_eq!(judge(&[("a", 0, 5, 1), ("b", 6, 9, 0), ("-", 10, 107, 2)]), [""; 0]);
    }
}
