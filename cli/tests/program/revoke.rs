//! Asking the holder of a lock to let go of it.

use rustix::process::Signal;
use support::{Fleet, Server, need_process, need_server};

use crate::run::{Ended, Running, empties, program, program_on, program_on_all, run};

/// Obeys TERM, and says so.
const OBEDIENT: &str = "trap 'echo told; exit 7' TERM; echo runs; while :; do sleep 0.01; done";

/// Says that it was told, and goes on.
pub(crate) const STUBBORN: &str =
    "trap 'echo told' TERM; echo runs; while :; do sleep 0.01; done 2>/dev/null";

/// As [`OBEDIENT`]; its first line is the number of its slot.
const IN_A_SLOT: &str =
    "trap 'echo told; exit 7' TERM; echo \"$QUORLOCK_SLOT\"; while :; do sleep 0.01; done";

fn revoke(fleet: &Fleet, options: &[&str]) -> Ended {
    run(program_on_all(fleet, &[&["revoke"], options, &["job"]].concat()))
}

/// A command that runs under the lock of `job`, by these options, and has said so.
pub(crate) fn runs(fleet: &Fleet, options: &[&str], script: &str) -> Running {
    let args = [&["lock"], options, &["job", "--", "sh", "-c", script]].concat();
    let running = Running::start(program_on_all(fleet, &args));
    assert_eq!(running.line(), "runs");
    running
}

#[test]
fn a_command_is_told_and_its_own_code_is_that_of_the_program() {
    need_server!();
    let fleet = Fleet::start(3);
    let running = runs(&fleet, &["--owner", "nightly"], OBEDIENT);
    let asked = revoke(&fleet, &[]);
    assert_eq!((asked.code, &*asked.stderr), (0, ""), "{asked:?}");
    let is_told = asked.stdout.starts_with("\"job\"  nightly@")
        && asked.stdout.contains(" is asked to let go; over in ")
        && asked.stdout.ends_with(" s at most\n");
    assert!(is_told, "{asked:?}");
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (7, "told\n"), "{ended:?}");
    assert!(ended.stderr.contains("lock \"job\" is asked for by another client; it ends in "));
    fleet.iter().for_each(empties);
    let free = revoke(&fleet, &["--json"]);
    let words = "{\"key\":\"job\",\"slot\":null,\"revoked\":false,\"owner\":null,\
                 \"over_in_ms\":null}\n";
    assert_eq!((free.code, &*free.stdout), (0, words), "{free:?}");
}

#[test]
fn one_that_does_not_obey_is_ended_with_its_time() {
    need_server!();
    let fleet = Fleet::start(3);
    let running = runs(&fleet, &["--ttl", "2s", "--json"], STUBBORN);
    let json = |said: Ended| serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap();
    let asked = json(revoke(&fleet, &["--json"]));
    assert_eq!(asked["revoked"], true, "{asked}");
    assert!(asked["over_in_ms"].as_u64() <= Some(2_030), "{asked}");
    let status = json(run(program_on_all(&fleet, &["status", "--json", "job"])));
    assert_eq!(status["majority"]["revoked"], true, "{status}");
    let ended = running.end();
    let json = ended.json();
    assert_eq!((ended.code, &json["lost"]), (79, &"revoked".into()), "{json}");
    assert!(ended.stdout.starts_with("told\n"), "{ended:?}");
}

#[test]
fn one_that_goes_on_without_its_lock_is_not_told() {
    need_server!();
    let fleet = Fleet::start(3);
    let script = "trap 'echo told' TERM; echo runs; sleep 2";
    let running = runs(&fleet, &["--ttl", "1s", "--on-lost", "ignore"], script);
    assert_eq!(revoke(&fleet, &[]).code, 0);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (79, ""), "{ended:?}");
}

#[test]
fn the_command_in_a_slot_is_told_by_its_number_and_no_other_is() {
    need_server!();
    let fleet = Fleet::start(3);
    let takes = || {
        let options = ["lock", "--prefix", "pay:", "--owner", "nightly", "--slots", "2", "job"];
        let words = [&options[..], &["--", "sh", "-c", IN_A_SLOT]].concat();
        let running = Running::start(program_on_all(&fleet, &words));
        let slot = running.line();
        (running, slot)
    };
    let ((asked, slot), (beside, next)) = (takes(), takes());
    let revoke = |options: &[&str]| {
        revoke(&fleet, &[&["--prefix", "pay:", "--slot", &slot], options].concat())
    };
    let said = revoke(&[]);
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    let begin = format!("\"job\" slot {slot}  nightly@");
    let is_told = said.stdout.starts_with(&begin)
        && said.stdout.contains(" is asked to let go; over in ")
        && said.stdout.ends_with(" s at most\n");
    assert!(is_told, "{said:?}");
    let ended = asked.end();
    assert_eq!((ended.code, &*ended.stdout), (7, "told\n"), "{ended:?}");
    let free = revoke(&["--json"]);
    let words = format!(
        "{{\"key\":\"job\",\"slot\":{slot},\"revoked\":false,\"owner\":null,\
         \"over_in_ms\":null}}\n"
    );
    assert_eq!((free.code, free.stdout), (0, words));
    let status = ["status", "--json", &format!("{{pay:job}}:slot:{next}")];
    let status = run(program_on_all(&fleet, &status));
    let status = serde_json::from_str::<serde_json::Value>(&status.stdout).unwrap();
    assert_eq!(status["majority"]["revoked"], false, "{status}");
    beside.signal(Signal::TERM);
    assert_eq!(beside.end().code, 7);
    fleet.iter().for_each(empties);
}

#[test]
fn a_slot_that_cannot_be_is_refused_with_what_to_give() {
    for slot in ["64", "-1", "70000", "two"] {
        let ended = run(program(&["revoke", "job", "--slot", slot]));
        let told = "slots are numbered from 0 to 63; give the QUORLOCK_SLOT of the command";
        assert!(ended.code == 64 && ended.stderr.contains(told), "{ended:?}");
    }
    need_server!();
    let server = Server::start();
    let no_name = run(program_on(&server, &["revoke", "a}b", "--slot", "0"]));
    no_name.says(78, "there is no name for its slots; leave the brace out");
}

#[test]
fn what_is_held_by_others_is_said_in_one_line() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet.command(&["SET", "job", "theirs", "PX", "60000"]);
    revoke(&fleet, &[]).says(78, "a client that is not quorlock holds the lock");
    fleet.command(&["DEL", "job"]);
    let reader = runs(&fleet, &["--shared"], OBEDIENT);
    revoke(&fleet, &[]).says(78, "readers hold the lock");
    reader.signal(Signal::TERM);
    assert_eq!(reader.end().code, 7);
}

/// Nothing lets go of its lock: the key is marked, and keeps its end.
#[test]
fn those_behind_a_revoked_holder_that_was_killed_go_on() {
    need_process!();
    let fleet = Fleet::start(3);
    let killed = runs(&fleet, &["--ttl", "1s"], STUBBORN);
    let next =
        Running::start(program_on_all(&fleet, &["lock", "-w", "1h", "job", "--", "echo", "next"]));
    killed.signal(Signal::KILL);
    let asked = revoke(&fleet, &["--json"]);
    assert!(asked.stdout.contains("\"revoked\":true"), "{asked:?}");
    assert_eq!(next.line(), "next");
    assert_eq!(next.end().code, 0);
    assert_eq!(killed.end().code, 128 + 9);
    fleet.iter().for_each(empties);
}
