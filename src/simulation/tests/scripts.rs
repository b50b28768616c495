//! Scripts by Lua, beside the functions that stand in for them: the same run. And a wrong script,
//! which must be noticed.

use std::time::{Duration, Instant};

use super::super::plan::{Plan, Regime};
use super::super::scripts::{Wrong, run_by_lua, run_wrong};
use super::super::violation::Kind;
use super::super::{Report, run};
use crate::testing::store::lua_runs;

/// Runs a plan by Lua or by the functions. Returns how many scripts Lua has run and how long all of
/// it took, too.
fn run_by(lua: bool, plan: &Plan) -> (Report, u64, Duration) {
    run_by_lua(lua);
    let former = lua_runs();
    #[expect(clippy::disallowed_methods, reason = "what Lua costs is real time")]
    let began = Instant::now();
    let report = run(plan.clone(), false);
    let took = began.elapsed();
    run_by_lua(true);
    (report, lua_runs() - former, took)
}

/// How many seeds are run in both ways; `QUORLOCK_SEEDS` is another number.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 1_000 };

#[test]
fn lua_and_the_functions_give_the_same_run() {
    let named = std::env::var("QUORLOCK_SEEDS").ok().map(|text| text.parse().unwrap());
    let seeds = named.unwrap_or(SEEDS).min(1_000);
    let (mut scripts, mut took) = (0, [Duration::ZERO; 2]);
    for seed in 0..seeds {
        let plan = Plan::new(seed, Regime::ALL[seed as usize % Regime::ALL.len()]);
        let (functions, none, without) = run_by(false, &plan);
        let (lua, some, with) = run_by(true, &plan);
        assert_eq!((lua.hash, lua.lines), (functions.hash, functions.lines), "seed {seed}");
        assert!(none == 0 && some >= lua.acquired.min(1), "seed {seed}: a release is a script");
        scripts += some;
        took = [took[0] + without, took[1] + with];
    }
    assert!(scripts > 0, "a comparison without a script proves nothing");
    let [without, with] = took.map(|took| took / u32::try_from(seeds).unwrap());
    println!(
        "simulation, scripts by Lua and by functions: the same trace for each of {seeds} seeds; \
         {scripts} scripts, {with:?} and {without:?} for a seed"
    );
}

/// So many seeds are enough to find each of them.
const SEEDS_FOR_WRONG: u64 = 400;

/// The wrong scripts, and in which runs each must be caught at what.
const WRONG: [(Wrong, Regime, Kind); 3] = [
    (Wrong::FirstKeyOnly, Regime::Kept, Kind::Overlap),
    (Wrong::FenceNotCompared, Regime::SteppedFenced, Kind::FenceTooLow),
    (Wrong::FenceFromZero, Regime::AmnesiaFenced, Kind::FenceTooLow),
];

#[test]
fn nodes_that_run_a_wrong_script_are_caught() {
    for (wrong, regime, kind) in WRONG {
        let caught_at = |seed: u64| {
            let report = run(Plan::new(seed, regime), false);
            report.violations.into_iter().find(|violation| violation.kind == kind)
        };
        run_wrong(Some(wrong));
        let caught = (0..SEEDS_FOR_WRONG).find_map(|seed| Some((seed, caught_at(seed)?)));
        run_wrong(None);
        let (seed, found) = caught.expect("an oracle that finds nothing proves nothing");
        println!("simulation, {wrong:?}: caught at seed {seed}: {}", found.what);
        assert_eq!(caught_at(seed), None, "with the right script");
    }
}
