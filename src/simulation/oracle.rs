//! What must always be true, whatever happens.
//!
//! The oracles know what no client and no node does: true time, and what stands on every node.

use std::collections::BTreeSet;
use std::time::Duration;

use super::completeness::Completeness;
use super::finality::{Finality, Seen};
use super::holds::{Findings, Holds, Overlap, View};
use super::node::Observation;
use super::releases::Releases;
use super::value_owners::{Change, Outcome, ValueOwners, Values, machine_of, owner_of};
use super::violation::{Kind, Violation};
use crate::{Held, Release};

/// A guard, in its holder's hand.
pub(super) struct Grant<'a> {
    pub(super) machine: usize,
    /// All of its keys, each of which it holds.
    pub(super) keys: &'a [String],
    pub(super) value: &'a str,
    pub(super) held: Held,
    /// How much faster than true time its machine's clocks run, in millionths.
    pub(super) rate: i64,
    /// It is a read lock.
    pub(super) reads: bool,
    /// For how many milliseconds others are to stay out when its lease ends by itself.
    pub(super) delay: u64,
    /// The locker whose guard it is.
    pub(super) owner: &'a str,
}

/// What is known of all holders and waiters, and what was found wrong.
pub(super) struct Oracle {
    majority: usize,
    are_handed_on: bool,
    holds: Holds,
    releases: Releases,
    pub(super) value_owners: ValueOwners,
    finality: Finality,
    completeness: Completeness,
    numbers: u64,
    tokens: BTreeSet<String>,
    /// Values whose keys may be left behind: their holders have crashed, or wanted it so.
    left: BTreeSet<String>,
    /// Values of locks with a lock-delay.
    delayed: BTreeSet<String>,
    /// Machines whose clocks have leapt.
    leapt: BTreeSet<usize>,
    pub(super) violations: Vec<Violation>,
    /// Overlaps that were found, and not looked into yet.
    pub(super) overlaps: Vec<Overlap>,
}

impl Oracle {
    /// Watches so many nodes. Locks may be handed on inside their processes, or may not.
    pub(super) fn new(nodes: usize, are_handed_on: bool) -> Self {
        Self {
            majority: nodes / 2 + 1,
            are_handed_on,
            holds: Holds::default(),
            releases: Releases::default(),
            value_owners: ValueOwners::new(nodes / 2 + 1),
            finality: Finality::default(),
            completeness: Completeness::default(),
            numbers: 0,
            tokens: BTreeSet::new(),
            left: BTreeSet::new(),
            delayed: BTreeSet::new(),
            leapt: BTreeSet::new(),
            violations: Vec::new(),
            overlaps: Vec::new(),
        }
    }

    /// How many guards were given.
    pub(super) fn acquired(&self) -> u64 {
        self.numbers
    }

    /// Enters a guard that a task has got. Another holder of the key is found at the next look.
    pub(super) fn acquire(&mut self, now: u64, grant: Grant<'_>) -> u64 {
        self.numbers += 1;
        let is_handed_on = self.is_handed_on(&grant);
        let Grant { machine, keys, value, held, rate, reads, delay, owner } = grant;
        let (number, key) = (self.numbers, keys.join(", "));
        if held.looks_left().is_none() {
            let what = format!("guard {number} of `{key}` was not held when it was given");
            self.violate(Kind::NotHeld, what);
        }
        if !self.tokens.insert(value.into()) && !is_handed_on {
            let what = format!("guard {number} of `{key}` has another guard's value: {value}");
            self.violate(Kind::SameValue, what);
        }
        if delay > 0 {
            self.delayed.insert(value.into());
        }
        self.value_owners.assign(value, owner, machine);
        for key in keys {
            let held = held.clone();
            let view = View { left: Box::new(move || held.looks_left()), rate, reads, delay };
            self.holds.begin((number, machine), (key, value), view, now);
        }
        number
    }

    /// Whether a guard's lock was handed on to it inside its process, or is a read lock that was a
    /// writer's: another guard of the same locker had it before, and has it no more.
    pub(super) fn is_handed_on(&self, grant: &Grant<'_>) -> bool {
        let Grant { machine, value, owner, reads, .. } = *grant;
        let has_ended = || !self.live(machine).iter().any(|live| live == value);
        let was_its = || self.tokens.contains(value) && self.value_owners.owner(value) == owner;
        (self.are_handed_on || reads) && was_its() && has_ended()
    }

