//! A task that meets others at barriers, and breaks them where there is one node.

use std::sync::Arc;

use super::barriers::Told;
use super::chance::Chance;
use super::counts::Action;
use super::task::{cut, ms};
use super::world::{Hub, World};
use crate::{Barrier, Error, Locker};

/// A new barrier comes into use so often.
const TURN: u64 = 700;

/// How long a round lives where nodes forget nothing: longer than any run.
const LONG: u64 = 120_000;

/// When one that waits for others without an end is dropped, in milliseconds.
const PATIENCE: u64 = 1_500;

/// A barrier that is used, and by which name.
#[derive(Debug)]
struct Meeting {
    key: String,
    parties: usize,
    ttl: u64,
    name: String,
    rounds: u64,
}

pub(super) struct Breaker {
    hub: Arc<Hub>,
    machine: usize,
    number: u64,
    chance: Chance,
}

impl Breaker {
    pub(super) fn new(hub: &Arc<Hub>, (machine, number): (usize, u64), chance: Chance) -> Self {
        Self { hub: hub.clone(), machine, number, chance }
    }

    pub(super) async fn run(mut self) {
        while !self.hub.with(|world| world.is_over) {
            let pause = self.chance.between(1, 150);
            self.hub.sleep(pause).await;
            let locker = self.hub.with(|world| world.machines[self.machine].locker());
            if let Some((locker, _)) = locker {
                self.meet(&locker).await;
            }
        }
    }

    /// Where it goes next: to a barrier of this time or of the one before.
    fn pick(&mut self) -> Meeting {
        let (longest, now) = self.hub.with(|world| (world.plan.longest_ttl, world.now()));
        let turn = (now / TURN).saturating_sub(self.chance.pick(&[0, 0, 1]));
        let parties = 2 + turn as usize % 2;
        Meeting {
            key: format!("barrier-{turn}"),
            parties,
            ttl: longest.unwrap_or(LONG),
            // One more than is needed.
            name: format!("p{}", self.chance.below(parties + 1)),
            // Where the first round may end before the second one, one of them tells nothing of the
            // other.
            rounds: if longest.is_some() { 1 } else { 2 },
        }
    }

    async fn meet(&mut self, locker: &Locker) {
        let met = self.pick();
        let barrier = locker.barrier(&met.key, met.parties).unwrap();
        let mut barrier = barrier.ttl(ms(met.ttl)).unwrap();
        for round in 0..met.rounds {
            if !self.pass(&met, round, &mut barrier).await {
                return;
            }
        }
    }

    /// Whether it has passed this round.
    async fn pass(&mut self, met: &Meeting, round: u64, barrier: &mut Barrier) -> bool {
        let (number, place) = (self.number, format!("{}/{round}", met.key));
        let wait = self.chance.pick(&[None, Some(0), Some(30), Some(200), Some(600)]);
        let (nodes, dropped) = self.hub.with(|world| (world.plan.nodes, world.plan.actors.dropped));
        let wait = wait.filter(|_| nodes == 1);
        let polls = self.chance.percent(dropped).then(|| self.chance.between(1, 12));
        let began = self.hub.with(|world| {
            world.tell(format_args!("breaker {number}: {met:?}, round {round}, waits {wait:?}"));
            world.barriers.arriving(&place, &met.name);
            world.nanos()
        });
        let asked = async {
            match wait {
                Some(wait) => barrier.pass_or_break(&met.name, ms(wait)).await,
                None => barrier.pass(&met.name).await,
            }
        };
        let asked = cut(&self.hub, (polls, Some(PATIENCE)), asked).await;
        self.hub.with(|world| met.judge(world, (number, &place), (began, asked)))
    }
}

impl Meeting {
    /// Judges what it was told, now, of a call that began then. Returns whether it has passed.
    fn judge(
        &self,
        world: &mut World,
        (number, place): (u64, &str),
        (began, asked): (u64, Option<Result<u64, Error>>),
    ) -> bool {
        let passed = match asked {
            None => {
                world.count(Action::BarrierDropped);
                return false;
            }
            Some(Ok(_)) => true,
            Some(Err(error)) if error.is_broken() => false,
            Some(Err(_)) => {
                world.count(Action::BarrierFailed);
                return false;
            }
        };
        let ended = world.nanos();
        world.tell(format_args!("breaker {number} is told: passed is {passed}"));
        world.count(if passed { Action::BarrierPassed } else { Action::BarrierBroken });
        // The nodes' clocks run too fast by 1.2 % at most.
        let lasts = self.ttl * 1_000_000 * 97 / 100;
        let told = Told { began, ended, passed };
        for violation in world.barriers.told(place, (self.parties, lasts), told) {
            world.oracle.violate(violation.kind, violation.what);
        }
        passed
    }
}
