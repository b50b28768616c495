//! A client: a machine with a locker, and the tasks that use it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::chance::{self, Chance};
use super::machine::Machine;
use super::plan::CONNECT_TIMEOUT;
use super::port::Port;
use super::steward::Steward;
use super::worker::Worker;
use super::world::Hub;
use crate::clock::{Clock, Driven, Turn};
use crate::entropy::Entropy;
use crate::{Durability, Locker};

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Starts a client in this place, with its workers.
pub(super) fn start(hub: &Arc<Hub>, place: usize) {
    if hub.with(|world| world.is_over) {
        return;
    }
    let (machine, _, clock) = set_up(hub, place);
    let (workers, seed) = hub.with(|world| (world.plan.workers, world.plan.seed));
    for worker in 0..workers {
        let number = (machine * 8 + worker) as u64;
        let chance = Chance::new(seed, chance::WORKERS + number);
        let worker = Worker { hub: hub.clone(), machine, number, chance };
        begin(hub, machine, &clock, worker.run());
    }
    if hub.with(|world| world.plan.actors.shutdown_pause) > 0 {
        let chance = Chance::new(seed, chance::STEWARDS + machine as u64);
        let steward = Steward { hub: hub.clone(), machine, chance };
        #[expect(clippy::disallowed_methods, reason = "the user's own tasks")]
        tokio::spawn(clock.accompany(steward.run()));
    }
}

/// Begins a task of a machine's that must come to its end.
pub(super) fn begin(
    hub: &Arc<Hub>,
    machine: usize,
    clock: &Clock,
    task: impl Future<Output = ()> + Send + 'static,
) {
    hub.with(|world| world.machines[machine].begin_work());
    let hub = hub.clone();
    #[expect(clippy::disallowed_methods, reason = "the user's own tasks")]
    tokio::spawn(clock.accompany(async move {
        task.await;
        hub.with(|world| world.machines[machine].end_work());
    }));
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

/// The owner's name of a machine's locker: none has that of another one.
pub(super) fn owner(machine: usize, number: u64) -> String {
    format!("m{machine}.{number}")
}

/// What the plan's servers are like.
pub(super) fn durability(hub: &Hub) -> Durability {
    match hub.with(|world| world.plan.longest_ttl) {
        Some(longest) => Durability::Volatile { longest_ttl: ms(longest) },
        None => Durability::Persistent,
    }
}

/// Builds a machine's locker of this number.
pub(super) fn build(
    hub: &Arc<Hub>,
    machine: usize,
    clock: &Clock,
    number: u64,
    durability: Durability,
) -> Locker {
    let plan = hub.with(|world| world.plan.clone());
    let builder = Locker::quorum((0..plan.nodes).map(|node| format!("redis://n{node}")));
    let builder = match plan.node_timeout {
        Some(deadline) => builder.unwrap().node_timeout(ms(deadline)),
        None => builder.unwrap(),
    };
    let seed = plan.seed ^ (machine as u64) << 40 ^ number << 32;
    builder
        .owner(owner(machine, number))
        .ttl(ms(plan.ttls[0]))
        .durability(durability)
        .connections_per_node(plan.connections)
        .connect_timeout(ms(CONNECT_TIMEOUT))
        .reply_age_max(ms(1_000))
        .build_on(clock.clone(), Entropy::from_seed(seed), Arc::new(Port::of(hub, machine)))
        .unwrap()
}

/// Polls a future so many times at most, and for so long; `None`: it was dropped before its end.
/// `None` for the polls, or for the patience, is without such a bound.
pub(super) async fn cut<T: Future>(
    hub: &Hub,
    (mut polls, patience): (Option<u64>, Option<u64>),
    task: T,
) -> Option<T::Output> {
    let mut task = pin!(task);
    let mut bored = pin!(hub.sleep(patience.unwrap_or(1_000_000)));
    poll_fn(|cx| {
        if polls == Some(0) || bored.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        polls = polls.map(|polls| polls - 1);
        task.as_mut().poll(cx).map(Some)
    })
    .await
}
