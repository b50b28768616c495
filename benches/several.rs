//! What a lock of several keys costs beside plain locks: one key, and two taken one after the
//! other. The same nodes, in turn. A record, and not a test.
//!
//! `cargo bench --bench several` prints tables in Markdown, for one node and for five; it takes
//! about a minute. `QUORLOCK_ROUNDS` sets another number of rounds. One plain lock stands twice:
//! what differs between those two rows is the machine's noise.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, and ends on the spot when it cannot be set up"
)]

use std::time::{Duration, Instant};

use quorlock::{Locker, Release};
use support::{Fleet, tools};
use tokio::runtime::Builder;

/// How many cycles a contender runs in a round.
const CYCLES: usize = 500;

/// What is taken in a cycle.
#[derive(Clone, Copy)]
enum Contender {
    Plain,
    /// Two locks, the second one behind the first.
    TwoPlain,
    /// One lock of so many keys.
    All(usize),
}

use Contender::*;

const CONTENDERS: [(&str, Contender); 6] = [
    ("one plain lock", Plain),
    ("one plain lock, again", Plain),
    ("two plain locks, one after the other", TwoPlain),
    ("`lock_all`, 1 key", All(1)),
    ("`lock_all`, 2 keys", All(2)),
    ("`lock_all`, 16 keys", All(16)),
];

/// Of each cycle how long it took to acquire, and how long to release as well.
type Times = [Vec<Duration>; 2];

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let rounds = std::env::var("QUORLOCK_ROUNDS").ok().map_or(15, |rounds| rounds.parse().unwrap());
    for nodes in [1, 5] {
        measure(nodes, rounds);
    }
}

fn measure(nodes: usize, rounds: usize) {
    let fleet = Fleet::start(nodes);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
    runtime.block_on(locker.ready(Duration::from_secs(5))).unwrap();
    let mut times: [Times; CONTENDERS.len()] = Default::default();
    // The first round warms up, and brings the servers the scripts.
    for round in 0..=rounds {
        for turn in 0..CONTENDERS.len() {
            let index = (round + turn) % CONTENDERS.len();
            let [acquired, cycled] = runtime.block_on(cycles(&locker, CONTENDERS[index].1));
            if round > 0 {
                times[index][0].extend(acquired);
                times[index][1].extend(cycled);
            }
        }
    }
    times.as_flattened_mut().iter_mut().for_each(|took| took.sort_unstable());
    println!("| {nodes} nodes | acquire, p50 | p99 | and release, p50 | p99 | beside one |");
    println!("|---|---:|---:|---:|---:|---:|");
    for ((name, _), [acquired, cycled]) in CONTENDERS.iter().zip(&times) {
        let beside = quantile(cycled, 0.50) / quantile(&times[0][1], 0.50);
        println!(
            "| {name} | {:.1} µs | {:.1} µs | {:.1} µs | {:.1} µs | {beside:.2} |",
            quantile(acquired, 0.50),
            quantile(acquired, 0.99),
            quantile(cycled, 0.50),
            quantile(cycled, 0.99),
        );
    }
    println!();
}

/// Of sorted times, in microseconds.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    sorted[(sorted.len() as f64 * share) as usize].as_secs_f64() * 1e6
}

async fn cycles(locker: &Locker, contender: Contender) -> Times {
    let keys: Vec<String> = (0..16).map(|key| format!("several-{key}")).collect();
    let mut times = Times::default();
    for _ in 0..CYCLES {
        let began = Instant::now();
        let guards = match contender {
            Plain => vec![locker.lock(&keys[0]).await.unwrap()],
            TwoPlain => {
                vec![locker.lock(&keys[0]).await.unwrap(), locker.lock(&keys[1]).await.unwrap()]
            }
            All(count) => vec![locker.lock_all(&keys[..count]).await.unwrap()],
        };
        times[0].push(began.elapsed());
        for guard in guards {
            assert!(matches!(guard.release().await, Ok(Release::Released)));
        }
        times[1].push(began.elapsed());
    }
    times
}
