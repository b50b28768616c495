//! What a claim says to the node that keeps its key's queue, and what it does where it is waited
//! for.
//!
//! Of a claim that waits only that node has been asked, which may have its value; then all are. The
//! node with the queue is told in turn of the release, too, if the claim has waited, or is waited
//! for by others.
//!
//! It may be won though the node with the queue refuses it, where another one takes the key there
//! first. Then it keeps its place until it is let go, and so may come to be first: no one else
//! watches the lock meanwhile. If its process is killed within the life of that place, others learn
//! of it when the place ends. (To leave the queue at once would take a command more whenever the
//! node with the queue is the last to answer, which is often.)

use std::sync::Arc;
use std::time::Duration;

use super::super::command::{Encoded, NO_PLACE, Subject};
use super::super::context::LeaseContext;
use super::super::queue_node::QueueNode;
use super::super::resource::Resource;
use super::super::wire::Value;
use super::{Aside, Claim, State};
use crate::clock::{Moment, nanoseconds};
use crate::entropy::Nonce;
use crate::error::Error;
use crate::link::Urgency;
use crate::node_vote::NodeVote;
use crate::quorum::{Command, Election, NodeMask, NodeSet, Patience};

/// What the node that keeps a queue says to one that asks in turn.
pub(in crate::lease) enum Reply {
    /// It has set the key, for which so many others wait. It counts when the other nodes have, too.
    Granted { waiting: u64 },
    Wait {
        /// To the first in the queue: how long the key lives. Zero also tells one behind many dead
        /// ones to ask again at once.
        left: Option<Duration>,
        /// Who holds the key has been told that it is waited for, or it is for the first in the
        /// queue to see to that.
        is_heard: bool,
        /// Readers hold the key, and a writer asks.
        is_read: bool,
    },
}

/// The words of `turn_ask.lua` to one that is to wait: the holder has been told, or is to be by
/// another; it was not told; readers hold the key.
const WAIT: i64 = -1;
const WAIT_UNHEARD: i64 = -2;
const WAIT_FOR_READERS: i64 = -3;

impl Claim {
    /// Asks the node that keeps the key's queue, with a nonce that no attempt ever had: it grants
    /// the key, or puts the value into the queue. Letting go leaves the queue.
    pub(in crate::lease) fn enqueue(
        context: &Arc<LeaseContext>,
        resource: Resource,
        queue_node: QueueNode,
        (nonce, ttl): (Nonce, Duration),
        now: Moment,
    ) -> Result<Self, Error> {
        let value = Value::Drawn { nonce, owner: &context.owner };
        let sent = context.nodes.clock().stamp();
        let election = ask_queue(context, &queue_node, value, ttl, now)?;
        let (context, ttl_nanos, one) =
            (context.clone(), nanoseconds(ttl), NodeMask::only(queue_node.node));
        Ok(Self {
            context,
            resource,
            nonce,
            ttl_nanos,
            sent,
            election,
            state: State::OneAsked,
            // Whatever it answers, it may have the value.
            healed: one,
            aside: Some(Box::new(Aside { queue_node: Some(queue_node), ..Aside::default() })),
            turn: None,
        })
    }

    /// Asks the node that keeps the queue once more.
    pub(in crate::lease) fn ask_again(&mut self, now: Moment) -> Result<(), Error> {
        let Some(queue_node) = self.queue_node() else { return Ok(()) };
        let sent = self.context.nodes.clock().stamp();
        self.election = ask_queue(&self.context, queue_node, self.value(), self.ttl(), now)?;
        self.sent = sent;
        Ok(())
    }

