//! Which locker a lock's value belongs to, and what adoptions do to the values of others.
//!
//! ```text
//!  acquired ──▶ owned by its locker ──forgotten──▶ owned by none ──adopted──▶ owned by the adopter
//!                       └────────── its token adopted while it lives ─────────────▲
//! ```
//!
//! Four rules. A token is adopted at most once. A value that a guard holds is deleted by no machine
//! but that guard's. An adoption that fails changes nothing, whatever it tells: its machine deletes
//! neither the old value nor a fresh one that it has put in its place. And it says *lost* only
//! where no majority can have held the lock throughout. A node holds it under the old value, and
//! also under the fresh one: what the adoption itself has put there is no reason for it to fail.

use std::collections::{BTreeMap, BTreeSet};

use super::violation::{Kind, Violation};

/// The values of one key now, by the nodes on which it stands.
pub(super) type Values = BTreeMap<usize, String>;

/// How long after its end an adoption may still reach a node, in milliseconds. A dead connection is
/// given up after a second, and what it carries comes when the longest fault is over.
const LATE_MAX: u64 = 5_000;

/// What a command has made of the value of a key.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: u64,
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
    /// It was refused, or too few nodes have answered.
    Unknown,
    Dropped,
}

/// An adoption that is under way or has failed.
struct Attempt {
    machine: usize,
    token: String,
    /// The nodes on which the old value has stood since it began, or a fresh one in its place.
    /// Values that have expired are still among them.
    stands: BTreeSet<usize>,
    /// The fresh value that it has put in the place of the old one, and those that may be its.
    fresh: BTreeSet<String>,
    /// One of them is its for sure: it puts no other.
    is_fresh_sure: bool,
    /// Fresh values that its machine has deleted.
    deleted: BTreeSet<String>,
    /// When it failed; nothing while it is under way.
    failed: Option<u64>,
}

/// Whose each value is.
pub(super) struct ValueOwners {
    majority: usize,
    /// The locker that owns a value; empty: none does.
    owners: BTreeMap<String, String>,
    /// Machines that have held a value.
    holders: BTreeMap<String, BTreeSet<usize>>,
    handed: BTreeSet<String>,
    adopted: BTreeMap<String, u64>,
    attempts: BTreeMap<u64, Attempt>,
}

