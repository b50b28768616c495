//! That a lock in strict order is had only after all that have stood on a majority since before it
//! was asked for.
//!
//! One stands on a node while its value is in the queue there, and its beat lasts for a while yet:
//! for longer than until all is looked at again, so that none is missed which ended in between. A
//! fault may make a node forget, or set its clock: what was seen before it proves nothing.

use std::collections::BTreeMap;

use super::violation::{Kind, Violation};
use super::world::World;

/// How long a beat has to last yet, in milliseconds, for one to stand on a node: twice the period
/// at which all is looked at.
const LASTING: u64 = 200;

impl World {
    /// Looks at all that stand in queues.
    pub(super) fn look_at_tickets(&mut self) {
        if self.plan.strict == 0 {
            return;
        }
        let now = self.nanos();
        let mut counts = BTreeMap::<_, usize>::new();
        let of_all = self.nodes.iter().flat_map(|node| node.waiters_for(self.now(), LASTING));
        of_all.for_each(|one| *counts.entry(one).or_default() += 1);
        let majority = self.nodes.len() / 2 + 1;
        let standing = counts.into_iter().filter(|(_, count)| *count >= majority);
        let since = |one: &_| self.tickets.standing.get(one).copied().unwrap_or(now);
        self.tickets.standing = standing.map(|(one, _)| (one.clone(), since(&one))).collect();
    }

    /// A lock in strict order was had by one that asked for it then.
    pub(super) fn look_at_order(&mut self, key: &str, value: &str, asked: u64) {
        self.look_at_tickets();
        self.tickets.note_had(value);
        // One that is revoked before it has its fence has had the lock, and no guard of it.
        if self.plan.revoked {
            return;
        }
        let before = self.tickets.standing.iter().filter(|((of, other), since)| {
            let has_had = self.tickets.was_had(other) || self.holds_majority(of, other);
            of == key && other != value && **since < asked && !has_had
        });
        let names: Vec<_> = before.map(|((_, other), _)| other.clone()).collect();
        if !names.is_empty() {
            let what = format!("{value} has `{key}`, and {names:?} stood before it");
            self.oracle.add(Violation { kind: Kind::OutOfOrder, what });
        }
    }

    fn holds_majority(&self, key: &str, value: &str) -> bool {
        let now = self.now();
        let is_held = |stands: Option<String>| stands.as_deref() == Some(value);
        let holds = self.nodes.iter().filter(|node| is_held(node.value_at(key, now)));
        holds.count() > self.nodes.len() / 2
    }
}
