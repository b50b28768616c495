//! A claim for which one node is asked before the others.

use super::super::command::Encoded;
use super::{Claim, State};
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::{Command, NodeMask, Patience};

impl Claim {
    /// The one node that was asked has nothing of it.
    pub(in crate::lease) fn note_refused(&mut self) {
        if self.state == State::OneAsked {
            self.state = State::Released;
        }
    }

    /// Asks all but this node, which has granted the key, and counts from when it was asked.
    pub(in crate::lease) fn ask_others(&mut self, node: usize, now: Moment) -> Result<(), Error> {
        let (context, ttl) = (&self.context, self.ttl());
        let (one, others) = (NodeMask::only(node), NodeMask::ALL.without(node));
        let form = context.script_form(self.resource.primitive);
        let volatile = context.volatile.as_ref();
        let election =
            self.subject().with_acquire(form, ttl, volatile, |encoded: Encoded<'_>| {
                let command = context.command(encoded, self.resource.affinity(), ttl, now);
                let rule = context.nodes.rule(Patience::Early);
                context.nodes.ask_rest(&Command { to: others, ..command }, one, rule)
            })?;
        (self.election, self.state) = (election, State::Owned);
        Ok(())
    }
}
