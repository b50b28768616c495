//! A lock that several share, by `--shared`.

use std::process::Stdio;

use support::{Fleet, Server, need_server};

use crate::run::{Running, empties, hold, holding, program, program_on, run};

#[test]
fn those_that_share_a_lock_run_at_once() {
    need_server!();
    let server = Server::start();
    let share = ["lock", "--shared", "job", "--", "cat"];
    let (one, two) = (holding(program_on(&server, &share)), holding(program_on(&server, &share)));
    let alone = ["lock", "-n", "job", "--", "true"];
    run(program_on(&server, &alone)).says(75, "lock \"job\" is held by readers");
    let shown = run(program_on(&server, &["status", "job"]));
    assert!(shown.stdout.contains("readers"), "{shown:?}");
    assert_eq!((one.end().code, two.end().code), (0, 0));
    empties(&server);

    let written = hold(&server, &[], "job");
    let joins = ["lock", "-n", "--shared", "job", "--", "true"];
    run(program_on(&server, &joins)).says(75, "lock \"job\" is held by ");
    assert_eq!(written.end().code, 0);
}

#[test]
fn one_that_shares_waits_for_one_that_does_not_and_is_told_its_token() {
    need_server!();
    let fleet = Fleet::start(3);
    let on_all = |args: &[&str]| {
        let mut command = program(args);
        command.env("QUORLOCK_NODES", fleet.urls().join(","));
        command.stdin(Stdio::piped());
        command
    };
    let written = holding(on_all(&["lock", "job", "--", "cat"]));
    let script = "echo \"$QUORLOCK_TOKEN\"; cat";
    let reading = Running::start(on_all(&["lock", "--shared", "job", "--", "sh", "-c", script]));
    assert_eq!(written.end().code, 0);
    let token = reading.line();
    assert!(token.starts_with("read:"), "{token}");
    let mut release = on_all(&["release", "job"]);
    release.env("QUORLOCK_TOKEN", token);
    run(release).says(64, "the token is that of a read lock");
    assert_eq!(reading.end().code, 0);
}

#[test]
fn what_does_not_go_with_sharing_is_refused() {
    for other in [&["--fenced", "job"][..], &["--key", "a", "--key", "b"]] {
        let ended = run(program(&[&["lock", "--shared"], other, &["--", "true"]].concat()));
        assert_eq!(ended.code, 64, "{ended:?}");
    }
}
