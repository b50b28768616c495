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

use super::claim::Claim;
use super::command::Encoded;
use super::context::LeaseContext;
use super::primitive::ScriptForm;
use super::round::{Kind, Round};
use super::validity::{self, Validity};
use crate::clock::{Stamp, nanoseconds};
use crate::error::Error;
use crate::node_vote::NodeVote;
use crate::quorum::{Command, Election, NodeMask, Verdict};
use crate::report::NodeReport;

/// An extension on its way.
pub(crate) struct Extension {
    election: Election,
    round: Round,
}

impl Extension {
    /// Asks every node to let the keys live for `ttl` from now. Nodes that never had them are
    /// asked, too: they may be given them.
    pub(crate) fn send(
        context: &LeaseContext,
        claim: &Claim,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let kind = Kind::Extend(ScriptForm::Digest);
        Self::of(context, claim, kind, ttl, NodeMask::ALL)
    }

    /// Sends a round to these nodes.
    fn of(
        context: &LeaseContext,
        claim: &Claim,
        kind: Kind,
        ttl: Duration,
        to: NodeMask,
    ) -> Result<Self, Error> {
        let clock = context.nodes.clock();
        let (sent, subject) = (clock.stamp(), claim.subject());
        let ask = |encoded: Encoded<'_>| {
            let command = context.command(encoded, claim.resource.affinity(), ttl, clock.now());
            context.nodes.ask(&Command { to, ..command }, context.nodes.rule_for(to))
        };
        let election = match kind {
            Kind::Extend(form) => subject.with_extend(form, ttl, ask),
            // Seldom sent, and so whole.
            Kind::Heal => subject.with_acquire(ScriptForm::Whole, ttl, None, ask),
        };
        let end = validity::end(sent, nanoseconds(ttl), context.options.drift);
        Ok(Self { election: election?, round: Round::new(kind, sent, ttl, end) })
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
        let margin = context.margin(nanoseconds(self.round.ttl));
        self.round.handle_votes(self.election.votes(), validity, margin);
    }

    /// Sends the whole script to nodes that may have forgotten it.
    pub(crate) fn rescript(&mut self, context: &LeaseContext, claim: &Claim) -> Option<Self> {
        let lacks_script = |node| self.election.lacks_script(node);
        let to = self.round.poll_rescript(self.election.votes(), lacks_script)?;
        // Without a runtime nothing can be sent; the keeper's next extension asks again.
        let kind = Kind::Extend(ScriptForm::Whole);
        Self::of(context, claim, kind, self.round.ttl, to).ok()
    }

    /// Sets the keys again on nodes that have lost them, if a majority has just confirmed them. Of
    /// a lock that was taken over, those count as well that hold another value: an adoption beside
    /// ours may have put the former one back there, behind what we deleted. While it is being taken
    /// over nothing is set: an adoption that fails leaves the nodes as they were.
    pub(crate) fn heal(&self, context: &LeaseContext, claim: &mut Claim) -> Option<Self> {
        let missing = self.round.poll_missing(self.election.votes(), context.nodes.majority());
        let missing = missing.filter(|_| claim.was_owned())?;
        let were_former = claim.settle(missing.others);
        let empty = if were_former { missing.empty.or(missing.others) } else { missing.empty };
        // A question that comes late may take the key back there.
        let empty = empty.except(claim.unanswered());
        if empty.is_empty() {
            return None;
        }
        claim.touch(empty);
        // As for the script.
        Self::of(context, claim, Kind::Heal, self.round.ttl, empty).ok()
    }

    /// How many nodes have said that the lock was revoked.
    pub(super) fn revoked(&self) -> usize {
        self.election.votes().filter(|(_, vote)| *vote == NodeVote::Revoked).count()
    }

    /// How long the nodes may take to answer.
    pub(crate) fn allowed(&self) -> Duration {
        self.election.allowed()
    }

    /// Until when the lock is held if a majority grants this.
    pub(crate) fn end(&self) -> Stamp {
        self.round.end
    }

    #[cfg(all(test, quorlock_models))]
    pub(crate) fn election(&self) -> &Election {
        &self.election
    }

    pub(crate) fn report(&self) -> Vec<NodeReport> {
        self.election.report()
    }
}
