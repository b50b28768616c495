//! Handing a held lock on to the next of this process who waits for it, without asking the nodes.
//!
//! The hold itself moves: the nodes see the same value before and after. So it moves only while
//! nothing is under way that could end the one hold and strike the other: every node has answered
//! the acquisition, no extension is on its way, and no one was told the value. Otherwise the lock
//! is released, and the next one's command goes out behind that, as ever.
//!
//! What is handed on has been held for less than the budget, counted from the acquisition from the
//! nodes: so the processes that wait elsewhere have their turn.

use std::time::Duration;

use super::claim::Claim;
use super::hold::Inherited;
use super::key::Resource;
use super::turns::Gift;
use crate::clock::{Moment, Stamp};

/// What a guard leaves that has ended.
pub(crate) struct Parting {
    pub(crate) claim: Claim,
    /// When its lock was acquired.
    pub(crate) began: Moment,
    /// What the next hold goes on with, if the lock may be handed on.
    pub(super) inherited: Option<Inherited>,
}

/// A held lock on its way from one hold to the next. Dropping it releases it.
struct HandedOn {
    claim: Claim,
    inherited: Inherited,
}

impl Parting {
    /// Hands the lock on to the next of this process who waits for it. It comes back, to be let go
    /// of, where none does or where it may not be handed on.
    pub(crate) fn hand_on(self) -> Option<Claim> {
        let Self { mut claim, inherited, .. } = self;
        let Some((turn, inherited)) = claim.turn().zip(inherited) else { return Some(claim) };
        let turns = claim.context().turns().clone();
        claim.set_turn(None);
        let gift = turns.hand_on(turn, Box::new(HandedOn { claim, inherited })).err()?;
        let mut claim = gift.downcast::<HandedOn>().ok()?.claim;
        claim.set_turn(Some(turn));
        Some(claim)
    }
}

/// What the next hold begins with, if it is what was asked for: the same lock, for the same time.
/// Otherwise it is released here.
pub(super) fn accept(
    gift: Gift,
    resource: &Resource,
    ttl: Duration,
    now: Stamp,
) -> Option<(Claim, Inherited)> {
    let HandedOn { claim, inherited } = *gift.downcast::<HandedOn>().ok()?;
    let is_meant = claim.resource.is_same(resource) && claim.ttl() == ttl;
    let is_held = now.is_before(inherited.validity.warning());
    (is_meant && is_held).then_some((claim, inherited))
}
