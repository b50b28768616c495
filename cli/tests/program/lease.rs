//! A lock that is extended while the command runs, and how long.

use std::time::Duration;

use support::{Fleet, Server, Watchdog, need_server};

use crate::run::{Running, empties, hold, holding, program_on, program_on_all, run};

#[test]
fn a_lock_is_extended_for_as_long_as_its_command_runs() {
    need_server!();
    let server = Server::start();
    let running = hold(&server, &["--json", "--ttl", "3s"], "job");
    // Each extension is seen as a time to live that has grown; five of them take more than a TTL.
    // The program may not have counted the last one when it ends.
    let watchdog = Watchdog::with_patience("five extensions", Duration::from_secs(30));
    let (mut grown, mut left) = (0, 3_000);
    while grown < 5 {
        let now = server.command(&["PTTL", "job"]).int();
        assert!(now > 0, "it is held all the time");
        grown += u32::from(now > left);
        left = now;
        watchdog.pause();
    }
    let ended = running.end();
    let json = ended.json();
    assert_eq!((ended.code, &json["outcome"]), (0, &"done".into()), "{ended:?}");
    assert!(json["extensions"].as_u64() >= Some(4) && json["lost"].is_null(), "{ended:?}");
    assert!(json["hold_us"].as_u64() >= Some(3_000_000), "{ended:?}");
    empties(&server);
}

#[test]
fn a_command_that_ends_soon_keeps_its_lock_for_min_hold() {
    need_server!();
    let server = Server::start();
    let job = |options: &[&str], command: &[&str]| {
        let options = [&["lock", "--no-wait", "--min-hold", "20s"], options].concat();
        run(program_on(&server, &[&options[..], &["job", "--"], command].concat()))
    };
    assert_eq!(job(&[], &["/no/such/program"]).code, 127);
    empties(&server);
    assert_eq!(job(&[], &["true"]).code, 0);
    let left = server.command(&["PTTL", "job"]).int();
    assert!((15_000..=20_000).contains(&left), "longer than the TTL, and no longer: {left}");
    assert_eq!(job(&[], &["true"]).code, 75);
    let refused = job(&["--longest-ttl", "10s"], &["true"]);
    assert_eq!(refused.code, 64);
    assert!(refused.stderr.contains("--min-hold 20s is above --longest-ttl 10s"), "{refused:?}");
}

#[test]
fn max_hold_is_an_end_for_a_command_that_is_stuck() {
    need_server!();
    let server = Server::start();
    let script = "trap 'echo told; exit 0' TERM; sleep 600 & wait";
    let options = ["lock", "--json", "--verbose", "--ttl", "4s", "--max-hold", "1500ms"];
    let args = [&options[..], &["job", "--", "sh", "-c", script]].concat();
    let running = Running::start(program_on(&server, &args));
    running.complains("lock \"job\" has been held for its --max-hold; it ends in ");
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (79, "told\n"), "{ended:?}");
    let json = ended.json();
    assert!(json["extensions"].as_u64() >= Some(1), "{json}");
    assert_eq!((&json["lost"], &json["exit_code"]), (&"expired".into(), &79.into()), "{json}");
    let error = json["error"].as_str().unwrap_or_default();
    assert!(error.contains("was lost: it was held for its --max-hold before"), "{json}");
    empties(&server);
}

#[test]
fn a_command_that_ends_before_max_hold_is_not_touched() {
    need_server!();
    let server = Server::start();
    let args = ["lock", "--max-hold", "1h", "job", "--", "sh", "-c", "exit 3"];
    let ended = run(program_on(&server, &args));
    assert_eq!((ended.code, &*ended.stderr), (3, ""));
}

#[test]
fn an_extension_that_fails_is_told_once_and_so_is_its_recovery() {
    need_server!();
    let fleet = Fleet::start(3);
    let args = ["lock", "--ttl", "9s", "job", "--", "cat"];
    let running = holding(program_on_all(&fleet, &args));
    fleet[0].pause();
    fleet[1].pause();
    running.complains("lock \"job\" could not be extended, ");
    fleet[0].resume();
    fleet[1].resume();
    running.complains("lock \"job\" is extended again");
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    fleet.iter().for_each(empties);
}

#[test]
fn one_that_waits_says_for_whom_where_it_is_asked_to() {
    need_server!();
    let server = Server::start();
    let first = hold(&server, &["--owner", "first"], "job");
    let args = ["lock", "--verbose", "job", "--", "true"];
    let second = Running::start(program_on(&server, &args));
    second.complains("lock \"job\" is held by first@");
    assert_eq!(first.end().code, 0);
    let ended = second.end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "nothing but that: {ended:?}");
}

/// Nodes that were not put into service may have forgotten what they granted: they give no vote for
/// the longest TTL. A command may wait for that; then they vote.
#[test]
fn nodes_that_may_forget_are_used_as_such() {
    need_server!();
    let server = Server::start();
    let volatile = ["lock", "--longest-ttl", "3s", "--ttl", "2s"];
    let refused = run(program_on(&server, &[&volatile[..], &["-n", "job", "--", "true"]].concat()));
    assert_eq!(refused.code, 69, "{refused:?}");
    let waits = ["--wait", "10s", "--unavailable-wait", "10s", "job", "--", "true"];
    let args = [&volatile[..], &waits].concat();
    let ended = run(program_on(&server, &args));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    // A command without that option gets an error, instead of a lock by other rules.
    let other = run(program_on(&server, &["lock", "job", "--", "true"]));
    assert_eq!(other.code, 78, "{other:?}");
}
