//! Locks that are held for long: 100,000 of them on five nodes, and some through a blocked runtime.
//! A record, and not a test.
//!
//! `cargo bench --bench held` prints tables in Markdown; `benches/record/` has those of the past.
//! It takes about three minutes. `QUORLOCK_HELD` sets another number of locks.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, and ends on the spot when it cannot be set up"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use quorlock::{Driver, Event, LockGuard, Locker, Observer};
use support::{Fleet, tools};
use tokio::runtime::Builder;

/// For how long the locks are held.
const HELD_FOR: Duration = Duration::from_secs(60);

/// How many are acquired at a time.
const AT_ONCE: usize = 256;

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let count = std::env::var("QUORLOCK_HELD").ok().map_or(100_000, |count| count.parse().unwrap());
    many(count);
    println!();
    println!("| a runtime blocked for 30 s, TTL 5 s | lost | stall that the loss names |");
    println!("|---|---:|---:|");
    for driver in [Driver::Thread, Driver::Runtime] {
        blocked(driver);
    }
}

/// Counts what happens to locks that are held.
#[derive(Default)]
struct Tally {
    extended: AtomicUsize,
    failed: AtomicUsize,
    lost: AtomicUsize,
    stalls: Mutex<Vec<Duration>>,
}

impl Observer for Tally {
    fn on_event(&self, event: &Event<'_>) {
        let counter = match event {
            Event::Extended { .. } => &self.extended,
            Event::ExtensionFailed { .. } => &self.failed,
            Event::Lost { stalled, .. } => {
                self.stalls.lock().unwrap().extend(stalled);
                &self.lost
            }
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What this process has used: processor time, and resident memory in bytes.
fn used() -> (Duration, usize) {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu = Duration::new(cpu.tv_sec.try_into().unwrap(), cpu.tv_nsec.try_into().unwrap());
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    (cpu, pages.unwrap_or(0) * rustix::param::page_size())
}

fn many(count: usize) {
    let fleet = Fleet::start(5);
    let tally = Arc::new(Tally::default());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let builder = Locker::quorum(fleet.urls()).unwrap().observer(tally.clone());
    let locker = builder.build().unwrap();
    let (guards, memory) = runtime.block_on(async {
        locker.ready(Duration::from_secs(5)).await.unwrap();
        // Buffers and slots for that many at once are no part of what a held lock costs.
        drop(acquire(&locker, "warm-up", AT_ONCE).await);
        let mut guards: Vec<LockGuard> = Vec::with_capacity(count);
        let before = used().1;
        while guards.len() < count {
            let name = format!("held-{}", guards.len());
            guards.extend(acquire(&locker, &name, AT_ONCE.min(count - guards.len())).await);
        }
        (guards, used().1.saturating_sub(before))
    });
    let (began, cpu) = (Instant::now(), used().0);
    let extended = tally.extended.load(Ordering::Relaxed);
    runtime.block_on(async { tokio::time::sleep(HELD_FOR).await });
    let (took, cpu) = (began.elapsed().as_secs_f64(), (used().0 - cpu).as_secs_f64());
    let extended = tally.extended.load(Ordering::Relaxed) - extended;
    let invalid = guards.iter().filter(|guard| !guard.is_valid()).count();
    println!("| {count} locks held for {took:.0} s on five nodes, TTL 10 s | |");
    println!("|---|---:|");
    println!("| lost | {} |", invalid.max(tally.lost.load(Ordering::Relaxed)));
    println!("| extensions, failed | {} |", tally.failed.load(Ordering::Relaxed));
    println!("| extensions | {extended} ({:.0} a second) |", extended as f64 / took);
    println!("| resident memory per lock | {} B |", memory / count);
    println!("| processor, client | {:.1} % of one |", cpu / took * 1e2);
    println!("| … per extension | {:.2} µs |", cpu / extended as f64 * 1e6);
    runtime.block_on(async {
        drop(guards);
        let found = locker.shutdown(Duration::from_secs(30)).await.unwrap();
        assert!(found.is_complete());
    });
    assert!(fleet.keys_left("").is_empty());
}

async fn acquire(locker: &Locker, name: &str, count: usize) -> Vec<LockGuard> {
    let task = |index: usize| {
        let request = locker.lock(format!("{name}-{index}"));
        tokio::spawn(async move { request.await.unwrap() })
    };
    let tasks: Vec<_> = (0..count).map(task).collect();
    let mut guards = Vec::with_capacity(count);
    for task in tasks {
        guards.push(task.await.unwrap());
    }
    guards
}

/// A current-thread runtime that is blocked, as by a long computation.
fn blocked(driver: Driver) {
    let fleet = Fleet::start(5);
    let tally = Arc::new(Tally::default());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let builder = Locker::quorum(fleet.urls()).unwrap().driver(driver).observer(tally.clone());
        let locker = builder.ttl(Duration::from_secs(5)).build().unwrap();
        locker.ready(Duration::from_secs(5)).await.unwrap();
        let guards = acquire(&locker, "blocked", 100).await;
        thread::sleep(Duration::from_secs(30));
        // The loss, if there is one, is told when the runtime works again.
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(guards);
    });
    let lost = tally.lost.load(Ordering::Relaxed);
    let stall = tally.stalls.lock().unwrap().iter().max().copied();
    let stall =
        stall.map_or_else(|| "–".to_owned(), |stall| format!("{:.1} s", stall.as_secs_f64()));
    println!("| {driver:?}, 100 locks | {lost} | {stall} |");
}
