//! Those that wait for a lock: that none of them is forgotten, and that those who wait no longer
//! leave no place in a queue behind.
//!
//! They are looked at every now and then, while nodes and the network are without a fault. A lock
//! that stands on no node is free. One that waits since before must have it soon, unless others
//! have it meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::REST;
use super::agenda::Event;
use super::machine::SETTLED;
use super::node::{Node, Queue};
use super::plan::Waits;
use super::slots::{slot_key, slots_of};
use super::value_owners::owner_of;
use super::violation::Kind;
use super::waiters::Waiter;
use super::worker::Worker;
use super::world::{Hub, World};

/// How often all is looked at, and how often one that waits alone.
const PERIOD: u64 = 100;
const PERIOD_ALONE: u64 = 10;

/// How long a lock may be free while others wait, in turn: the first of them may stand still for a
/// pause between two tries, and another one take its turn behind that.
const FREE_MAX: u64 = 2_500;

/// The same where one waits alone, beside the commands' ways: the clocks of a node and a machine
/// come apart by so much in a TTL, and timers have a grain. That is less than a beat.
const FREE_MAX_ALONE: u64 = 60;

/// How much longer it may be where a lock lacked a node, which may be that of its queue. Those that
/// wait there do not wait for its holder, who so hears of none, and whose release wakes none: what
/// the queue grants them the others refuse, and they ask again after a pause of half a second at
/// most (`manual::readers`).
const PAUSE_MAX: u64 = 500;

/// By how much longer than without a dead one that waited may count as living, where a node's clock
/// was set back.
const BEAT: u64 = 1_500;

/// How long a place may be left, beside the commands' ways.
const LEFT_MAX: u64 = 120;

/// A task that waits for a lock, until this is dropped.
pub(super) struct Waiting {
    hub: Arc<Hub>,
    worker: u64,
}

impl Waiting {
    pub(super) fn begin(worker: &Worker, key: &str) -> Self {
        let (hub, machine, worker) = (worker.hub.clone(), worker.machine, worker.number);
        hub.with(|world| {
            let waiter = Waiter { machine, key: key.into(), since: world.now() };
            world.waiters.waiting.insert(worker, waiter);
        });
        Self { hub, worker }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.hub.with(|world| world.waiters.waiting.remove(&self.worker));
    }
}

impl World {
    /// Looks at all that wait, and does so again in a while.
    pub(super) fn look_at_waiters(&mut self) {
        let is_alone = self.plan.waits == Waits::Alone;
        let now = self.now();
        let period = if is_alone { PERIOD_ALONE } else { PERIOD };
        self.agenda.enter(now + period, Event::Look);
        if self.is_calm() {
            self.look_at_locks(now, if is_alone { FREE_MAX_ALONE } else { FREE_MAX });
        }
        if !is_alone {
            self.look_at_queues(now);
        }
    }

    /// Whether all faults are over, and what follows them.
    fn is_calm(&self) -> bool {
        let is_over = |at: u64| self.now() > at + REST + self.waiters.set_back.min(BEAT);
        self.faults == 0 || self.waiters.healed.is_some_and(is_over)
    }

    fn look_at_locks(&mut self, now: u64, longest: u64) {
        let longest = longest + 12 * self.plan.latency;
        for (key, on_nodes) in self.locks() {
            let count = on_nodes.iter().map(|key| self.values(key).len()).max().unwrap_or(0);
            if count > 0 {
                if count < self.nodes.len() {
                    self.waiters.partly.insert(key.clone(), now);
                }
                self.waiters.free.remove(&key);
                continue;
            }
            let since = *self.waiters.free.entry(key.clone()).or_insert(now);
            let lacked = self.waiters.partly.get(&key).is_some_and(|at| at + PAUSE_MAX >= since);
            if now - since <= longest + if lacked { PAUSE_MAX } else { 0 } {
                continue;
            }
            let waiters = self.waiters.waiting.iter();
            let forgotten = waiters.filter(|(_, waiter)| {
                let machine = &self.machines[waiter.machine];
                let is_connected = waiter.since > machine.since + SETTLED;
                is_connected && !machine.is_gone() && waiter.key == *key && waiter.since <= since
            });
            let names: Vec<_> = forgotten.map(|(name, _)| format!("w{name}")).collect();
            if !names.is_empty() {
                let what = format!("{key} is free since {since}, and is waited for by {names:?}");
                self.oracle.violate(Kind::Forgotten, what);
            }
        }
    }

