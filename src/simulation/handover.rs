//! Hand-over: a token goes to other machines, as text, and their lockers adopt the lock.

use super::chance::{self, Chance};
use super::counts::Action;
use super::locker::build;
use super::machine::SETTLED;
use super::task::{begin, cut, ms};
use super::value_owners::Outcome;
use super::violation::Kind;
use super::worker::{Acquiring, Worker};
use crate::{Durability, Error, LockGuard, Locker, OwnerToken};

/// A token on its way to another machine.
#[derive(Clone, Debug)]
pub(super) struct SentToken {
    key: String,
    token: String,
    ttl: u64,
}

/// Sends the token of a lock to one machine or two, its own among them now and then; but not one
/// that is not adopted, of a lock of several keys, of a read lock or of a slot.
pub(super) fn send(worker: &mut Worker, (key, token, ttl): (&str, &OwnerToken, u64)) {
    if ["all:", "read:", "slot:"].iter().any(|kind| token.as_str().starts_with(kind)) {
        return;
    }
    let (hub, chance) = (worker.hub.clone(), &mut worker.chance);
    let machines: Vec<usize> = hub.with(|world| {
        let is_there = |machine: &usize| !world.machines[*machine].is_gone();
        (0..world.machines.len()).filter(is_there).collect()
    });
    let others: Vec<usize> =
        machines.iter().copied().filter(|machine| *machine != worker.machine).collect();
    let targets = if others.is_empty() || chance.percent(15) { machines } else { others };
    if targets.is_empty() || hub.with(|world| world.is_over) {
        return;
    }
    let twice = hub.with(|world| world.plan.actors.handed_twice);
    let count = if worker.chance.percent(twice) { 2 } else { 1 };
    let sent = SentToken { key: key.into(), token: token.as_str().into(), ttl };
    hub.with(|world| {
        world.oracle.hand(token.value());
        world.count(if count > 1 { Action::HandedTwice } else { Action::Handed });
    });
    for _ in 0..count {
        let machine = worker.chance.pick(&targets);
        let (number, seed, clock) = hub.with(|world| {
            world.adoptions += 1;
            let number = world.adoptions;
            world.tell(format_args!("w{} hands {key} to m{machine}: a{number}", worker.number));
            (number, world.plan.seed, world.machines[machine].clock.clone())
        });
        let chance = Chance::new(seed, chance::ADOPTERS + number);
        let number = chance::ADOPTERS + number;
        let adopter = Worker::new(&hub, (machine, number), false, chance);
        begin(&hub, machine, &clock, adopter.receive(sent.clone()));
    }
}

impl Worker {
    /// Adopts the lock of a sent token, works with it, and lets go of it.
    async fn receive(mut self, sent: SentToken) {
        let SentToken { key, ttl, .. } = &sent;
        let pause = match self.chance.below(10) {
            0..=6 => self.chance.between(0, 40),
            7 | 8 => self.chance.between(0, (*ttl).min(2_000)),
            _ => (ttl + 100).min(4_000),
        };
        self.hub.sleep(pause).await;
        if pause > *ttl {
            self.count(Action::AdoptedLate);
        }
        for retry in 0..4 {
            if self.hub.with(|world| world.is_over) {
                return;
            }
            if retry > 0 {
                self.count(Action::AdoptionRetried);
            }
            let Some((locker, number)) = self.locker() else { return };
            if let Some(guard) = self.adopt(&locker, number, &sent).await {
                return Box::pin(self.hold(guard, number, std::slice::from_ref(key), *ttl)).await;
            }
            if self.chance.percent(30) {
                return;
            }
            let pause = self.chance.between(1, 150);
            self.hub.sleep(pause).await;
        }
    }

