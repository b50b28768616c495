//! Where an assumption is broken, the rig finds two holders: what it does not find elsewhere is not
//! there.

#![expect(clippy::expect_used, reason = "a rig that does not run fails the test on the spot")]

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Rigs that run beside one another would be faults of their own.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the rig, for at most a minute: it ends with the first thing that it finds.
fn finds_two_holders(options: &str, of: &str) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-rig"));
    command.args(["--seconds", "60", "--seed", "1", "--ttl-ms", "600", "--keys", "1"]);
    let output = command.args(options.split(' ')).output().expect("the rig runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{options}: {told}{errors}");
    assert!(told.contains(&format!("two holders of {of}")), "{options}: {told}{errors}");
}

#[test]
fn a_majority_that_forgets_unnoticed_gives_a_lock_away() {
    // Of whichever key, for the clients hold some for long as well.
    finds_two_holders("--durability forgetful --faults kill-server --fault-rate 3", "");
}

#[test]
fn a_majority_whose_clocks_leap_gives_a_lock_away() {
    finds_two_holders("--faults clock-leap", "");
}

#[test]
fn a_majority_whose_clocks_leap_gives_a_slot_away() {
    finds_two_holders("--faults clock-leap --slots 2", "{k0}:slot:");
}

/// Where fences are not compared there are stale writes, which the rig then counts; where they are,
/// it takes one for a fault. Some twenty come in this time, so that none at all means a broken rig.
#[test]
fn without_fences_holders_that_were_stopped_write_late() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-rig"));
    command.args(["--seconds", "30", "--seed", "1", "--ttl-ms", "300", "--keys", "1"]);
    command.args(["--clients", "0", "--actors", "guarded,guarded,guarded,guarded"]);
    command.args(["--fences", "plain", "--faults", "freeze-client", "--fault-rate", "8"]);
    let output = command.output().expect("the rig runs");
    let told = String::from_utf8_lossy(&output.stdout);
    for store in ["PostgreSQL", "Redis"] {
        let begin = format!("| guarded: of these stale, in {store} | ");
        let stale = told.lines().find_map(|line| line.strip_prefix(&begin)?.strip_suffix(" |"));
        let stale: Option<u64> = stale.and_then(|stale| stale.parse().ok());
        assert!(stale > Some(0), "{told}{}", String::from_utf8_lossy(&output.stderr));
    }
}
