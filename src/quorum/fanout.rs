//! One command to many nodes, and the operation that gathers their votes.
//!
//! [`NodeSet::ask`] hands the same bytes to every node's link and returns an [`Election`], which
//! knows the verdict as soon as it is certain. [`NodeSet::tell`] hands bytes over and awaits
//! nothing: that is how a `Drop` releases.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quorlock_resp::Frame;

use super::handover::Wakened;
use super::mask::NodeMask;
use super::node_set::NodeSet;
use super::tally::{Patience, Rule, Verdict, Vote};
use crate::clock::Moment;
use crate::error::Error;
use crate::link::{Entry, Outgoing, ReplyKind, Sent, Ticket, Undo, Urgency};
use crate::link::{fence_of, key_in_the_way, time_beside, time_of_refusal};
use crate::node::Node;
use crate::node_vote::NodeVote;
use crate::report::{Fault, NodeReport, Outcome, printable};
use crate::server_error::ServerError;

/// A command for some nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) kind: ReplyKind,
    /// What would undo it.
    pub(crate) undo: Undo<'a>,
    /// A hash of the key: see [`Node::link`](crate::node::Node::link).
    pub(crate) affinity: u64,
    /// The clock, read before this command was made.
    pub(crate) sent: Moment,
    /// How long a node may take.
    pub(crate) allowed: Duration,
    pub(crate) urgency: Urgency,
    pub(crate) to: NodeMask,
}

impl NodeSet {
    /// The rule for asking these nodes: a majority of grants wins if all are asked; of some, all
    /// answers are waited for.
    pub(crate) fn rule_for(&self, asked: NodeMask) -> Rule {
        let count = asked.count(self.len());
        if count == self.len() {
            return self.rule(Patience::Early);
        }
        let count = u8::try_from(count).unwrap_or(u8::MAX);
        Rule { voters: count, needed: count, patience: Patience::All }
    }

    /// Asks the nodes and gathers their votes by `rule`.
    ///
    /// The only error is that there is no runtime to work on.
    pub(crate) fn ask(
        self: &Arc<Self>,
        command: &Command<'_>,
        rule: Rule,
    ) -> Result<Election, Error> {
        self.ask_each(std::slice::from_ref(command), rule)
    }