    /// Adopts a lock once, and may give up before there is an answer.
    async fn adopt(&mut self, locker: &Locker, number: u64, sent: &SentToken) -> Option<LockGuard> {
        let is_misfit = self.is_misfit();
        let misfit = is_misfit.then(|| self.misfit());
        let locker = misfit.as_ref().unwrap_or(locker);
        let is_ready = self.chance.percent(70) && self.is_ready(locker).await;
        let (key, token) = (&sent.key, OwnerToken::from(sent.token.clone()));
        let value = token.value();
        let polls = self.cuts(6);
        let patience = self.chance.between(0, 3_000);
        let patience = if polls.is_some() { patience / 20 } else { patience + 100 };
        let attempt = self.hub.with(|world| {
            world.adoptions += 1;
            let (attempt, values) = (world.adoptions, world.values(key));
            world.tell(format_args!("w{} adopts {key}: attempt {attempt}", self.number));
            world.oracle.value_owners.begin(attempt, self.machine, value, &values);
            attempt
        });
        let cuts = (polls, Some(patience));
        self.asked = self.hub.with(|world| world.nanos());
        let acquiring = Acquiring::begin(self, number);
        let adopted = cut(&self.hub, cuts, locker.adopt(key, &token)).await;
        drop(acquiring);
        let outcome = outcome_of(&adopted);
        self.hub.with(|world| {
            let age = world.now() - world.machines[self.machine].since;
            // While it waits for a guard's time to be over it is extended.
            let commands = if token.is_left_behind() { 1 } else { 2 };
            let in_time = world.must_answer() && world.plan.outlasts(commands);
            // None adopts a lock that was revoked, or is while it is adopted.
            let is_revoked =
                matches!(&adopted, Some(Err(error)) if error.is_revoked()) || world.is_revoked(key);
            let must = is_ready && !is_misfit && !is_revoked && age > SETTLED && in_time;
            let is_closed = world.machines[self.machine].has_closed(number);
            let values = world.values(key);
            let held = world.oracle.value_owners.held_on(attempt, &values);
            if matches!(outcome, Outcome::Unknown) && must && !is_closed && held == world.plan.nodes
            {
                let what = format!("attempt {attempt} failed, without a fault: {adopted:?}");
                world.oracle.violate(Kind::Failed, what);
            }
            world.tell(format_args!("attempt {attempt}: {}", name(&outcome)));
            let now = world.now();
            world.oracle.end_adoption(attempt, &outcome, (now, &values));
            let is_refused =
                matches!(&adopted, Some(Err(error)) if error.is_closed() || error.is_misuse());
            world.count(match &outcome {
                Outcome::Won(_) => Action::AdoptionWon,
                Outcome::Lost => Action::AdoptionLost,
                Outcome::Unknown if is_refused => Action::AdoptionRefused,
                Outcome::Unknown => Action::AdoptionUnknown,
                Outcome::Dropped => Action::AdoptionDropped,
            });
        });
        // A guard that another deployment's locker has given is let go of at once.
        adopted?.ok().filter(|_| !is_misfit)
    }

    fn is_misfit(&mut self) -> bool {
        let (share, volatile) =
            self.hub.with(|world| (world.plan.actors.misfits, world.plan.longest_ttl.is_some()));
        volatile && self.chance.percent(share)
    }

    /// A locker that takes the servers for ones that never forget.
    fn misfit(&mut self) -> Locker {
        let clock = self.hub.with(|world| world.machines[self.machine].clock.clone());
        let number = 1_000 + self.chance.next() % 1_000_000;
        build(&self.hub, self.machine, &clock, number, Durability::Persistent)
    }

    async fn is_ready(&self, locker: &Locker) -> bool {
        let ready = cut(&self.hub, (None, Some(400)), locker.ready(ms(300))).await;
        ready.is_some_and(|ready| ready.is_ok())
    }
}

/// How an adoption has ended.
fn outcome_of(adopted: &Option<Result<LockGuard, Error>>) -> Outcome {
    match adopted {
        None => Outcome::Dropped,
        Some(Ok(guard)) => Outcome::Won(guard.owner_token().value().into()),
        Some(Err(error)) if error.is_lost() => Outcome::Lost,
        Some(Err(_)) => Outcome::Unknown,
    }
}

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Won(_) => "won",
        Outcome::Lost => "lost",
        Outcome::Unknown => "unknown",
        Outcome::Dropped => "dropped",
    }
}
