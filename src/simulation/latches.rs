//! What latches must be, whatever happens: never open before so many parties have arrived, never
//! closed again, and blind to none that has arrived. Together that is to be linearizable, for what
//! only grows.

use std::collections::BTreeMap;

use super::violation::{Kind, Violation};
use crate::LatchState;

/// What one was told of a latch, and when, in nanoseconds of true time.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) state: LatchState,
}

/// One latch.
#[derive(Default)]
struct Record {
    /// Since when a name may have arrived.
    arriving: BTreeMap<String, u64>,
    /// Calls by which a name certainly has: when each began and ended.
    arrived: Vec<(String, u64, u64)>,
    /// Calls that were told that it is open: when each began and ended.
    open: Vec<(u64, u64)>,
}

#[derive(Default)]
pub(super) struct Latches {
    latches: BTreeMap<String, Record>,
}

impl Latches {
    /// A party is about to arrive.
    pub(super) fn arriving(&mut self, key: &str, name: &str, now: u64) {
        self.latches.entry(key.into()).or_default().arriving.entry(name.into()).or_insert(now);
    }

    /// A party that was about to arrive certainly has not.
    pub(super) fn not_arrived(&mut self, key: &str, name: &str) {
        self.latches.entry(key.into()).or_default().arriving.remove(name);
    }

    /// One was told of a latch for so many parties, on which everything lasts for so long, and has
    /// arrived there, if it has a name. Says what is wrong with that.
    pub(super) fn looked(
        &mut self,
        key: &str,
        (parties, lasts): (usize, u64),
        name: Option<&str>,
        look: Look,
    ) -> Vec<Violation> {
        let record = self.latches.entry(key.into()).or_default();
        let mut wrong = Vec::new();
        let mut violate = |kind, what| wrong.push(Violation { kind, what });
        // True time stands still while tasks run: what ends at the moment at which a look begins
        // may have come after it.
        let holds = |(began, ended): (u64, u64)| {
            ended < look.began && look.ended <= began.saturating_add(lasts)
        };
        match look.state {
            LatchState::Closed { missing, .. } => {
                if record.open.iter().any(|call| holds(*call)) {
                    violate(Kind::ClosedAgain, format!("`{key}` was open, and is closed"));
                }
                let has_arrived = |name: &String| {
                    record
                        .arrived
                        .iter()
                        .any(|(other, began, ended)| other == name && holds((*began, *ended)))
                };
                let count = record.arriving.keys().filter(|name| has_arrived(name)).count();
                if missing + count > parties {
                    let what =
                        format!("`{key}`: {missing} of {parties} missing, {count} are there");
                    violate(Kind::PartyMissed, what);
                }
            }
            _ => {
                let count = record.arriving.values().filter(|at| **at <= look.ended).count();
                if count < parties {
                    let what = format!("`{key}` is open for {parties}, and {count} have come");
                    violate(Kind::OpenEarly, what);
                }
                record.open.push((look.began, look.ended));
            }
        }
        if let Some(name) = name {
            record.arrived.push((name.into(), look.began, look.ended));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: LatchState = LatchState::Open;

    /// What is wrong with a look at a latch for two, on which everything lasts for 100.
    fn looked(
        latches: &mut Latches,
        name: Option<&str>,
        (began, ended): (u64, u64),
        state: LatchState,
    ) -> Vec<Kind> {
        if let Some(name) = name {
            latches.arriving("l", name, began);
        }
        let wrong = latches.looked("l", (2, 100), name, Look { began, ended, state });
        wrong.into_iter().map(|violation| violation.kind).collect()
    }

    fn closed(missing: usize) -> LatchState {
        LatchState::Closed { missing }
    }

    #[test]
    fn what_is_wrong_with_a_latch_is_found() {
        let mut latches = Latches::default();
        assert_eq!(looked(&mut latches, Some("a"), (0, 5), OPEN), [Kind::OpenEarly]);
        latches.not_arrived("l", "a");
        latches.arriving("l", "b", 6);
        assert_eq!(looked(&mut latches, None, (7, 8), OPEN), [Kind::OpenEarly]);
        let mut latches = Latches::default();
        assert_eq!(looked(&mut latches, Some("a"), (0, 5), closed(1)), []);
        assert_eq!(looked(&mut latches, None, (4, 9), closed(2)), [], "at the same time");
        assert_eq!(looked(&mut latches, None, (5, 9), closed(2)), [], "in the same moment");
        assert_eq!(looked(&mut latches, None, (6, 9), closed(2)), [Kind::PartyMissed]);
        assert_eq!(looked(&mut latches, None, (99, 101), closed(2)), [], "it may be over");
        assert_eq!(looked(&mut latches, Some("b"), (50, 60), OPEN), []);
        assert_eq!(looked(&mut latches, None, (59, 61), closed(1)), [], "at the same time");
        let both = [Kind::ClosedAgain, Kind::PartyMissed];
        assert_eq!(looked(&mut latches, None, (61, 62), closed(1)), both);
        let late = looked(&mut latches, None, (149, 150), closed(1));
        assert_eq!(late, [Kind::ClosedAgain], "the first has been for long enough by then");
        assert_eq!(looked(&mut latches, None, (149, 151), closed(2)), []);
    }
}
