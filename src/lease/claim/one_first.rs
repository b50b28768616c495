//! A claim for which one node is asked before the others.

use std::sync::Arc;
use std::time::Duration;

use super::super::command::{Encoded, NO_PLACE};
use super::super::context::LeaseContext;
use super::super::resource::Resource;
use super::{Claim, State};
use crate::clock::Moment;
use crate::error::Error;
use crate::node_vote::NodeVote;
use crate::quorum::{Command, Election, NodeMask, NodeSet, Patience};

impl Claim {
    /// Asks this node alone for the key.
    pub(in crate::lease) fn ask_one(
        context: &Arc<LeaseContext>,
        resource: Resource,
        (ttl, node): (Duration, usize),
        now: Moment,
    ) -> Result<Self, Error> {
        let (volatile, state) = (context.volatile.as_ref(), State::OneAsked);
        let mut claim = Self::send(context, resource, (ttl, state), None, |subject, _| {
            let form = context.script_form(subject.resource.primitive);
            subject.with_acquire(form, ttl, volatile, |encoded: Encoded<'_>| {
                let command = context.command(encoded, subject.resource.affinity(), ttl, now);
                context
                    .nodes
                    .ask(&Command { to: NodeMask::only(node), ..command }, NodeSet::rule_of_one())
            })
        })?;
        claim.touch(NodeMask::only(node));
        Ok(claim)
    }

    /// The one node that was asked has nothing of it.
    pub(in crate::lease) fn note_refused(&mut self) {
        if self.state == State::OneAsked {
            self.state = State::Released;
        }
    }

    /// Asks all but this node, which has granted the key, and counts from when it was asked.
    pub(in crate::lease) fn ask_others(&mut self, node: usize, now: Moment) -> Result<(), Error> {
        let others = NodeMask::ALL.without(node);
        self.election = self.ask_rest(NO_PLACE, others, NodeMask::only(node), now)?;
        self.state = State::Owned;
        Ok(())
    }

    /// Asks these nodes for the key, with this place, where those others have granted it.
    pub(super) fn ask_rest(
        &self,
        place: u64,
        to: NodeMask,
        granted: NodeMask,
        now: Moment,
    ) -> Result<Election, Error> {
        let (context, ttl) = (&self.context, self.ttl());
        let (form, volatile) =
            (context.script_form(self.resource.primitive), context.volatile.as_ref());
        self.subject().with_acquire_at(place, form, ttl, volatile, |encoded: Encoded<'_>| {
            let command = context.command(encoded, self.resource.affinity(), ttl, now);
            let rule = context.nodes.rule(Patience::Early);
            context.nodes.ask_rest(&Command { to, ..command }, granted, rule)
        })
    }

    /// A node on which another holds the key, or one of them.
    pub(in crate::lease) fn refusing_node(&self) -> Option<usize> {
        self.election.votes().find(|(_, vote)| *vote == NodeVote::Held).map(|(node, _)| node)
    }

    /// Whether another holds the key, or one of them, on this node.
    pub(in crate::lease) fn is_held_on(&self, node: usize) -> bool {
        self.election.votes().any(|(of, vote)| of == node && vote == NodeVote::Held)
    }
}
