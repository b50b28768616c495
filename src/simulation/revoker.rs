//! A task that asks holders to let go of their locks.

use std::sync::Arc;

use super::chance::Chance;
use super::counts::Action;
use super::slots::slot_key;
use super::task::cut;
use super::world::Hub;

/// One that waits for an answer is dropped after so many milliseconds.
const PATIENCE: u64 = 4_000;

pub(super) struct Revoker {
    hub: Arc<Hub>,
    machine: usize,
    chance: Chance,
}

impl Revoker {
    pub(super) fn new(hub: &Arc<Hub>, machine: usize, chance: Chance) -> Self {
        Self { hub: hub.clone(), machine, chance }
    }

    pub(super) async fn run(mut self) {
        while !self.hub.with(|world| world.is_over) {
            let pause = self.chance.between(1, 600);
            self.hub.sleep(pause).await;
            self.revoke().await;
        }
    }

    async fn revoke(&mut self) {
        let (machine, hub) = (self.machine, self.hub.clone());
        let Some((locker, _)) = hub.with(|world| world.machines[machine].locker()) else { return };
        let (keys, slots, dropped) =
            hub.with(|world| (world.plan.keys, world.plan.slots, world.plan.actors.dropped));
        let whole = format!("k{}", self.chance.below(keys));
        let is_slot = slots > 0 && self.chance.percent(50);
        let slot = is_slot.then(|| self.chance.below(slots.into()) as u16);
        let key = slot.map_or_else(|| whole.clone(), |slot| slot_key(&whole, slot));
        let asking = async {
            match slot {
                Some(slot) => locker.slots(&whole, slots).revoke(slot).await,
                None => locker.revoke(&whole).await,
            }
        };
        let polls = self.chance.percent(dropped).then(|| self.chance.between(1, 20));
        let began = hub.with(|world| {
            world.tell(format_args!("{key} is revoked by {machine}"));
            world.nanos()
        });
        let asked = cut(&hub, (polls, Some(PATIENCE)), asking).await;
        hub.with(|world| {
            let told = asked.as_ref().map(|asked| asked.as_ref().map_err(ToString::to_string));
            world.tell(format_args!("{key} is revoked: {told:?}"));
            match asked {
                None => world.count(Action::RevocationDropped),
                Some(Err(_)) => world.count(Action::RevocationFailed),
                Some(Ok(None)) => world.count(Action::RevocationOfNone),
                Some(Ok(Some(revocation))) => {
                    world.count(Action::Revoked);
                    // The nodes' clocks run too slow by 1.2 % at most.
                    let lasts = revocation.over_in.as_nanos() as u64 / 100 * 103;
                    let now = world.nanos();
                    world.oracle.revoked(now, &key, began, now + lasts);
                }
            }
        });
    }
}
