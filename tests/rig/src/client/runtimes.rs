//! A client that ends the runtime its locker began on, while guards live on another.
//!
//! ```text
//! first runtime:  connects, locks, releases ─────── ends
//! second runtime:        a guard, `lost()` and a token ────────▶ told, however that ends
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorlock::{Event, Extend, LockGuard, Observer};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::lease::{begin, end, see, tell};
use super::loss_signals::{SAMPLE_EVERY, Signal, Tally, deadline, is_never_told};
use super::stalls::StallMonitor;
use super::{Journal, Stop, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::line::Line;
use crate::random::Random;

/// How often the guard is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// A loss that is not told so long after the end is never told.
const NEVER: Duration = Duration::from_millis(500);

/// The signals of a loss.
const NAMES: [&str; 2] = ["lost()", "token"];

/// The latest end of the lock's time that its extensions have told of. A look at the guard would
/// say it as well, but may set going what has stopped.
#[derive(Default)]
struct Extensions(Mutex<Told>);

#[derive(Clone, Copy, Default)]
struct Told {
    end: Option<Instant>,
    /// The last extension has failed. Also then the lock may last longer, by what some nodes have
    /// granted now and others before; and what comes in later is not told.
    has_failed: bool,
}

impl Extensions {
    fn told(&self) -> Told {
        *lock(&self.0)
    }
}

impl Observer for Extensions {
    fn on_event(&self, event: &Event<'_>) {
        let (remaining, has_failed) = match event {
            Event::Extended { remaining, .. } => (*remaining, false),
            Event::ExtensionFailed { remaining, .. } => (*remaining, true),
            _ => return,
        };
        let mut told = lock(&self.0);
        *told = Told { end: told.end.max(Some(Instant::now() + remaining)), has_failed };
    }
}

/// What a round is watched by.
struct Watch<'a> {
    journal: &'a Journal,
    stop: &'a Stop,
    monitor: &'a StallMonitor,
    extensions: Arc<Extensions>,
}

/// Repeats the round until told to stop.
pub(super) fn work(args: &ClientArgs) -> Result<(), Failure> {
    let monitor = StallMonitor::start(SAMPLE_EVERY);
    let (journal, (stop, _)) = (Journal::watched_by(&monitor), inbox::listen());
    let mut random = Random::new(args.seed, 20_000 + args.slot as u64);
    while !stop.is_set() {
        let extensions = Arc::default();
        round(
            args,
            &mut random,
            Watch { journal: &journal, stop: &stop, monitor: &monitor, extensions },
        )?;
        journal.count("cycles");
    }
    Ok(())
}

/// One locker, two runtimes, of which the first ends.
fn round(args: &ClientArgs, random: &mut Random, watch: Watch<'_>) -> Result<(), Failure> {
    let journal = watch.journal;
    // By turns one of each kind, which the place in the run decides for other clients.
    let kind = ClientArgs { slot: random.below(4) as usize, ..args.clone() };
    let locker = super::locker(&kind)?.observer(watch.extensions.clone()).build()?;
    let first = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let second = Builder::new_current_thread().enable_all().build()?;
    first.block_on(async {
        // Where no majority is there, the guard below is refused as well.
        let _ = locker.ready(Duration::from_secs(1)).await;
        drop(locker.lock(format!("warm{}", args.slot)).try_acquire().await);
    });
    let key = format!("k{}", random.below(args.keys));
    let ttl =
        random.between(Duration::from_millis(300), Duration::from_millis(args.ttl_ms.max(301)));
    let extend = if random.percent(50) { Extend::Off } else { Extend::default() };
    second.block_on(async {
        let acquired = locker.lock(&key).ttl(ttl).auto_extend(extend).wait(ttl).await;
        match acquired {
            Ok(guard) => hold(&key, guard, (first, ttl), random, &watch).await,
            Err(error) => {
                first.shutdown_background();
                tell(journal, &error);
            }
        }
        let shutdown = locker.shutdown(Duration::from_secs(1)).await;
        journal.count(if shutdown.is_ok_and(|it| it.is_complete()) {
            "settled"
        } else {
            "unsettled"
        });
    });
    Ok(())
}

/// When a signal came, and the end that the lock had then, if it still had one.
type Signalled = Option<(Instant, Option<Instant>)>;

