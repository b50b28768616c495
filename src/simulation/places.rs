//! Who stands in the queues of the nodes, and since when.
//!
//! One stands on a node from the command that puts it there, for as long as the node's scripts find
//! it there and count it as living. Each queue is looked at before and behind each command that may
//! change it; what happens between two of them no client can tell.

use std::collections::{BTreeMap, BTreeSet};

/// The order in which a lock is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    None,
    Fair,
    Strict,
}

impl Order {
    pub(super) fn of(is_fair: bool, is_strict: bool) -> Self {
        match (is_strict, is_fair) {
            (true, _) => Self::Strict,
            (_, true) => Self::Fair,
            _ => Self::None,
        }
    }
}

/// A queue of one node: which one, and the queue's name there.
pub(super) type Place = (usize, String);

/// Who stands in the queues, and who has had a lock.
#[derive(Default)]
pub(super) struct Places {
    /// Since when each member stands there, in nanoseconds of true time.
    standing: BTreeMap<Place, BTreeMap<String, u64>>,
    /// When a value first stood on more nodes than half in queues of this name.
    tickets: BTreeMap<(String, String), u64>,
    /// The queues in which a value has asked for its turn.
    asked: BTreeMap<String, BTreeSet<Place>>,
    /// The values that have had a lock, and whether in strict order.
    had: BTreeMap<String, bool>,
}

impl Places {
    /// These members stand in a queue now; there are so many nodes.
    pub(super) fn see(&mut self, place: Place, members: Vec<String>, (now, nodes): (u64, usize)) {
        let former = self.standing.remove(&place).unwrap_or_default();
        if members.is_empty() {
            return;
        }
        let new: Vec<_> =
            members.iter().filter(|member| !former.contains_key(*member)).cloned().collect();
        let since = |member: &String| former.get(member).copied().unwrap_or(now);
        let standing = members.into_iter().map(|member| (member.clone(), since(&member)));
        let queue = place.1.clone();
        self.standing.insert(place, standing.collect());
        for member in new {
            if self.count(&queue, &member) > nodes / 2 {
                self.tickets.entry((queue.clone(), member)).or_insert(now);
            }
        }
    }

    /// On how many nodes a member stands in the queue of this name.
    fn count(&self, queue: &str, member: &str) -> usize {
        let places = self.standing.iter().filter(|((_, name), _)| name == queue);
        places.filter(|(_, members)| members.contains_key(member)).count()
    }

    /// Those of a queue's name that have asked for a ticket, and stood on more nodes than half
    /// before this time; and since when.
    pub(super) fn tickets_before(&self, queue: &str, before: u64) -> Vec<(String, u64)> {
        let of = self.tickets.iter().filter(|((name, _), since)| name == queue && **since < before);
        let found = of.filter(|((_, value), _)| self.has_asked_several(value));
        found.map(|((_, value), since)| (value.clone(), *since)).collect()
    }

    /// Whether a value has asked several nodes for its turn: one in strict order does.
    pub(super) fn has_asked_several(&self, value: &str) -> bool {
        self.asked.get(value).is_some_and(|places| places.len() > 1)
    }

    /// A node has answered a value that asked for its turn.
    pub(super) fn note_asked(&mut self, value: String, place: Place) {
        self.asked.entry(value).or_default().insert(place);
    }

    /// This value has a lock. Whether it is the first to have it: a lock may be handed on.
    pub(super) fn note_had(&mut self, value: &str, in_order: bool) -> bool {
        self.had.insert(value.into(), in_order).is_none()
    }

    pub(super) fn was_had(&self, value: &str) -> bool {
        self.had.contains_key(value)
    }

    /// Whether this value was had in strict order: it stays in the queues for a while.
    pub(super) fn was_had_in_order(&self, value: &str) -> bool {
        self.had.get(value) == Some(&true)
    }

    /// The queues in which this value has asked for its turn.
    pub(super) fn asked_by(&self, value: &str) -> Vec<Place> {
        self.asked.get(value).into_iter().flatten().cloned().collect()
    }

    /// Those that stand in a queue since before this time, and since when.
    pub(super) fn standing_before(&self, place: &Place, before: u64) -> Vec<(String, u64)> {
        let members = self.standing.get(place).into_iter().flatten();
        let earlier = members.filter(|(_, since)| **since < before);
        earlier.map(|(member, since)| (member.clone(), *since)).collect()
    }
}
