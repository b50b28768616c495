//! A writer's claim that becomes a reader's, under the same value.
//!
//! From the instant at which the nodes are asked the lock is no writer's any more, whatever they
//! answer: others that read may have it from then on. What lets go of a read lock also lets go
//! of a writer's lock with its value, so that one undo is enough on a node whose answer is not
//! known.

use super::super::command::{Encoded, Subject};
use super::super::resource::Resource;
use super::{Claim, State};
use crate::error::Error;
use crate::quorum::Patience;

impl Claim {
    /// Asks every node to make its owner a reader of this resource by the script. This claim is
    /// left then. Fails, and changes nothing, if the lock is not owned any more or there is no
    /// runtime.
    pub(in crate::lease) fn downgrade(
        &mut self,
        resource: Resource,
        script: &'static str,
    ) -> Result<Self, Error> {
        self.check_owned()?;
        let (context, ttl) = (self.context.clone(), self.ttl());
        let (sent, now) = (context.nodes.clock().stamp(), context.nodes.clock().now());
        let subject = Subject { resource: &resource, value: self.value() };
        let election = subject.with_downgrade(script, ttl, |encoded: Encoded<'_>| {
            let command = context.command(encoded, resource.affinity(), ttl, now);
            context.nodes.ask(&command, context.nodes.rule(Patience::Early))
        })?;
        let shared = Self {
            context,
            resource,
            nonce: self.nonce,
            ttl_nanos: self.ttl_nanos,
            sent,
            election,
            state: State::Owned,
            healed: self.touched(),
            aside: None,
            turn: None,
        };
        // Undos that are still owed stay so: they delete this value where it stands as a writer's.
        self.end_left();
        Ok(shared)
    }
}
