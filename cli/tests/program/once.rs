//! A command that one of several machines runs: `quorlock once`.

use std::process::Stdio;

use rustix::process::Signal;
use support::{Fleet, Server, eventually, need_process, need_server};

use crate::run::{Ended, Running, program, program_on, program_on_all, run};

fn once(server: &Server, options: &[&str], command: &[&str]) -> Ended {
    run(program_on(server, &[&["once"], options, &["job", "--"], command].concat()))
}

#[test]
fn one_runs_it_and_the_others_end_well_and_say_nothing() {
    need_server!();
    let fleet = Fleet::start(3);
    let words = ["once", "--at-least", "20s", "job", "--", "echo", "ran"];
    let all: Vec<_> = (0..6).map(|_| Running::start(program_on_all(&fleet, &words))).collect();
    let ended: Vec<Ended> = all.into_iter().map(Running::end).collect();
    assert!(ended.iter().all(|one| one.code == 0 && one.stderr.is_empty()), "{ended:?}");
    let ran = ended.iter().filter(|one| one.stdout == "ran\n").count();
    assert_eq!(ran, 1, "{ended:?}");
    // One of three may have refused it, for another that asked at the same time.
    let left = fleet.command(&["PTTL", "job"]).into_iter().map(|reply| reply.int());
    let left: Vec<i64> = left.filter(|left| *left != -2).collect();
    assert!(left.len() >= 2, "a majority keeps it: {left:?}");
    let are_kept = left.iter().all(|left| (1..=20_000).contains(left));
    assert!(are_kept, "for no longer than it was asked for: {left:?}");
}

#[test]
fn who_runs_it_is_told_where_that_is_asked_for() {
    need_server!();
    let server = Server::start();
    let first = once(&server, &["--at-least=20s", "--owner=here", "--fenced", "--json"], &["true"]);
    let json = first.json();
    assert_eq!((first.code, &json["outcome"]), (0, &"done".into()), "{first:?}");
    assert!(json["fence"].is_u64(), "{first:?}");
    once(&server, &["-v"], &["true"]).says(0, "\"job\" is run, or was, by here@");
    once(&server, &["-v", "-E", "3"], &["true"]).says(3, "by here@");
    let skipped = once(&server, &["--json"], &["true"]).json();
    assert_eq!((&skipped["outcome"], &skipped["exit_code"]), (&"skipped".into(), &0.into()));
    assert!(skipped["error"].as_str().is_some_and(|error| error.contains("here@")), "{skipped}");
    // The lock is one as any other, and another period's is another.
    let busy = run(program_on(&server, &["lock", "-n", "job", "--", "true"]));
    busy.says(75, "here@");
    assert_eq!(once(&server, &["--per", "1d"], &["echo", "ran"]).stdout, "ran\n");
    assert_eq!(once(&server, &["--per", "1d"], &["echo", "ran"]).stdout, "");
}

#[test]
fn a_command_that_failed_has_run_and_one_that_was_not_found_has_not() {
    need_server!();
    let server = Server::start();
    let none = server.command(&["DBSIZE"]).int();
    assert_eq!(once(&server, &["--at-least=20s"], &["/no/such/program"]).code, 127);
    assert_eq!(once(&server, &["--at-least=20s"], &["no-such-program"]).code, 127);
    assert_eq!(once(&server, &["--at-least=20s"], &["/etc/passwd"]).code, 126);
    assert_eq!(server.command(&["DBSIZE"]).int(), none, "no lock was asked for");
    // Its own code may look the same: it has run.
    let key = ["--at-least=20s", "--per=1h"];
    assert_eq!(once(&server, &key, &["sh", "-c", "exit 127"]).code, 127);
    assert_eq!(once(&server, &key, &["sh", "-c", "exit 127"]).code, 0);
    assert_eq!(once(&server, &["--at-least=20s"], &["sh", "-c", "exit 3"]).code, 3);
    assert_eq!(once(&server, &["--at-least=20s"], &["false"]).code, 0);
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    need_server!();
    let server = Server::start();
    let ended = once(&server, &["--at-most=1500ms"], &["sleep", "600"]);
    ended.says(79, "its time ended before the command did; give a longer --at-most");
}

/// What was killed with its machine is free after the longest time, and not before.
#[test]
fn who_was_killed_keeps_the_others_out_for_at_most() {
    need_process!();
    let server = Server::start();
    let words = ["once", "--at-most=2s", "job", "--", "sh", "-c", "echo runs; cat"];
    let mut command = program_on(&server, &words);
    command.stdin(Stdio::piped());
    let killed = Running::start(command);
    assert_eq!(killed.line(), "runs");
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().code, 128 + 9);
    let left = server.command(&["PTTL", "job"]).int();
    assert_eq!(once(&server, &["--at-least=1m"], &["echo", "ran"]).stdout, "", "{left} ms left");
    eventually("the lock to end", || server.command(&["EXISTS", "job"]).int() == 0);
    assert_eq!(once(&server, &["--at-least=1m"], &["echo", "ran"]).stdout, "ran\n");
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let refused = |options: &[&str], reason: &str| {
        let words = [&["once", "--node", "redis://127.0.0.1:1"], options].concat();
        let ended = run(program(&words));
        assert_eq!(ended.code, 64, "{ended:?}");
        assert!(ended.stderr.contains(reason), "{ended:?}");
    };
    let job = ["job", "--", "true"];
    let with = |option: &'static str| [&[option], &job[..]].concat();
    refused(&["job", "true"], "quorlock once job -- echo hi");
    refused(&["job", "--", ""], "the command's name is empty");
    refused(&with("--per=0s"), "at least 1ms");
    refused(&[&["--at-least=2s", "--at-most=1s"], &job[..]].concat(), "--at-least 2s is above");
    let long = ["--at-least=20s", "--longest-ttl=10s"];
    refused(&[&long, &job[..]].concat(), "--at-least 20s is above --longest-ttl 10s");
}
