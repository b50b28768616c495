//! From the request that a holder lets go of its lock to its release, on five nodes. A record, and
//! not a test.
//!
//! `cargo bench -p quorlock --bench revoke` prints a table in Markdown; it takes some seconds.
//! `QUORLOCK_ROUNDS` sets another number of rounds. The request stands twice: what differs between
//! those two rows is the machine's noise.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, and ends when it cannot be set up"
)]

use std::time::{Duration, Instant};

use quorlock::Locker;
use support::{Fleet, tools};
use tokio::runtime::Builder;

/// No extension tells a holder before its channel has.
const TTL: Duration = Duration::from_secs(60);

const CONTENDERS: [&str; 3] =
    ["a release", "revoked, told and released", "revoked, told and released, again"];

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let rounds =
        std::env::var("QUORLOCK_ROUNDS").ok().map_or(2_000, |rounds| rounds.parse().unwrap());
    let fleet = Fleet::start(5);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut times: [Vec<Duration>; CONTENDERS.len()] = Default::default();
    let mut told = Vec::new();
    runtime.block_on(async {
        let (holder, other) = (locker(&fleet).await, locker(&fleet).await);
        // The first rounds warm up, and bring the servers the scripts.
        for round in 0..rounds + 10 {
            for turn in 0..CONTENDERS.len() {
                let index = (round + turn) % CONTENDERS.len();
                let (was_told, took) = match index {
                    0 => (None, release(&holder).await),
                    _ => revoke(&holder, &other).await,
                };
                if round >= 10 {
                    times[index].push(took);
                    told.extend(was_told);
                }
            }
        }
    });
    println!("| 5 nodes, {rounds} rounds | p50 | p99 |");
    println!("|---|---:|---:|");
    for (name, times) in CONTENDERS.iter().zip(&mut times) {
        row(name, times);
    }
    row("of these, until the holder is told", &mut told);
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let [middle, high] = [times.len() / 2, times.len() * 99 / 100].map(|at| times[at].as_micros());
    println!("| {name} | {middle} µs | {high} µs |");
}

async fn locker(fleet: &Fleet) -> Locker {
    let locker = Locker::quorum(fleet.urls()).unwrap().ttl(TTL).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    locker
}

async fn release(holder: &Locker) -> Duration {
    let guard = holder.lock("k").await.unwrap();
    let began = Instant::now();
    assert!(guard.release().await.unwrap().is_released());
    began.elapsed()
}

/// When the holder is told, and when a majority has confirmed its release, counted from when the
/// other has asked for that.
async fn revoke(holder: &Locker, other: &Locker) -> (Option<Duration>, Duration) {
    let guard = holder.lock("k").await.unwrap();
    let began = Instant::now();
    let letting_go = async {
        guard.revoked().await;
        let told = began.elapsed();
        assert!(guard.is_revoked());
        assert!(guard.release().await.unwrap().is_released());
        (Some(told), began.elapsed())
    };
    let (times, asked) = tokio::join!(letting_go, other.revoke("k"));
    assert!(asked.unwrap().is_some());
    times
}