    /// As [`ask`](Self::ask), where nodes are sent different commands: each the first that is for
    /// it. They are of one moment.
    pub(crate) fn ask_each(
        self: &Arc<Self>,
        commands: &[Command<'_>],
        rule: Rule,
    ) -> Result<Election, Error> {
        self.ask_beside(commands, NodeMask::NONE, rule)
    }

    /// As [`ask`](Self::ask), of nodes some of which have granted before.
    pub(crate) fn ask_rest(
        self: &Arc<Self>,
        command: &Command<'_>,
        granted: NodeMask,
        rule: Rule,
    ) -> Result<Election, Error> {
        self.ask_beside(std::slice::from_ref(command), granted, rule)
    }

    fn ask_beside(
        self: &Arc<Self>,
        commands: &[Command<'_>],
        granted: NodeMask,
        rule: Rule,
    ) -> Result<Election, Error> {
        self.ensure_driver()?;
        let allowed = commands.first().map_or(Duration::ZERO, |command| command.allowed);
        let deadline = commands.first().map_or(Moment::NEVER, |first| first.sent.plus(allowed));
        let ticket = self.shared.slots.claim(rule, allowed);
        let (mut rest, mut wake) = (NodeMask::first(self.len()), false);
        for command in commands {
            let outgoing = outgoing(command, ticket, deadline);
            let to = rest.and(command.to);
            for (index, node) in self.shared.nodes.iter().enumerate() {
                if !to.has(index) {
                    continue;
                }
                match node.link(command.affinity).send(&outgoing) {
                    Sent::Written => continue,
                    Sent::Queued => wake = true,
                    Sent::Suspect => self.cast(ticket, index, NodeVote::Suspect),
                    Sent::Full => self.cast(ticket, index, NodeVote::Full),
                    Sent::Closed => self.cast(ticket, index, NodeVote::Down),
                }
            }
            rest = rest.except(command.to);
        }
        // Where fewer vote than there are, those that are not asked have no vote.
        let all_vote = usize::from(rule.voters) == self.len();
        for node in rest.nodes() {
            if granted.has(node) {
                self.cast(ticket, node, NodeVote::Granted);
            } else if all_vote {
                self.cast(ticket, node, NodeVote::NotAsked);
            }
        }
        let wake = self.shared.driver.timer.is_late_for(deadline) || wake;
        let wakened = wake.then(|| self.shared.wake_driver());
        Ok(Election { set: self.clone(), ticket, wakened })
    }

    /// Casts the vote of a node that was sent nothing. No task waits yet: the asker looks at the
    /// votes before it sleeps.
    #[cold]
    fn cast(&self, ticket: Ticket, node: usize, vote: NodeVote) {
        self.shared.slots.cast(ticket, node, vote, 0);
    }

    /// Hands a command to the nodes and awaits nothing. Never blocks, never fails; works outside a
    /// runtime, on any thread, and after the driver has gone. What is in flight goes on, whatever
    /// this thread does next: so the driver is handed on even if there is nothing for it to write.
    pub(crate) fn tell(&self, command: &Command<'_>) {
        let deadline = command.sent.plus(command.allowed);
        let undo = outgoing(command, Ticket::UNAWAITED, deadline);
        let (mut wake, mut sent) = (false, false);
        for (index, node) in self.shared.nodes.iter().enumerate() {
            if command.to.has(index) {
                let became = node.link(command.affinity).send(&undo);
                wake |= became == Sent::Queued;
                sent |= matches!(became, Sent::Queued | Sent::Written);
            }
        }
        // Without an answer the node is suspect, and in the end its connection is ended.
        wake |= sent && self.shared.driver.timer.is_late_for(deadline);
        self.shared.hand_driver_on(wake);
    }
}

fn outgoing<'a>(command: &Command<'a>, ticket: Ticket, deadline: Moment) -> Outgoing<'a> {
    Outgoing {
        entry: Entry { ticket, kind: command.kind, sent: command.sent, deadline },
        bytes: command.bytes,
        undo: command.undo,
        urgency: command.urgency,
    }
}

/// How many nodes did what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Found {
    pub(crate) granted: usize,
    pub(crate) held: usize,
    pub(crate) gone: usize,
    pub(crate) not_asked: usize,
    /// Nodes that have not told, whatever they did.
    pub(crate) unknown: usize,
}

/// An operation on its way: the right to its slot. Dropping it gives the slot back; replies that
/// are still to come are consumed and ignored.
pub(crate) struct Election {
    set: Arc<NodeSet>,
    ticket: Ticket,
    /// The driver was woken from here, and may wait for this thread to be given back.
    wakened: Option<Wakened>,
}

impl Election {
    /// Waits for the verdict. An operation that is decided already still spends of the task's
    /// budget: a loop that never has to wait must give its worker back now and then. And the driver
    /// that it has woken must not wait for that.
    pub(crate) fn poll_verdict(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let verdict = ready!(self.set.shared.slots.poll_verdict(self.ticket, cx));
        budget.made_progress();
        self.set.shared.hand_on_if_waiting(self.wakened);
        Poll::Ready(verdict)
    }

    /// The nodes on which the command was applied, or may have been, or may yet be.
    pub(crate) fn touched(&self) -> NodeMask {
        let votes = self.set.shared.slots.votes(self.ticket);
        NodeMask::first(self.set.len()).except(votes.by(Vote::Refused))
    }

