//! A client that holds as many locks as it can, and notes when it is told of each loss.
//!
//! Each lock has a task that acquires it, waits for both of its loss signals, and acquires it
//! again. Thousands are told together, and one thread runs their tasks one by one, so a signal has
//! come when it has woken its task. The task does nothing else then: guards are dropped by another
//! one, a few at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorlock::{Event, LockGuard, Locker, Observer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::loss_signals::{SAMPLE_EVERY, Signal, Tally, deadline, is_never_told};
use super::stalls::StallMonitor;
use super::woken::woken;
use super::{Journal, Stop, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::line::Line;
use crate::random::Random;

/// How many acquisitions are under way at a time.
const CALLERS: usize = 512;

/// How often a part of the places is looked at, and how many parts there are.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const PARTS: usize = 8;

/// A loss that is not told so long after the end is never told.
const NEVER: Duration = Duration::from_secs(2);

/// How many guards are dropped in a millisecond.
const DROPPED: usize = 256;

/// What the tasks share.
struct Shared {
    places: Vec<Mutex<Option<Arc<LockGuard>>>>,
    signals: Mutex<[Vec<Signal>; 2]>,
    over: Mutex<Vec<Arc<LockGuard>>>,
    held: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    /// Tasks that ran behind the end, though they were woken before it: the runtime's share.
    ran_late: AtomicU64,
    extended: Arc<Extensions>,
    callers: Semaphore,
    locker: Locker,
    stop: Stop,
}

/// Counts extensions, and notes until when each lock is held.
///
/// Looks at the guards do not suffice for that: between two of them a lock may be extended and then
/// lost, and a lost guard shows no end. The events do not suffice either: an answer that comes too
/// late for its extension still moves the end on.
#[derive(Debug)]
struct Extensions {
    done: AtomicU64,
    failed: AtomicU64,
    began: Instant,
    /// Each lock's end, in nanoseconds since then.
    ends: Vec<AtomicU64>,
}

impl Extensions {
    fn new(locks: u64) -> Self {
        let ends = (0..locks).map(|_| AtomicU64::new(0)).collect();
        Self { done: AtomicU64::new(0), failed: AtomicU64::new(0), began: Instant::now(), ends }
    }

    fn note(&self, index: usize, end: Instant) {
        let Some(known) = self.ends.get(index) else { return };
        let nanos = end.saturating_duration_since(self.began).as_nanos();
        known.fetch_max(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    fn end(&self, index: usize) -> Instant {
        self.began + Duration::from_nanos(self.ends[index].load(Ordering::SeqCst))
    }
}

impl Observer for Extensions {
    fn on_event(&self, event: &Event<'_>) {
        // Ordering: counters and nothing else; no memory is published through them.
        match event {
            Event::Extended { lock, remaining, .. } => {
                self.done.fetch_add(1, Ordering::Relaxed);
                let digits = lock.key.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
                if let Some(index) = digits.and_then(|digits| digits.parse().ok()) {
                    self.note(index, Instant::now() + *remaining);
                }
            }
            Event::ExtensionFailed { .. } => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

pub(super) async fn work(args: Arc<ClientArgs>) -> Result<(), Failure> {
    let monitor = StallMonitor::start(SAMPLE_EVERY);
    let (journal, (stop, _)) = (Journal::watched_by(&monitor), inbox::listen());
    let extended = Arc::new(Extensions::new(args.locks));
    let locker = super::locker(&args)?.observer(extended.clone()).build()?;
    // Without a node that is ready all would be refused at once; the run shows what comes then.
    let _ = locker.ready(Duration::from_secs(2)).await;
    let places = (0..args.locks).map(|_| Mutex::new(None)).collect();
    let shared = Arc::new(Shared {
        places,
        signals: Mutex::default(),
        over: Mutex::default(),
        held: AtomicU64::new(0),
        granted: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        ran_late: AtomicU64::new(0),
        extended,
        callers: Semaphore::new(CALLERS),
        locker: locker.clone(),
        stop,
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(drop_slowly(shared.clone()));
    let mut random = Random::new(args.seed, 30_000 + args.slot as u64);
    for place in 0..shared.places.len() {
        tasks.spawn(hold(shared.clone(), place, random.next()));
    }
    watch(&shared, &args, &journal, &monitor).await;
    tasks.shutdown().await;
    lock(&shared.over).clear();
    shared.places.iter().for_each(|place| drop(lock(place).take()));
    let shutdown = locker.shutdown(super::SETTLE).await?;
    journal.count(if shutdown.is_complete() { "settled" } else { "unsettled" });
    Ok(())
}

/// Looks at the places and tells of the losses, until told to stop.
async fn watch(shared: &Shared, args: &ClientArgs, journal: &Journal, monitor: &StallMonitor) {
    let ttl = Duration::from_millis(args.ttl_ms);
    let mut tallies = ["saturated:lost()", "saturated:token"]
        .map(|name| Tally::new(name, monitor).of_many(args.locks, ttl));
    for turn in 0.. {
        sleep(LOOK_EVERY).await;
        look(shared, turn % PARTS, journal, monitor).await;
        if turn % PARTS > 0 {
            continue;
        }
        let signals = std::mem::take(&mut *lock(&shared.signals));
        for (tally, signals) in tallies.iter_mut().zip(signals) {
            signals.into_iter().for_each(|signal| tally.enter(signal));
            tally.tell(journal);
        }
        let counts = [
            (&shared.granted, "granted"),
            (&shared.refused, "refused"),
            (&shared.ran_late, "ran-late"),
            (&shared.extended.done, "extended"),
            (&shared.extended.failed, "extension-failed"),
        ];
        for (count, what) in counts {
            let times = count.swap(0, Ordering::Relaxed);
            if times > 0 {
                journal.write(&Line::Many(times, what.into()));
            }
        }
        journal.write(&Line::Most(shared.held.load(Ordering::Relaxed), "held at once".into()));
        if shared.stop.is_set() {
            return;
        }
    }
}

/// Looks at every so many of the guards: their ends move on, and each loss must be told.
async fn look(shared: &Shared, part: usize, journal: &Journal, monitor: &StallMonitor) {
    for (index, place) in shared.places.iter().enumerate().skip(part).step_by(PARTS) {
        let Some(guard) = lock(place).clone() else { continue };
        if let Some(end) = deadline(&guard) {
            shared.extended.note(index, end);
        }
        let (now, end) = (Instant::now(), shared.extended.end(index));
        let is_silent = || {
            let is_there = lock(place).as_ref().is_some_and(|known| Arc::ptr_eq(known, &guard));
            is_there && shared.extended.end(index) == end
        };
        if is_never_told(monitor, [end, now], NEVER, is_silent).await {
            let over = now.saturating_duration_since(end);
            journal.write(&Line::Broken(format!("a loss was not told {over:?} after its end")));
        }
    }
}

/// Acquires one lock, waits until both signals have told its loss, and begins again.
async fn hold(shared: Arc<Shared>, index: usize, seed: u64) {
    let mut random = Random::new(seed, 1);
    let key = format!("s{index}");
    while !shared.stop.is_set() {
        let Ok(caller) = shared.callers.acquire().await else { return };
        let acquired = shared.locker.lock(&key).try_acquire().await;
        drop(caller);
        let Ok(Some(guard)) = acquired else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            sleep(random.between(Duration::from_millis(50), Duration::from_millis(500))).await;
            continue;
        };
        let Some(end) = deadline(&guard) else { continue };
        shared.extended.note(index, end);
        let guard = Arc::new(guard);
        *lock(&shared.places[index]) = Some(guard.clone());
        shared.granted.fetch_add(1, Ordering::Relaxed);
        shared.held.fetch_add(1, Ordering::Relaxed);
        let token = guard.cancellation();
        let lost = async {
            let (_, at) = woken(guard.lost()).await;
            (at, deadline(&guard))
        };
        let cancelled = async {
            let ((), at) = woken(token.cancelled()).await;
            (at, deadline(&guard))
        };
        let told: [(Instant, Option<Instant>); 2] = tokio::join!(lost, cancelled).into();
        shared.held.fetch_sub(1, Ordering::Relaxed);
        lock(&shared.places[index]).take();
        let ends = told.iter().filter_map(|(_, end)| *end);
        let end = ends.fold(shared.extended.end(index), Instant::max);
        shared.ran_late.fetch_add(u64::from(Instant::now() > end), Ordering::Relaxed);
        let mut signals = lock(&shared.signals);
        signals.iter_mut().zip(told).for_each(|(all, (at, _))| all.push(Signal { end, at }));
        drop(signals);
        lock(&shared.over).push(guard);
    }
}

/// Drops the guards whose loss was told.
async fn drop_slowly(shared: Arc<Shared>) {
    loop {
        sleep(Duration::from_millis(1)).await;
        let mut over = lock(&shared.over);
        let first = over.len().saturating_sub(DROPPED);
        let some = over.split_off(first);
        drop(over);
        drop(some);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
