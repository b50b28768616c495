//! One extension of a held lock, sent to every node, and what the answers do to its lease.
//!
//! A node that holds the key lets it live on. One that does not says so, and is given the key again
//! if a majority has just confirmed that it holds it: the lock is ours without that node, so it can
//! only grow stronger. Nothing else ever makes a key, so a lock that is gone stays gone.
//!
//! Where servers may forget, a node that does not vote (see [`durability`](super::durability)) is
//! healed and extended all the same, by the same commands, and counts. Its quarantine guards what
//! it may have granted to *others*. While a majority Q confirms our value, no other client's lease
//! on the key can hold: it would need a majority, of which some node is in Q, and that node let go
//! of the other's key, or sat out a quarantine after forgetting it, before it took ours; the nodes
//! outside Q are too few by themselves. So nothing that the healed node can have forgotten about
//! this key is still worth anything, and from now on it knows what matters. Should Q's leases end
//! before the key arrives, the healed node alone makes no majority. A key that a node brought back
//! from a snapshot is ours by its value, which no other attempt has; if its life is shorter than
//! was promised, the quarantine lasts at least as long as the promise.

use std::task::{Context, Poll};
use std::time::Duration;

use super::claim::Ownership;
use super::command::Encoded;
use super::context::LeaseContext;
use super::primitive::{Acquire, ScriptForm};
use super::validity::{self, Validity};
use crate::clock::Stamp;
use crate::error::Error;
use crate::link::ReplyKind;
use crate::node_vote::NodeVote;
use crate::quorum::{Command, Election, NodeMask, Verdict};
use crate::report::NodeReport;

/// An extension on its way.
pub(crate) struct Extension {
    election: Election,
    kind: Kind,
    /// The clocks, read before it was sent.
    sent: Stamp,
    ttl: Duration,
    /// Nodes that the whole script has been sent to behind this.
    rescripted: NodeMask,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Extend(ScriptForm),
    /// The key is set again where it was missing.
    Heal,
}

impl Extension {
    /// Asks every node to let the key live for `ttl` from now. Nodes that never had it are asked,
    /// too: they may be given it.
    pub(crate) fn send(
        context: &LeaseContext,
        ownership: &Ownership,
        ttl: Duration,
    ) -> Result<Self, Error> {
        Self::extend(context, ownership, ttl, ScriptForm::Digest, NodeMask::ALL)
    }

    fn extend(
        context: &LeaseContext,
        ownership: &Ownership,
        ttl: Duration,
        form: ScriptForm,
        to: NodeMask,
    ) -> Result<Self, Error> {
        let sent = context.nodes.clock().stamp();
        let election = ownership.subject(context).with_extend(form, ttl, |encoded| {
            ask(context, ownership, ttl, ReplyKind::Script, encoded, to)
        })?;
        Ok(Self { election, kind: Kind::Extend(form), sent, ttl, rescripted: NodeMask::NONE })
    }

    pub(crate) fn poll_verdict(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        self.election.poll_verdict(cx)
    }

    /// Whether every node has said what it had to say.
    pub(crate) fn is_complete(&self) -> bool {
        self.election.is_complete()
    }

    /// Enters what the nodes have answered by now; to be called again when more have.
    pub(crate) fn apply(&self, validity: &mut Validity, context: &LeaseContext) {
        let (end, warning) = (self.end(context), validity.warning());
        for (node, vote) in self.election.votes() {
            match (vote, self.kind) {
                (NodeVote::Granted, _) => validity.grant([node], self.sent, end),
                (NodeVote::Gone | NodeVote::Held, Kind::Extend(_)) => {
                    validity.lose(node, self.sent)
                }
                _ => {}
            }
        }
        // The margin is a share of the TTL that the lock has, not of one that it was not given.
        if validity.end().reaches(end) {
            validity.set_margin(context.margin(self.ttl), warning);
        }
    }