    /// What is waited for, and the keys under which it stands on the nodes. Slots are free when all
    /// of a key are: there are some then for one that wants several.
    fn locks(&self) -> Vec<(String, Vec<String>)> {
        let keys = (0..self.plan.keys).map(|key| format!("k{key}"));
        let both = |key: String| {
            let slots = (0..=self.plan.slots).map(|slot| slot_key(&key, slot)).collect();
            [(slots_of(&key), slots), (key.clone(), vec![key])]
        };
        keys.flat_map(both).collect()
    }

    /// No place may be left where no task waits, and no queue may last forever. A lock that was won
    /// on other nodes, as another took the key on the one with the queue, keeps its place there
    /// until it is let go, which leaves the queue, too.
    fn look_at_queues(&mut self, now: u64) {
        let mut left = BTreeMap::new();
        for (node, queue) in self.queues() {
            if queue.is_endless {
                let what = format!("{} on n{node} has no end", queue.key);
                self.oracle.violate(Kind::PlaceLeft, what);
            }
            for value in queue.values {
                let place = (node, queue.key.clone(), value);
                if !self.is_waiting(owner_of(&place.2)) && !self.keeps_its_place(node, &place.2) {
                    let since = self.waiters.left.get(&place).copied().unwrap_or(now);
                    left.insert(place, since);
                }
            }
        }
        let longest = LEFT_MAX + 6 * self.plan.latency;
        if self.faults == 0 {
            for ((node, queue, value), _) in left.iter().filter(|(_, at)| now - **at > longest) {
                let what = format!("{value} is left in {queue} on n{node}");
                self.oracle.violate(Kind::PlaceLeft, what);
            }
        }
        self.waiters.left = left;
    }

    /// Whether this value keeps its place on a node: it has the lock on another one. One that was
    /// had in strict order keeps it also where it has the lock; and where that has expired and is
    /// not let go of, its place is over, and is taken away by the next that asks.
    fn keeps_its_place(&self, node: usize, value: &str) -> bool {
        let may_be_same = self.places.was_had_in_order(value);
        let standing = || self.nodes[node].standing(self.now());
        if may_be_same
            && self.is_in_hand(value)
            && !standing().iter().any(|(_, standing)| standing == value)
        {
            return true;
        }
        let others = self.nodes.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != node || may_be_same);
        others.any(|(_, other)| other.holds(value, self.now()))
    }

    /// Whether a guard has this value, also one whose lock is lost.
    fn is_in_hand(&self, value: &str) -> bool {
        let mut live = (0..self.machines.len()).flat_map(|machine| self.oracle.live(machine));
        live.any(|held| held == value)
    }

    /// Whether a future acquires with the locker of this owner, as far as is known.
    fn is_waiting(&self, owner: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        let Some((machine, locker)) = owner.strip_prefix('m').and_then(|it| it.split_once('.'))
        else {
            return true;
        };
        let Some((machine, locker)) = number(machine).zip(number(locker)) else { return true };
        let machine = self.machines.get(machine as usize);
        machine.is_none_or(|machine| machine.is_gone() || machine.is_acquiring(locker))
    }

    /// All queues, by their nodes.
    pub(super) fn queues(&self) -> Vec<(usize, Queue)> {
        let now = self.now();
        let of = |(index, node): (usize, &Node)| {
            let queues = node.queues(now).into_iter();
            queues.map(|queue| (index, queue)).collect::<Vec<_>>()
        };
        self.nodes.iter().enumerate().flat_map(of).collect()
    }
}
