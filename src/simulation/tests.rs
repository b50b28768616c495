//! Seeds, many of them.

mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::counts::Counts;
use super::plan::{self, Plan, Regime};
use super::violation::{Kind, Violation};
use super::world::Standing;
use super::{Report, run};
#[cfg(quorlock_weak)]
use crate::weak::Weakness;

/// How many seeds a plain `cargo test` takes; `QUORLOCK_SEEDS` is another number, and
/// `QUORLOCK_FAILURES` the number of failed ones at which it stops, instead of 5.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 1_000 };

/// So many seeds have every action.
const SEEDS_FOR_ALL: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`; it must be a number")))
}

fn seeds() -> u64 {
    number("QUORLOCK_SEEDS").unwrap_or(SEEDS)
}

/// Which world, and which library in it.
#[derive(Clone, Copy)]
struct Setting {
    regime: Regime,
    /// The precaution that the library lacks.
    #[cfg(quorlock_weak)]
    weakness: Option<Weakness>,
}

impl Setting {
    const KEPT: Self = Self::of(Regime::Kept);

    const fn of(regime: Regime) -> Self {
        Self {
            regime,
            #[cfg(quorlock_weak)]
            weakness: None,
        }
    }

    /// Runs a seed.
    fn run(self, seed: u64) -> Report {
        #[cfg(quorlock_weak)]
        crate::weak::choose(self.weakness);
        watched(self, seed, || run(Plan::new(seed, self.regime), false))
    }

    /// The command that runs a seed again, and prints what happens.
    fn replay(self, seed: u64) -> String {
        #[cfg(quorlock_weak)]
        return replay(seed, self.regime, Some(self.weakness.map_or("", crate::weak::name)));
        #[cfg(not(quorlock_weak))]
        replay(seed, self.regime, None)
    }
}

/// As [`Setting::replay`]; `weakness` is the one of a build that can have some, or none: "".
fn replay(seed: u64, regime: Regime, weakness: Option<&str>) -> String {
    let mut command = String::new();
    if let Some(name) = weakness {
        command += &format!("RUSTFLAGS='--cfg quorlock_weak' QUORLOCK_WEAKNESS={name} ");
    }
    let without = plan::without();
    if !without.is_empty() {
        command += &format!("QUORLOCK_WITHOUT={without} ");
    }
    let regime = regime.name();
    command += &format!("QUORLOCK_SEED={seed} QUORLOCK_REGIME={regime} cargo test --release ");
    if weakness.is_some() {
        command += "--target-dir target/weak ";
    }
    command += "--package quorlock --features testing,tokio-util --lib ";
    command += "simulation::tests::replays_a_seed ";
    command + "-- --nocapture"
}

/// What came of many runs.
#[derive(Default)]
struct Sum {
    runs: u64,
    acquired: u64,
    faults: u64,
    lines: u64,
    hash: u64,
    counts: Counts,
    failed: Vec<(u64, Vec<Violation>)>,
    overlaps: Vec<Standing>,
}

/// Runs seeds on all processors, until so many have failed, of those that fail in a way that
/// counts.
fn run_many(
    setting: Setting,
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
                    let report = setting.run(seed);
                    sum.lock().unwrap().add(seed, report);
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap();
    sum.failed.sort();
    sum
}

/// Ends the program when a run takes a minute, which is too long for any. A run in which a task
/// always has something to do never ends, and could not be told from a slow one.
fn watched(setting: Setting, seed: u64, run: impl FnOnce() -> Report) -> Report {
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a run does not end:{}", found(setting, &[(seed, Vec::new())]));
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
fn found(setting: Setting, failed: &[(u64, Vec<Violation>)]) -> String {
    let mut text = String::new();
    for (seed, violations) in failed.iter().take(FAILURES_SHOWN) {
        let what: Vec<&str> = violations.iter().map(|violation| &violation.what[..]).collect();
        text.push_str(&format!("\nseed {seed}: {}", what.join("; ")));
        text.push_str(&format!("\n  {}", setting.replay(*seed)));
    }
    text
}

#[test]
fn no_seed_breaks_a_lock_while_the_assumptions_hold() {
    let failures_max = number("QUORLOCK_FAILURES").unwrap_or(5) as usize;
    let sum = run_many(Setting::KEPT, seeds(), failures_max, |_| true);
    sum.tell("assumptions kept");
    println!("simulation, actions: {}", sum.counts);
    assert!(sum.failed.is_empty(), "{}", found(Setting::KEPT, &sum.failed));
    // Locks that no task ever gets are safe, and useless.
    assert!(sum.acquired > 5 * sum.runs && sum.faults > 5 * sum.runs, "too little happened");
    if sum.runs >= SEEDS_FOR_ALL {
        assert_eq!(sum.counts.missing(), [], "these never happened");
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

/// The printed command repeats the run that failed, in the build it failed in.
#[test]
fn a_failing_seed_is_printed_with_the_command_that_runs_it_again() {
    let plain = replay(7, Regime::Kept, None);
    assert!(plain.starts_with("QUORLOCK_SEED=7 QUORLOCK_REGIME=kept cargo test --release "));
    assert!(!plain.contains("weak") && plain.contains("simulation::tests::replays_a_seed"));
    let weak = replay(7, Regime::Stepped, Some("token-reused"));
    let build = "RUSTFLAGS='--cfg quorlock_weak' QUORLOCK_WEAKNESS=token-reused ";
    assert!(weak.starts_with(build) && weak.contains(" --target-dir target/weak "), "{weak}");
    let violations = vec![Violation { kind: Kind::Overlap, what: "two holders".into() }];
    let printed = found(Setting::KEPT, &[(9, violations)]);
    assert!(printed.contains("seed 9: two holders") && printed.contains(&Setting::KEPT.replay(9)));
    assert_eq!(printed.contains("quorlock_weak"), cfg!(quorlock_weak), "{printed}");
}

#[test]
fn broken_assumptions_are_seen() {
    for regime in [Regime::Stepped, Regime::Amnesia] {
        let sum = run_many(Setting::of(regime), 1_000, 20, |kind| kind == Kind::Overlap);
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
    let sum = run_many(Setting::of(Regime::OneStepped), 1_000, 20, |kind| kind == Kind::Overlap);
    sum.tell(Regime::OneStepped.name());
    assert!(!sum.overlaps.is_empty(), "a simulation that finds nothing proves nothing");
    for Standing { nodes, stands } in &sum.overlaps {
        assert!(nodes % 2 == 1 && !stands.contains(&0), "{stands:?} of {nodes}");
        assert_eq!(stands.len() + 1, nodes / 2 + 1, "it just had its majority with n0: {stands:?}");
    }
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

/// What a library that lacks this precaution must be caught at, each by itself; of the kinds that
/// stand together one is enough. Anything else that is found may be an accident, and is no catch.
#[cfg(quorlock_weak)]
fn catches(weakness: Weakness) -> &'static [&'static [Kind]] {
    use Kind::*;
    use Weakness::*;
    match weakness {
        NoDriftMargin | StartAtFirstReply | MajorityLessOne | QuarantineOff => &[&[Overlap]],
        DeleteWithoutCompare => &[&[Overlap], &[DeletedByAnother]],
        // The key is made for no holder, or for one that lost it to another.
        ExtensionRecreates => &[&[Overlap, LeftBehind]],
        AdoptWithoutCompare => &[&[AdoptedTwice]],
        AdoptAtOnce => &[&[Overlap]],
        FailedAdoptionDeletes => &[&[DeletedByFailure]],
        LostThoughUnknown => &[&[FalseLoss]],
        LossTakenBack => &[&[TakenBack]],
        CompleteThoughOwed => &[&[Incomplete]],
        // Where there are no tokens, those who wait find the loss by their timers.
        LossNotSignalled if cfg!(feature = "tokio-util") => &[&[Disagreement]],
        LossNotSignalled => &[],
        ProtectLooksLate => &[&[Unprotected]],
        AdoptionNotExtended | ShutdownUnanswered => &[&[Failed]],
        NoRecheck => &[&[NotHeld]],
        ReleaseSkippedOnUnknown | UndoElsewhere => &[&[LeftBehind]],
        TokenReused => &[&[SameValue]],
        SlotWithoutGeneration => &[&[Overlap, NotHeld]],
        // The node stays away: nothing is undone there, and tasks that need it wait forever.
        InFlightKept => &[&[NeverAtRest, LeftBehind, Endless]],
    }
}

/// Each precaution is missed when it is left out.
#[cfg(quorlock_weak)]
#[test]
fn every_weakness_is_caught() {
    use crate::weak;
    // The scripts of this build are its own: with all its precautions it is as strong as ours.
    let strong = run_many(Setting::KEPT, 300, 1, |_| true);
    assert!(strong.failed.is_empty(), "{}", found(Setting::KEPT, &strong.failed));
    let mut uncaught = Vec::new();
    let all = weak::ALL.into_iter();
    let all = all.flat_map(|weakness| catches(weakness).iter().map(move |kinds| (weakness, kinds)));
    for (weakness, kinds) in all {
        let setting = Setting { weakness: Some(weakness), ..Setting::KEPT };
        let counts = |kind| kinds.contains(&kind);
        let began = std::time::Instant::now();
        let sum = run_many(setting, 1_000, 1, counts);
        let (name, runs, took) = (weak::name(weakness), sum.runs, began.elapsed());
        if let Some((seed, Violation { kind, what })) = sum.failing(counts).next() {
            println!("simulation, {name}: caught in {runs} runs, {took:?}: {kind:?}: {what}");
            println!("  {}", setting.replay(seed));
        } else {
            println!(
                "simulation, {name}: NOT CAUGHT at {kinds:?}, {}",
                found(setting, &sum.failed)
            );
            uncaught.push((name, kinds));
        }
    }
    assert!(uncaught.is_empty(), "{uncaught:?}");
}