/// Holds the lock while the first runtime ends, and sees that both signals tell its loss.
async fn hold(
    key: &str,
    guard: LockGuard,
    (first, ttl): (Runtime, Duration),
    random: &mut Random,
    Watch { journal, stop, monitor, extensions }: &Watch<'_>,
) {
    let Some(number) = begin(journal, (key, false), &guard) else {
        return first.shutdown_background();
    };
    let guard = Arc::new(guard);
    // A task that waits for one signal may set going what the other needs: each comes alone, too.
    let awaited = random.choose(&[[true, true], [true, false], [false, true], [false, true]]);
    let told = await_loss(&guard, awaited);
    sleep(random.between(Duration::ZERO, ttl / 2)).await;
    // Off this thread, which is to be let run.
    let ending = std::thread::spawn(move || drop(first));
    let until = Instant::now() + random.between(ttl, ttl * 3);
    // A look at a guard may set going what has stopped: the signals must come without one.
    let rarely = random.percent(50);
    let (mut known, mut held) = (deadline(&guard).unwrap_or_else(Instant::now), true);
    loop {
        sleep(LOOK_EVERY).await;
        let now = Instant::now();
        known = extensions.told().end.map_or(known, |end| known.max(end));
        if silent(*lock(&told), awaited).is_empty() || held && (stop.is_set() || now >= until) {
            break;
        }
        let over = now.saturating_duration_since(known);
        if rarely && over < NEVER {
            continue;
        }
        held = held && see(journal, number, &*guard);
        known = known.max(deadline(&guard).unwrap_or(known));
        let is_silent = || !silent(*lock(&told), awaited).is_empty();
        if !held && is_never_told(monitor, [known, now], NEVER, is_silent).await {
            let silent = silent(*lock(&told), awaited).join(" and ");
            let what = "of a lock whose first runtime has ended";
            journal.write(&Line::Broken(format!("{silent} silent {over:?} after the end {what}")));
            break;
        }
    }
    let signals = *lock(&told);
    let is_known = !(rarely && extensions.told().has_failed);
    judge(journal, &guard, signals, (known, is_known), monitor).await;
    end(journal, number, if guard.is_valid() { "drop" } else { "found-lost" });
    if ending.join().is_err() {
        journal.write(&Line::Broken("the end of a runtime has panicked".into()));
    }
}

/// The names of the signals that are awaited and have not come.
fn silent(told: [Signalled; 2], awaited: [bool; 2]) -> Vec<&'static str> {
    let signals = NAMES.iter().zip(told).zip(awaited);
    let silent = signals.filter(|((_, told), awaited)| *awaited && told.is_none());
    silent.map(|((name, _), _)| *name).collect()
}

/// Tasks that wait for the signals that are awaited, and when these came.
fn await_loss(guard: &Arc<LockGuard>, awaited: [bool; 2]) -> Arc<Mutex<[Signalled; 2]>> {
    let told = Arc::new(Mutex::new([None; 2]));
    if awaited[0] {
        let (holder, note) = (guard.clone(), told.clone());
        tokio::spawn(async move {
            holder.lost().await;
            lock(&note)[0] = Some((Instant::now(), deadline(&holder)));
        });
    }
    if !awaited[1] {
        return told;
    }
    let (token, holder, note) = (guard.cancellation(), Arc::downgrade(guard), told.clone());
    tokio::spawn(async move {
        token.cancelled().await;
        let at = Instant::now();
        // The guard's own end cancels its token too: that is no loss.
        if let Some(guard) = holder.upgrade() {
            lock(&note)[1] = Some((at, deadline(&guard)));
        }
    });
    told
}

/// Enters the signals that came, if it `is_known` until when the lock lasted, and sees that the
/// loss that they tell is not taken back.
async fn judge(
    journal: &Journal,
    guard: &LockGuard,
    told: [Signalled; 2],
    (known, is_known): (Instant, bool),
    monitor: &StallMonitor,
) {
    let ends = told.iter().flatten().filter_map(|(_, end)| *end);
    let known = ends.fold(known, Instant::max);
    for (name, told) in NAMES.iter().zip(told) {
        let Some((at, _)) = told else { continue };
        if !is_known {
            journal.count("end-not-known");
            continue;
        }
        while !monitor.knows(at) {
            sleep(LOOK_EVERY).await;
        }
        let mut tally = Tally::new(&format!("runtimes:{name}"), monitor);
        tally.enter(Signal { end: known, at });
        tally.tell(journal);
    }
    if told.iter().any(Option::is_some) {
        sleep(known.saturating_duration_since(Instant::now())).await;
        if guard.is_valid() {
            journal.write(&Line::Broken("a loss that was told was taken back".into()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
