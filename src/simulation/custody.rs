//! Which locker a lock's value belongs to, and what adoptions do to the values of others.
//!
//! ```text
//!   acquired ──▶ kept by its locker ──forgotten──▶ kept by none ──adopted──▶ kept by the adopter
//!                        └────────── its token adopted while it lives ───────────▲
//! ```
//!
//! Four rules. A token is adopted at most once. A value that a guard holds is deleted by no machine
//! but that guard's. An adoption that fails changes nothing: its machine deletes neither the old
//! value nor a fresh one that it has put in its place. And it says *lost* only where no majority
//! can have held the old value throughout.

use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{Kind, Violation};

/// What a command has made of the value of a key.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) node: usize,
    /// The machine that has sent the command.
    pub(super) machine: usize,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// How an adoption has ended.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The guard has this value.
    Won(String),
    Lost,
    /// The lock is held, but not for long enough: the nodes were too slow.
    TooLate,
    /// It was refused, or too few nodes have answered.
    Unknown,
    Dropped,
}

/// An adoption that is under way or has failed.
struct Attempt {
    machine: usize,
    token: String,
    /// The nodes on which the old value has stood since it began, or a fresh one in its place.
    stands: BTreeSet<usize>,
    /// The fresh values that it has put in the place of the old one.
    fresh: BTreeSet<String>,
    /// Fresh values that its machine has deleted.
    deleted: BTreeSet<String>,
    is_open: bool,
}

/// Whose each value is.
pub(super) struct Custody {
    majority: usize,
    /// The locker that keeps a value; empty: none does.
    keepers: BTreeMap<String, String>,
    /// Machines that have held a value.
    holders: BTreeMap<String, BTreeSet<usize>>,
    handed: BTreeSet<String>,
    adopted: BTreeMap<String, u64>,
    attempts: BTreeMap<u64, Attempt>,
}

