//! A client: a machine with a locker, and the tasks that use it.

use std::sync::Arc;

use super::breaker::Breaker;
use super::chance::{self, Chance};
use super::locker::{build, durability};
use super::machine::Machine;
use super::party::Party;
use super::restarter::Restarter;
use super::revoker::Revoker;
use super::task::{begin, ms};
use super::worker::Worker;
use super::world::Hub;
use crate::Locker;
use crate::clock::{Clock, Driven, Turn};

/// The number of a machine's first task that takes locks of several keys.
const FIRST_OF_SEVERAL: usize = 4;

/// Starts a client in this place, with its workers.
pub(super) fn start(hub: &Arc<Hub>, place: usize) {
    if hub.with(|world| world.is_over) {
        return;
    }
    let (machine, _, clock) = set_up(hub, place);
    let (plain, several, seed) =
        hub.with(|world| (world.plan.workers, world.plan.several, world.plan.seed));
    let numbers = (0..plain).chain(FIRST_OF_SEVERAL..FIRST_OF_SEVERAL + several);
    for worker in numbers {
        let number = (machine * 8 + worker) as u64;
        let chance = Chance::new(seed, chance::WORKERS + number);
        let takes_several = worker >= FIRST_OF_SEVERAL;
        let worker = Worker::new(hub, (machine, number), takes_several, chance);
        begin(hub, machine, &clock, worker.run());
    }
    for party in 0..hub.with(|world| world.plan.parties) {
        let number = (machine * 8 + party) as u64;
        let chance = Chance::new(seed, chance::PARTIES + number);
        begin(hub, machine, &clock, Party::new(hub, (machine, number), chance).run());
    }
    for breaker in 0..hub.with(|world| world.plan.breakers) {
        let number = (machine * 8 + breaker) as u64;
        let chance = Chance::new(seed, chance::BREAKERS + number);
        begin(hub, machine, &clock, Breaker::new(hub, (machine, number), chance).run());
    }
    if hub.with(|world| world.plan.revoked) {
        let chance = Chance::new(seed, chance::REVOKERS + machine as u64);
        begin(hub, machine, &clock, Revoker::new(hub, machine, chance).run());
    }
    if hub.with(|world| world.plan.actors.shutdown_pause) > 0 {
        let chance = Chance::new(seed, chance::RESTARTERS + machine as u64);
        let restarter = Restarter { hub: hub.clone(), machine, chance };
        #[expect(clippy::disallowed_methods, reason = "the user's own tasks")]
        tokio::spawn(clock.accompany(restarter.run()));
    }
}

/// A machine with a locker.
pub(super) fn set_up(hub: &Arc<Hub>, place: usize) -> (usize, Locker, Clock) {
    let (clock, driven) = Driven::since(hub.origin);
    let (machine, rate) = hub.with(|world| {
        let rate = -(world.chance.between(0, 3_000) as i64);
        (world.machines.len(), rate)
    });
    driven.run_at(rate);
    let plan = hub.with(|world| world.plan.clone());
    driven.step_wall(plan.machine_ahead(machine) * 1_000_000);
    let mut chance = Chance::new(plan.seed, chance::ORDERS + machine as u64);
    driven.reorder(move || match &plan.actors {
        actors if chance.percent(actors.delayed) => Turn::Late(ms(chance.between(1, 12))),
        actors if chance.percent(actors.reordered) => Turn::Behind,
        _ => Turn::Now,
    });
    let locker = build(hub, machine, &clock, 0, durability(hub));
    hub.with(|world| {
        world.tell(format_args!("m{machine} starts in place {place}, rate {rate}"));
        let (there, clocks) = ((place, world.now()), (clock.clone(), driven));
        world.machines.push(Machine::new(there, rate, clocks, locker.clone()));
    });
    (machine, locker, clock)
}
