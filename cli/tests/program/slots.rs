//! A key that several may have at once, by `--slots`.

use std::process::{Command, Stdio};

use support::{Fleet, Server, need_process, need_server};

use crate::run::{Running, empties, hold, program, program_on, program_on_all, run};

/// Tells its slot, and holds it until its stdin ends.
const TELLS: [&str; 4] = ["--", "sh", "-c", "echo \"$QUORLOCK_SLOT\"; cat"];

/// The command that takes a slot of `job` and tells which.
fn telling(fleet: &Fleet, options: &[&str]) -> Command {
    let mut command = program_on_all(fleet, &[&["lock"], options, &["job"], &TELLS[..]].concat());
    command.stdin(Stdio::piped());
    command
}

/// A program that has a slot, and which one that is.
fn taking(fleet: &Fleet, options: &[&str]) -> (Running, u16) {
    let running = Running::start(telling(fleet, options));
    let line = running.line();
    let slot = line.parse().unwrap_or_else(|_| panic!("{line:?} is no number"));
    (running, slot)
}

#[test]
fn no_more_run_at_once_than_there_are_slots() {
    need_server!();
    let fleet = Fleet::start(3);
    let mut held: Vec<_> = (0..3).map(|_| taking(&fleet, &["--slots", "3"])).collect();
    let mut numbers: Vec<u16> = held.iter().map(|(_, slot)| *slot).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
    let one_more = |options: &[&str]| {
        let options = [&["lock", "--slots", "3"], options, &["job", "--", "true"]].concat();
        run(program_on_all(&fleet, &options))
    };
    one_more(&["-n"]).says(75, "too few of the 3 slots of \"job\" are free");
    one_more(&["-w", "200ms"]).says(75, "gave up after");
    assert_eq!(one_more(&["-n", "-E", "7"]).code, 7);

    // One that waits gets the slot that is let go of.
    let waits = Running::start(telling(&fleet, &["--slots", "3", "--verbose"]));
    waits.complains("lock \"job\" has no free slot; waiting for one");
    let (ended, slot) = held.remove(1);
    assert_eq!(ended.end().code, 0);
    assert_eq!(waits.line(), slot.to_string());
    for running in held.into_iter().map(|(running, _)| running).chain([waits]) {
        assert_eq!(running.end().code, 0);
    }
    fleet.iter().for_each(empties);
}

#[test]
fn the_report_has_the_slot_and_no_other_lock_has_one() {
    need_server!();
    let server = Server::start();
    let told = |options: &[&str]| {
        let words = ["job", "--", "sh", "-c", "echo \"${QUORLOCK_SLOT-none}\""];
        let mut command = program_on(&server, &[&["lock", "--json"], options, &words].concat());
        // Of a lock around this one.
        command.env("QUORLOCK_SLOT", "7");
        let ended = run(command);
        (ended.stdout.trim().to_owned(), ended.json()["slot"].clone())
    };
    assert_eq!(told(&["--slots", "1"]), ("0".into(), 0.into()));
    assert_eq!(told(&[]), ("none".into(), serde_json::Value::Null));
    let held = hold(&server, &["--slots", "1"], "job");
    let busy = run(program_on(&server, &["lock", "--json", "-n", "--slots=1", "job", "--", "x"]));
    assert_eq!((busy.code, &busy.json()["slot"]), (75, &serde_json::Value::Null), "{busy:?}");
    assert_eq!(held.end().code, 0);
}

/// Each slot is the key of a lock, by the name that the manual gives.
#[test]
fn a_slot_is_shown_by_its_name_and_is_released_by_no_token() {
    need_server!();
    let server = Server::start();
    let script = "echo \"$QUORLOCK_TOKEN\"; cat";
    let words = ["lock", "--owner", "me", "--slots", "1", "job", "--", "sh", "-c", script];
    let mut command = program_on(&server, &words);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    let token = running.line();
    let shown = run(program_on(&server, &["status", "{job}:slot:0"]));
    assert!(shown.stdout.contains("held by me@"), "{shown:?}");
    let mut release = program_on(&server, &["release", "{job}:slot:0"]);
    release.env("QUORLOCK_TOKEN", token);
    run(release).says(64, "the token is that of a slot");
    // The key's own lock is another.
    assert_eq!(run(program_on(&server, &["lock", "-n", "job", "--", "true"])).code, 0);
    assert_eq!(running.end().code, 0);
    empties(&server);
}

/// A stop of the program while it waits leaves no place in the queue.
#[test]
fn a_signal_while_waiting_for_a_slot_leaves_nothing() {
    need_process!();
    let fleet = Fleet::start(3);
    let (held, _) = taking(&fleet, &["--slots", "1"]);
    let waits = Running::start(telling(&fleet, &["-w", "1h", "--slots", "1", "--verbose"]));
    waits.complains("has no free slot");
    waits.signal(rustix::process::Signal::TERM);
    waits.end().says(128 + 15, "signal 15 while waiting");
    assert_eq!(held.end().code, 0);
    fleet.iter().for_each(empties);
}

#[test]
fn what_does_not_go_with_slots_is_refused_in_one_line() {
    for (words, told) in [
        (&["--slots", "2", "--shared", "job"][..], "--shared does not; give one of them"),
        (&["--slots", "2", "--fenced", "job"], "leave --fenced out"),
        (&["--slots", "2", "--key", "a", "--key", "b"], "--slots takes one key"),
    ] {
        let ended = run(program(&[&["lock"], words, &["--", "true"]].concat()));
        assert_eq!((ended.code, ended.stderr.lines().count()), (64, 1), "{ended:?}");
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
    for count in ["0", "65", "70000", "few"] {
        let ended = run(program(&["lock", "--slots", count, "job", "--", "true"]));
        let told = "a key has from 1 to 64 slots; give such a number";
        assert!(ended.code == 64 && ended.stderr.contains(told), "{ended:?}");
    }
}
