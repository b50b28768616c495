//! A client: its locker, and tasks that take locks and let go of them, in every way that there is.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::chance::{self, Chance};
use super::machine::Machine;
use super::oracle::{Grant, Kind};
use super::port::Port;
use super::world::Hub;
use crate::clock::{Clock, Driven};
use crate::entropy::Entropy;
use crate::{Durability, Extend, Held, LockGuard, Locker, OwnerToken, Release};

/// What a wait may take beyond what was asked for: a last try, and a last look at the holder.
const LAST_TRY: u64 = 1_500;

/// A loss that follows a leap of the clocks is told so much later at most.
const TICK: u64 = 105;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Starts a client in this place, with its workers.
pub(super) fn start(hub: &Arc<Hub>, place: usize) {
    if hub.with(|world| world.is_over) {
        return;
    }
    let (machine, locker, clock) = set_up(hub, place);
    let (workers, seed) = hub.with(|world| (world.plan.workers, world.plan.seed));
    for worker in 0..workers {
        let number = machine * 8 + worker;
        let chance = Chance::new(seed, chance::WORKERS + number as u64);
        let task = Worker { hub: hub.clone(), machine, number, locker: locker.clone(), chance };
        hub.with(|world| world.machines[machine].begin_work());
        #[expect(clippy::disallowed_methods, reason = "the user's own tasks")]
        tokio::spawn(clock.attend(task.run()));
    }
}

/// A machine with a locker.
pub(super) fn set_up(hub: &Arc<Hub>, place: usize) -> (usize, Locker, Clock) {
    let (clock, driven) = Driven::since(hub.origin);
    let (plan, machine, rate) = hub.with(|world| {
        let rate = -(world.chance.between(0, 3_000) as i64);
        (world.plan.clone(), world.machines.len(), rate)
    });
    driven.run_at(rate);
    let owner = format!("m{machine}");
    let durability = match plan.longest_ttl {
        Some(longest) => Durability::Volatile { longest_ttl: ms(longest) },
        None => Durability::Persistent,
    };
    let builder = Locker::quorum((0..plan.nodes).map(|node| format!("redis://n{node}")));
    let builder = match plan.node_deadline {
        Some(deadline) => builder.unwrap().node_deadline(ms(deadline)),
        None => builder.unwrap(),
    };
    let locker = builder
        .owner(owner.as_str())
        .ttl(ms(plan.ttls[0]))
        .durability(durability)
        .connections_per_node(plan.connections)
        .connect_deadline(ms(400))
        .reply_age_max(ms(1_000))
        .build_on(
            clock.clone(),
            Entropy::from_seed(plan.seed ^ (machine as u64) << 40),
            Arc::new(Port::of(hub, machine)),
        )
        .unwrap();
    hub.with(|world| {
        world.tell(format_args!("m{machine} starts in place {place}, rate {rate}"));
        world.machines.push(Machine::new(place, owner, rate, driven, locker.clone()));
    });
    (machine, locker, clock)
}

/// A task that takes locks.
struct Worker {
    hub: Arc<Hub>,
    machine: usize,
    number: usize,
    locker: Locker,
    chance: Chance,
}

impl Worker {
    async fn run(mut self) {
        let (keys, think, ttls) =
            self.hub.with(|world| (world.plan.keys, world.plan.think, world.plan.ttls.clone()));
        while !self.hub.with(|world| world.is_over) {
            // Never none: whoever tries in vain, again and again, must not stop time by that.
            let pause = self.chance.between(1, think.max(1));
            self.hub.sleep(pause).await;
            let key = format!("k{}", self.chance.below(keys));
            let ttl = self.chance.pick(&ttls);
            let mut guard = self.acquire(&key, ttl).await;
            while let Some(held) = guard {
                let token = self.hold(held, &key, ttl).await;
                let Some(token) = token.filter(|_| self.chance.percent(50)) else { break };
                guard = self.adopt(&key, &token).await;
            }
        }
        self.hub.with(|world| world.machines[self.machine].end_work());
    }

    /// Asks for a lock, and may give up before there is an answer.
    async fn acquire(&mut self, key: &str, ttl: u64) -> Option<LockGuard> {
        // Whoever stands in a queue waits for as long as it takes: `None`.
        let wait = match self.hub.with(|world| world.plan.queues) && self.chance.percent(50) {
            true => None,
            false => Some(self.chance.pick(&[0, 50, 400, 1_200])),
        };
        let extend = if self.chance.percent(50) { Extend::Off } else { Extend::Forever };
        let request = self.locker.lock(key).ttl(ms(ttl)).extend(extend);
        let request = match wait {
            Some(wait) => request.wait(ms(wait)),
            None => request.wait_forever(),
        };
        let mut polls = self.chance.percent(15).then(|| self.chance.between(0, 5));
        let patience = self.chance.percent(15).then(|| self.chance.between(0, 60));
        let (began, stood) = self.hub.with(|world| {
            let now = world.now();
            world.trace.tell(now, format_args!("w{} asks for {key}, ttl {ttl}", self.number));
            (now, world.machines[self.machine].stood_still(now))
        });
        let mut acquire = pin!(request.into_future());
        let mut bored = pin!(self.hub.sleep(patience.unwrap_or(1_000_000)));
        let outcome = poll_fn(|cx| {
            if polls == Some(0) || bored.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            polls = polls.map(|polls| polls - 1);
            acquire.as_mut().poll(cx).map(Some)
        })
        .await;
        self.hub.with(|world| {
            let now = world.now();
            let stood = world.machines[self.machine].stood_still(now) - stood;
            let waited = now - began - stood;
            let number = self.number;
            if let Some(wait) = wait.filter(|wait| waited > wait + LAST_TRY) {
                let what = format!("w{number} asked for {wait} ms and waited {waited} ms");
                world.oracle.violate(Kind::LongWait, what);
            }
            match &outcome {
                None => world.tell(format_args!("w{number} gives up")),
                Some(Ok(_)) => world.tell(format_args!("w{number} has {key}")),
                Some(Err(error)) => world.tell(format_args!("w{number} failed: {error}")),
            }
        });
        outcome?.ok()
    }

