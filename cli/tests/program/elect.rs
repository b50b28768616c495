//! A command that runs on one of several machines: `quorlock elect`.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::{Fleet, Reply, Server, eventually, need_process, need_server};

use crate::run::{Running, program, program_on, program_on_all, run};

/// Stands for `job`, with this script as the command.
fn stands(fleet: &Fleet, options: &[&str], script: &str) -> Command {
    let words = [&["elect", "-v", "--ttl", "2s"], options, &["job", "--", "sh", "-c", script]];
    let mut command = program_on_all(fleet, &words.concat());
    command.stdin(Stdio::piped());
    command
}

/// Tells its term, and runs until its stdin ends or it is told to end.
const TELLS: &str =
    "trap 'exit 7' TERM; echo \"$QUORLOCK_FENCE $QUORLOCK_KEY\"; while :; do sleep 0.05; done";

fn term(running: &Running) -> u64 {
    let line = running.line();
    let (term, role) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} has no term"));
    assert_eq!(role, "job");
    term.parse().unwrap_or_else(|_| panic!("{line:?} has no number"))
}

#[test]
fn one_runs_it_and_when_it_is_told_to_end_another_goes_on() {
    need_process!();
    let fleet = Fleet::start(3);
    let first = Running::start(stands(&fleet, &[], TELLS));
    let one = term(&first);
    let second = Running::start(stands(&fleet, &[], TELLS));
    first.signal(Signal::TERM);
    let ended = first.end();
    assert_eq!(ended.code, 7, "{ended:?}");
    assert!(ended.stderr.contains("\"job\": leads, term "), "{ended:?}");
    assert!(ended.stderr.contains("\"job\": leads no more"), "{ended:?}");
    let two = term(&second);
    assert!(two > one, "{two} after {one}");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, 7);
}

#[test]
fn when_its_machine_dies_another_goes_on() {
    need_process!();
    let fleet = Fleet::start(3);
    let first = Running::start(stands(&fleet, &[], TELLS));
    let one = term(&first);
    let second = Running::start(stands(&fleet, &[], TELLS));
    first.signal(Signal::KILL);
    assert_eq!(first.end().code, 128 + 9);
    assert!(term(&second) > one);
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, 7);
}

#[test]
fn a_command_that_ends_is_started_again_and_one_that_is_not_there_is_not() {
    need_server!();
    let fleet = Fleet::start(3);
    let again =
        Running::start(stands(&fleet, &[], "echo \"$QUORLOCK_FENCE $QUORLOCK_KEY\"; exit 3"));
    let one = term(&again);
    assert_eq!([term(&again), term(&again)], [one, one], "by the same term");
    again.complains("\"job\": leads, term ");
    again.complains("\"job\": the command ended with 3; again in 100 ms");
    again.signal(Signal::TERM);
    let code = again.end().code;
    assert!(code == 3 || code == 128 + 15, "in a pause, or while it ran: {code}");
    let held = || fleet.command(&["EXISTS", "job"]).iter().map(Reply::int).sum::<i64>();
    eventually("it to have resigned", || held() == 0);
    let missing = run(program_on_all(&fleet, &["elect", "job", "--", "/no/such/program"]));
    assert_eq!(missing.code, 127, "{missing:?}");
}

/// It cannot reach its nodes: the command is asked to end, then killed.
#[test]
fn a_machine_that_cannot_reach_its_nodes_ends_the_command() {
    need_process!();
    let server = Server::start();
    let script = "exec 2>/dev/null; trap 'echo told' TERM; echo runs; while :; do sleep 0.01; done";
    let words = ["elect", "-v", "--ttl", "1s", "job", "--", "sh", "-c", script];
    let running = Running::start(program_on(&server, &words));
    assert_eq!(running.line(), "runs");
    server.stop();
    assert_eq!(running.line(), "told");
    running.complains("\"job\": leads, term ");
    running.complains("\"job\": leads no more");
    server.restart();
    assert_eq!(running.line(), "runs", "as a candidate it leads again");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 128 + 2);
}

/// It was told to end, takes its time, and the lead is lost meanwhile: that is the end of it.
#[test]
fn a_command_that_was_to_end_is_not_started_by_another_term() {
    need_process!();
    let server = Server::start();
    let script = "exec 2>/dev/null; trap 'echo told' TERM; echo runs; while :; do sleep 0.01; done";
    let words = ["elect", "--ttl", "1s", "job", "--", "sh", "-c", script];
    let running = Running::start(program_on(&server, &words));
    assert_eq!(running.line(), "runs");
    running.signal(Signal::TERM);
    assert_eq!(running.line(), "told");
    server.stop();
    let ended = running.end();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (128 + 9, "told\n"),
        "it was killed: {ended:?}"
    );
}

/// One that ends when it is asked to is not started again in the time that is left.
#[test]
fn a_command_that_ends_with_its_term_is_started_by_the_next_one() {
    need_process!();
    let server = Server::start();
    let script = "exec 2>/dev/null; trap 'exit 0' TERM; echo runs; while :; do sleep 0.01; done";
    let words = ["elect", "-v", "--ttl", "3s", "job", "--", "sh", "-c", script];
    let running = Running::start(program_on(&server, &words));
    assert_eq!(running.line(), "runs");
    running.complains("\"job\": leads, term ");
    server.stop();
    running.complains("\"job\": leads no more");
    server.restart();
    running.complains("\"job\": leads, term ");
    assert_eq!(running.line(), "runs");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 0);
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let refused = |options: &[&str], reason: &str| {
        let words = [&["elect", "--node", "redis://127.0.0.1:1"], options].concat();
        let ended = run(program(&words));
        assert_eq!(ended.code, 64, "{ended:?}");
        assert!(ended.stderr.contains(reason), "{ended:?}");
    };
    refused(&["job", "true"], "quorlock elect role -- sleep 1h");
    refused(&["job", "--", ""], "the command's name is empty");
    refused(&["--ttl=0", "job", "--", "true"], "at least 1ms");
}
