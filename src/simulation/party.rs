//! A task that arrives at latches, looks at them and waits for them.

use std::sync::Arc;

use super::chance::Chance;
use super::counts::Action;
use super::latches::Look;
use super::task::{cut, ms};
use super::world::{Hub, World};
use crate::{Error, Latch, LatchState, Locker};

/// A new latch comes into use so often.
const TURN: u64 = 700;

/// How long a latch lives where nodes forget nothing: longer than any run.
const LONG: u64 = 120_000;

/// One that waits is dropped after so many milliseconds.
const PATIENCE: u64 = 4_000;

/// What is done with a latch. Times are in milliseconds.
#[derive(Debug)]
struct Use {
    key: String,
    parties: usize,
    ttl: u64,
    /// It arrives by this name; without one it only looks.
    name: Option<String>,
    /// It counts down without a name; `name` is what the oracle knows the call by.
    counts: bool,
    /// It waits; one that only looks, for so long.
    wait: Option<u64>,
}

pub(super) struct Party {
    hub: Arc<Hub>,
    machine: usize,
    number: u64,
    chance: Chance,
}

impl Party {
    pub(super) fn new(hub: &Arc<Hub>, (machine, number): (usize, u64), chance: Chance) -> Self {
        Self { hub: hub.clone(), machine, number, chance }
    }

    pub(super) async fn run(mut self) {
        while !self.hub.with(|world| world.is_over) {
            let pause = self.chance.between(1, 150);
            self.hub.sleep(pause).await;
            let locker = self.hub.with(|world| world.machines[self.machine].locker());
            if let Some((locker, _)) = locker {
                self.use_one(&locker).await;
            }
        }
    }

    /// What it does next, with a latch of this time or of the one before.
    fn pick(&mut self) -> Use {
        let (longest, nodes, now) =
            self.hub.with(|world| (world.plan.longest_ttl, world.plan.nodes, world.now()));
        let turn = (now / TURN).saturating_sub(self.chance.pick(&[0, 0, 1]));
        let parties = 1 + turn as usize % 4;
        // One more than is needed.
        let name = self.chance.percent(60).then(|| format!("p{}", self.chance.below(parties + 1)));
        let used = Use {
            key: format!("latch-{turn}"),
            parties,
            ttl: longest.unwrap_or(LONG),
            name,
            counts: false,
            wait: self.chance.pick(&[None, None, Some(50), Some(600)]),
        };
        match nodes == 1 && self.chance.percent(30) {
            // A task makes one call in a millisecond at most.
            true => {
                let name = Some(format!("call {now} of {}", self.number));
                Use { name, counts: true, wait: None, ..used }
            }
            false => used,
        }
    }

    async fn use_one(&mut self, locker: &Locker) {
        let (number, used) = (self.number, self.pick());
        let latch = locker.latch(&used.key, used.parties).unwrap().ttl(ms(used.ttl)).unwrap();
        let began = self.hub.with(|world| {
            let now = world.nanos();
            world.tell(format_args!("party {number}: {used:?}"));
            if let Some(name) = &used.name {
                world.latches.arriving(&used.key, name, now);
            }
            now
        });
        let share = self.hub.with(|world| world.plan.actors.dropped);
        let polls = self.chance.percent(share).then(|| self.chance.between(1, 12));
        let asked = used.ask(&latch);
        match cut(&self.hub, (polls, Some(PATIENCE)), asked).await {
            None => self.hub.with(|world| world.count(Action::LatchDropped)),
            Some(Err(error)) => self.hub.with(|world| used.judge_failure(world, &error)),
            Some(Ok(state)) => self.hub.with(|world| used.judge(world, number, (began, state))),
        }
    }
}

impl Use {
    async fn ask(&self, latch: &Latch) -> Result<LatchState, Error> {
        match (&self.name, self.wait) {
            _ if self.counts => latch.count_down().await,
            (Some(name), None) => latch.arrive(name).await,
            (Some(name), Some(_)) => latch.arrive_and_wait(name).await.map(|()| LatchState::Open),
            (None, None) => latch.state().await,
            (None, Some(wait)) => latch.wait_timeout(ms(wait)).await,
        }
    }

    /// It was told nothing of the latch: a count has counted only where that is not known.
    fn judge_failure(&self, world: &mut World, error: &Error) {
        world.count(match error.is_unknown() {
            true => Action::LatchCountUnknown,
            false => Action::LatchFailed,
        });
        if let Some(name) = self.name.as_deref().filter(|_| self.counts && !error.is_unknown()) {
            world.latches.not_arrived(&self.key, name);
        }
    }

    /// What it was told, now, of a call that began then.
    fn judge(&self, world: &mut World, number: u64, (began, state): (u64, LatchState)) {
        let ended = world.nanos();
        world.tell(format_args!("party {number} is told: {state:?}"));
        world.count(match state {
            _ if self.counts => Action::LatchCounted,
            LatchState::Open if self.wait.is_some() => Action::LatchWaitedFor,
            LatchState::Open => Action::LatchOpen,
            LatchState::Closed { .. } => Action::LatchClosed,
        });
        // The nodes' clocks run too fast by 1.2 % at most.
        let lasts = self.ttl * 1_000_000 * 97 / 100;
        let look = Look { began, ended, state };
        let name = self.name.as_deref();
        for violation in world.latches.looked(&self.key, (self.parties, lasts), name, look) {
            world.oracle.violate(violation.kind, violation.what);
        }
    }
}
