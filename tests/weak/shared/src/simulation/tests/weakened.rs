//! Whether the simulation catches each weakness. A test of another kind must not run beside these:
//! the weakness that they choose is that of the whole process.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use super::super::plan::Regime;
use super::super::violation::{Kind, Kind::*, Violation};
use super::{found, replay, run_many};
use crate::weak;

/// What a library with this weakness must be caught at, each by itself; of the kinds that stand
/// together one is enough. Anything else that is found may be an accident, and is no catch.
const CATCHES: [(&str, &[&[Kind]]); 46] = [
    ("adopt-at-once", &[&[Overlap]]),
    ("adopt-without-compare", &[&[AdoptedTwice]]),
    ("adoption-not-extended", &[&[Failed]]),
    ("barrier-follows-itself", &[&[OpenEarly]]),
    ("broken-though-passed", &[&[BrokenAndPassed]]),
    ("cancelled-keeps-its-turn", &[&[PlaceLeft]]),
    ("complete-though-owed", &[&[Incomplete]]),
    ("delay-ended-by-drop", &[&[Overlap]]),
    ("delay-not-extended", &[&[Overlap]]),
    ("delete-without-compare", &[&[Overlap], &[DeletedByAnother]]),
    // The key is made for no holder, or for one that lost it to another.
    ("extension-recreates", &[&[Overlap, LeftBehind]]),
    ("failed-adoption-deletes", &[&[DeletedByFailure]]),
    ("fair-asks-all", &[&[OutOfOrder]]),
    ("fence-of-a-minority", &[&[FenceTooLow], &[LateWrite]]),
    ("first-handle-ends-all", &[&[Overlap, NotHeld]]),
    // A hold counts the nodes for itself, and finds too few.
    ("first-push-wins", &[&[NotHeld]]),
    // Its hold counts the nodes for itself, and finds too few.
    ("former-grants-count", &[&[Overlap, NotHeld]]),
    ("hand-over-unconfirmed", &[&[Overlap]]),
    // The node stays away: nothing is undone there, and tasks that need it wait forever.
    ("in-flight-kept", &[&[NeverAtRest, LeftBehind, Endless]]),
    ("latch-counts-arrivals", &[&[OpenEarly]]),
    ("latch-of-forgetful-nodes", &[&[ClosedAgain], &[PartyMissed]]),
    ("latch-of-one-node", &[&[ClosedAgain], &[PartyMissed]]),
    ("latch-without-mark", &[&[ClosedAgain]]),
    ("loss-not-signalled", &[&[Disagreement]]),
    ("loss-taken-back", &[&[TakenBack]]),
    ("lost-though-unknown", &[&[FalseLoss]]),
    ("majority-less-one", &[&[Overlap]]),
    ("no-drift-margin", &[&[Overlap]]),
    ("no-recheck", &[&[NotHeld]]),
    ("no-timer-at-the-end", &[&[Forgotten]]),
    ("passed-though-broken", &[&[BrokenAndPassed]]),
    ("protect-looks-late", &[&[Unprotected]]),
    ("quarantine-off", &[&[Overlap]]),
    ("quarantine-off-in-turn", &[&[Overlap]]),
    // As above: its hold finds too few.
    ("reader-of-a-minority", &[&[NotHeld]]),
    ("release-skipped-on-unknown", &[&[LeftBehind]]),
    ("shutdown-unanswered", &[&[Failed]]),
    ("slot-without-generation", &[&[Overlap, NotHeld]]),
    ("start-at-first-reply", &[&[Overlap]]),
    ("ticket-not-above", &[&[OutOfOrder]]),
    ("ticket-not-kept", &[&[OutOfOrder]]),
    ("ticket-of-one-node", &[&[OutOfOrder]]),
    ("token-reused", &[&[SameValue]]),
    ("undo-elsewhere", &[&[LeftBehind]]),
    ("unfenced-forgotten", &[&[LeftBehind]]),
    ("watch-not-renewed", &[&[Forgotten]]),
];

/// The regime in which a weakness is looked for: those of the fences need locks that fail.
fn regime(name: &str) -> Regime {
    if name.starts_with("fence-") { Regime::SteppedFenced } else { Regime::Kept }
}

#[test]
fn each_patch_has_a_kind_of_violation_that_it_must_be_caught_at() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weak");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let patches: BTreeSet<String> =
        names.filter_map(|name| Some(name.to_str()?.strip_suffix(".patch")?.to_owned())).collect();
    let caught: BTreeSet<String> = CATCHES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(patches, caught);
}

#[test]
fn every_weakness_is_caught() {
    let mut uncaught = Vec::new();
    let all = CATCHES.iter().flat_map(|(name, catches)| catches.iter().map(move |c| (*name, *c)));
    for (name, kinds) in all {
        weak::choose(name);
        let (regime, counts) = (regime(name), |kind| kinds.contains(&kind));
        #[expect(clippy::disallowed_methods, reason = "how long it takes is real time")]
        let began = Instant::now();
        let sum = run_many(regime, 5_000, 1, counts);
        let (runs, took) = (sum.runs, began.elapsed());
        if let Some((seed, Violation { kind, what })) = sum.failing(counts).next() {
            println!("simulation, {name}: caught in {runs} runs, {took:?}: {kind:?}: {what}");
            println!("  {}", replay(seed, regime));
        } else {
            let others = found(regime, &sum.failed);
            println!("simulation, {name}: NOT CAUGHT at {kinds:?}, {others}");
            uncaught.push((name, kinds));
        }
    }
    weak::choose("");
    assert!(uncaught.is_empty(), "{uncaught:?}");
}

#[test]
fn a_seed_is_printed_with_the_command_that_runs_it_again_with_its_weakness() {
    weak::choose("token-reused");
    let command = replay(7, Regime::Stepped);
    weak::choose("");
    let named = "QUORLOCK_WEAKNESS=token-reused QUORLOCK_SEED=7 QUORLOCK_REGIME=stepped ";
    assert_eq!(command, format!("{named}tests/weakened replay"));
}