    /// Asks all nodes for the key, once: that with the queue in turn. The lease counts from here.
    /// For slots the others alone are asked: it counts from when that node was asked to choose.
    pub(in crate::lease) fn ask_all_from_queue(&mut self, now: Moment) -> Result<(), Error> {
        if self.resource.primitive.holders.have_slots() {
            let chooser = self.queue_node().map(|queue_node| queue_node.node);
            return chooser.map_or(Ok(()), |node| self.ask_others(node, now));
        }
        let Some(queue_node) = self.queue_node() else { return Ok(()) };
        let (context, ttl, value) = (&self.context, self.ttl(), self.value());
        // The node with the queue has said that it is a reader's turn, and no more.
        let are_readers = self.resource.primitive.holders.are_readers();
        let asked = if are_readers { &self.resource } else { &queue_node.resource };
        let queued = Subject { resource: asked, value };
        let plain = Subject { resource: &self.resource, value };
        let affinity = self.resource.affinity();
        let sent = context.nodes.clock().stamp();
        let volatile = context.volatile.as_ref();
        let send = |one: Encoded<'_>, others: Encoded<'_>| {
            let one = context.command(one, affinity, ttl, now);
            let others = context.command(others, affinity, ttl, now);
            let one = Command { to: NodeMask::only(queue_node.node), ..one };
            context.nodes.ask_each(&[one, others], context.nodes.rule(Patience::Early))
        };
        let form = context.script_form(asked.primitive);
        let name = queue_node.name;
        let election = queued.with_acquire_at(name, form, ttl, volatile, |one| {
            plain.with_acquire_at(name, form, ttl, volatile, |others| send(one, others))
        })?;
        (self.sent, self.election, self.state) = (sent, election, State::Owned);
        Ok(())
    }

    /// What its queue is called, if it waits in one.
    pub(in crate::lease) fn queue_name(&self) -> u64 {
        self.queue_node().map_or(NO_PLACE, |queue_node| queue_node.name)
    }

    /// Whether the node that keeps the queue has not known its script: the next command brings it.
    pub(in crate::lease) fn lacks_queue_script(&self) -> bool {
        let primitive = self.queue_node().map(|queue_node| queue_node.resource.primitive);
        primitive.is_some_and(|primitive| self.context.note_queue_script(primitive, &self.election))
    }

    /// What the node that keeps the queue has answered, if that is a yes or a no.
    pub(in crate::lease) fn queue_reply(&self) -> Option<Reply> {
        let (word, number) = self.election.words(self.queue_node()?.node)?;
        let left = u64::try_from(number).ok();
        match word {
            1 => Some(Reply::Granted { waiting: left.unwrap_or_default() }),
            WAIT | WAIT_UNHEARD | WAIT_FOR_READERS => {
                let left = left.map(Duration::from_millis);
                let (is_heard, is_read) = (word == WAIT, word == WAIT_FOR_READERS);
                Some(Reply::Wait { left, is_heard, is_read })
            }
            _ => None,
        }
    }

    /// Whether the node that keeps the queue has not answered in time, and is connected.
    pub(in crate::lease) fn is_queue_late(&self) -> bool {
        let Some(queue_node) = self.queue_node() else { return false };
        let is_late = |vote| matches!(vote, NodeVote::Silent | NodeVote::Suspect);
        self.election.votes().any(|(node, vote)| node == queue_node.node && is_late(vote))
    }

    /// Whether the node that keeps the queue has refused for want of a right.
    pub(in crate::lease) fn is_denied_by_queue(&self) -> bool {
        let outcome = |queue_node: &QueueNode| self.election.outcome(queue_node.node).0;
        self.queue_node().map(outcome).is_some_and(|outcome| outcome.is_authentication())
    }

    /// Whether the node that keeps the queue has granted the key.
    pub(in crate::lease) fn is_granted_by_queue(&self) -> bool {
        self.queue_node().is_some_and(|queue_node| self.election.granted().has(queue_node.node))
    }

    /// Whether it has, or has not answered yet.
    pub(in crate::lease) fn may_queue_grant(&self) -> bool {
        let may = |vote| matches!(vote, NodeVote::Granted | NodeVote::None);
        self.queue_node().is_some_and(|queue_node| {
            self.election.votes().any(|(node, vote)| node == queue_node.node && may(vote))
        })
    }

