//! An exit code for each cause.

use quorlock::testing::Node;
use support::in_process;
use support::script::Script;
use support::scripted::Scripted;
use support::{Fleet, Port, Server, Watchdog, eventually, need_server};

use crate::run::{Running, empties, hold, program, program_on, run};

#[test]
fn the_commands_own_code_passes() {
    need_server!();
    let server = Server::start();
    for (script, code) in [("exit 42", 42), ("exit 0", 0), ("kill -TERM $$", 128 + 15)] {
        let ended = run(program_on(&server, &["lock", "job", "--", "sh", "-c", script]));
        assert_eq!((ended.code, &*ended.stderr), (code, ""), "{script}");
        empties(&server);
    }
}

#[test]
fn a_quorum_runs_it_with_two_of_five_nodes_down() {
    need_server!();
    let fleet = Fleet::start(5);
    let urls = fleet.urls();
    let (options, list) = (["lock", "--node", &urls[0], "--node", &urls[1]], urls[2..].join(","));
    let args = [&options[..], &["--node", &list, "job", "--", "sh", "-c", "exit 42"]].concat();
    assert_eq!(run(program(&args)).code, 42);
    fleet[1].stop();
    fleet[4].pause();
    assert_eq!(run(program(&args)).code, 42);
    fleet[0].stop();
    run(program(&args)).says(69, "no quorum: 2 of 5 nodes answered, 3 needed");
    fleet[4].resume();
    fleet.iter().filter(|server| server.is_running()).for_each(empties);
}

#[test]
fn a_server_that_deletes_natively_deletes_its_lock_so() {
    let node = in_process::serve(Node::builder().valkey("9.1.2")).unwrap();
    let ended = run(program(&["lock", "--node", &node.url().unwrap(), "job", "--", "true"]));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert_eq!((node.calls("delifeq"), node.calls("release")), (1, 0));
}

#[test]
fn a_lock_that_is_held_is_busy() {
    need_server!();
    let server = Server::start();
    let first = hold(&server, &["--owner", "first"], "job");
    let second = |options: &[&str]| {
        run(program_on(&server, &[&["lock"], options, &["job", "--", "true"]].concat()))
    };

    let busy = second(&["-n"]);
    busy.says(75, "lock \"job\" is held by first@");
    assert!(busy.stderr.contains(" left"), "{busy:?}");
    second(&["--no-wait", "-E", "7"]).says(7, "is held by first@");
    second(&["-w", "200ms"]).says(75, "gave up after");
    second(&["-w", "0"]).says(75, "is held by first@");
    // Another key is another lock.
    assert_eq!(second(&["-n", "--prefix", "other:"]).code, 0);

    assert_eq!(first.end().code, 0);
    assert_eq!(second(&["-n"]).code, 0);
    empties(&server);
}

#[test]
fn one_that_waits_gets_it_after_the_release() {
    need_server!();
    let server = Server::start();
    let first = hold(&server, &[], "job");
    let waits = program_on(&server, &["lock", "job", "--", "echo", "mine"]);
    let second = Running::start(waits);
    eventually("it waits in the queue", || {
        server.command(&["ZCARD", "{job}:quorlock:queue"]).int() == 1
    });
    assert_eq!(first.end().code, 0);
    assert_eq!(second.line(), "mine");
    assert_eq!(second.end().code, 0);
}

#[test]
fn no_node_up_is_told_at_once() {
    let ports = [Port::claim(), Port::claim(), Port::claim()];
    let urls: Vec<String> = ports.iter().map(|port| format!("redis://{}", port.addr())).collect();
    let watchdog = Watchdog::new("an outage to be told, whatever the wait is");
    let args = ["lock", "-w", "1h", "--node", &urls.join(","), "job", "--", "true"];
    let ended = run(program(&args));
    watchdog.check();
    ended.says(69, "0 of 3 nodes answered, 2 needed");
    assert!(ended.stderr.contains(&format!("{} refused the connection", ports[2].addr())));
}

