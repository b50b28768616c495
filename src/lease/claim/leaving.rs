//! Claims that end and let their key stand: to its expiry, to an adopter, or to keep others out.

use std::time::Duration;

use super::super::release::Releasing;
use super::super::token::OwnerToken;
use super::{Claim, State};
use crate::error::Error;
use crate::link::Urgency;

impl Claim {
    /// Leaves the key to its expiry, `left` from now on each node, and gathers what they found.
    /// Fails if the lock is not owned any more. Where it cannot be sent the key keeps its life.
    pub(crate) fn expire(&mut self, left: Duration) -> Result<Releasing, Error> {
        self.check_owned()?;
        let unsure = self.unsure();
        drop(self.leave());
        let election = self.subject().with_expiry(left, |encoded| {
            self.ask_each(&[self.command(encoded, Urgency::Usual, self.touched())])
        })?;
        Ok(Releasing { election, unsure })
    }

    /// Leaves the key of an owned lock to its expiry, or to a later adopter, and withdraws undos
    /// that are still pending. Does nothing to a lock in another state. The token says whether the
    /// lock was left.
    pub(crate) fn leave(&mut self) -> OwnerToken {
        if matches!(self.state, State::Owned) {
            for pair in self.pairs() {
                self.context.nodes.withdraw(self.resource.affinity(), &pair);
            }
            self.end_left();
        }
        self.token()
    }

    /// Keeps others out for the [lock-delay](Resource::lock_delay): the lease has ended by itself.
    pub(in crate::lease) fn delay(&mut self) {
        self.aside.get_or_insert_default().is_delayed = true;
    }

    /// Ends, and lets the key stand.
    pub(super) fn end_left(&mut self) {
        self.state = State::Left;
        self.leave_queue();
        self.pass_turn();
    }

    /// Deletes what is left of a key that was left to its expiry, and turned out to be lost.
    pub(crate) fn let_go_after_all(&mut self) {
        if matches!(self.state, State::Left) {
            self.with_undo(Urgency::Drop, |commands| self.tell(commands));
            self.state = State::Released;
        }
    }
}
