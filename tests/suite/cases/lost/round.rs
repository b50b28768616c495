//! One round: many locks, one blow, and when each was told.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorlock::{LockGuard, Locker};
use tokio::task::{JoinHandle, spawn_blocking};

use super::Random;
use super::blow::{Blow, World};
use super::pulse::Pulse;
use crate::connected;
use crate::support::eventually_async;

/// How long before the end of validity a stall of the machine can make us miss it: `lost()` is told
/// by a timer that is set 3 ms or 1 % of the TTL before it, and tokio's come up to 2 ms late.
const BEFORE: Duration = Duration::from_millis(12);

/// How often a lock's deadline is looked at while it moves on.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What has come of a round.
#[derive(Default)]
pub(super) struct Round {
    /// How long before its end each lock was told to be lost.
    pub(super) margins: Vec<Duration>,
    /// How many of these had been lost by the nodes' word, before their time was over.
    pub(super) gone: u64,
    /// Locks that were told too late.
    pub(super) late: Vec<Late>,
    /// Locks that were told too late by a machine that did not let us run.
    pub(super) stalled: u64,
}

/// A lock that was told too late.
#[derive(Debug)]
#[expect(dead_code, reason = "it is shown when the test fails")]
pub(super) struct Late {
    ttl: Duration,
    /// How late, by its last known deadline.
    by: Option<Duration>,
    after_the_blow: Duration,
}

/// One lock of a round.
struct Run {
    guard: Arc<LockGuard>,
    ttl: Duration,
    /// The latest deadline that it is known to have had while it was valid.
    end: Option<Instant>,
    /// When its holder was told, and the deadline at that time, if it still had one.
    told: JoinHandle<(Instant, Option<Instant>)>,
}

impl Run {
    fn watch(guard: LockGuard, ttl: Duration) -> Self {
        let (guard, end) = (Arc::new(guard), None);
        let holder = guard.clone();
        let told = tokio::spawn(async move {
            holder.lost().await;
            (Instant::now(), deadline(&holder))
        });
        let mut run = Self { guard, ttl, end, told };
        run.look();
        run
    }

    fn look(&mut self) {
        self.end = self.end.max(deadline(&self.guard));
    }
}

/// The guard's deadline, if it still has one.
fn deadline(guard: &LockGuard) -> Option<Instant> {
    let deadline = guard.deadline();
    // Asked behind it: the deadline of an invalid guard is the time at which one asks.
    guard.is_valid().then_some(deadline)
}

/// Holds many locks of random ages, strikes, and sees when each was told.
pub(super) async fn play(
    world: &Arc<World>,
    blow: Blow,
    random: &mut Random,
    locks: usize,
) -> Round {
    let locker = connected(super::super::through(&world.proxies)).await;
    let pulse = Pulse::default();
    let beating = tokio::spawn(pulse.clone().beat());
    let mut runs = hold_many(&locker, random, locks).await;
    let struck = Instant::now();
    let striking = world.clone();
    spawn_blocking(move || striking.strike(blow)).await.unwrap();
    // What was granted before the blow may be delivered after it, and move a deadline on.
    while !runs.iter().all(|run| run.told.is_finished()) {
        runs.iter_mut().for_each(Run::look);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let mut told = Vec::with_capacity(runs.len());
    for run in &mut runs {
        told.push((&mut run.told).await.unwrap());
    }
    let all_told = Instant::now();
    eventually_async("the pulse beats", async || pulse.has_beaten_since(all_told)).await;
    let mut round = Round::default();
    for (run, (at, last)) in runs.iter().zip(told) {
        let end = run.end.max(last);
        let late = end.map(|end| at.saturating_duration_since(end));
        let stalled = end.map_or(Duration::ZERO, |end| pulse.stalled(end - BEFORE, at));
        let margin = end.map_or(Duration::ZERO, |end| end.saturating_duration_since(at));
        if !margin.is_zero() {
            round.margins.push(margin);
            round.gone += u64::from(last.is_none());
        } else if late.is_some_and(|late| late < 2 * stalled) {
            // What a stall has left undone is caught up with first: that may take as long again.
            round.stalled += 1;
        } else {
            let after_the_blow = at.saturating_duration_since(struck);
            round.late.push(Late { ttl: run.ttl, by: late, after_the_blow });
        }
    }
    beating.abort();
    round
}

/// Acquires many locks, one now and one then, and lets each be extended as it may.
async fn hold_many(locker: &Locker, random: &mut Random, locks: usize) -> Vec<Run> {
    let runs = Arc::new(Mutex::new(Vec::with_capacity(locks)));
    let acquiring: Vec<_> = (0..locks)
        .map(|index| {
            let (ttl, pause) = (random.millis(300, 900), random.millis(0, 300));
            let (locker, runs) = (locker.clone(), runs.clone());
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                let guard = locker.lock(format!("k{index}")).ttl(ttl).await.unwrap();
                runs.lock().unwrap().push(Run::watch(guard, ttl));
            })
        })
        .collect();
    let (began, age) = (Instant::now(), random.millis(300, 600));
    while began.elapsed() < age || !acquiring.iter().all(JoinHandle::is_finished) {
        runs.lock().unwrap().iter_mut().for_each(Run::look);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    for acquired in acquiring {
        acquired.await.unwrap();
    }
    std::mem::take(&mut *runs.lock().unwrap())
}
