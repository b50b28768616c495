//! Seeds, many of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::plan::{Plan, Regime};
use super::{Report, run};

/// How many seeds a plain `cargo test` takes; `QUORLOCK_SEEDS` is another number.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 1_000 };

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`; it must be a number")))
}

fn seeds() -> u64 {
    number("QUORLOCK_SEEDS").unwrap_or(SEEDS)
}

/// What came of many runs.
#[derive(Default)]
struct Sum {
    runs: u64,
    acquired: u64,
    faults: u64,
    lines: u64,
    hash: u64,
    failed: Vec<(u64, Vec<String>)>,
}

/// Runs seeds on all processors, until so many have failed.
fn run_many(regime: Regime, count: u64, failures_max: usize, each: impl Fn() + Sync) -> Sum {
    let (next, sum) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                each();
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= count || sum.lock().unwrap().failed.len() >= failures_max {
                        return;
                    }
                    let report = watched(regime, seed, || run(Plan::new(seed, regime), false));
                    sum.lock().unwrap().add(seed, report);
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap();
    sum.failed.sort();
    sum
}

/// A run in which somebody always has something to do never ends, and could not be told from a
/// slow one: a minute is too long for any.
fn watched(regime: Regime, seed: u64, run: impl FnOnce() -> Report) -> Report {
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a run does not end:{}", found(regime, &[(seed, Vec::new())]));
                std::process::abort();
            }
        });
        let report = run();
        drop(done);
        report
    })
}

impl Sum {
    fn add(&mut self, seed: u64, report: Report) {
        self.runs += 1;
        self.acquired += report.acquired;
        self.faults += report.faults;
        self.lines += report.lines;
        self.hash = self.hash.wrapping_add(report.hash);
        if !report.violations.is_empty() {
            self.failed.push((seed, report.violations));
        }
    }

    fn tell(&self, what: &str) {
        let Self { runs, acquired, faults, lines, hash, failed } = self;
        println!(
            "simulation, {what}: {runs} seeds, {acquired} locks, {faults} faults, {lines} lines, \
             {} violated, trace {hash:016x}",
            failed.len()
        );
    }
}

/// What was found, and how to see it again.
fn found(regime: Regime, failed: &[(u64, Vec<String>)]) -> String {
    let mut text = String::new();
    for (seed, violations) in failed {
        text.push_str(&format!("\nseed {seed}: {}", violations.join("; ")));
        text.push_str(&format!(
            "\n  QUORLOCK_SEED={seed} QUORLOCK_REGIME={} cargo test --release --features testing \
             --lib simulation::tests::replay -- --nocapture",
            regime.name()
        ));
    }
    text
}

#[test]
fn no_seed_breaks_a_lock_while_the_assumptions_hold() {
    let sum = run_many(Regime::Kept, seeds(), 5, || {});
    sum.tell("assumptions kept");
    assert!(sum.failed.is_empty(), "{}", found(Regime::Kept, &sum.failed));
    // Locks that nobody gets are safe, and no locks.
    assert!(sum.acquired > 5 * sum.runs && sum.faults > 5 * sum.runs, "too little happened");
}

/// Prints the run that `QUORLOCK_SEED` and `QUORLOCK_REGIME` name.
#[test]
fn replay() {
    let named = number("QUORLOCK_SEED");
    let wanted = std::env::var("QUORLOCK_REGIME").unwrap_or_else(|_| "kept".into());
    let regime = Regime::ALL.into_iter().find(|regime| regime.name() == wanted);
    let regime = regime.unwrap_or_else(|| panic!("QUORLOCK_REGIME is kept, stepped or amnesia"));
    let report = run(Plan::new(named.unwrap_or_default(), regime), named.is_some());
    println!("{} locks, {} faults, trace {:016x}", report.acquired, report.faults, report.hash);
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn broken_assumptions_are_seen() {
    for regime in [Regime::Stepped, Regime::Amnesia] {
        // An overlap is not all that can be found.
        let sum = run_many(regime, 1_000, 20, || {});
        sum.tell(regime.name());
        let overlaps = |violations: &[String]| violations.iter().any(|v| v.contains("same time"));
        let overlapped = sum.failed.iter().filter(|(_, violations)| overlaps(violations)).count();
        assert!(overlapped > 0, "{regime:?}: a simulation that finds nothing proves nothing");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let count = seeds().min(1_000);
    for seed in 0..count {
        let plan = Plan::new(seed, Regime::ALL[seed as usize % 3]);
        let [once, twice] = [(); 2].map(|()| run(plan.clone(), false));
        assert_eq!((once.hash, once.lines), (twice.hash, twice.lines), "seed {seed}");
    }
    println!("simulation, the same seed twice: the same trace for each of {count} seeds");
}

/// Each precaution is missed when it is left out.
#[cfg(quorlock_weak)]
#[test]
fn every_weakness_is_caught() {
    use crate::weak;
    // The scripts of this build are its own: with all its precautions it is as strong as ours.
    let strong = run_many(Regime::Kept, 300, 1, || weak::choose(None));
    assert!(strong.failed.is_empty(), "{}", found(Regime::Kept, &strong.failed));
    let mut uncaught = Vec::new();
    for weakness in weak::ALL {
        let began = std::time::Instant::now();
        let sum = run_many(Regime::Kept, 1_000, 1, || weak::choose(Some(weakness)));
        let name = weak::name(weakness);
        match sum.failed.first() {
            Some((seed, violations)) => println!(
                "simulation, {name}: caught in {} runs, {:?}, by seed {seed}: {}",
                sum.runs,
                began.elapsed(),
                violations[0]
            ),
            None => {
                println!("simulation, {name}: NOT CAUGHT");
                uncaught.push(name);
            }
        }
    }
    assert!(uncaught.is_empty(), "{uncaught:?}");
}
