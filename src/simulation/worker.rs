//! A task that takes locks: its machine, its chance, and what it tells.

use std::sync::Arc;

use super::chance::Chance;
use super::counts::Action;
use super::places::Order;
use super::requests::Request;
use super::world::Hub;
use crate::Locker;

/// A task that takes locks.
pub(super) struct Worker {
    pub(super) hub: Arc<Hub>,
    pub(super) machine: usize,
    /// Its name in the trace.
    pub(super) number: u64,
    /// It takes locks of several keys.
    pub(super) takes_several: bool,
    /// What it has asked for last is some of a key's slots.
    pub(super) asks_for_slots: bool,
    /// The order in which it has asked for its last lock.
    pub(super) order: Order,
    /// The lock-delay of the last one, in milliseconds.
    pub(super) delay: u64,
    /// When it asked for its lock, in nanoseconds of true time.
    pub(super) asked: u64,
    /// So long it goes on asking in any case: later it may have left the queue, and not ended yet.
    pub(super) asks_until: u64,
    pub(super) chance: Chance,
}

/// A future that acquires or adopts with a locker, while there is one.
pub(super) struct Acquiring {
    hub: Arc<Hub>,
    machine: usize,
    locker: u64,
}

impl Acquiring {
    pub(super) fn begin(worker: &Worker, locker: u64) -> Self {
        let (hub, machine) = (worker.hub.clone(), worker.machine);
        hub.with(|world| world.machines[machine].begin_to_acquire(locker));
        Self { hub, machine, locker }
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        self.hub.with(|world| world.machines[self.machine].end_to_acquire(self.locker));
    }
}

/// A request for a lock of one key, until this is dropped.
pub(super) struct Asking {
    hub: Arc<Hub>,
    worker: u64,
}

impl Asking {
    pub(super) fn begin(worker: &Worker, key: &str) -> Self {
        let (hub, number) = (worker.hub.clone(), worker.number);
        let request = Request { machine: worker.machine, key: key.into() };
        hub.with(|world| {
            world.requests.begin(number, request, world.nanos()..worker.asks_until);
        });
        Self { hub, worker: number }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.hub.with(|world| world.requests.end(self.worker, world.nanos()));
    }
}

impl Worker {
    pub(super) fn new(
        hub: &Arc<Hub>,
        (machine, number): (usize, u64),
        takes_several: bool,
        chance: Chance,
    ) -> Self {
        Self {
            hub: hub.clone(),
            machine,
            number,
            takes_several,
            asks_for_slots: false,
            order: Order::None,
            delay: 0,
            asked: 0,
            asks_until: 0,
            chance,
        }
    }

    /// The machine's locker, and its number.
    pub(super) fn locker(&self) -> Option<(Locker, u64)> {
        self.hub.with(|world| world.machines[self.machine].locker())
    }

    /// After how many polls a future is dropped, if it is.
    pub(super) fn cuts(&mut self, polls_max: u64) -> Option<u64> {
        let share = self.hub.with(|world| world.plan.actors.dropped);
        self.chance.percent(share).then(|| self.chance.between(1, polls_max))
    }

    pub(super) fn tell(&self, what: std::fmt::Arguments<'_>) {
        self.hub.with(|world| world.tell(format_args!("w{} {what}", self.number)));
    }

    pub(super) fn count(&self, action: Action) {
        self.hub.with(|world| world.count(action));
    }
}
