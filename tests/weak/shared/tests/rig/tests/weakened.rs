//! Each weakness of the library that a rig can show is found within a minute: a test that fails
//! where nothing is found. What shows only by a window of milliseconds is the simulation's.
//!
//! `tests/weakened rig` runs it in the weakened build. Without a weakness that build is the library
//! as it is: under the same faults, for as long as it took to find the weakness, and three seconds
//! at least, nothing is found.

#![expect(clippy::expect_used, reason = "a rig that does not run fails the test on the spot")]

use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Rigs that run beside one another would be faults of their own.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the rig with a weakness; the last of the same options counts.
fn run(weakness: &str, options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-rig"));
    let usual = "--seconds 60 --seed 1 --keys 1 --rate 240 --fault-rate 3";
    command.args(usual.split(' ')).args(options.split(' '));
    command.env("QUORLOCK_WEAKNESS", weakness).output().expect("the rig runs")
}

/// What a run found wrong, piece by piece, and for how long it lasted.
fn read(report: &str) -> (Vec<&str>, f64) {
    let pieces = report.split("```text\n").skip(1).filter_map(|piece| piece.split("\n```").next());
    let lasted = report.lines().find_map(|line| line.strip_prefix("- lasted: "));
    let seconds = lasted.and_then(|lasted| lasted.strip_suffix(" s")?.parse().ok());
    (pieces.collect(), seconds.expect("a report says how long the run lasted"))
}

/// With the weakness the rig finds this, and not merely something else; without it, under the same
/// faults and for as long, it finds nothing.
fn finds(weakness: &str, what: &str, options: &str) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let weak = run(weakness, options);
    let told = String::from_utf8_lossy(&weak.stdout);
    let errors = String::from_utf8_lossy(&weak.stderr);
    assert_eq!(weak.status.code(), Some(1), "{weakness} was not found: {told}{errors}");
    let (found, lasted) = read(&told);
    let is_caught = found.iter().any(|piece| piece.contains(what));
    assert!(is_caught, "{weakness} was only caught by something else: {told}{errors}");

    let seconds = lasted.ceil().max(3.0);
    let strong = run("", &format!("{options} --seconds {seconds}"));
    let told = String::from_utf8_lossy(&strong.stdout);
    assert_eq!(strong.status.code(), Some(0), "without a weakness: {told}");
}

#[test]
fn a_release_that_deletes_whatever_is_there() {
    finds("delete-without-compare", "two holders", "--ttl-ms 200 --faults freeze-client");
}

#[test]
fn one_grant_less_than_a_majority() {
    finds("majority-less-one", "two holders", "--faults partition,partition-to");
}

#[test]
fn no_look_at_the_clock_after_the_deciding_reply() {
    let options = "--network proxy --faults delay --ttl-ms 150 --node-timeout-ms 500";
    finds("no-recheck", "guards came whose time was over", options);
}

#[test]
fn a_release_that_leaves_out_who_did_not_answer() {
    let options = "--faults partition-from,freeze-server --seconds 10";
    finds("release-skipped-on-unknown", "left on node", options);
}

#[test]
fn an_undo_on_another_connection() {
    let options = "--faults partition-to,partition,loss,cut --clients 8 --seconds 15";
    finds("undo-elsewhere", "left on node", options);
}

#[test]
fn a_late_vote_that_counts_for_another_operation() {
    let options = "--network proxy --faults partition-from,freeze-server,delay --rate 400";
    finds("slot-without-generation", "two holders", options);
}

#[test]
fn the_same_random_value_for_every_attempt() {
    finds("token-reused", "two holders", "--faults freeze-server,partition-from --ttl-ms 300");
}

#[test]
fn replies_that_are_awaited_from_a_connection_that_has_ended() {
    let options = "--faults cut,reset,freeze-server --seconds 10";
    finds("in-flight-kept", "a node is still away", options);
}

#[test]
fn a_node_that_forgot_and_votes_at_once() {
    finds("quarantine-off", "two holders", "--durability volatile --faults kill-server");
}
