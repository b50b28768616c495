//! What must always be true, whatever happens.
//!
//! The oracles know what nobody in the world does: true time, and what stands on every node.

use std::collections::BTreeSet;

use super::holds::{Findings, Holds, Overlap, View};
use super::node::Sight;
use super::releases::Releases;
use crate::{Held, Release};

/// What can be found wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// Two guards of one key are held at the same time.
    Overlap,
    /// A guard was given for a lock that was not held.
    NotHeld,
    /// Two attempts had the same value.
    SameValue,
    /// A lock that was over is held again.
    Revived,
    /// A release told something else than what the nodes had.
    FalseRelease,
    /// A lock was lost, and its holder was not told in time.
    Untold,
    /// Somebody waited for longer than was asked for.
    LongWait,
    /// A task did not end.
    Endless,
    /// A key was left behind.
    LeftBehind,
    /// The world never came to rest.
    Restless,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Violation {
    pub(super) kind: Kind,
    pub(super) what: String,
}

/// A guard, in its holder's hand.
pub(super) struct Grant<'a> {
    pub(super) machine: usize,
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    pub(super) held: Held,
    /// How much faster than true time its machine's clocks run, in millionths.
    pub(super) rate: i64,
}

/// What is known of all holders and waiters, and what was found wrong.
pub(super) struct Oracle {
    majority: usize,
    holds: Holds,
    releases: Releases,
    numbers: u64,
    tokens: BTreeSet<String>,
    /// Values whose keys may be left behind: their holders have crashed, or wanted it so.
    left: BTreeSet<String>,
    /// Machines whose clocks have leapt.
    leapt: BTreeSet<usize>,
    pub(super) violations: Vec<Violation>,
    /// Overlaps that were found, and that nobody has looked into yet.
    pub(super) overlaps: Vec<Overlap>,
}

impl Oracle {
    /// Watches so many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            majority: nodes / 2 + 1,
            holds: Holds::default(),
            releases: Releases::default(),
            numbers: 0,
            tokens: BTreeSet::new(),
            left: BTreeSet::new(),
            leapt: BTreeSet::new(),
            violations: Vec::new(),
            overlaps: Vec::new(),
        }
    }

    /// How many guards were given.
    pub(super) fn acquired(&self) -> u64 {
        self.numbers
    }

    /// Somebody has got a guard. Whoever else holds the key is found at the next look.
    pub(super) fn acquire(&mut self, now: u64, grant: Grant<'_>) -> u64 {
        self.numbers += 1;
        let (number, Grant { machine, key, value, held, rate }) = (self.numbers, grant);
        if held.looks_left().is_none() {
            let what = format!("guard {number} of `{key}` was not held when it was given");
            self.violate(Kind::NotHeld, what);
        }
        if !self.tokens.insert(value.into()) {
            let what = format!("guard {number} of `{key}` has another guard's value: {value}");
            self.violate(Kind::SameValue, what);
        }
        let view = View { left: Box::new(move || held.looks_left()), rate };
        self.holds.begin((number, machine), (key, value), view, now);
        number
    }

    /// Looks at all that is held. Called before and behind everything that happens.
    pub(super) fn look(&mut self, now: u64) {
        let Findings { overlaps, revived } = self.holds.look(now);
        for overlap in overlaps {
            let Overlap { key, guards: [a, b], at, .. } = &overlap;
            let when = *at as f64 / 1e6;
            let what = format!("guards {a} and {b} of `{key}` are both held at {when} ms");
            self.violate(Kind::Overlap, what);
            self.overlaps.push(overlap);
        }
        for (number, machine) in revived {
            // A clock that was ahead, and is set right, gives back what it seemed to have taken.
            if !self.leapt.contains(&machine) {
                let what = format!("guard {number} was over, and is held again");
                self.violate(Kind::Revived, what);
            }
        }
    }

    /// A guard is about to be let go of.
    pub(super) fn end(&mut self, now: u64, number: u64) {
        self.look(now);
        self.holds.end(number);
    }

    /// A machine is gone.
    pub(super) fn bury(&mut self, now: u64, machine: usize) {
        self.look(now);
        self.holds.bury(machine);
    }

    /// A machine's clocks are about to leap.
    pub(super) fn leap(&mut self, now: u64, machine: usize) {
        self.look(now);
        self.leapt.insert(machine);
    }

    pub(super) fn has_leapt(&self, machine: usize) -> bool {
        self.leapt.contains(&machine)
    }

    /// A node has executed a command about a key and a value.
    pub(super) fn see(&mut self, sight: &Sight) {
        self.releases.see(sight);
    }

    /// A guard is about to be released, by somebody who wants to know how that went.
    pub(super) fn releasing(&mut self, value: &str) {
        self.releases.begin(value);
    }

    /// A release has told what it found.
    pub(super) fn released(&mut self, number: u64, value: &str, told: &Release) {
        if let Some(wrong) = self.releases.end(value, told, self.majority) {
            let what = format!("the release of guard {number}: {wrong}");
            self.violate(Kind::FalseRelease, what);
        }
    }

    /// The keys with this value, or with those of this owner, may be left behind.
    pub(super) fn leave(&mut self, value: &str) {
        self.left.insert(value.into());
    }

    /// Whether a key with this value must not be there when all is over.
    pub(super) fn is_forgotten(&self, value: &str) -> bool {
        let owner = value.split_once('@').map_or("", |(_, owner)| owner);
        !owner.is_empty() && !self.left.contains(value) && !self.left.contains(owner)
    }

    pub(super) fn violate(&mut self, kind: Kind, what: String) {
        let violation = Violation { kind, what };
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}