    /// What each node has done by now, in their order.
    pub(crate) fn votes(&self) -> impl Iterator<Item = (usize, NodeVote)> + '_ {
        let details = self.set.shared.slots.details(self.ticket);
        details.map(|(vote, _)| vote).enumerate()
    }

    /// The nodes that have not answered by now, and those whose answer is lost, says nothing, or
    /// says that the lock was granted without its fence. One look at the votes tells both: every
    /// release asks for them.
    pub(crate) fn untold(&self) -> (NodeMask, NodeMask) {
        let votes = self.set.shared.slots.votes(self.ticket);
        let lost = votes.by(Vote::Unknown);
        let told = votes.by(Vote::Granted).or(votes.by(Vote::Refused));
        (NodeMask::first(self.set.len()).except(told.or(lost)), lost)
    }

    /// The nodes that have granted by now.
    pub(crate) fn granted(&self) -> NodeMask {
        self.set.shared.slots.votes(self.ticket).by(Vote::Granted)
    }

    /// The nodes that have granted the lock by now, and whose fence has not risen.
    pub(crate) fn unfenced(&self) -> NodeMask {
        let unfenced = self.votes().filter(|(_, vote)| *vote == NodeVote::Unfenced);
        unfenced.fold(NodeMask::NONE, |mask, (node, _)| mask.with(node))
    }

    /// A node has answered, says a model.
    #[cfg(all(test, quorlock_models))]
    pub(crate) fn cast(&self, node: usize, vote: NodeVote) {
        self.set.shared.slots.cast(self.ticket, node, vote, 0);
    }

    /// Whether every node has voted.
    pub(crate) fn is_complete(&self) -> bool {
        let slots = &self.set.shared.slots;
        slots.votes(self.ticket).cast() >= u32::from(slots.rule(self.ticket).voters)
    }

    /// The frame that a node answered to a command of [`ReplyKind::Any`].
    pub(crate) fn take_frame(&self, node: usize) -> Option<Frame> {
        self.set.shared.slots.take(self.ticket, node)
    }

    /// What one node did.
    pub(crate) fn outcome(&self, node: usize) -> (Outcome, Option<Duration>) {
        let slots = &self.set.shared.slots;
        let (vote, rtt) = slots.detail(self.ticket, node);
        let error = || match slots.peek(self.ticket, node) {
            Some(frame) => printable(frame.as_error().unwrap_or_default()),
            None => "".into(),
        };
        let outcome = match vote {
            NodeVote::None => Outcome::Pending,
            NodeVote::Granted | NodeVote::Unfenced => Outcome::Granted,
            NodeVote::Held => Outcome::Held,
            NodeVote::Gone => Outcome::Gone,
            NodeVote::Revoked => Outcome::Revoked,
            NodeVote::Silent => Outcome::Silent { after: self.allowed() },
            NodeVote::Disconnected => Outcome::Disconnected,
            NodeVote::Refused => Outcome::Refused { error: error() },
            NodeVote::Failed => Outcome::Failed { error: error() },
            NodeVote::Down => {
                let fault = self.set.shared.nodes.get(node).map(Node::reason);
                Outcome::Down { fault: fault.unwrap_or(Fault::Connecting { step: None }) }
            }
            NodeVote::Suspect => Outcome::Suspect,
            NodeVote::Full => Outcome::Full,
            NodeVote::NotAsked => Outcome::NotAsked,
            NodeVote::Quarantined => {
                Outcome::Quarantined { remaining: self.time_of_refusal(node).unwrap_or_default() }
            }
            NodeVote::DurabilityMismatch => {
                Outcome::DurabilityMismatch { longest_ttl: self.time_of_refusal(node) }
            }
        };
        let answered = !matches!(
            vote,
            NodeVote::None
                | NodeVote::Silent
                | NodeVote::Disconnected
                | NodeVote::Down
                | NodeVote::Suspect
                | NodeVote::Full
                | NodeVote::NotAsked
        );
        (outcome, answered.then_some(rtt))
    }

    /// Whether a node refused because it does not know the command's script.
    pub(crate) fn lacks_script(&self, node: usize) -> bool {
        let error = self.set.shared.slots.peek(self.ticket, node);
        let error = error.as_ref().and_then(Frame::as_error);
        error.is_some_and(|text| ServerError::new(text).lacks_script())
    }

    fn time_of_refusal(&self, node: usize) -> Option<Duration> {
        time_of_refusal(&self.set.shared.slots.peek(self.ticket, node)?)
    }

    /// The time that a node has told beside what it did.
    pub(crate) fn time(&self, node: usize) -> Option<Duration> {
        time_beside(&self.set.shared.slots.peek(self.ticket, node)?)
    }

    /// The two numbers that a node has answered.
    pub(crate) fn words(&self, node: usize) -> Option<(i64, i64)> {
        let reply = self.set.shared.slots.peek(self.ticket, node)?;
        let number = |at: usize| reply.as_items().ok()?.get(at)?.as_integer().ok();
        Some((number(0)?, number(1)?))
    }

    /// All numbers that a node has answered, if it has answered nothing else.
    pub(crate) fn numbers(&self, node: usize) -> Option<Vec<i64>> {
        let reply = self.set.shared.slots.peek(self.ticket, node)?;
        reply.as_items().ok()?.iter().map(|item| item.as_integer().ok()).collect()
    }

    /// Where the fence stands that has not risen on a node.
    pub(crate) fn fence(&self, node: usize) -> Option<u64> {
        fence_of(&self.set.shared.slots.peek(self.ticket, node)?)
    }

    /// Which of the command's keys another holds on a node, counted from 0, where the node's vote
    /// is `Held` and the command is about several keys.
    pub(crate) fn key_in_the_way(&self, node: usize) -> Option<usize> {
        let slots = &self.set.shared.slots;
        let is_held = slots.detail(self.ticket, node).0 == NodeVote::Held;
        is_held.then(|| slots.peek(self.ticket, node)).flatten().as_ref().and_then(key_in_the_way)
    }

    /// How many nodes did what, without the words of [`Election::report`]. Of the `unsure` ones it
    /// means nothing that the key is gone, or another's by now.
    pub(crate) fn found(&self, unsure: NodeMask) -> Found {
        let mut found = Found::default();
        for (node, vote) in self.votes() {
            match vote {
                NodeVote::Granted | NodeVote::Unfenced => found.granted += 1,
                NodeVote::Held | NodeVote::Gone if unsure.has(node) => found.unknown += 1,
                NodeVote::Held => found.held += 1,
                NodeVote::Gone => found.gone += 1,
                NodeVote::NotAsked => found.not_asked += 1,
                _ => found.unknown += 1,
            }
        }
        found
    }

    /// What each node did, in their order.
    pub(crate) fn report(&self) -> Vec<NodeReport> {
        let nodes = self.set.shared.nodes.iter().enumerate();
        nodes
            .map(|(index, node)| {
                let (outcome, rtt) = self.outcome(index);
                NodeReport { node: node.label(), outcome, rtt }
            })
            .collect()
    }

    /// How long the nodes may take to answer.
    pub(crate) fn allowed(&self) -> Duration {
        self.set.shared.slots.allowed(self.ticket)
    }

    /// How many grants it takes.
    pub(crate) fn needed(&self) -> usize {
        self.set.shared.slots.rule(self.ticket).needed.into()
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        let shared = &self.set.shared;
        if !shared.slots.votes(self.ticket).is_decided() {
            // It is given up, perhaps by a thread that will not let the driver run for long: what
            // it queued, a release for one, must not wait for that.
            let links = shared.nodes.iter().flat_map(|node| node.links());
            shared.hand_driver_on(links.fold(false, |left, link| left | link.nudge()));
        } else {
            shared.hand_on_if_waiting(self.wakened);
        }
        shared.slots.release(self.ticket);
    }
}
