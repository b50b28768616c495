//! The lockers of a machine: the library as it is, on the world's clocks and network.

use std::sync::Arc;

use super::plan::CONNECT_TIMEOUT;
use super::port::Port;
use super::task::ms;
use super::world::Hub;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::{Durability, Locker};

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
        .local_handover(ms(plan.local_handover))
        .fenced(plan.fenced)
        .owner(owner(machine, number))
        .ttl(ms(plan.ttls[0]))
        .durability(durability)
        .connections_per_node(plan.connections)
        .connect_timeout(ms(CONNECT_TIMEOUT))
        .reply_age_max(ms(1_000))
        .build_on(clock.clone(), Entropy::from_seed(seed), Arc::new(Port::of(hub, machine)))
        .unwrap()
}