    /// Whether more than one have this key, as of the last look.
    pub(super) fn are_several(&self, key: &str, now: u64) -> bool {
        self.holds.are_several(key, now)
    }

    /// Whether another than this guard has a slot beside this one, as of the last look.
    pub(super) fn are_beside(&self, guard: u64, slot: &str, now: u64) -> bool {
        self.holds.are_beside(guard, slot, now)
    }

    /// Enters a lock that a client of another library has. It ends by its time, or by `end`.
    pub(super) fn acquire_foreign(
        &mut self,
        now: u64,
        (key, value): (&str, &str),
        left: Box<dyn Fn() -> Option<Duration> + Send>,
    ) -> u64 {
        self.numbers += 1;
        let view = View { left, rate: 0, reads: false, delay: 0 };
        self.holds.begin((self.numbers, usize::MAX), (key, value), view, now);
        self.numbers
    }

    /// Looks at all that is held. Called before and behind everything that happens.
    pub(super) fn look(&mut self, now: u64) {
        let Findings { overlaps, revived, outlasting } = self.holds.look(now);
        for overlap in overlaps {
            let Overlap { key, guards: [a, b], at, .. } = &overlap;
            let when = *at as f64 / 1e6;
            let what = format!("guards {a} and {b} of `{key}` are both held at {when} ms");
            self.violate(Kind::Overlap, what);
            self.overlaps.push(overlap);
        }
        for number in outlasting {
            let what = format!("guard {number} was revoked, and is held for longer than was told");
            self.violate(Kind::RevokedLasts, what);
        }
        for (number, machine) in revived {
            // A clock that was ahead, and is set right, gives back what it seemed to have taken.
            if !self.leapt.contains(&machine) {
                let what = format!("guard {number} was over, and is held again");
                self.violate(Kind::HeldAgain, what);
            }
        }
    }

    /// A lock of this key was revoked by one who began then, and is told to be over by then.
    pub(super) fn revoked(&mut self, now: u64, key: &str, began: u64, over_by: u64) {
        self.look(now);
        self.holds.revoke(key, began, over_by);
        self.look(now);
    }

    /// A guard is about to be let go of.
    pub(super) fn end(&mut self, now: u64, number: u64) {
        self.look(now);
        self.holds.end(number);
        self.finality.end(number);
    }

    /// As [`end`](Self::end), of one whose lease has ended by itself: its delay follows.
    pub(super) fn end_delayed(&mut self, now: u64, number: u64) {
        self.look(now);
        self.holds.end_delayed(number);
        self.finality.end(number);
    }

    /// A machine is gone.
    pub(super) fn end_machine(&mut self, now: u64, machine: usize) {
        self.look(now);
        self.holds.end_machine(machine);
        self.left.extend(self.value_owners.values_of(machine));
    }

    /// A machine's clocks are about to leap.
    pub(super) fn leap(&mut self, now: u64, machine: usize) {
        self.look(now);
        self.leapt.insert(machine);
    }

    pub(super) fn has_leapt(&self, machine: usize) -> bool {
        self.leapt.contains(&machine)
    }

    /// A node has executed a machine's command about a value and one or more keys.
    pub(super) fn see(&mut self, at: u64, machine: usize, observations: &[Observation]) {
        self.releases.see(observations);
        let changes = observations.iter().filter(|observation| observation.is_change());
        changes.for_each(|observation| self.see_change(at, machine, observation));
    }

    fn see_change(&mut self, at: u64, machine: usize, observation: &Observation) {
        let Observation { node, stood: before, stands: after, .. } = observation.clone();
        let later = after.as_deref().and_then(|value| {
            let owner = self.value_owners.owner(value);
            self.completeness.see(owner, node).filter(|_| !self.left.contains(value))
        });
        // A release that hands the lock over deletes one value, and sets another for its owner.
        let steps = match (observation.is_release, &before, &after) {
            (true, Some(_), Some(_)) => vec![(before, None), (None, after)],
            _ => vec![(before, after)],
        };
        for (before, after) in steps {
            let wrong = self.value_owners.see(&Change { at, node, machine, before, after });
            wrong.into_iter().for_each(|wrong| self.add(wrong));
        }
        later.into_iter().for_each(|wrong| self.add(wrong));
    }

