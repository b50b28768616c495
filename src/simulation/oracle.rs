//! What must always be true, whatever happens.

use std::collections::BTreeSet;

use crate::Held;

/// A guard that somebody has in hand.
pub(super) struct Hold {
    pub(super) number: u64,
    pub(super) machine: usize,
    pub(super) key: String,
    pub(super) held: Held,
}

/// What is known of all holders and waiters, and what was found wrong.
#[derive(Default)]
pub(super) struct Oracle {
    holds: Vec<Hold>,
    numbers: u64,
    tokens: BTreeSet<String>,
    /// Values whose keys may be left behind: their holders have crashed, or wanted it so.
    left: BTreeSet<String>,
    pub(super) violations: Vec<String>,
    pub(super) acquired: u64,
}

impl Oracle {
    /// Somebody has got a guard. Whoever else holds the key may not do so now.
    pub(super) fn acquire(&mut self, machine: usize, key: &str, token: &str, held: Held) -> u64 {
        self.acquired += 1;
        self.numbers += 1;
        let number = self.numbers;
        if !held.looks_valid() {
            self.violate(format!("guard {number} of `{key}` was not valid when it was given"));
        }
        if !self.tokens.insert(token.into()) {
            self.violate(format!("guard {number} of `{key}` has the value of another: {token}"));
        }
        self.holds.push(Hold { number, machine, key: key.into(), held });
        self.look();
        number
    }

    /// No two guards of one key are valid.
    pub(super) fn look(&mut self) {
        let valid: Vec<_> = self.holds.iter().filter(|hold| hold.held.looks_valid()).collect();
        let mut found = Vec::new();
        for (index, one) in valid.iter().enumerate() {
            for other in valid[index + 1..].iter().filter(|other| other.key == one.key) {
                let (a, b, key) = (one.number, other.number, &one.key);
                found.push(format!("guards {a} and {b} of `{key}` are valid at the same time"));
            }
        }
        found.into_iter().for_each(|what| self.violate(what));
    }

    /// A guard is about to be let go of.
    pub(super) fn end(&mut self, number: u64) {
        self.holds.retain(|hold| hold.number != number);
    }

    /// A machine is gone: nobody there holds anything any more.
    pub(super) fn bury(&mut self, machine: usize) {
        self.holds.retain(|hold| hold.machine != machine);
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

    pub(super) fn violate(&mut self, what: String) {
        if !self.violations.contains(&what) {
            self.violations.push(what);
        }
    }
}
