//! A client that holds as many locks as it can, and notes when it is told of each loss.
//!
//! Each lock has a task that acquires it, waits for both of its loss signals, and acquires it
//! again. The task does nothing else when it is told: guards are dropped by another task, a few at
//! a time, so that the client's own work makes no signal late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorlock::{Event, LockGuard, Locker, Observer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::told::{Pulse, Signal, Tally, deadline};
use super::{Pen, Stop, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::dice::Dice;
use crate::line::Line;

/// How many acquisitions are under way at a time.
const CALLERS: usize = 512;

/// How often a part of the guards is looked at, and how many parts there are.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const PARTS: usize = 8;

/// A loss that is not told so long after the end is never told.
const NEVER: Duration = Duration::from_secs(2);

/// How many guards are dropped in a millisecond.
const DROPPED: usize = 256;

/// A lock that is held, and the latest end that it is known to have had.
#[derive(Debug)]
struct Place {
    guard: Arc<LockGuard>,
    end: Instant,
}

/// What the tasks share.
struct Shared {
    places: Vec<Mutex<Option<Place>>>,
    signals: Mutex<[Vec<Signal>; 2]>,
    over: Mutex<Vec<Place>>,
    held: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    extended: Arc<Extensions>,
    callers: Semaphore,
    locker: Locker,
    stop: Stop,
}

/// Counts extensions.
#[derive(Debug, Default)]
struct Extensions {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Observer for Extensions {
    fn on_event(&self, event: &Event<'_>) {
        // Ordering: counters and nothing else; no memory is published through them.
        match event {
            Event::Extended { .. } => self.done.fetch_add(1, Ordering::Relaxed),
            Event::ExtensionFailed { .. } => self.failed.fetch_add(1, Ordering::Relaxed),
            _ => return,
        };
    }
}

pub(super) async fn work(args: Arc<ClientArgs>) -> Result<(), Failure> {
    let (pen, (stop, _)) = (Pen::default(), inbox::listen());
    let extended = Arc::new(Extensions::default());
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
        extended,
        callers: Semaphore::new(CALLERS),
        locker: locker.clone(),
        stop,
    });
    let pulse = Pulse::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(pulse.clone().beat());
    tasks.spawn(drop_slowly(shared.clone()));
    let mut dice = Dice::new(args.seed, 30_000 + args.slot as u64);
    for place in 0..shared.places.len() {
        tasks.spawn(hold(shared.clone(), place, dice.next()));
    }
    watch(&shared, &pen, &pulse).await;
    tasks.shutdown().await;
    lock(&shared.over).clear();
    shared.places.iter().for_each(|place| drop(lock(place).take()));
    let shutdown = locker.shutdown(super::SETTLE).await?;
    pen.count(if shutdown.is_complete() { "settled" } else { "unsettled" });
    Ok(())
}

/// Looks at the guards and tells of the losses, until told to stop.
async fn watch(shared: &Shared, pen: &Pen, pulse: &Pulse) {
    let mut tallies = ["saturated:lost()", "saturated:token"].map(|name| Tally::new(name, pulse));
    for turn in 0.. {
        sleep(LOOK_EVERY).await;
        look(shared, turn % PARTS, pen, pulse);
        if turn % PARTS > 0 {
            continue;
        }
        let signals = std::mem::take(&mut *lock(&shared.signals));
        for (tally, signals) in tallies.iter_mut().zip(signals) {
            signals.into_iter().for_each(|signal| tally.enter(signal));
            tally.tell(pen);
        }
        let counts = [
            (&shared.granted, "granted"),
            (&shared.refused, "refused"),
            (&shared.extended.done, "extended"),
            (&shared.extended.failed, "extension-failed"),
        ];
        for (count, what) in counts {
            let times = count.swap(0, Ordering::Relaxed);
            if times > 0 {
                pen.write(&Line::Many(times, what.into()));
            }
        }
        pen.write(&Line::Most(shared.held.load(Ordering::Relaxed), "held at once".into()));
        if shared.stop.is_set() {
            return;
        }
    }
}

/// Looks at every so many of the guards: their ends move on, and each loss must be told.
fn look(shared: &Shared, part: usize, pen: &Pen, pulse: &Pulse) {
    for place in shared.places.iter().skip(part).step_by(PARTS) {
        let mut place = lock(place);
        let Some(known) = &mut *place else { continue };
        known.end = known.end.max(deadline(&known.guard).unwrap_or(known.end));
        let now = Instant::now();
        let over = now.saturating_duration_since(known.end);
        if over > NEVER + 2 * pulse.stalled(known.end, now) {
            pen.write(&Line::Broken(format!("a loss was not told {over:?} after its end")));
        }
    }
}

/// Acquires one lock, waits until both signals have told its loss, and begins again.
async fn hold(shared: Arc<Shared>, index: usize, seed: u64) {
    let mut dice = Dice::new(seed, 1);
    let key = format!("s{index}");
    while !shared.stop.is_set() {
        let Ok(caller) = shared.callers.acquire().await else { return };
        let acquired = shared.locker.lock(&key).try_acquire().await;
        drop(caller);
        let Ok(Some(guard)) = acquired else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            sleep(dice.between(Duration::from_millis(50), Duration::from_millis(500))).await;
            continue;
        };
        let Some(end) = deadline(&guard) else { continue };
        let guard = Arc::new(guard);
        *lock(&shared.places[index]) = Some(Place { guard: guard.clone(), end });
        shared.granted.fetch_add(1, Ordering::Relaxed);
        shared.held.fetch_add(1, Ordering::Relaxed);
        let token = guard.cancellation();
        let lost = async {
            guard.lost().await;
            (Instant::now(), deadline(&guard))
        };
        let cancelled = async {
            token.cancelled().await;
            (Instant::now(), deadline(&guard))
        };
        let told = tokio::join!(lost, cancelled);
        shared.held.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
        let Some(place) = lock(&shared.places[index]).take() else { return };
        let end = [told.0.1, told.1.1].into_iter().flatten().fold(place.end, Instant::max);
        let mut signals = lock(&shared.signals);
        signals[0].push(Signal { end, at: told.0.0 });
        signals[1].push(Signal { end, at: told.1.0 });
        drop(signals);
        lock(&shared.over).push(place);
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
