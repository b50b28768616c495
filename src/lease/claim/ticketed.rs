//! A claim that asks with its ticket: all nodes, again and again, until that is the lowest one on a
//! majority.
//!
//! What a node has granted is void as soon as it is asked again: one with a lower ticket may have
//! come, and then the node takes the key back. So each question is to all nodes, and its answers
//! alone count. And a node that has not told what it did with one question is asked no other by
//! this claim: that question may come late, and take back what was counted. What it may have
//! granted, it is told to delete.

use std::sync::Arc;
use std::time::Duration;

use super::super::command::{Encoded, NO_PLACE, Subject};
use super::super::context::LeaseContext;
use super::super::resource::Resource;
use super::{Claim, State};
use crate::clock::Moment;
use crate::error::Error;
use crate::link::Urgency;
use crate::quorum::{Command, Election, NodeMask, Patience};

/// Where one stands that waits with a ticket, as a majority of the nodes have told.
#[derive(Debug)]
pub(in crate::lease) struct Standing {
    /// How long until the key has ended on a majority of the nodes on which the ticket is the
    /// lowest, where that is known.
    pub(in crate::lease) free_after: Option<Duration>,
    /// The holder was told that it is waited for, wherever the ticket is the lowest.
    pub(in crate::lease) is_holder_told: bool,
    /// Readers hold the key on a node where the ticket is the lowest.
    pub(in crate::lease) is_read: bool,
    /// Some nodes have granted the key, and too few.
    pub(in crate::lease) has_minority: bool,
}

/// The words of `ticket_ask.lua`: the key is set; or the ticket is the lowest, and the holder was
/// not told; or readers hold the key. Those above are `standing.lua`'s: the node may not vote.
const TAKEN: i64 = 1;
const WAIT_UNHEARD: i64 = -2;
const WAIT_FOR_READERS: i64 = -3;

/// How long until a majority of the nodes is free: the longest of as many of the shortest lives, in
/// milliseconds, as make one.
pub(in crate::lease) fn until_majority(mut lives: Vec<u64>, needed: usize) -> Option<Duration> {
    lives.sort_unstable();
    lives.get(needed - 1).copied().map(Duration::from_millis)
}

impl Claim {
    /// Asks every node for the key if none waits there, or for the highest ticket.
    pub(in crate::lease) fn enter(
        context: &Arc<LeaseContext>,
        resource: Resource,
        ttl: Duration,
        now: Moment,
    ) -> Result<Self, Error> {
        Self::send(context, resource, (ttl, State::Owned), None, |subject, _| {
            ask(context, subject, (NO_PLACE, NodeMask::ALL), ttl, now)
        })
    }

    /// A ticket above all that stand on some majority; `None` where too few nodes have told theirs.
    pub(in crate::lease) fn next_ticket(&self) -> Option<u64> {
        let told: Vec<_> = self.told().collect();
        let highest = told.iter().map(|(word, number)| match *word {
            TAKEN => 0, // no one waits there
            _ => u64::try_from(*number).unwrap_or_default(),
        });
        let highest = highest.max().unwrap_or_default();
        (told.len() >= self.election.needed()).then_some(highest + 1)
    }

    /// Asks every node for the key with this ticket, but for those that have left a question
    /// unanswered. What was granted by now does not count any more; the lease counts from here.
    pub(in crate::lease) fn ask_with_ticket(
        &mut self,
        ticket: u64,
        now: Moment,
    ) -> Result<(), Error> {
        let unanswered = self.unanswered();
        self.leave_unanswered(unanswered);
        let sent = self.context.nodes.clock().stamp();
        let to = NodeMask::ALL.except(unanswered);
        // Also where it is refused the key, it stands in the queue.
        self.healed = self.touched().or(to);
        self.election = ask(&self.context, &self.subject(), (ticket, to), self.ttl(), now)?;
        self.sent = sent;
        Ok(())
    }

    /// These nodes count no more for this claim: what they may have granted, they are to delete.
    fn leave_unanswered(&mut self, unanswered: NodeMask) {
        let former = self.aside.as_ref().map_or(NodeMask::NONE, |aside| aside.unanswered);
        let new = unanswered.except(former);
        if new.is_empty() {
            return;
        }
        self.subject().with_release(|release| {
            self.context.nodes.tell(&self.command(release, Urgency::Drop, new));
        });
        self.aside.get_or_insert_default().unanswered = unanswered;
    }

