//! What a cycle (acquire, release) costs the servers, by their own clocks: the time that they spent
//! on the commands, and how often they executed which.
//!
//! `cargo bench --bench server_time` prints a table in Markdown; `benches/record/` has those of the
//! past. No one waits here: each caller has a key of its own.

#![expect(clippy::unwrap_used, reason = "it ends on the spot when it cannot be set up")]

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock::Locker;
use support::{Fleet, tools};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const CYCLES: u64 = 20_000;
const CALLERS: [u64; 2] = [1, 64];

/// `QUORLOCK_ROUNDS`, 5 without it.
fn rounds() -> usize {
    std::env::var("QUORLOCK_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap())
}

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    println!("| callers | server µs a cycle, each round sorted | executed a cycle |");
    println!("|---:|---|---|");
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for callers in CALLERS {
        let mut micros = Vec::new();
        let mut calls = String::new();
        for _ in 0..rounds() {
            let fleet = Fleet::start(5);
            let spent = runtime.block_on(measure(&fleet, callers));
            let of = |count: u64| count as f64 / CYCLES as f64;
            // A script's time holds that of what it calls.
            let sent =
                spent.iter().filter(|(name, _)| matches!(&***name, "set" | "evalsha" | "delifeq"));
            micros.push(of(sent.map(|(_, (_, micros))| micros).sum()));
            let names = spent.iter().filter(|(_, (calls, _))| *calls * 100 >= CYCLES);
            let names = names.map(|(name, (calls, _))| format!("{name} {:.2}", of(*calls)));
            calls = names.collect::<Vec<_>>().join(", ");
        }
        micros.sort_unstable_by(f64::total_cmp);
        let micros: Vec<String> = micros.iter().map(|micros| format!("{micros:.2}")).collect();
        println!("| {callers} | {} | {calls} |", micros.join(" "));
    }
}

/// How often, and for how many microseconds.
type Spent = BTreeMap<String, (u64, u64)>;

async fn measure(fleet: &Fleet, callers: u64) -> Spent {
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    // The servers know the scripts from here on.
    let guard = locker.lock("first").await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    let before = spent(fleet);
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (locker, key) = (locker.clone(), format!("key-{caller}"));
        tasks.spawn(async move {
            for _ in 0..CYCLES / callers {
                let guard = locker.lock(&key).await.unwrap();
                assert!(guard.release().await.unwrap().is_released());
            }
        });
    }
    tasks.join_all().await;
    let mut spent = spent(fleet);
    for (name, (calls, micros)) in before {
        let sum = spent.get_mut(&name).unwrap();
        *sum = (sum.0 - calls, sum.1 - micros);
    }
    spent
}

/// What all servers have executed so far.
fn spent(fleet: &Fleet) -> Spent {
    let mut spent = Spent::new();
    for reply in fleet.command(&["INFO", "commandstats"]) {
        for line in reply.text().lines() {
            let Some((name, figures)) =
                line.strip_prefix("cmdstat_").and_then(|it| it.split_once(':'))
            else {
                continue;
            };
            let figure = |wanted: &str| -> u64 {
                let mut figures = figures.split(',').filter_map(|figure| figure.split_once('='));
                figures.find(|(name, _)| *name == wanted).unwrap().1.parse().unwrap()
            };
            let sum = spent.entry(name.to_owned()).or_default();
            *sum = (sum.0 + figure("calls"), sum.1 + figure("usec"));
        }
    }
    spent
}
