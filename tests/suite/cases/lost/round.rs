//! One round: many locks, one cause, and when each was told.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorlock::{LockGuard, Locker, Loss};
use support::wait::PATIENCE;
use support::{Proxy, Watchdog, eventually_async};
use tokio::task::{JoinHandle, spawn_blocking};

use super::Random;
use super::cause::{LossCause, World};
use super::stalls::StallMonitor;
use crate::connected;

/// How long before the end of validity a stall of the machine can make us miss it: `lost()` is told
/// by a timer that is set up to 45 ms before it (1 % of the longest TTL).
const BEFORE: Duration = Duration::from_millis(50);

/// How often a lock's deadline is looked at while it moves on.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What has come of a round, or of several.
#[derive(Default)]
pub(super) struct Round {
    /// How long before its end each lock was told to be lost.
    margins: Vec<Duration>,
    /// How many of these had been lost by the nodes' word, before their time was over.
    pub(super) gone: usize,
    /// Locks that were told too late.
    pub(super) late: Vec<Late>,
    /// Locks that were told too late by a machine that did not let us run.
    stalled: usize,
    /// Locks that were lost before the cause was applied, by such a machine again: no runs.
    pub(super) lost_before: usize,
}

impl Round {
    /// How many locks were held when the cause was applied, and told of it.
    pub(super) fn counted(&self) -> usize {
        self.margins.len() + self.late.len() + self.stalled
    }

    /// How many of them were told before the end.
    pub(super) fn in_time(&self) -> usize {
        self.margins.len()
    }

    pub(super) fn add(&mut self, mut other: Self) {
        self.margins.append(&mut other.margins);
        self.late.append(&mut other.late);
        self.gone += other.gone;
        self.lost_before += other.lost_before;
        self.stalled += other.stalled;
    }

    /// In a line.
    pub(super) fn summary(&mut self) -> String {
        self.margins.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let margin = |share: usize| {
            let at = self.margins.len() * share / 100;
            self.margins.get(at).map_or(f64::NAN, |margin| ms(*margin))
        };
        let latest = self.late.iter().map(|late| late.by).max().unwrap_or_default();
        format!(
            "{} told, {} by the nodes; before the end by {:.1} ms (least), {:.1} ms (p1), {:.1} ms \
             (p50); too late {} (by {:.1} ms at most), and {} while the machine did not let us \
             run; {} lost before",
            self.counted(),
            self.gone,
            margin(0),
            margin(1),
            margin(50),
            self.late.len(),
            ms(latest),
            self.stalled,
            self.lost_before
        )
    }
}

/// A lock that was told too late.
#[derive(Debug)]
#[expect(dead_code, reason = "it is shown when the test fails")]
pub(super) struct Late {
    ttl: Duration,
    /// How late, by its last known deadline.
    by: Duration,
    after_the_cause: Duration,
}

/// One lock of a round.
struct Run {
    guard: Arc<LockGuard>,
    ttl: Duration,
    /// The latest deadline that it is known to have had while it was valid.
    end: Option<Instant>,
    /// When its holder was told, and why the lock was lost.
    told: JoinHandle<(Instant, Option<Loss>)>,
}

impl Run {
    fn watch(guard: LockGuard, ttl: Duration) -> Self {
        let (guard, end) = (Arc::new(guard), None);
        let holder = guard.clone();
        let told = tokio::spawn(async move {
            holder.lost().await;
            let at = Instant::now();
            // No node is asked to extend a lock that is lost.
            let error = holder.extend(ttl).await.unwrap_err();
            (at, error.loss())
        });
        let mut run = Self { guard, ttl, end, told };
        run.look();
        run
    }

    fn look(&mut self) {
        self.end = self.end.max(deadline(&self.guard));
    }

    /// Whether it is valid, which it must not be a TTL after the cause: what extended it last was
    /// sent before that.
    fn is_valid(&self, applied: Instant) -> bool {
        let left = (applied + self.ttl).checked_duration_since(Instant::now());
        // Asked behind the clock's reading: a machine that comes to this late can only find less.
        let valid = self.guard.is_valid();
        assert!(
            !valid || left.is_some_and(|left| !left.is_zero()),
            "valid beyond its {:?}",
            self.ttl
        );
        valid
    }
}

/// The guard's deadline, if it still has one.
fn deadline(guard: &LockGuard) -> Option<Instant> {
    let deadline = guard.deadline();
    // Asked behind it: the deadline of an invalid guard is the time at which one asks.
    guard.is_valid().then_some(deadline)
}

/// Holds many locks of random ages, applies the cause, and sees when each was told.
pub(super) async fn play(
    world: &Arc<World>,
    cause: LossCause,
    random: &mut Random,
    locks: usize,
) -> Round {
    // With the library's own deadlines: an extension that is not answered is tried again.
    let locker = Locker::quorum(world.proxies.iter().map(Proxy::url)).unwrap();
    let locker = connected(locker).await;
    let monitor = StallMonitor::default();
    let looking = tokio::spawn(monitor.clone().watch());
    let mut runs = hold_many(&locker, random, locks, cause.ttls()).await;
    let held = runs.len();
    runs.retain(|run| run.guard.is_valid() && !run.told.is_finished());
    let lost_before = held - runs.len();
    let acting = world.clone();
    spawn_blocking(move || acting.apply(cause)).await.unwrap();
    let applied = Instant::now();
    // No lock lives for so long after the cause.
    let watchdog = Watchdog::with_patience("every holder is told", 2 * PATIENCE);
    // What was granted before the cause may be delivered after it, and move a deadline on.
    while !runs.iter().all(|run| run.told.is_finished()) {
        watchdog.check();
        for run in &mut runs {
            run.is_valid(applied);
            run.look();
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let mut round = Round { lost_before, ..Round::default() };
    let all_told = Instant::now();
    eventually_async("the monitor has looked", async || monitor.has_looked_since(all_told)).await;
    for run in &mut runs {
        let told = (&mut run.told).await.unwrap();
        round.enter(run, told, applied, &monitor);
    }
    looking.abort();
    let over = async || !runs.iter().any(|run| run.is_valid(applied));
    eventually_async("no lock is valid", over).await;
    round
}

impl Round {
    /// Enters when a run's holder was told, and why the lock was lost.
    fn enter(
        &mut self,
        run: &Run,
        (at, why): (Instant, Option<Loss>),
        applied: Instant,
        monitor: &StallMonitor,
    ) {
        let end = run.end.expect("it was valid when the cause was applied");
        let (margin, by) = (end.saturating_duration_since(at), at.saturating_duration_since(end));
        if !margin.is_zero() {
            self.margins.push(margin);
            self.gone += usize::from(why == Some(Loss::Gone));
        } else if by < 2 * monitor.stalled(end - BEFORE, at) {
            // What a stall has left undone is caught up with first: that may take as long again.
            self.stalled += 1;
        } else {
            let after_the_cause = at.saturating_duration_since(applied);
            self.late.push(Late { ttl: run.ttl, by, after_the_cause });
        }
    }
}

/// Acquires many locks, one now and one then, and lets each be extended as it may.
async fn hold_many(
    locker: &Locker,
    random: &mut Random,
    locks: usize,
    (shortest, longest): (u64, u64),
) -> Vec<Run> {
    let runs = Arc::new(Mutex::new(Vec::with_capacity(locks)));
    let acquiring: Vec<_> = (0..locks)
        .map(|index| {
            let (ttl, pause) = (random.millis(shortest, longest), random.millis(0, 300));
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