    /// Sends the whole script to nodes that have forgotten it, and with them to those that have not
    /// answered yet: they may have forgotten it as well.
    pub(crate) fn rescript(
        &mut self,
        context: &LeaseContext,
        ownership: &Ownership,
    ) -> Option<Self> {
        if self.kind != Kind::Extend(ScriptForm::Digest) {
            return None;
        }
        let known = self.rescripted;
        let forgot = self.nodes(|node, vote| {
            vote == NodeVote::Refused && !known.has(node) && self.election.lacks_script(node)
        });
        if forgot.is_empty() {
            return None;
        }
        let silent = self.nodes(|node, vote| vote == NodeVote::None && !known.has(node));
        let to = forgot.or(silent);
        self.rescripted = known.or(to);
        // Without a runtime nothing can be sent; the keeper's next extension asks again.
        Self::extend(context, ownership, self.ttl, ScriptForm::Whole, to).ok()
    }

    /// Sets the key again on nodes that have lost it, if a majority has just confirmed it. Of a
    /// lock that was taken over, those count as well that hold another value: an adoption beside
    /// ours may have put the former one back there, behind what we deleted. While it is being taken
    /// over nothing is set: an adoption that fails leaves the nodes as they were.
    pub(crate) fn heal(&self, context: &LeaseContext, ownership: &mut Ownership) -> Option<Self> {
        let Kind::Extend(_) = self.kind else { return None };
        let holders = self.election.votes().filter(|(_, vote)| *vote == NodeVote::Granted).count();
        if holders < context.nodes.majority() || !ownership.is_owned() {
            return None;
        }
        let others = self.nodes(|_, vote| vote == NodeVote::Held);
        let mut empty = self.nodes(|_, vote| vote == NodeVote::Gone);
        if ownership.settle(context, others) {
            empty = empty.or(others);
        }
        if empty.is_empty() {
            return None;
        }
        ownership.touch(empty);
        let sent = context.nodes.clock().stamp();
        let subject = ownership.subject(context);
        let ask =
            |kind, encoded: Encoded<'_>| ask(context, ownership, self.ttl, kind, encoded, empty);
        let asked = match &ownership.primitive.acquire {
            Acquire::SetIfAbsent => {
                subject.with_set(self.ttl, |encoded| ask(ReplyKind::Status, encoded))
            }
            // Seldom sent, and so whole.
            Acquire::Script(script) => {
                let call = (script, ScriptForm::Whole);
                subject.with_script(call, self.ttl, None, |encoded| ask(ReplyKind::Keys, encoded))
            }
        };
        let (election, ttl) = (asked.ok()?, self.ttl); // as for the script
        Some(Self { election, kind: Kind::Heal, sent, ttl, rescripted: NodeMask::NONE })
    }

    fn nodes(&self, are: impl Fn(usize, NodeVote) -> bool) -> NodeMask {
        let chosen = self.election.votes().filter(|(node, vote)| are(*node, *vote));
        chosen.fold(NodeMask::NONE, |mask, (node, _)| mask.and(node))
    }

    /// How long the nodes may take to answer.
    pub(crate) fn allowed(&self) -> Duration {
        self.election.allowed()
    }

    /// Until when the lock is held if a majority grants this.
    pub(crate) fn end(&self, context: &LeaseContext) -> Stamp {
        validity::end(self.sent, self.ttl, context.options.drift)
    }

    #[cfg(all(test, quorlock_models))]
    pub(crate) fn election(&self) -> &Election {
        &self.election
    }

    pub(crate) fn report(&self) -> Vec<NodeReport> {
        self.election.report()
    }
}

fn ask(
    context: &LeaseContext,
    ownership: &Ownership,
    ttl: Duration,
    kind: ReplyKind,
    Encoded { bytes, undo }: Encoded<'_>,
    to: NodeMask,
) -> Result<Election, Error> {
    let command = context.command(bytes, kind, ownership.resource.affinity(), ttl);
    context.nodes.ask(&Command { undo, to, ..command }, context.nodes.rule_for(to))
}