    /// A guard is about to be released, by a task that wants to know how that went.
    pub(super) fn releasing(&mut self, value: &str) {
        self.releases.begin(value);
    }

    /// A release has told what it found.
    pub(super) fn released(&mut self, number: u64, value: &str, told: &Release) {
        // One that is handed on says so, and asks no node.
        if self.are_handed_on && matches!(told, Release::Released) && self.releases.is_unseen(value)
        {
            return self.releases.abandon(value);
        }
        if let Some(wrong) = self.releases.end(value, told, self.majority) {
            let what = format!("the release of guard {number}: {wrong}");
            self.violate(Kind::FalseRelease, what);
        }
    }

    /// A release was given up by those who asked for it.
    pub(super) fn abandon_release(&mut self, value: &str) {
        self.releases.abandon(value);
    }

    /// The keys with this value, or with those of this owner, may be left behind.
    pub(super) fn leave(&mut self, value: &str) {
        self.left.insert(value.into());
    }

    /// Whether a lock's keys may be left behind.
    pub(super) fn is_left(&self, value: &str) -> bool {
        self.left.contains(value)
    }

    /// A guard has left its lock to its expiry, or to those who adopt it.
    pub(super) fn leave_lock(&mut self, value: &str) {
        self.leave(value);
        self.value_owners.leave(value);
    }

    /// A token is given to other machines. Should an adoption of it fail late, the value may be put
    /// back where its guard has released it.
    pub(super) fn hand(&mut self, token: &str) {
        self.leave(token);
        self.value_owners.hand(token);
    }

    /// The values of all guards that are in hand on a machine.
    pub(super) fn live(&self, machine: usize) -> Vec<String> {
        self.holds.live(machine)
    }

    /// An adoption has ended, at this time, and its key has these values then.
    pub(super) fn end_adoption(&mut self, attempt: u64, outcome: &Outcome, now: (u64, &Values)) {
        let wrong = self.value_owners.end(attempt, outcome, now);
        wrong.into_iter().for_each(|wrong| self.add(wrong));
    }

    /// A locker's shutdown says that it is complete, while these keys and values stand. What
    /// futures have acquired that `is_acquiring` says are there is theirs, until they are dropped.
    pub(super) fn complete(
        &mut self,
        owner: &str,
        stands: Vec<(usize, String, String)>,
        is_acquiring: bool,
    ) {
        let is_its_own = |value: &str| {
            let is_held = !is_acquiring || self.value_owners.is_known(value);
            // What has expired to its delay stays.
            let may_stay = self.left.contains(value) || self.delayed.contains(value);
            is_held && self.value_owners.owner(value) == owner && !may_stay
        };
        let stands: Vec<_> = stands.into_iter().filter(|(_, _, value)| is_its_own(value)).collect();
        let wrong = self.completeness.tell(owner, &stands, is_acquiring);
        wrong.into_iter().for_each(|wrong| self.add(wrong));
    }

    /// A holder looks at its guard; see [`Finality::see`].
    pub(super) fn observe(&mut self, guard: u64, at: u64, seen: Seen, slack: u64) {
        let wrong = self.finality.see(guard, at, seen, slack);
        wrong.into_iter().for_each(|wrong| self.add(wrong));
    }

    /// A guard was extended by hand.
    pub(super) fn extended(&mut self, guard: u64) {
        let wrong = self.finality.extended(guard);
        wrong.into_iter().for_each(|wrong| self.add(wrong));
    }

    /// Whether a key with this value must not be there when all is over.
    pub(super) fn is_forgotten(&self, value: &str) -> bool {
        let owner = owner_of(value);
        let machine = machine_of(owner);
        let is_left = |name: &str| self.left.contains(name);
        !owner.is_empty() && ![value, owner, machine].into_iter().any(is_left)
    }

    pub(super) fn violate(&mut self, kind: Kind, what: String) {
        self.add(Violation { kind, what });
    }

    pub(super) fn add(&mut self, violation: Violation) {
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}