    /// Takes over what was left, a little later, unless its time is over by then.
    async fn adopt(&mut self, key: &str, token: &OwnerToken) -> Option<LockGuard> {
        let pause = self.chance.between(0, 100);
        self.hub.sleep(pause).await;
        let adopted = self.locker.adopt(key, token).await;
        let (number, is_ours) = (self.number, adopted.is_ok());
        self.hub.with(|world| world.tell(format_args!("w{number} adopts {key}: {is_ours}")));
        adopted.ok()
    }

    /// Has the lock, and lets go of it in some way. Returns what it takes to adopt it, if it was
    /// left.
    async fn hold(&mut self, guard: LockGuard, key: &str, ttl: u64) -> Option<OwnerToken> {
        let (token, held) = (guard.owner_token(), Held::new(&guard));
        let (machine, value) = (self.machine, token.as_str());
        let hold = self.hub.with(|world| {
            let (now, rate) = (world.nanos(), world.machines[machine].rate);
            let held = held.clone();
            let grant = Grant { machine, key, value, held, rate };
            let hold = world.oracle.acquire(now, grant);
            world.look();
            hold
        });
        // When all is over, those who queue get their turns soon.
        let in_haste = self.hub.with(|world| world.plan.queues && world.is_over);
        let work = match self.chance.below(5) {
            _ if in_haste => 0,
            0 => 0,
            1 => self.chance.between(0, 20),
            2 => self.chance.between(0, ttl.min(2_000)),
            3 => self.chance.between(0, (2 * ttl).min(3_000)),
            // Until it is lost, where nobody extends it.
            _ => (ttl + 100).min(2_000),
        };
        self.work(&guard, &held, hold, work, ttl).await;
        self.hub.with(|world| {
            world.oracle.end(world.nanos(), hold);
            world.tell(format_args!("w{} lets go of {key}", self.number));
        });
        let way = if in_haste { 0 } else { self.chance.below(10) };
        match way {
            0..=4 => {
                self.hub.with(|world| world.oracle.releasing(value));
                let released = guard.release().await;
                let what = match &released {
                    Ok(Release::Unknown(_)) => "unknown".into(),
                    Ok(release) => format!("{release:?}"),
                    Err(error) => error.to_string(),
                };
                let number = self.number;
                self.hub.with(|world| {
                    world.tell(format_args!("w{number} released: {what}"));
                    match &released {
                        // Where nothing has befallen anybody, whoever asks is told.
                        Ok(Release::Unknown(_)) | Err(_) if world.must_answer() => {
                            world.oracle.violate(
                                Kind::FalseRelease,
                                format!("the release of guard {hold}: {what}, without a fault"),
                            );
                        }
                        Ok(release) => world.oracle.released(hold, value, release),
                        Err(_) => {}
                    }
                });
            }
            5..=8 => drop(guard),
            _ => {
                self.hub.with(|world| world.oracle.leave(token.as_str()));
                return Some(guard.forget());
            }
        }
        None
    }

    /// Works for so long, or until the lock is lost; some go on for a while then, and some extend
    /// the lock themselves.
    async fn work(&mut self, guard: &LockGuard, held: &Held, hold: u64, work: u64, ttl: u64) {
        let end = self.hub.now() + work;
        let careless = if self.chance.percent(30) { self.chance.between(0, 300) } else { 0 };
        let mut lost = pin!(guard.lost());
        let mut told = false;
        let mut invalid_since = None;
        loop {
            let now = self.hub.now();
            let step = end
                .saturating_sub(now)
                .min(u64::try_from(held.remaining().as_millis()).unwrap_or(0) + 1);
            let mut pause = pin!(self.hub.sleep(step.clamp(1, 50)));
            poll_fn(|cx| {
                if !told && lost.as_mut().poll(cx).is_ready() {
                    told = true;
                    return Poll::Ready(());
                }
                pause.as_mut().poll(cx)
            })
            .await;
            let now = self.hub.now();
            if !told && held.looks_left().is_none() {
                let lived =
                    self.hub.with(|world| now - world.machines[self.machine].stood_still(now));
                let since = *invalid_since.get_or_insert(lived);
                self.check_lost(hold, lived - since);
            }
            if now >= end + if told { careless } else { 0 } || (told && careless == 0) {
                return;
            }
            if !told && self.chance.percent(3) {
                let extended = guard.extend(ms(ttl)).await;
                let ok = extended.is_ok();
                self.hub.with(|world| world.tell(format_args!("guard {hold} extended: {ok}")));
            }
        }
    }

    /// A lock is not valid any more, and its holder has not been told.
    fn check_lost(&self, hold: u64, late: u64) {
        self.hub.with(|world| {
            if late > TICK || !world.oracle.has_leapt(self.machine) {
                let what = format!("guard {hold} was lost and nobody was told");
                world.oracle.violate(Kind::Untold, what);
            }
        });
    }
}
