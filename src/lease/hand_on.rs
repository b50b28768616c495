//! Handing a held lock on to the next of this process who waits for it, without asking the nodes.
//!
//! The hold itself moves: the nodes see the same value before and after. So it moves only while
//! nothing is under way that could end the one hold and strike the other: every node has answered
//! the acquisition, no extension is on its way, and no one was told the value. And each holder has
//! a fence of its own, which only the nodes can give. Otherwise the lock is released, and the next
//! one's command goes out behind that, as ever.
//!
//! What is handed on has been held for less than the budget, counted from the acquisition from the
//! nodes: so the processes that wait elsewhere have their turn.

use std::time::Duration;

use super::claim::Claim;
use super::context::LeaseContext;
use super::hold::Inherited;
use super::resource::Resource;
use super::turns::Gift;
use crate::clock::Stamp;

/// A held lock on its way from one hold to the next. Dropping it releases it.
struct HandedOn {
    claim: Claim,
    inherited: Inherited,
}

/// Hands the lock on to the next of this process who waits for it. It comes back, to be let go of,
/// where none does or where it may not be handed on.
pub(crate) fn hand_on(mut claim: Claim, inherited: Option<Inherited>) -> Option<Claim> {
    let inherited = inherited.filter(|_| claim.fence().is_none());
    let Some((turn, inherited)) = claim.turn().zip(inherited) else { return Some(claim) };
    let context = claim.context().clone();
    claim.set_turn(None);
    let Err(gift) = context.turns().hand_on(turn, Box::new(HandedOn { claim, inherited })) else {
        // A shutdown either finds it where it lies now, or is found here.
        if context.is_closed() {
            release_untaken(&context);
        }
        return None;
    };
    let mut claim = gift.downcast::<HandedOn>().ok()?.claim;
    claim.set_turn(Some(turn));
    Some(claim)
}

/// Releases all that was handed on and not taken yet, for a locker that is shut down: no guard has
/// it any more, and who is to have it may never look.
pub(super) fn release_untaken(context: &LeaseContext) {
    drop(context.turns().take_gifts());
}

/// What the next hold begins with, if it is what was asked for: the same lock, for the same time.
/// Otherwise it is released here.
pub(super) fn accept(
    gift: Gift,
    resource: &Resource,
    ttl: Duration,
    now: Stamp,
) -> Option<(Claim, Inherited)> {
    let HandedOn { mut claim, inherited } = *gift.downcast::<HandedOn>().ok()?;
    let is_meant = claim.resource.is_same(resource) && claim.ttl() == ttl;
    let is_held = now.is_before(inherited.validity.warning());
    // The same lock may be counted under another class by who asks for it.
    claim.resource.class = resource.class;
    (is_meant && is_held).then_some((claim, inherited))
}