impl ValueOwners {
    pub(super) fn new(majority: usize) -> Self {
        Self {
            majority,
            owners: BTreeMap::new(),
            holders: BTreeMap::new(),
            handed: BTreeSet::new(),
            adopted: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    /// A guard of this locker has this value.
    pub(super) fn assign(&mut self, value: &str, owner: &str, machine: usize) {
        self.owners.insert(value.into(), owner.into());
        self.holders.entry(value.into()).or_default().insert(machine);
    }

    /// A guard has left its lock to its expiry.
    pub(super) fn leave(&mut self, value: &str) {
        self.owners.insert(value.into(), String::new());
    }

    /// The locker that a value belongs to; empty: none.
    pub(super) fn owner<'a>(&'a self, value: &'a str) -> &'a str {
        self.owners.get(value).map_or_else(|| owner_of(value), String::as_str)
    }

    /// Whether a guard has ever had this value.
    pub(super) fn is_known(&self, value: &str) -> bool {
        self.owners.contains_key(value)
    }

    /// All values that guards on a machine have had.
    pub(super) fn values_of(&self, machine: usize) -> Vec<String> {
        let is_its =
            |value: &&String| self.holders.get(*value).is_some_and(|on| on.contains(&machine));
        self.owners.keys().filter(is_its).cloned().collect()
    }

    /// A token is given to other machines.
    pub(super) fn hand(&mut self, token: &str) {
        self.handed.insert(token.into());
    }

    /// A machine begins to adopt a lock, whose key has these values.
    pub(super) fn begin(&mut self, attempt: u64, machine: usize, token: &str, values: &Values) {
        let stands = values.iter().filter(|(_, value)| *value == token);
        let begun = Attempt {
            machine,
            token: token.into(),
            stands: stands.map(|(node, _)| *node).collect(),
            fresh: BTreeSet::new(),
            is_fresh_sure: false,
            deleted: BTreeSet::new(),
            failed: None,
        };
        self.attempts.insert(attempt, begun);
    }

    /// A node has executed a command.
    pub(super) fn see(&mut self, change: &Change) -> Option<Violation> {
        let Change { node, machine, before, after, .. } = change;
        if before == after {
            return None;
        }
        let Some(before) = before.as_deref() else {
            // It was away: it had expired there, or had never been.
            let is_held = |attempt: &&mut Attempt| {
                after.as_ref().is_some_and(|value| attempt.is_held_under(value))
            };
            for attempt in self.attempts.values_mut().filter(is_held) {
                attempt.stands.remove(node);
            }
            return None;
        };
        let mut wrong = None;
        let setters = self.setters_of(change);
        for (number, attempt) in &mut self.attempts {
            let is_its_own = attempt.machine == *machine;
            let is_old = attempt.token == before;
            match after {
                Some(fresh) if setters.contains(number) => {
                    attempt.fresh.insert(fresh.clone());
                    match setters.len() {
                        1 => attempt.is_fresh_sure = true,
                        _ => drop(attempt.stands.remove(node)),
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
        let owner = self.owners.get(before).map(|owner| machine_of(owner));
        let is_owned = owner.is_some_and(|owner| !owner.is_empty());
        if after.is_none() && is_owned && owner != Some(&*format!("m{machine}")) {
            let what = format!("m{machine} deleted {before} on n{node}, which {owner:?} holds");
            wrong = Some(Violation { kind: Kind::DeletedByAnother, what });
        }
        let is_stranger = !self.holders.get(before).is_some_and(|on| on.contains(machine));
        if after.is_none() && is_stranger && self.handed.contains(before) {
            let what = format!("m{machine} deleted {before} on n{node}, which it never held");
            wrong = Some(Violation { kind: Kind::DeletedByFailure, what });
        }
        wrong
    }

    /// The adoptions that may have put a fresh value in the place of the old one, as this command
    /// has. Each puts one value, in all places; where it is not known whose this is, it is that of
    /// one that has put none yet.
    fn setters_of(&self, change: &Change) -> BTreeSet<u64> {
        let Change { at, machine, before: Some(before), after: Some(fresh), .. } = change else {
            return BTreeSet::new();
        };
        let attempts = self.attempts.iter();
        let own: Vec<_> = attempts
            .filter(|(_, attempt)| attempt.machine == *machine && attempt.token == *before)
            .collect();
        let which = |may_be: &dyn Fn(&Attempt) -> bool| {
            let found = own.iter().filter(|(_, attempt)| may_be(attempt));
            found.map(|(number, _)| **number).collect::<BTreeSet<u64>>()
        };
        let may_come =
            |attempt: &Attempt| attempt.failed.is_none_or(|at_last| at_last + LATE_MAX >= *at);
        let known = which(&|attempt| attempt.fresh.contains(fresh));
        let first = which(&|attempt| !attempt.is_fresh_sure && may_come(attempt));
        let any = which(&|_| true);
        [known, first, any].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// An adoption has ended; its key has these values now.
    pub(super) fn end(
        &mut self,
        number: u64,
        outcome: &Outcome,
        (at, values): (u64, &Values),
    ) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let Some(attempt) = self.attempts.get_mut(&number) else { return wrong };
        attempt.failed = Some(at);
        let token = attempt.token.clone();
        match outcome {
            Outcome::Won(value) => {
                for value in [value, &token] {
                    // The old value is worth nothing any more: the adopter deletes it, too.
                    self.holders.entry(value.clone()).or_default().insert(attempt.machine);
                }
                self.owners.insert(token.clone(), String::new());
                self.attempts.remove(&number);
                if let Some(first) = self.adopted.insert(token.clone(), number) {
                    let what = format!("{token} was adopted twice, by {first} and by {number}");
                    wrong.push(Violation { kind: Kind::AdoptedTwice, what });
                }
            }
            Outcome::Lost | Outcome::Unknown | Outcome::Dropped => {
                let held = attempt.held_on(values);
                if matches!(outcome, Outcome::Lost) && held >= self.majority {
                    let what =
                        format!("adoption {number} of {token}: lost, and {held} nodes held it");
                    wrong.push(Violation { kind: Kind::FalseLoss, what });
                }
                wrong.extend(attempt.judge(&self.holders));
            }
        }
        wrong
    }

    /// On how many nodes an adoption has found its lock held ever since it began, where its key has
    /// these values now.
    pub(super) fn held_on(&self, attempt: u64, values: &Values) -> usize {
        self.attempts.get(&attempt).map_or(0, |attempt| attempt.held_on(values))
    }
}

impl Attempt {
    /// Whether this is the old value, or a fresh one in its place.
    fn is_held_under(&self, value: &str) -> bool {
        self.token == value || self.fresh.contains(value)
    }

    /// See [`ValueOwners::held_on`].
    fn held_on(&self, values: &Values) -> usize {
        let is_held = |(node, value): &(&usize, &String)| {
            self.stands.contains(*node) && self.is_held_under(value)
        };
        values.iter().filter(is_held).count()
    }

    /// What is wrong with an adoption that has failed.
    fn judge(&self, holders: &BTreeMap<String, BTreeSet<usize>>) -> Option<Violation> {
        let deleted = self.deleted.iter().find(|value| !holders.contains_key(*value))?;
        let (machine, token) = (self.machine, &self.token);
        let what = format!("m{machine} failed to adopt {token} and deleted {deleted}");
        self.failed.map(|_| Violation { kind: Kind::DeletedByFailure, what })
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
    fn handed() -> ValueOwners {
        let mut value_owners = ValueOwners::new(2);
        value_owners.assign("old", "m0", 0);
        value_owners.leave("old");
        value_owners.hand("old");
        value_owners
    }

    fn change(node: usize, machine: usize, before: &str, after: &str) -> Change {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Change { at: 0, node, machine, before: value(before), after: value(after) }
    }

    /// Nodes on which the old value stands.
    fn old(nodes: &[usize]) -> Values {
        nodes.iter().map(|node| (*node, "old".into())).collect()
    }

    /// Nodes with their values.
    fn values<const N: usize>(values: [(usize, &str); N]) -> Values {
        values.into_iter().map(|(node, value)| (node, value.into())).collect()
    }

    fn kinds(wrong: impl IntoIterator<Item = Violation>) -> Vec<Kind> {
        wrong.into_iter().map(|violation| violation.kind).collect()
    }

    #[test]
    fn two_adoptions_of_one_token_do_not_both_succeed() {
        for (first, second) in [("old", "old"), ("new", "newer")] {
            let mut value_owners = handed();
            value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
            value_owners.begin(2, 2, "old", &old(&[0, 1, 2]));
            assert_eq!(kinds(value_owners.end(1, &Outcome::Won(first.into()), (0, &old(&[])))), []);
            let wrong = value_owners.end(2, &Outcome::Won(second.into()), (0, &old(&[])));
            assert_eq!(kinds(wrong), [Kind::AdoptedTwice]);
        }
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
        assert_eq!(kinds(value_owners.end(1, &Outcome::Unknown, (0, &old(&[0, 1, 2])))), []);
        value_owners.begin(2, 2, "old", &old(&[0, 1, 2]));
        assert_eq!(
            kinds(value_owners.end(2, &Outcome::Won("new".into()), (0, &old(&[])))),
            [],
            "the first failed"
        );
    }

    #[test]
    fn a_token_stays_adopted_also_when_its_value_is_left_again() {
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
        value_owners.end(1, &Outcome::Won("new".into()), (0, &old(&[])));
        value_owners.leave("old");
        value_owners.begin(2, 1, "old", &old(&[0, 1, 2]));
        let wrong = value_owners.end(2, &Outcome::Won("newer".into()), (0, &old(&[])));
        assert_eq!(kinds(wrong), [Kind::AdoptedTwice], "the first guard's token is worth nothing");
    }

    #[test]
    fn a_failed_adoption_deletes_nothing() {
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
        value_owners.end(1, &Outcome::Unknown, (0, &old(&[0, 1, 2])));
        assert_eq!(kinds(value_owners.see(&change(0, 1, "old", ""))), [Kind::DeletedByFailure]);
        assert_eq!(
            kinds(value_owners.see(&change(0, 0, "old", ""))),
            [],
            "the first may owe an undo"
        );
        assert_eq!(kinds(value_owners.see(&change(0, 1, "", ""))), [], "it had expired");
    }

    #[test]
    fn a_failed_adoption_takes_fresh_values_back_and_does_not_delete_them() {
        for outcome in [Outcome::Unknown, Outcome::Lost, Outcome::Dropped] {
            let mut value_owners = handed();
            value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
            assert_eq!(kinds(value_owners.see(&change(0, 1, "old", "new"))), []);
            assert_eq!(kinds(value_owners.end(1, &outcome, (0, &old(&[1])))), []);
            assert_eq!(kinds(value_owners.see(&change(0, 1, "new", "old"))), [], "taken back");
            assert_eq!(kinds(value_owners.see(&change(0, 1, "new", ""))), [Kind::DeletedByFailure]);
        }
        let mut early = handed();
        early.begin(1, 1, "old", &old(&[0, 1, 2]));
        early.see(&change(0, 1, "old", "new"));
        assert_eq!(kinds(early.see(&change(0, 1, "new", ""))), [], "it is not known yet");
        assert_eq!(
            kinds(early.end(1, &Outcome::Dropped, (0, &old(&[])))),
            [Kind::DeletedByFailure]
        );
    }

    #[test]
    fn an_undo_that_is_owed_does_not_delete_what_another_machine_holds() {
        let mut value_owners = handed();
        assert_eq!(kinds(value_owners.see(&change(0, 0, "old", ""))), [], "none holds it");
        value_owners.begin(1, 1, "old", &old(&[1, 2]));
        value_owners.end(1, &Outcome::Won("old".into()), (0, &old(&[1, 2])));
        value_owners.assign("old", "m1.0", 1); // without another value, as it must not be
        assert_eq!(kinds(value_owners.see(&change(1, 0, "old", ""))), [Kind::DeletedByAnother]);
        assert_eq!(kinds(value_owners.see(&change(2, 1, "old", ""))), [], "its holder releases it");
    }

    #[test]
    fn an_adopter_that_has_won_may_delete() {
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
        value_owners.see(&change(0, 1, "old", "new"));
        value_owners.end(1, &Outcome::Won("new".into()), (0, &old(&[])));
        assert_eq!(kinds(value_owners.see(&change(0, 1, "new", ""))), []);
        assert_eq!(kinds(value_owners.see(&change(1, 1, "old", ""))), [], "it is worth nothing");
    }

    #[test]
    fn lost_is_told_only_where_no_majority_has_held_it_throughout() {
        let lost = |begin: &[usize], changes: &[Change], end: &[usize]| {
            let mut value_owners = handed();
            value_owners.begin(1, 1, "old", &old(begin));
            changes.iter().for_each(|change| drop(value_owners.see(change)));
            kinds(value_owners.end(1, &Outcome::Lost, (0, &old(end))))
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
    fn lost_is_not_told_where_the_adoption_itself_has_set_fresh_values() {
        let fresh = [0, 1, 2].map(|node| change(node, 1, "old", "new"));
        let all = values([(0, "new"), (1, "new"), (2, "new")]);
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
        fresh.iter().for_each(|change| drop(value_owners.see(change)));
        assert_eq!(value_owners.held_on(1, &all), 3, "a failure has no excuse either");
        assert_eq!(kinds(value_owners.end(1, &Outcome::Lost, (0, &all))), [Kind::FalseLoss]);
        assert_eq!(kinds(value_owners.see(&change(0, 1, "new", ""))), [Kind::DeletedByFailure]);
        let lost = |changes: &[Change], end: &Values| {
            let mut value_owners = handed();
            value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
            changes.iter().for_each(|change| drop(value_owners.see(change)));
            kinds(value_owners.end(1, &Outcome::Lost, (0, end)))
        };
        let some = values([(0, "new"), (1, "old")]);
        assert_eq!(lost(&fresh[..1], &some), [Kind::FalseLoss], "one of each");
        assert_eq!(lost(&fresh, &values([(0, "new")])), [], "it has expired on two");
        let others = [change(0, 2, "old", "newer"), change(1, 2, "old", "newer")];
        let taken = values([(0, "newer"), (1, "newer"), (2, "old")]);
        assert_eq!(lost(&others, &taken), [], "another adopter has it");
        let healed = [&fresh[..], &[change(1, 1, "", "new")]].concat();
        assert_eq!(lost(&healed, &values([(0, "new"), (1, "new")])), [], "it had expired on one");
    }

    #[test]
    fn a_retry_is_held_to_the_rules_where_its_machine_has_failed_before() {
        let mut value_owners = handed();
        value_owners.begin(1, 1, "old", &old(&[0, 1]));
        value_owners.see(&change(0, 1, "old", "new"));
        value_owners.end(1, &Outcome::Unknown, (0, &values([(0, "new"), (1, "old")])));
        value_owners.see(&change(0, 1, "new", "old"));
        value_owners.begin(2, 1, "old", &old(&[0, 1]));
        value_owners.see(&change(0, 1, "old", "newer"));
        value_owners.see(&change(1, 1, "old", "new"));
        let both = values([(0, "newer"), (1, "new")]);
        assert_eq!(value_owners.held_on(2, &both), 1, "the first has come late to one");
        value_owners.see(&change(1, 1, "new", "old"));
        let end = values([(0, "newer"), (1, "old")]);
        assert_eq!(value_owners.held_on(2, &end), 1, "it was put back, and was away meanwhile");
        value_owners.begin(3, 1, "old", &old(&[1, 2]));
        value_owners.see(&change(1, 1, "old", "newest"));
        value_owners.see(&change(2, 1, "old", "newest"));
        let newest = values([(1, "newest"), (2, "newest")]);
        assert_eq!(value_owners.held_on(3, &newest), 2, "each of the others has set another value");
    }

    #[test]
    fn what_an_adoption_has_set_is_not_known_while_another_one_may_still_come() {
        let held = |at: u64| {
            let mut value_owners = handed();
            value_owners.begin(1, 1, "old", &old(&[0, 1, 2]));
            value_owners.end(1, &Outcome::Unknown, (1, &old(&[0, 1, 2])));
            value_owners.begin(2, 1, "old", &old(&[0, 1, 2]));
            value_owners.see(&Change { at, ..change(0, 1, "old", "new") });
            value_owners.held_on(2, &values([(0, "new"), (1, "old"), (2, "old")]))
        };
        assert_eq!((held(1 + LATE_MAX), held(2 + LATE_MAX)), (2, 3));
    }

    #[test]
    fn a_value_belongs_to_the_locker_that_holds_it_last() {
        let mut value_owners = ValueOwners::new(2);
        assert_eq!(value_owners.owner("v@m0"), "m0", "an attempt that no guard came of");
        value_owners.assign("v@m0", "m0", 0);
        value_owners.leave("v@m0");
        assert_eq!(value_owners.owner("v@m0"), "");
        value_owners.assign("v@m0", "m1", 1);
        assert_eq!((value_owners.owner("v@m0"), value_owners.values_of(1).len()), ("m1", 1));
    }
}
