//! Asking for slots, and waiting for them in the queue that one node keeps.
//!
//! ```text
//!  ask the queue's node ──chosen──▶ ask the others for the same ──▶ a verdict
//!     ▲      └─ too few ─▶ wait ─┐
//!     └─ some are free, a beat, ◀┘
//!        or the time when there may be enough
//! ```
//!
//! The queue's node (see [`queue_node`](super::queue_node)) sees all slots that are held, and
//! chooses those that are free: so those that ask at once do not meet. It has set them then, and
//! has a vote like any other. Each slot by itself is a lock of one holder, so nothing depends on
//! that node's choice but how long it takes: what it thinks free and the others do not is not won.

use std::sync::Arc;

use super::claim::Picked;
use super::counters::Cause;
use super::leases::Leases;
use super::queue::{ASKS_ALL_EVERY, Ended, Place, Wait, Woken, ask_all, attend};
use super::queue_plan::Plan;
use crate::clock::Moment;
use crate::error::Error;

/// Asks for slots until the queue's node has chosen some, and then the others for those.
pub(super) async fn wait(
    leases: Arc<Leases>,
    mut place: Place,
    mut wait: Wait,
) -> Result<Ended, Error> {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let mut plan = Plan::asked(clock.now());
    // Some have become free since the queue's node was asked.
    let mut is_told = false;
    let chosen = loop {
        // The first question is a try, which takes as long as it takes.
        let until = if plan.has_place { wait.until } else { Moment::LAST };
        let woken = attend(context, place.listening(), &plan, until).await?;
        let now = clock.now();
        match woken {
            Woken::Closed => return Ok(Ended::Over),
            Woken::HandedOver => {
                context.counters.note(Cause::HandedOver);
                is_told = true;
            }
            // The node tells of nothing any more.
            Woken::Changed => is_told = true,
            Woken::Watched => {}
            Woken::ByTime if now >= until => return Ok(Ended::Over),
            Woken::ByTime if plan.is_asked => return Ok(Ended::NoQueue(place.node)),
            Woken::ByTime => {
                if !std::mem::take(&mut plan.has_changed) {
                    context.counters.note(Cause::ByTime);
                }
                let is_beat = plan.note_asked(now);
                place.claim.ask_again(now)?;
                place.beats += u32::from(is_beat);
                if is_beat && plan.is_first && place.beats % ASKS_ALL_EVERY == 0 {
                    return Ok(Ended::Past(place));
                }
            }
            Woken::Answered => match place.claim.picked() {
                Some(Picked::Slots(slots)) => break slots,
                Some(Picked::TooFew { .. }) if wait.is_once => {
                    place.claim.note_refused();
                    return Ok(Ended::Refused);
                }
                Some(Picked::TooFew { is_first, left }) => {
                    let untold = wait.untold.take().filter(|_| place.waiter.is_none());
                    place.waiter.get_or_insert_with(|| context.counters.wait(1));
                    context.note_wait(&place.claim.resource, untold, now);
                    plan.wait(left, true, Some(wait.pause), now);
                    plan.is_first = is_first;
                }
                None if place.claim.lacks_queue_script() && !place.is_repeated => {
                    place.is_repeated = true;
                    place.claim.ask_again(now)?;
                }
                None if place.claim.is_queue_late() && plan.may_be_late() => plan.ask_late(now),
                None if place.claim.is_denied_by_queue() => return Ok(Ended::Denied),
                None => return Ok(Ended::NoQueue(place.node)),
            },
        }
        if is_told && !plan.is_asked {
            // However often: each time another has let go of some.
            (is_told, plan.has_changed, plan.ask) = (false, true, now);
        }
    };
    place.claim.choose(&chosen);
    ask_all(&leases, place.claim, &wait).await
}