#[test]
fn configuration_that_cannot_be_right() {
    let with = |args: &[&str]| run(program(&[args, &["job", "--", "true"]].concat()));
    with(&["lock"]).says(78, "give --node redis://host:port");
    with(&["lock", "--node", "localhost:6379"]).says(78, "has no scheme");
    with(&["lock", "--node", "redis://h?timeout=3"]).says(78, "unknown parameter");
    with(&["lock", "--node", "redis://h", "--node", "redis://h:6379"]).says(78, "given twice");
    let mut bad_variable = program(&["lock", "job", "--", "true"]);
    bad_variable.env("QUORLOCK_NODES", "http://h");
    run(bad_variable).says(78, "unknown scheme");
    let mut fallback = program(&["lock", "job", "--", "true"]);
    fallback.env("REDIS_URL", "redis://h:0");
    run(fallback).says(78, "bad port");
}

#[test]
fn a_key_that_something_else_uses_is_no_lock() {
    need_server!();
    let server = Server::start();
    server.command(&["HSET", "job", "field", "value"]);
    for option in ["-n", "--wait=3s"] {
        let ended = run(program_on(&server, &["lock", option, "job", "--", "true"]));
        ended.says(78, "holds a value that no lock wrote (a hash, without expiry)");
    }
}

#[test]
fn a_key_that_is_too_long_is_a_usage_error() {
    need_server!();
    let server = Server::start();
    let key = "k".repeat(5_000);
    for args in [&["lock", &key, "--", "true"][..], &["status", &key]] {
        run(program_on(&server, args)).says(64, "at most 4096 are allowed");
    }
}

#[test]
fn usage_that_cannot_be_right() {
    let node = ["--node", "redis://127.0.0.1:1"];
    let cases: [&[&str]; 14] = [
        &[],
        &["lock"],
        &["lock", "job"],
        &["lock", "job", "true"],
        &["lock", "job", "--"],
        &["lock", "", "--", "true"],
        &["lock", "job", "--", ""],
        &["lock", "--ttl", "0", "job", "--", "true"],
        &["lock", "--wait", "-1s", "job", "--", "true"],
        &["lock", "-n", "-w", "1s", "job", "--", "true"],
        &["lock", "-E", "256", "job", "--", "true"],
        &["lock", "--no-extend", "--max-hold", "1h", "job", "--", "true"],
        &["lock", "--on-lost", "stop", "job", "--", "true"],
        &["nothing"],
    ];
    for case in cases {
        let at = case.len().min(1);
        let args = [&case[..at], if at == 0 { &[] } else { &node }, &case[at..]].concat();
        let ended = run(program(&args));
        assert_eq!(ended.code, 64, "{case:?}: {ended:?}");
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{case:?}: {ended:?}");
    }
    let long = "x".repeat(200);
    let args = [&["lock"], &node[..], &["--owner", &long, "job", "--", "true"]].concat();
    run(program(&args)).says(64, "at most 128 bytes");
    for args in [&["--help"][..], &["--version"], &["lock", "--help"], &["help", "status"]] {
        let ended = run(program(args));
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{args:?}");
    }
}

#[test]
fn a_command_that_cannot_be_run() {
    need_server!();
    let server = Server::start();
    for (command, code) in [("no-such-command", 127), ("/etc/passwd", 126), ("/", 126)] {
        let ended = run(program_on(&server, &["lock", "job", "--", command]));
        ended.says(code, &format!("cannot run {command:?}"));
        empties(&server);
    }
}

#[test]
fn an_outage_is_waited_for_as_long_as_is_asked_and_a_second_otherwise() {
    let port = Port::claim();
    let url = format!("redis://{}", port.addr());
    let start = |options: &[&str]| {
        let behind = ["--node", &url, "job", "--", "echo", "mine"];
        Running::start(program(&[&["lock"], options, &behind].concat()))
    };
    let (patient, usual) = (start(&["--unavailable-wait", "1h"]), start(&[]));
    usual.end().says(69, "refused the connection");
    // No longer than the lock is waited for.
    start(&["-n", "--unavailable-wait", "1h"]).end().says(69, "refused the connection");
    let server = Scripted::start_on(
        port.number(),
        Script::greeting().answer_all(|command| match &*command[0] {
            b"SET" => "+OK\r\n".into(),
            _ => ":1\r\n".into(),
        }),
    );
    let ended = patient.end();
    assert_eq!((ended.code, &*ended.stdout), (0, "mine\n"), "{ended:?}");
    assert!(server.accepted() > 0);
    // Connecting takes a moment, which is no outage.
    let ended = start(&["--unavailable-wait", "0"]).end();
    assert_eq!((ended.code, &*ended.stdout), (0, "mine\n"), "{ended:?}");
}