    /// Whether one of the others has not known its script: the next command brings it.
    pub(in crate::lease) fn do_others_lack_script(&self) -> bool {
        self.context.note_scripts(self.resource.primitive, &self.election)
    }

    /// Where the node that keeps the queue has granted, and too few others yet: asks those again
    /// that hold another value, which may be about to let go of it, or did not know the script. The
    /// lease counts as before.
    pub(in crate::lease) fn ask_others_again(&mut self, now: Moment) -> Result<(), Error> {
        let refusing = self.election.votes().filter(|(node, vote)| match vote {
            NodeVote::Held => true,
            NodeVote::Refused => self.election.lacks_script(*node),
            _ => false,
        });
        let to = refusing.fold(NodeMask::NONE, |mask, (node, _)| mask.with(node));
        let granted = self.election.granted();
        self.note_others(None);
        // What has not answered may have the value, whatever is said later.
        self.healed = self.touched();
        self.forget_fence();
        self.election = self.ask_rest(self.queue_name(), to, granted, now)?;
        Ok(())
    }

    /// Leaves the queue, and the key as it stands: a node that keeps the queue and has not granted
    /// the key may have the value in there still, before those that wait.
    pub(super) fn leave_queue(&self) {
        if self.resource.is_by_ticket() {
            return self.leave_queues();
        }
        let Some(queue_node) = self.queue_node() else { return };
        if self.is_granted_by_queue() {
            return; // which took it out
        }
        let one = NodeMask::only(queue_node.node);
        for key in queue_node.resource.queue() {
            self.subject().with_leave_queue(key, |encoded| {
                self.context.nodes.tell(&self.command(encoded, Urgency::Drop, one));
            });
        }
    }

    /// Where another process has said that it waits for the key, the node that keeps the queue is
    /// told so with the release.
    pub(super) fn look_for_waiters(&mut self) {
        if self.state != State::Owned || self.resource.is_by_ticket() {
            return; // with tickets, all nodes are told
        }
        if self.resource.primitive.holders.have_slots() {
            return self.look_for_queue();
        }
        let wanted = self.context.turns().wanted(self.resource.affinity());
        if let Some(node) = wanted.filter(|_| self.queue_node().is_none()) {
            let queue_node = QueueNode::at((NO_PLACE, node), &self.resource);
            self.aside.get_or_insert_default().queue_node = queue_node;
        }
        self.note_others(wanted);
    }

    /// One whose slots no node has chosen tells the queue's node of its release, too: others may
    /// wait there.
    fn look_for_queue(&mut self) {
        if self.queue_node().is_none() {
            let untouched = NodeMask::ALL.except(self.touched());
            let queue_node = QueueNode::of(&self.context, &self.resource, untouched);
            self.aside.get_or_insert_default().queue_node = queue_node;
        }
    }

    /// Remembers that others want the key, too, if that is so.
    fn note_others(&self, wanted: Option<usize>) {
        if self.resource.primitive.holders.have_slots() {
            return; // who asks for slots asks the queue's node first, whatever was met
        }
        let are_waiting = matches!(self.queue_reply(), Some(Reply::Granted { waiting: 1.. }));
        if wanted.is_some() || are_waiting {
            let now = self.context.nodes.clock().now();
            self.context.contention.note(self.resource.affinity(), now);
        }
    }
}

/// Asks the node that keeps a key's queue, and it alone.
fn ask_queue(
    context: &LeaseContext,
    queue_node: &QueueNode,
    value: Value<'_>,
    ttl: Duration,
    now: Moment,
) -> Result<Election, Error> {
    let resource = &queue_node.resource;
    let form = context.queue_script_form(resource.primitive);
    let subject = Subject { resource, value };
    subject.with_acquire(form, ttl, context.volatile.as_ref(), |encoded| {
        let command = context.command(encoded, resource.affinity(), ttl, now);
        let command = Command { to: NodeMask::only(queue_node.node), ..command };
        context.nodes.ask(&command, NodeSet::rule_of_one())
    })
}
