//! That locks are had in the order of the queues.
//!
//! Four rules. Three are about one that has just had a lock, and about another that stands in a
//! queue: since before the first one *asked*, up to now, without a gap.
//!
//! - One in strict order is had only when no other has so stood on a majority of the nodes: each
//!   majority that told it a ticket has a node that knew of that one, and so has each that granted.
//! - One that asked a node for its turn is had only when no other has so stood in that queue. This
//!   holds for what is not asked for as fair, too, and whatever else befalls the nodes: a value
//!   asks for its turn on one node alone, and asks the others when that has said it is next.
//! - Where there has been no fault and all are connected to all, all use the same queue of a key,
//!   and what is asked for as fair is had only when no other has so stood in any. (One in strict
//!   order comes to one queue after the other: for it there is the rule before this one alone.)
//!
//! And the fourth: where there has been no fault, a request in strict order keeps the place that it
//! once had on a majority until it has the lock, or its wait is over. (Without a fence: none may be
//! taken.)

use std::collections::BTreeMap;

use quorlock_resp::Frame;

use super::machine::SETTLED;
use super::node::{Observation, queue_and_value};
use super::places::{Order, Place};
use super::readers::value_in_queue;
use super::requests::Request;
use super::violation::{Kind, Violation};
use super::world::World;
use crate::testing::store::{Effects, SessionId};

/// A lock that was had.
pub(super) struct Had<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    pub(super) machine: usize,
    pub(super) order: Order,
    /// When it was asked for, in nanoseconds of true time.
    pub(super) asked: u64,
    pub(super) reads: bool,
}

impl World {
    /// Has a node execute a command, and sees who stands in its queue before and behind it.
    pub(super) fn execute(
        &mut self,
        node: usize,
        session: SessionId,
        words: &[&[u8]],
    ) -> (Effects, Vec<Observation>) {
        let now = self.now();
        let asked = queue_and_value(words);
        if let Some((queue, _)) = &asked {
            self.see_queue((node, queue.clone()));
        }
        let (effects, observations) = self.nodes[node].execute(session, words, now);
        if let Some((queue, value)) = asked {
            let place = (node, queue);
            self.see_queue(place.clone());
            if effects.messages.iter().any(|(to, frame)| *to == session && is_of_turn(frame)) {
                self.places.note_asked(value, place);
            }
        }
        (effects, observations)
    }

    fn see_queue(&mut self, place: Place) {
        let members = self.nodes[place.0].standing_in(&place.1, self.now());
        let now = (self.nanos(), self.nodes.len());
        self.places.see(place, members, now);
    }

    /// A lock was had.
    pub(super) fn look_at_order(&mut self, had: &Had<'_>) {
        let is_first = self.places.note_had(had.value, had.order == Order::Strict);
        // What is not fair may be handed on inside a process, past those that wait elsewhere.
        if !is_first && had.order == Order::None {
            return;
        }
        let before = match had.order {
            Order::Strict => [self.on_majority_before(had), self.lost_before(had)].concat(),
            Order::Fair if self.must_answer() && self.has_settled(had.machine, had.asked) => {
                self.anywhere_before(had)
            }
            _ => self.in_turn_before(had),
        };
        if !before.is_empty() {
            let Had { key, value, order, .. } = had;
            let what = format!("{value} has `{key}` ({order:?}), and {before:?} stood before it");
            self.oracle.add(Violation { kind: Kind::OutOfOrder, what });
        }
    }

    fn on_majority_before(&mut self, had: &Had<'_>) -> Vec<String> {
        let mut counts = BTreeMap::<_, usize>::new();
        for node in 0..self.nodes.len() {
            for (other, _) in self.before(had, (node, queue_of(had.key))) {
                *counts.entry(other).or_default() += 1;
            }
        }
        let majority = self.nodes.len() / 2 + 1;
        counts.into_iter().filter(|(_, count)| *count >= majority).map(|(one, _)| one).collect()
    }

    /// Those of other machines that had a place on a majority before one asked, and have lost it,
    /// while their requests go on.
    fn lost_before(&mut self, had: &Had<'_>) -> Vec<String> {
        if !self.must_answer() || self.plan.fenced {
            return Vec::new();
        }
        let now = self.nanos();
        let mut lost = self.places.tickets_before(&queue_of(had.key), had.asked);
        lost.retain(|(value, since)| {
            let machine = machine_of(value).filter(|machine| self.has_settled(*machine, *since));
            let request = machine.map(|machine| Request { machine, key: had.key.into() });
            value != had.value
                && !self.places.was_had(value)
                && request.is_some_and(|request| self.requests.go_on(&request, (*since, now)))
        });
        lost.into_iter().map(|(value, _)| value).collect()
    }

    fn in_turn_before(&mut self, had: &Had<'_>) -> Vec<String> {
        let places = self.places.asked_by(had.value);
        let before = places.into_iter().flat_map(|place| self.before(had, place));
        before.map(|(other, _)| other).collect()
    }

    fn anywhere_before(&mut self, had: &Had<'_>) -> Vec<String> {
        let mut found = self.in_turn_before(had);
        for node in 0..self.nodes.len() {
            let before = self.before(had, (node, queue_of(had.key)));
            let settled = before.into_iter().filter(|(other, since)| {
                machine_of(other).is_some_and(|machine| self.has_settled(machine, *since))
                    && !self.places.has_asked_several(other)
            });
            found.extend(settled.map(|(other, _)| other));
        }
        found
    }

    /// Those that stand in this queue since before one asked, and were to have the lock before it.
    fn before(&mut self, had: &Had<'_>, place: Place) -> Vec<(String, u64)> {
        self.see_queue(place.clone());
        let mut standing = self.places.standing_before(&place, had.asked);
        standing.retain(|(member, _)| {
            let value = value_in_queue(member);
            let may_pass = had.reads && value != *member || value == had.value;
            let has_had = self.places.was_had(&value) || self.holds_majority(had.key, &value);
            !may_pass && !has_had
        });
        standing
    }

    /// Whether a machine was connected to all nodes at this time, if there was no fault.
    fn has_settled(&self, machine: usize, at: u64) -> bool {
        self.machines.get(machine).is_some_and(|it| (it.since + SETTLED) * 1_000_000 < at)
    }

    fn holds_majority(&self, key: &str, value: &str) -> bool {
        let now = self.now();
        let is_held = |stands: Option<String>| stands.as_deref() == Some(value);
        let holds = self.nodes.iter().filter(|node| is_held(node.value_at(key, now)));
        holds.count() > self.nodes.len() / 2
    }
}

/// The name of a lock's queue.
fn queue_of(key: &str) -> String {
    format!("{{{key}}}")
}

/// Whether this is the answer to one that has asked for its turn: others are answered by a number,
/// and a node that may not vote has not looked.
fn is_of_turn(answer: &Frame) -> bool {
    let Frame::Array(words) = answer else { return false };
    words.first().is_some_and(|word| matches!(word, Frame::Integer(word) if *word <= 1))
}

/// The machine of a value's locker.
fn machine_of(member: &str) -> Option<usize> {
    let (_, owner) = member.split_once("@m")?;
    owner.split_once('.')?.0.parse().ok()
}
