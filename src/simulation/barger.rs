//! A client of another library. It takes a lock by `SET NX PX` on each node and deletes it where it
//! stands; it knows of no queue, hears nothing, and now and then ends without a word.
//!
//! Its commands reach a node at once, but one node after another: between two of them anything may
//! happen. Where it is known when a lock must be had, they reach all nodes at the same instant.

use std::sync::Arc;
use std::time::Duration;

use super::chance::{self, Chance};
use super::counts::Action;
use super::plan::Waits;
use super::slots::slot_key;
use super::world::Hub;

pub(super) struct Barger {
    hub: Arc<Hub>,
    number: u64,
    chance: Chance,
    latency: u64,
    /// All nodes are asked at the same instant.
    is_whole: bool,
    nodes: usize,
}

impl Barger {
    pub(super) fn new(hub: &Arc<Hub>, number: u64) -> Self {
        let plan = hub.with(|world| world.plan.clone());
        let chance = Chance::new(plan.seed, chance::BARGERS + number);
        let is_whole = plan.waits == Waits::Alone;
        Self {
            hub: hub.clone(),
            number,
            chance,
            latency: plan.latency,
            is_whole,
            nodes: plan.nodes,
        }
    }

    /// Takes locks until all is over.
    pub(super) async fn run(mut self) {
        let plan = self.hub.with(|world| world.plan.clone());
        for count in 0_u64.. {
            // Where one waits alone, the lock is free for a moment only.
            let pause = self.chance.between(1, if self.is_whole { 20 } else { 300 });
            self.hub.sleep(pause).await;
            if self.hub.with(|world| world.is_over) {
                return;
            }
            let key = format!("k{}", self.chance.below(plan.keys));
            let key = match plan.slots {
                slots if slots > 0 && self.chance.percent(30) => {
                    slot_key(&key, self.chance.below(slots.into()) as u16)
                }
                _ => key,
            };
            let ttl = self.chance.pick(&plan.ttls);
            let value = format!("another-{}-{count}", self.number);
            if self.is_whole && !self.is_left_alone(&key) {
                continue;
            }
            let from = self.hub.now();
            let granted = self.take(&key, &value, ttl).await;
            let is_held = granted > self.nodes / 2;
            let is_left = is_held && self.chance.percent(25);
            if is_held {
                // What may be ahead of its clock, and what a clock may be ahead of it.
                let until = from + ttl - ttl / 100 - 2;
                self.hold((&key, &value), ttl, until).await;
            }
            if is_left {
                self.hub.with(|world| world.count(Action::BargedAndLeft));
            } else {
                self.delete(&key, &value).await;
            }
        }
    }

    /// Whether the lock is free, and waited for by none: it is not taken from one that was just
    /// about to ask for it.
    fn is_left_alone(&self, key: &str) -> bool {
        self.hub.with(|world| world.values(key).is_empty() && !world.waiters.are_waiting_for(key))
    }

    /// Sets the lock on each node on which there is none. On how many it did.
    async fn take(&mut self, key: &str, value: &str, ttl: u64) -> usize {
        let ttl = ttl.to_string();
        let words = ["SET", key, value, "NX", "PX", &ttl].map(str::as_bytes);
        let mut granted = 0;
        for node in 0..self.nodes {
            let done = self.hub.with(|world| world.execute_foreign(node, &words));
            granted += usize::from(done == Some(true));
            self.pause().await;
        }
        self.hub.with(|world| {
            world.tell(format_args!("another client takes {key}: {granted}, ttl {ttl}"));
        });
        granted
    }

    /// Works with the lock, which is its own until then.
    async fn hold(&mut self, (key, value): (&str, &str), ttl: u64, until: u64) {
        let clock = self.hub.clock();
        let end = Duration::from_millis(until);
        let left = Box::new(move || {
            let now = Duration::from_nanos(clock.now().as_nanos());
            end.checked_sub(now).filter(|left| !left.is_zero())
        });
        let number = self.hub.with(|world| {
            let now = world.nanos();
            let number = world.oracle.acquire_foreign(now, (key, value), left);
            world.count(Action::Barged);
            world.waiters.served(key);
            world.look();
            number
        });
        let mut work = self.chance.between(0, ttl);
        if self.chance.percent(50) {
            self.wait_for_waiter(key, until).await;
            // About as long as it takes to begin to wait.
            work = self.chance.between(0, 10 * self.latency + 10);
        }
        self.hub.sleep(work / 2).await;
        if self.chance.percent(35) {
            self.lengthen(key, value, ttl).await;
        }
        self.hub.sleep(work - work / 2).await;
        self.hub.with(|world| world.oracle.end(world.nanos(), number));
    }

    /// Waits until one waits for this lock, but not behind `until`.
    async fn wait_for_waiter(&self, key: &str, until: u64) {
        while self.hub.now() < until && !self.hub.with(|world| world.waiters.are_waiting_for(key)) {
            self.hub.sleep(1).await;
        }
    }

    /// Has the lock live longer where it stands. It does not count on that.
    async fn lengthen(&mut self, key: &str, value: &str, ttl: u64) {
        let words = ["PEXPIRE", key, &ttl.to_string()];
        self.where_it_stands(key, value, &words.map(str::as_bytes)).await;
    }

    async fn delete(&mut self, key: &str, value: &str) {
        self.hub.with(|world| world.tell(format_args!("another client lets go of {key}")));
        self.where_it_stands(key, value, &["DEL", key].map(str::as_bytes)).await;
    }

    /// Says this to each node that has its value, as by a script.
    async fn where_it_stands(&mut self, key: &str, value: &str, words: &[&[u8]]) {
        for node in 0..self.nodes {
            self.hub.with(|world| {
                if world.values(key).get(&node).is_some_and(|there| there == value) {
                    world.execute_foreign(node, words);
                }
            });
            self.pause().await;
        }
    }

    async fn pause(&mut self) {
        let pause = self.chance.between(0, self.latency);
        if pause > 0 && !self.is_whole {
            self.hub.sleep(pause).await;
        }
    }
}
