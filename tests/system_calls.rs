//! How many system calls an operation costs.
//!
//! The test runs itself again with a counter preloaded (`system_calls/count.c`), once with few
//! operations and once with many; the difference is what the operations cost.
//!
//! How often a thread waits depends on how many replies have gathered when it wakes, and with that
//! on what else the machine does. So that a count is a count, the nodes and the caller share one
//! processor here, and the caller has it only when no node wants it: whatever it has sent is
//! answered when it looks. (With a processor of its own it looks earlier, and waits up to once more
//! for each operation; so do bare sockets: see the records of `benches/peers`.)
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the caller is a task of its own here, and what fails shall fail its test on the spot"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use quorlock::Locker;
use support::{Fleet, need_process};

const WARM_UP: u64 = 500;
const CYCLES: u64 = 3_000;

/// So often it is within the bounds, of one time less than twice as many: what the machine does
/// beside it may spoil one or two.
const ENOUGH: usize = 3;

/// Where the caller runs.
#[derive(Clone, Copy, Debug)]
enum Caller {
    /// A task on a current-thread runtime.
    CurrentThread,
    /// The body of `block_on` on a current-thread runtime.
    CurrentThreadBody,
    /// A task on a multi-thread runtime.
    Spawned,
    /// The body of `block_on` on a multi-thread runtime.
    BlockOn,
}

impl Caller {
    /// How many system calls of any kind one operation on five nodes may cost. Five writes, five
    /// reads and a wait are eleven. Tokio looks at its sockets once more before it polls the body
    /// of `block_on`; beside workers, that body has two hops between threads, too, which on one
    /// processor are never spared by a thread that was still awake: 19.2 to 20.2 in all.
    fn total_max(self) -> f64 {
        match self {
            Self::CurrentThread => 11.5,
            Self::CurrentThreadBody => 12.5,
            Self::Spawned => 12.0,
            Self::BlockOn => 21.0,
        }
    }

    const ALL: [Self; 4] =
        [Self::CurrentThread, Self::CurrentThreadBody, Self::Spawned, Self::BlockOn];

    /// How often a thread is put to sleep or woken for one operation: where caller and driver
    /// share a thread, never.
    fn futexes_max(self) -> f64 {
        match self {
            Self::CurrentThread | Self::CurrentThreadBody => 0.01,
            Self::Spawned => 1.0,
            // 6.7 when nothing else runs.
            Self::BlockOn => 8.0,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caller| format!("{caller:?}") == name)
    }
}

/// The second run: so many cycles, and no more.
fn run_cycles(caller: Caller, urls: &str, cycles: u64) {
    let urls: Vec<String> = urls.split(',').map(Into::into).collect();
    let work = async move {
        // Traced, and on a busy machine, everything takes its time.
        let patience = Duration::from_secs(5);
        let locker = Locker::quorum(&urls).unwrap().node_timeout(patience).build().unwrap();
        locker.ready(patience).await.unwrap();
        for _ in 0..cycles {
            let guard = locker.lock("k").await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    };
    let mut builder = match caller {
        Caller::CurrentThread | Caller::CurrentThreadBody => {
            tokio::runtime::Builder::new_current_thread()
        }
        Caller::Spawned | Caller::BlockOn => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().unwrap();
    match caller {
        Caller::CurrentThreadBody | Caller::BlockOn => runtime.block_on(work),
        Caller::CurrentThread | Caller::Spawned => {
            runtime.block_on(async { tokio::spawn(work).await.unwrap() })
        }
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

/// Keeps these processes, and what they start, on one processor; 0 is this one.
fn share_one_processor(pids: impl IntoIterator<Item = i32>) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None).unwrap();
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(last);
    for pid in pids {
        sched_setaffinity(rustix::process::Pid::from_raw(pid), &one).unwrap();
    }
}

/// What a run of so many cycles costs: sends, receives, waits, futexes, others.
fn count(counter: &Path, caller: Caller, urls: &str, cycles: u64) -> Vec<u64> {
    let told = counter.with_file_name("counts");
    let run = Command::new("chrt")
        .args(["--idle", "0"])
        .arg(std::env::current_exe().unwrap())
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
    need_process!();
    let fleet = Fleet::start(5);
    let pids = fleet.iter().map(|node| i32::try_from(node.pid()).unwrap());
    share_one_processor(pids.chain([0]));
    let scratch = support::scratch::Scratch::new();
    let counter = build_counter(scratch.path());
    let urls = fleet.urls().join(",");
    for caller in Caller::ALL {
        // What else the machine does may add to either of two counts, and so to their difference or
        // take from it. One that is within the bounds by chance does not count.
        let (mut within, mut beyond) = (0, Vec::new());
        while within < ENOUGH && beyond.len() < ENOUGH {
            match measure(&counter, caller, &urls) {
                Ok(()) => within += 1,
                Err(told) => beyond.push(told),
            }
        }
        assert!(within == ENOUGH, "{beyond:#?}");
    }
}

/// Counts, and says what is too much.
fn measure(counter: &Path, caller: Caller, urls: &str) -> Result<(), String> {
    let few = count(counter, caller, urls, WARM_UP);
    let many = count(counter, caller, urls, WARM_UP + CYCLES);
    let operations = (2 * CYCLES) as f64; // an acquisition and a release
    let each: Vec<f64> =
        many.iter().zip(few).map(|(many, few)| (*many as f64 - few as f64) / operations).collect();
    let [sends, receives, waits, futexes, others] = each[..] else { unreachable!() };
    let total: f64 = each.iter().sum();
    let told = format!(
        "{caller:?}: {total:.2} an operation (sends {sends:.2}, receives {receives:.2}, waits \
         {waits:.2}, futexes {futexes:.2}, others {others:.2})"
    );
    println!("{told}");
    // A caller that woke its driver for each command would write six times, a read that leaves a
    // socket's readiness set would read twice.
    let few = sends <= 5.5 && receives <= 5.1 && others <= 0.1;
    let few = few && futexes <= caller.futexes_max() && total <= caller.total_max();
    if few { Ok(()) } else { Err(told) }
}
