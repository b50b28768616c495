//! A client: its machine, its connections, and tasks that take locks and let go of them, in every
//! way that there is.

use std::future::{Future, IntoFuture, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use super::chance::{self, Chance};
use super::machine::Machine;
use super::node::State;
use super::oracle::{Grant, Kind};
use super::world::{Hub, World};
use crate::clock::{Clock, Driven};
use crate::entropy::Entropy;
use crate::link::{Dial, Dialing, Reader, Writer, memory};
use crate::options::{Address, Endpoint};
use crate::{Durability, Extend, Held, LockGuard, Locker, Release};

/// What a wait may take beyond what was asked for: a last try, and a last look at the holder.
const LAST_TRY: u64 = 1_500;

/// A loss that follows a leap of the clocks is told so much later at most.
const TICK: u64 = 105;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A machine's way into the network.
struct Port {
    hub: Weak<Hub>,
    machine: usize,
}

/// What somebody finds who wants to connect.
enum Found {
    Nothing { until: u64 },
    Refusal,
    Stream(memory::Reader, memory::Writer),
}

impl Dial for Port {
    fn dial(&self, address: &Address) -> Dialing {
        let Endpoint::Tcp { host, .. } = &address.endpoint else {
            unreachable!("nodes have names")
        };
        let node: usize = host[1..].parse().unwrap();
        let (hub, machine) = (self.hub.clone(), self.machine);
        Box::pin(async move {
            let Some(hub) = hub.upgrade() else { return Err(io::ErrorKind::NotConnected.into()) };
            let mut at = hub.with(|world| world.way_there(machine, node));
            loop {
                hub.sleep_until(at).await;
                match hub.with(|world| world.knock(machine, node)) {
                    Found::Nothing { until } => at = until,
                    Found::Refusal => return Err(io::ErrorKind::ConnectionRefused.into()),
                    Found::Stream(reader, writer) => {
                        return Ok((Reader::Memory(reader), Writer::Memory(writer)));
                    }
                }
            }
        })
    }
}

impl World {
    /// When a first packet and its answer have gone their ways.
    fn way_there(&mut self, machine: usize, node: usize) -> u64 {
        self.network.round_trip(self.now(), self.machines[machine].place, node)
    }

    fn knock(&mut self, machine: usize, node: usize) -> Found {
        let place = self.machines[machine].place;
        let lost_until = self.network.lost_until(place, node);
        if lost_until > self.now() {
            return Found::Nothing { until: lost_until };
        }
        match self.nodes[node].state() {
            State::Off => Found::Nothing { until: self.nodes[node].until() + 1 },
            State::Ended => Found::Refusal,
            State::Up | State::Still => {
                let (line, reader, writer) = self.network.open((machine, place), node);
                self.network.line(line).session = Some(self.nodes[node].connect(line));
                self.agenda.ring();
                self.tell(format_args!("l{line}: m{machine} connects to n{node}"));
                Found::Stream(reader, writer)
            }
        }
    }
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
            Arc::new(Port { hub: Arc::downgrade(hub), machine }),
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
            if let Some(guard) = self.acquire(&key, ttl).await {
                self.hold(guard, &key, ttl).await;
            }
        }
        self.hub.with(|world| world.machines[self.machine].end_work());
    }

    /// Asks for a lock, and may give up before there is an answer.
    async fn acquire(&mut self, key: &str, ttl: u64) -> Option<LockGuard> {
        let wait = self.chance.pick(&[0, 50, 400, 1_200]);
        let extend = if self.chance.percent(50) { Extend::Off } else { Extend::Forever };
        let request = self.locker.lock(key).ttl(ms(ttl)).wait(ms(wait)).extend(extend);
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
            if waited > wait + LAST_TRY {
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

    /// Has the lock, and lets go of it in some way.
    async fn hold(&mut self, guard: LockGuard, key: &str, ttl: u64) {
        let (token, held) = (guard.owner_token(), Held::new(&guard));
        let (machine, value) = (self.machine, token.as_str());
        let hold = self.hub.with(|world| {
            let (now, rate) = (world.nanos(), world.machines[machine].rate);
            let grant = Grant { machine, key, value, held: held.clone(), rate };
            let hold = world.oracle.acquire(now, grant);
            world.look();
            hold
        });
        let work = match self.chance.below(5) {
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
        match self.chance.below(10) {
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
                    if let Ok(release) = &released {
                        world.oracle.released(hold, value, release);
                    }
                });
            }
            5..=8 => drop(guard),
            _ => {
                self.hub.with(|world| world.oracle.leave(token.as_str()));
                drop(guard.forget());
            }
        }
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