impl Custody {
    pub(super) fn new(majority: usize) -> Self {
        Self {
            majority,
            keepers: BTreeMap::new(),
            holders: BTreeMap::new(),
            handed: BTreeSet::new(),
            adopted: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    /// A guard of this locker has this value.
    pub(super) fn keep(&mut self, value: &str, owner: &str, machine: usize) {
        self.keepers.insert(value.into(), owner.into());
        self.holders.entry(value.into()).or_default().insert(machine);
    }

    /// A guard has left its lock to its expiry.
    pub(super) fn leave(&mut self, value: &str) {
        self.keepers.insert(value.into(), String::new());
    }

    /// The locker that a value belongs to; empty: none.
    pub(super) fn keeper<'a>(&'a self, value: &'a str) -> &'a str {
        self.keepers.get(value).map_or_else(|| owner_of(value), String::as_str)
    }

    /// Whether a guard has ever had this value.
    pub(super) fn is_known(&self, value: &str) -> bool {
        self.keepers.contains_key(value)
    }

    /// All values that the lockers of a machine keep.
    pub(super) fn kept_on(&self, machine: usize) -> Vec<String> {
        let kept =
            |value: &&String| self.holders.get(*value).is_some_and(|on| on.contains(&machine));
        self.keepers.keys().filter(kept).cloned().collect()
    }

    /// A token is given to other machines.
    pub(super) fn hand(&mut self, token: &str) {
        self.handed.insert(token.into());
    }

    /// A machine begins to adopt a lock, whose value stands on these nodes.
    pub(super) fn begin(
        &mut self,
        attempt: u64,
        machine: usize,
        token: &str,
        stands: impl IntoIterator<Item = usize>,
    ) {
        let begun = Attempt {
            machine,
            token: token.into(),
            stands: stands.into_iter().collect(),
            fresh: BTreeSet::new(),
            deleted: BTreeSet::new(),
            is_open: true,
        };
        self.attempts.insert(attempt, begun);
    }

    /// A node has executed a command.
    pub(super) fn see(&mut self, change: &Change) -> Option<Violation> {
        let Change { node, machine, before, after } = change;
        if before == after {
            return None;
        }
        let Some(before) = before.as_deref() else {
            // It was away: it had expired there, or had never been.
            let attempts = self.attempts.values_mut();
            for attempt in attempts.filter(|attempt| after.as_ref() == Some(&attempt.token)) {
                attempt.stands.remove(node);
            }
            return None;
        };
        let mut wrong = None;
        // Which of several adoptions by one machine has set a fresh value is not seen.
        let of = |attempt: &&Attempt| attempt.machine == *machine && attempt.token == before;
        let is_only = self.attempts.values().filter(of).count() == 1;
        for attempt in self.attempts.values_mut() {
            let is_its_own = attempt.machine == *machine;
            let is_old = attempt.token == before;
            match after {
                Some(fresh) if is_its_own && is_old => {
                    attempt.fresh.insert(fresh.clone());
                    if !is_only {
                        attempt.stands.remove(node);
                    }
                }
                Some(old) if attempt.fresh.contains(before) && *old == attempt.token => {}
                _ if is_old || attempt.fresh.contains(before) => {
                    attempt.stands.remove(node);
                    let deletes = is_its_own && after.is_none();
                    if deletes && !is_old {
                        attempt.deleted.insert(before.into());
                        wrong = wrong.or_else(|| attempt.judge(&self.holders));
                    }
                }
                _ => {}
            }
        }
        let keeper = self.keepers.get(before).map(|owner| machine_of(owner));
        let is_kept = keeper.is_some_and(|keeper| !keeper.is_empty());
        if after.is_none() && is_kept && keeper != Some(&*format!("m{machine}")) {
            let what = format!("m{machine} deleted {before} on n{node}, which {keeper:?} holds");
            wrong = Some(Violation { kind: Kind::Robbed, what });
        }
        let is_stranger = !self.holders.get(before).is_some_and(|on| on.contains(machine));
        if after.is_none() && is_stranger && self.handed.contains(before) {
            let what = format!("m{machine} deleted {before} on n{node}, which it never held");
            wrong = Some(Violation { kind: Kind::Deprived, what });
        }
        wrong
    }

    /// An adoption has ended; the old value stands on these nodes now.
    pub(super) fn end(
        &mut self,
        number: u64,
        outcome: &Outcome,
        stands: impl IntoIterator<Item = usize>,
    ) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let Some(attempt) = self.attempts.get_mut(&number) else { return wrong };
        attempt.is_open = false;
        let token = attempt.token.clone();
        let now: BTreeSet<usize> = stands.into_iter().collect();
        let still = attempt.stands.intersection(&now).count();
        match outcome {
            Outcome::Won(value) => {
                for value in [value, &token] {
                    // The old value is worth nothing any more: the adopter deletes it, too.
                    self.holders.entry(value.clone()).or_default().insert(attempt.machine);
                }
                self.keepers.insert(token.clone(), String::new());
                self.attempts.remove(&number);
                if let Some(first) = self.adopted.insert(token.clone(), number) {
                    let what = format!("{token} was adopted twice, by {first} and by {number}");
                    wrong.push(Violation { kind: Kind::AdoptedTwice, what });
                }
            }
            Outcome::Lost => {
                self.attempts.remove(&number);
                if still >= self.majority {
                    let what =
                        format!("adoption {number} of {token}: lost, and {still} nodes held it");
                    wrong.push(Violation { kind: Kind::FalseLoss, what });
                }
            }
            Outcome::TooLate | Outcome::Unknown | Outcome::Dropped => {
                wrong.extend(attempt.judge(&self.holders));
            }
        }
        wrong
    }

    /// How many of these nodes have held the old value ever since an adoption began.
    pub(super) fn still_stands(&self, attempt: u64, now: &[usize]) -> usize {
        let Some(attempt) = self.attempts.get(&attempt) else { return 0 };
        now.iter().filter(|node| attempt.stands.contains(node)).count()
    }
}

impl Attempt {
    /// What is wrong with an adoption that has failed.
    fn judge(&self, holders: &BTreeMap<String, BTreeSet<usize>>) -> Option<Violation> {
        let deleted = self.deleted.iter().find(|value| !holders.contains_key(*value))?;
        let (machine, token) = (self.machine, &self.token);
        let what = format!("m{machine} failed to adopt {token} and deleted {deleted}");
        (!self.is_open).then_some(Violation { kind: Kind::Deprived, what })
    }
}

/// The machine of a locker's owner.
pub(super) fn machine_of(owner: &str) -> &str {
    owner.split_once('.').map_or(owner, |(machine, _)| machine)
}

/// The owner that a value names.
pub(super) fn owner_of(value: &str) -> &str {
    value.split_once('@').map_or("", |(_, owner)| owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machine 0 has held `old`, and its token was handed to others; a majority is two of three.
    fn handed() -> Custody {
        let mut custody = Custody::new(2);
        custody.keep("old", "m0", 0);
        custody.leave("old");
        custody.hand("old");
        custody
    }

    fn change(node: usize, machine: usize, before: &str, after: &str) -> Change {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Change { node, machine, before: value(before), after: value(after) }
    }

    fn kinds(wrong: impl IntoIterator<Item = Violation>) -> Vec<Kind> {
        wrong.into_iter().map(|violation| violation.kind).collect()
    }

    #[test]
    fn two_adoptions_of_one_token_do_not_both_succeed() {
        for (first, second) in [("old", "old"), ("new", "newer")] {
            let mut custody = handed();
            custody.begin(1, 1, "old", [0, 1, 2]);
            custody.begin(2, 2, "old", [0, 1, 2]);
            assert_eq!(kinds(custody.end(1, &Outcome::Won(first.into()), [])), []);
            let wrong = custody.end(2, &Outcome::Won(second.into()), []);
            assert_eq!(kinds(wrong), [Kind::AdoptedTwice]);
        }
        let mut custody = handed();
        custody.begin(1, 1, "old", [0, 1, 2]);
        assert_eq!(kinds(custody.end(1, &Outcome::Unknown, [0, 1, 2])), []);
        custody.begin(2, 2, "old", [0, 1, 2]);
        assert_eq!(kinds(custody.end(2, &Outcome::Won("new".into()), [])), [], "the first failed");
    }

    #[test]
    fn a_token_stays_adopted_also_when_its_value_is_left_again() {
        let mut custody = handed();
        custody.begin(1, 1, "old", [0, 1, 2]);
        custody.end(1, &Outcome::Won("new".into()), []);
        custody.leave("old");
        custody.begin(2, 1, "old", [0, 1, 2]);
        let wrong = custody.end(2, &Outcome::Won("newer".into()), []);
        assert_eq!(kinds(wrong), [Kind::AdoptedTwice], "the first guard's token is worth nothing");
    }

    #[test]
    fn a_failed_adoption_deletes_nothing() {
        let mut custody = handed();
        custody.begin(1, 1, "old", [0, 1, 2]);
        custody.end(1, &Outcome::Unknown, [0, 1, 2]);
        assert_eq!(kinds(custody.see(&change(0, 1, "old", ""))), [Kind::Deprived]);
        assert_eq!(kinds(custody.see(&change(0, 0, "old", ""))), [], "the first may owe an undo");
        assert_eq!(kinds(custody.see(&change(0, 1, "", ""))), [], "it had expired");
    }

    #[test]
    fn a_failed_adoption_takes_fresh_values_back_and_does_not_delete_them() {
        for outcome in [Outcome::Unknown, Outcome::TooLate, Outcome::Dropped] {
            let mut custody = handed();
            custody.begin(1, 1, "old", [0, 1, 2]);
            assert_eq!(kinds(custody.see(&change(0, 1, "old", "new"))), []);
            assert_eq!(kinds(custody.end(1, &outcome, [1, 2])), []);
            assert_eq!(kinds(custody.see(&change(0, 1, "new", "old"))), [], "taken back");
            assert_eq!(kinds(custody.see(&change(0, 1, "new", ""))), [Kind::Deprived]);
        }
        let mut early = handed();
        early.begin(1, 1, "old", [0, 1, 2]);
        early.see(&change(0, 1, "old", "new"));
        assert_eq!(kinds(early.see(&change(0, 1, "new", ""))), [], "it is not known yet");
        assert_eq!(kinds(early.end(1, &Outcome::Dropped, [])), [Kind::Deprived]);
    }

    #[test]
    fn an_undo_that_is_owed_does_not_delete_what_another_machine_holds() {
        let mut custody = handed();
        assert_eq!(kinds(custody.see(&change(0, 0, "old", ""))), [], "none holds it");
        custody.begin(1, 1, "old", [1, 2]);
        custody.end(1, &Outcome::Won("old".into()), [1, 2]);
        custody.keep("old", "m1.0", 1); // without another value, as it must not be
        assert_eq!(kinds(custody.see(&change(1, 0, "old", ""))), [Kind::Robbed]);
        assert_eq!(kinds(custody.see(&change(2, 1, "old", ""))), [], "its holder releases it");
    }

    #[test]
    fn an_adopter_that_has_won_may_delete() {
        let mut custody = handed();
        custody.begin(1, 1, "old", [0, 1, 2]);
        custody.see(&change(0, 1, "old", "new"));
        custody.end(1, &Outcome::Won("new".into()), []);
        assert_eq!(kinds(custody.see(&change(0, 1, "new", ""))), []);
        assert_eq!(kinds(custody.see(&change(1, 1, "old", ""))), [], "it is worth nothing");
    }

    #[test]
    fn lost_is_told_only_where_no_majority_has_held_it_throughout() {
        let lost = |begin: &[usize], changes: &[Change], end: &[usize]| {
            let mut custody = handed();
            custody.begin(1, 1, "old", begin.iter().copied());
            changes.iter().for_each(|change| drop(custody.see(change)));
            kinds(custody.end(1, &Outcome::Lost, end.iter().copied()))
        };
        assert_eq!(lost(&[0, 1], &[], &[0, 1]), [Kind::FalseLoss]);
        assert_eq!(lost(&[0], &[], &[0]), []);
        assert_eq!(lost(&[0, 1], &[], &[0]), [], "it has expired on one");
        assert_eq!(lost(&[0, 1], &[change(1, 0, "old", "")], &[0, 1]), [], "it was away meanwhile");
        assert_eq!(lost(&[0, 1], &[change(1, 0, "", "old")], &[0, 1]), [], "it had expired");
        let others = [change(1, 2, "old", "new"), change(1, 2, "new", "old")];
        assert_eq!(lost(&[0, 1], &others, &[0, 1]), [], "another adopter had it meanwhile");
        let taken_back = [change(1, 1, "old", "new"), change(1, 1, "new", "old")];
        assert_eq!(lost(&[0, 1], &taken_back, &[0, 1]), [Kind::FalseLoss]);
    }

    #[test]
    fn a_value_belongs_to_the_locker_that_holds_it_last() {
        let mut custody = Custody::new(2);
        assert_eq!(custody.keeper("v@m0"), "m0", "an attempt that no guard came of");
        custody.keep("v@m0", "m0", 0);
        custody.leave("v@m0");
        assert_eq!(custody.keeper("v@m0"), "");
        custody.keep("v@m0", "m1", 1);
        assert_eq!((custody.keeper("v@m0"), custody.kept_on(1).len()), ("m1", 1));
    }
}
