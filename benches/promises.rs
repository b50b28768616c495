//! The times that the library promises, measured on real servers: a record, and not a test, for a
//! busy machine would fail it.
//!
//! `cargo bench --bench promises` prints a table in Markdown; `benches/record/` has those of the
//! past. Every row is bounded in count and time.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, and ends on the spot when it cannot be set up"
)]

use std::time::{Duration, Instant};

use quorlock::{Driver, Locker};
use support::{Fleet, eventually_async, tools};
use tokio::runtime::Builder;

const ROUNDS: usize = 1_000;

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    println!("| what | promised | p50 | p99 | max | rounds |");
    println!("|---|---|---:|---:|---:|---:|");
    let runtime = || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime().block_on(drop_to_gone());
    runtime().block_on(refusals());
    for callers in [1, 64] {
        runtime().block_on(hung_minority(callers));
    }
    runtime().block_on(drop_and_compute());
    runtime().block_on(recovery());
}

fn row(what: &str, promised: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "| {what} | {promised} | {:.3} ms | {:.3} ms | {:.3} ms | {} |",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}

async fn locker(fleet: &Fleet) -> Locker {
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    locker
}

/// From the drop of a guard until another locker's try on its key succeeds.
async fn drop_to_gone() {
    let fleet = Fleet::start(5);
    let (ours, theirs) = (locker(&fleet).await, locker(&fleet).await);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let guard = ours.lock("k").wait_forever().await.unwrap();
        let began = Instant::now();
        drop(guard);
        loop {
            if let Some(next) = theirs.lock("k").try_acquire().await.unwrap() {
                times.push(began.elapsed());
                let _ = next.release().await.unwrap(); // what it found is not the matter here
                break;
            }
        }
    }
    row("a dropped guard's lock is free for another client", "≤ 50 ms", times);
}

/// What it costs to learn that a lock cannot be had.
async fn refusals() {
    let fleet = Fleet::start(4);
    let locker4 = locker(&fleet).await;
    for node in [0, 2] {
        fleet[node].command(&["SET", "k", "theirs", "NX", "PX", "600000"]);
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert!(locker4.lock("k").try_acquire().await.unwrap().is_none());
        times.push(began.elapsed());
    }
    row("four nodes split two-two: refused", "at once", times);

    let fleet = Fleet::start(5);
    let locker = locker(&fleet).await;
    for node in 0..3 {
        fleet[node].stop();
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert!(locker.lock("k").try_acquire().await.unwrap_err().is_unavailable());
        times.push(began.elapsed());
    }
    row("three of five nodes stopped: *unavailable*", "≤ 100 ms (the node deadline)", times);
}

/// Acquisitions by so many callers for a while.
async fn acquisitions(locker: &Locker, callers: usize) -> Vec<Duration> {
    let caller = |index: usize| {
        let locker = locker.clone();
        tokio::spawn(async move {
            let mut times = Vec::new();
            for _ in 0..(2 * ROUNDS / callers).max(100) {
                let began = Instant::now();
                let guard = locker.lock(format!("k{index}")).try_acquire().await.unwrap().unwrap();
                times.push(began.elapsed());
                assert!(guard.release().await.unwrap().is_released());
            }
            times
        })
    };
    let tasks: Vec<_> = (0..callers).map(caller).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times
}

async fn hung_minority(callers: usize) {
    let fleet = Fleet::start(5);
    let locker = locker(&fleet).await;
    acquisitions(&locker, callers).await; // warm-up
    let healthy = acquisitions(&locker, callers).await;
    fleet[1].pause();
    fleet[3].pause();
    let hung = acquisitions(&locker, callers).await;
    row(&format!("{callers} callers, all nodes healthy: acquired"), "–", healthy);
    let promise = "p99 ≤ healthy + 1 ms";
    row(&format!("{callers} callers, two of five nodes hung: acquired"), promise, hung);
}

/// One task drops guards and then computes; the others' acquisitions meanwhile. The computing
/// blocks one worker of the two, as it would with any library.
async fn drop_and_compute() {
    let fleet = Fleet::start(5);
    let locker = locker(&fleet).await;
    acquisitions(&locker, 4).await;
    let quiet = acquisitions(&locker, 4).await;
    let computing = {
        let locker = locker.clone();
        tokio::spawn(async move {
            for round in 0..50 {
                let guard = locker.lock(format!("computes{round}")).await.unwrap();
                drop(guard);
                let until = Instant::now() + Duration::from_millis(200);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
        })
    };
    let mut times = Vec::new();
    while !computing.is_finished() {
        times.extend(acquisitions(&locker, 4).await);
    }
    row("4 callers: acquired", "–", quiet);
    row("4 callers, while a task drops a guard and computes for 200 ms", "no stall", times);
}

/// All nodes die and come back: how long until cycles run at 95 % of their rate again.
async fn recovery() {
    let mut times = Vec::new();
    for _ in 0..5 {
        let fleet = Fleet::start(5);
        let builder = Locker::quorum(fleet.urls()).unwrap().driver(Driver::Runtime);
        let locker = builder.build().unwrap();
        locker.ready(Duration::from_secs(5)).await.unwrap();
        acquisitions(&locker, 64).await;
        let began = Instant::now();
        let healthy = acquisitions(&locker, 64).await.len() as f64 / began.elapsed().as_secs_f64();
        for server in fleet.iter() {
            server.stop();
        }
        let gone = async || locker.lock("k").try_acquire().await.is_err();
        eventually_async("the nodes are gone", gone).await;
        for server in fleet.iter() {
            server.restart();
        }
        let back = Instant::now();
        locker.ready(Duration::from_secs(5)).await.unwrap();
        loop {
            let began = Instant::now();
            let cycles = acquisitions(&locker, 64).await.len() as f64;
            if cycles / began.elapsed().as_secs_f64() >= 0.95 * healthy {
                times.push(back.elapsed());
                break;
            }
            assert!(back.elapsed() < Duration::from_secs(10), "the throughput does not come back");
        }
    }
    row("five servers back: 95 % of the throughput", "≤ 1.5 s (the cap and a second)", times);
}
