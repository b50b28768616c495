//! How many system calls an operation costs: a count, which a busy machine changes little.
//!
//! The test runs itself again with a counter preloaded (`system_calls/count.c`), once with few
//! operations and once with many; the difference is what the operations cost.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the caller is a task of its own here, and what fails shall fail its test on the spot"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use quorlock::Locker;
use support::{Fleet, need_server};

const WARM_UP: u64 = 500;
const CYCLES: u64 = 3_000;

/// Where the caller runs.
#[derive(Clone, Copy, Debug)]
enum Caller {
    CurrentThread,
    Spawned,
    BlockOn,
}

impl Caller {
    const ALL: [Self; 3] = [Self::CurrentThread, Self::Spawned, Self::BlockOn];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caller| format!("{caller:?}") == name)
    }
}

/// The second run: so many cycles, and no more.
fn run_cycles(caller: Caller, urls: &str, cycles: u64) {
    let urls: Vec<String> = urls.split(',').map(Into::into).collect();
    let work = async move {
        let locker = Locker::quorum(&urls).unwrap().build().unwrap();
        locker.ready(Duration::from_secs(5)).await.unwrap();
        for _ in 0..cycles {
            let guard = locker.lock("k").await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    };
    let mut builder = match caller {
        Caller::CurrentThread => tokio::runtime::Builder::new_current_thread(),
        Caller::Spawned | Caller::BlockOn => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().unwrap();
    match caller {
        Caller::CurrentThread | Caller::BlockOn => runtime.block_on(work),
        Caller::Spawned => runtime.block_on(async { tokio::spawn(work).await.unwrap() }),
    }
}

fn build_counter(directory: &Path) -> PathBuf {
    let library = directory.join("libcount.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system_calls/count.c");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .status()
        .unwrap();
    assert!(built.success(), "cc could not build {source}");
    library
}

/// What a run of so many cycles costs: sends, receives, waits, futexes, others.
fn count(counter: &Path, caller: Caller, urls: &str, cycles: u64) -> Vec<u64> {
    let told = counter.with_file_name("counts");
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_operation_costs_few_system_calls", "--nocapture"])
        .env("LD_PRELOAD", counter)
        .env("COUNT_TO", &told)
        .env("CYCLES", format!("{caller:?} {cycles} {urls}"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let counts = std::fs::read_to_string(told).unwrap();
    counts.split_whitespace().map(|count| count.parse().unwrap()).collect()
}

#[test]
fn an_operation_costs_few_system_calls() {
    if let Ok(order) = std::env::var("CYCLES") {
        let mut words = order.split(' ');
        let caller = words.next().and_then(Caller::from_name).unwrap();
        let cycles = words.next().unwrap().parse().unwrap();
        return run_cycles(caller, words.next().unwrap(), cycles);
    }
    need_server!();
    let fleet = Fleet::start(5);
    let scratch = support::scratch::Scratch::new();
    let counter = build_counter(scratch.path());
    let urls = fleet.urls().join(",");
    for (caller, budget) in Caller::ALL.into_iter().zip([11.5, 12.0, 14.5]) {
        let few = count(&counter, caller, &urls, WARM_UP);
        let many = count(&counter, caller, &urls, WARM_UP + CYCLES);
        let operations = (2 * CYCLES) as f64; // an acquisition and a release
        let each: Vec<f64> = many
            .iter()
            .zip(few)
            .map(|(many, few)| (*many as f64 - few as f64) / operations)
            .collect();
        let total: f64 = each.iter().sum();
        println!(
            "{caller:?}: {total:.2} an operation (sends {:.2}, receives {:.2}, waits {:.2}, \
             futexes {:.2}, others {:.2})",
            each[0], each[1], each[2], each[3], each[4]
        );
        assert!(total <= budget, "{caller:?}: {total:.2} system calls an operation, {each:.2?}");
    }
}