    /// Whether a majority has granted the last question.
    pub(in crate::lease) fn is_won(&self) -> bool {
        self.granted().nodes().count() >= self.election.needed()
    }

    /// Notes, and returns, whether a node has not known the script.
    pub(in crate::lease) fn note_scripts(&self) -> bool {
        self.context.note_scripts(self.resource.primitive, &self.election)
    }

    /// Where it stands; `None` where too few nodes have told.
    pub(in crate::lease) fn standing(&self) -> Option<Standing> {
        let told: Vec<_> = self.told().collect();
        let needed = self.election.needed();
        let has = |which: i64| told.iter().any(|(word, _)| *word == which);
        let is_read = has(WAIT_FOR_READERS);
        let lives = told.iter().filter_map(|(word, number)| match *word {
            TAKEN => Some(0), // it has that node already
            _ => u64::try_from(*number).ok(),
        });
        let standing = Standing {
            free_after: until_majority(lives.collect(), needed),
            is_holder_told: !is_read && !has(WAIT_UNHEARD),
            is_read,
            has_minority: has(TAKEN),
        };
        (told.len() >= needed).then_some(standing)
    }

    /// Whether every node that has answered reports changes of the key.
    pub(in crate::lease) fn can_watch(&self) -> bool {
        let nodes = self.election.votes().map(|(node, _)| node);
        nodes
            .filter(|node| self.election.words(*node).is_some())
            .all(|node| self.context.nodes.tells_changes(node))
    }

    /// Nodes that have not told what they did with some question. None of a lock without tickets.
    pub(in crate::lease) fn unanswered(&self) -> NodeMask {
        if !self.resource.is_by_ticket() {
            return NodeMask::NONE;
        }
        let former = self.aside.as_ref().map_or(NodeMask::NONE, |aside| aside.unanswered);
        let (in_flight, lost) = self.election.untold();
        former.or(in_flight).or(lost)
    }

    /// Whether a majority has told where it stands, or may yet.
    pub(in crate::lease) fn may_majority_tell(&self) -> bool {
        let (in_flight, _) = self.election.untold();
        self.told().count() + in_flight.nodes().count() >= self.election.needed()
    }

    /// Whether those that have answered so far could make a majority.
    pub(in crate::lease) fn may_majority_answer(&self) -> bool {
        let unanswered = self.unanswered().nodes().count();
        self.context.nodes.len() >= self.election.needed() + unanswered
    }

    /// Whether it has asked with a ticket: a majority had told theirs by then.
    pub(in crate::lease) fn has_ticket(&self) -> bool {
        self.resource.is_by_ticket() && !self.healed.is_empty()
    }

    /// Takes the value out of each node's queue, where the key is left as it stands.
    pub(super) fn leave_queues(&self) {
        let touched = self.touched();
        for key in self.resource.queue() {
            self.subject().with_leave_queue(key, |encoded| {
                self.context.nodes.tell(&self.command(encoded, Urgency::Drop, touched));
            });
        }
    }

    /// What the nodes have answered.
    fn told(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let nodes = self.election.votes().map(|(node, _)| node);
        nodes.filter_map(|node| self.election.words(node)).filter(|(word, _)| *word <= TAKEN)
    }
}

/// Asks these nodes with a ticket.
fn ask(
    context: &LeaseContext,
    subject: &Subject<'_>,
    (ticket, to): (u64, NodeMask),
    ttl: Duration,
    now: Moment,
) -> Result<Election, Error> {
    let form = context.script_form(subject.resource.primitive);
    let volatile = context.volatile.as_ref();
    subject.with_acquire_at(ticket, form, ttl, volatile, |encoded: Encoded<'_>| {
        let command = context.command(encoded, subject.resource.affinity(), ttl, now);
        // Where it stands is known best when all have answered.
        let rule = context.nodes.rule(Patience::All);
        context.nodes.ask(&Command { to, ..command }, rule)
    })
}
