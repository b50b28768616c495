//! Seeds, many of them.

mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::counts::{Action, Counts};
use super::plan::{self, Plan, Regime};
use super::violation::{Kind, Violation};
use super::world::Standing;
use super::{Report, run};

/// How many seeds a plain `cargo test` takes; `QUORLOCK_SEEDS` is another number, and
/// `QUORLOCK_FAILURES` the number of failed ones at which it stops, instead of 5.
const SEEDS: u64 = if cfg!(debug_assertions) { 16 } else { 1_000 };

/// How many violations are looked for where there must be some.
const ENOUGH: usize = if cfg!(debug_assertions) { 2 } else { 20 };

/// So many seeds have every action.
const SEEDS_FOR_ALL: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`; it must be a number")))
}

fn seeds() -> u64 {
    number("QUORLOCK_SEEDS").unwrap_or(SEEDS)
}

/// How a seed is run again.
const REPLAY: &str = "cargo test --release --package quorlock --features testing,tokio-util --lib \
    simulation::tests::replays_a_seed -- --nocapture";

/// The command that runs a seed again, and prints what happens.
fn replay(seed: u64, regime: Regime) -> String {
    let mut command = String::new();
    let without = plan::without();
    if !without.is_empty() {
        command += &format!("QUORLOCK_WITHOUT={without} ");
    }
    if let Ok(nodes) = std::env::var("QUORLOCK_NODES") {
        command += &format!("QUORLOCK_NODES={nodes} ");
    }
    let regime = regime.name();
    command += &format!("QUORLOCK_SEED={seed} QUORLOCK_REGIME={regime} ");
    command + REPLAY
}

/// What came of many runs.
#[derive(Default)]
struct Sum {
    runs: u64,
    acquired: u64,
    faults: u64,
    lines: u64,
    hash: u64,
    /// Late writes that were refused, and in how many runs there was one.
    refused: [u64; 2],
    counts: Counts,
    failed: Vec<(u64, Vec<Violation>)>,
    overlaps: Vec<Standing>,
}

/// Runs seeds on all processors, until so many have failed, of those that fail in a way that
/// counts.
fn run_many(
    regime: Regime,
    count: u64,
    failures_max: usize,
    counts: impl Fn(Kind) -> bool + Sync,
) -> Sum {
    let (next, sum) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= count || sum.lock().unwrap().failures(&counts) >= failures_max {
                        return;
                    }
                    let report = run_watched(seed, regime);
                    sum.lock().unwrap().add(seed, report);
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap();
    sum.failed.sort();
    sum
}

/// Runs a seed, and ends the program when that takes a minute, which is too long for any. A run in
/// which a task always has something to do never ends, and could not be told from a slow one.
fn run_watched(seed: u64, regime: Regime) -> Report {
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a run does not end:{}", found(regime, &[(seed, Vec::new())]));
                std::process::abort();
            }
        });
        let report = run(Plan::new(seed, regime), false);
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
        self.refused[0] += report.refused;
        self.refused[1] += u64::from(report.refused > 0);
        self.counts.join(&report.counts);
        self.overlaps.extend(report.overlaps);
        if !report.violations.is_empty() {
            self.failed.push((seed, report.violations));
        }
    }

    /// How many seeds have failed in a way that counts.
    fn failures(&self, counts: impl Fn(Kind) -> bool) -> usize {
        self.failing(counts).count()
    }

    fn failing(&self, counts: impl Fn(Kind) -> bool) -> impl Iterator<Item = (u64, &Violation)> {
        self.failed.iter().filter_map(move |(seed, violations)| {
            Some((*seed, violations.iter().find(|violation| counts(violation.kind))?))
        })
    }

    fn tell(&self, what: &str) {
        let Self { runs, acquired, faults, lines, hash, failed, .. } = self;
        println!(
            "simulation, {what}: {runs} seeds, {acquired} locks, {faults} faults, {lines} lines, \
             {} violated, trace {hash:016x}",
            failed.len()
        );
        for (kind, (seeds, first)) in self.by_kind() {
            println!("  {kind:?}: {seeds} seeds, the first is {first}");
        }
    }

    /// For each kind of violation, how many seeds have it, and the first of them.
    fn by_kind(&self) -> BTreeMap<Kind, (usize, u64)> {
        let mut kinds = BTreeMap::new();
        for (seed, violations) in &self.failed {
            let found: BTreeSet<Kind> = violations.iter().map(|found| found.kind).collect();
            for kind in found {
                kinds.entry(kind).or_insert((0, *seed)).0 += 1;
            }
        }
        kinds
    }
}

/// Seeds that are shown with all that is wrong with them.
const FAILURES_SHOWN: usize = 20;

/// What was found, and how to see it again.
fn found(regime: Regime, failed: &[(u64, Vec<Violation>)]) -> String {
    let mut text = String::new();
    for (seed, violations) in failed.iter().take(FAILURES_SHOWN) {
        let what: Vec<&str> = violations.iter().map(|violation| &violation.what[..]).collect();
        text.push_str(&format!("\nseed {seed}: {}", what.join("; ")));
        text.push_str(&format!("\n  {}", replay(*seed, regime)));
    }
    text
}

#[test]
fn no_seed_breaks_a_lock_while_the_assumptions_hold() {
    let failures_max = number("QUORLOCK_FAILURES").unwrap_or(5) as usize;
    let sum = run_many(Regime::Kept, seeds(), failures_max, |_| true);
    sum.tell("assumptions kept");
    println!("simulation, actions: {}", sum.counts);
    assert!(sum.failed.is_empty(), "{}", found(Regime::Kept, &sum.failed));
    // Locks that no task ever gets are safe, and useless.
    assert!(sum.acquired > 5 * sum.runs && sum.faults > 5 * sum.runs, "too little happened");
    if sum.runs >= SEEDS_FOR_ALL {
        let never = sum.counts.missing();
        let can_be = |action: &Action| plan::nodes(1) == 1 || !action.needs_one_node();
        let never: Vec<Action> = never.into_iter().filter(can_be).collect();
        assert_eq!(never, [], "these never happened");
    }
}

/// Prints the run that `QUORLOCK_SEED` and `QUORLOCK_REGIME` name.
#[test]
fn replays_a_seed() {
    let named = number("QUORLOCK_SEED");
    let wanted = std::env::var("QUORLOCK_REGIME").unwrap_or_else(|_| "kept".into());
    let regime = Regime::ALL.into_iter().find(|regime| regime.name() == wanted);
    let names = || Regime::ALL.map(Regime::name).join(", ");
    let regime = regime.unwrap_or_else(|| panic!("QUORLOCK_REGIME is one of {}", names()));
    let report = run(Plan::new(named.unwrap_or_default(), regime), named.is_some());
    println!("{} locks, {} faults, trace {:016x}", report.acquired, report.faults, report.hash);
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn a_failing_seed_is_printed_with_the_command_that_runs_it_again() {
    let violations = vec![Violation { kind: Kind::Overlap, what: "two holders".into() }];
    let printed = found(Regime::Stepped, &[(9, violations)]);
    let named = "QUORLOCK_SEED=9 QUORLOCK_REGIME=stepped cargo test --release ";
    assert!(printed.contains("seed 9: two holders") && printed.contains(named), "{printed}");
    assert!(printed.contains(" simulation::tests::replays_a_seed "), "{printed}");
}

#[test]
fn broken_assumptions_are_seen() {
    for regime in [Regime::Stepped, Regime::Amnesia] {
        let sum = run_many(regime, 1_000, ENOUGH, |kind| kind == Kind::Overlap);
        sum.tell(regime.name());
        let overlapped = sum.failures(|kind| kind == Kind::Overlap);
        assert!(overlapped > 0, "{regime:?}: a simulation that finds nothing proves nothing");
    }
}

/// One clock of several is enough to break a lock that just has its majority: one node does not
/// have the key, because it was not to be reached in time; the clock of another, which has it, is
/// set ahead, so that it has it no more; and these two and others make the next majority. Where two
/// majorities meet in two nodes, as with four, it takes two clocks.
#[test]
fn one_clock_set_ahead_gives_away_a_lock_that_just_has_its_majority() {
    let sum = run_many(Regime::OneStepped, 1_000, ENOUGH, |kind| kind == Kind::Overlap);
    sum.tell(Regime::OneStepped.name());
    assert!(!sum.overlaps.is_empty(), "a simulation that finds nothing proves nothing");
    for Standing { nodes, stands } in &sum.overlaps {
        // Which of the two that is: a machine that stood still may find only now that it has won.
        let had_just_its_majority =
            |stands: &Vec<usize>| !stands.contains(&0) && stands.len() + 1 == nodes / 2 + 1;
        let is_explained = nodes % 2 == 1 && stands.iter().any(had_just_its_majority);
        assert!(is_explained, "one had just its majority, with n0: {stands:?} of {nodes}");
    }
}

/// What is wrong with a fence, or with what a store does that compares them.
fn is_of_fences(kind: Kind) -> bool {
    matches!(kind, Kind::FenceTwice | Kind::FenceTooLow | Kind::LateWrite)
}

/// The locks fail, and have two holders. The store does no write of the earlier one behind the
/// later one's; without fences it would have.
#[test]
fn no_late_write_is_done_where_fences_are_compared_though_locks_fail() {
    // One seed in four has a late write: of so many, one at least will.
    let seeds = seeds().max(32);
    for regime in [Regime::SteppedFenced, Regime::AmnesiaFenced] {
        let sum = run_many(regime, seeds, 5, is_of_fences);
        sum.tell(regime.name());
        let [writes, runs] = sum.refused;
        println!("simulation, {}: {writes} late writes refused, in {runs} seeds", regime.name());
        let wrong: Vec<_> = sum.failing(is_of_fences).collect();
        let again = wrong.first().map(|(seed, _)| replay(*seed, regime));
        assert!(wrong.is_empty(), "{wrong:?}\n{again:?}");
        let expected = if seeds < 1_000 { 1 } else { sum.runs / 10 };
        assert!(runs >= expected, "a simulation that finds nothing proves nothing");
    }
}

/// A node that has forgotten stands at its time. Where its clock was set back meanwhile, that is
/// below what it has taken before: see the manual's chapter of fences.
#[test]
fn a_node_that_forgets_and_is_set_back_takes_a_fence_that_is_too_low() {
    let sum = run_many(Regime::BeyondFenced, 10_000, 1, is_of_fences);
    sum.tell(Regime::BeyondFenced.name());
    assert!(sum.failures(is_of_fences) > 0, "the manual says more than is known");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let count = seeds().min(1_000);
    for seed in 0..count {
        let plan = Plan::new(seed, Regime::ALL[seed as usize % Regime::ALL.len()]);
        let [once, twice] = [(); 2].map(|()| run(plan.clone(), false));
        assert_eq!((once.hash, once.lines), (twice.hash, twice.lines), "seed {seed}");
    }
    println!("simulation, the same seed twice: the same trace for each of {count} seeds");
}
