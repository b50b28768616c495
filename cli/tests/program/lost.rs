//! A lock that ends before the command does.

use support::{Server, need_server};

use crate::run::{empties, ends, hold, program_on, run};

#[test]
fn the_command_is_told_to_end_before_the_lock_does() {
    need_server!();
    let server = Server::start();
    let script = "trap 'echo told; exit 0' TERM; sleep 600 & wait";
    let ended = run(program_on(
        &server,
        &["lock", "--no-extend", "--ttl", "10s", "job", "--", "sh", "-c", script],
    ));
    ended.says(79, "lock \"job\" was lost: its time ended before the command did");
    assert_eq!(ended.stdout, "told\n");
    empties(&server);
}

#[test]
fn a_command_that_does_not_obey_is_killed_with_all_its_children() {
    need_server!();
    let server = Server::start();
    let script = "trap '' TERM; sleep 600 & echo $!; wait; while :; do sleep 0.01; done";
    let options = ["lock", "--json", "--no-extend", "--ttl", "1500ms"];
    let args = [&options[..], &["job", "--", "sh", "-c", script]].concat();
    let ended = run(program_on(&server, &args));
    assert_eq!(ended.code, 79, "{ended:?}");
    assert!(
        ended.stderr.contains(
            r#""extensions":0,"lost":"expired","child_code":137,"child_signal":9,"exit_code":79"#
        ),
        "{ended:?}"
    );
    ends(ended.stdout.trim_end());
}

#[test]
fn what_an_orderly_command_left_behind_is_killed_too() {
    need_server!();
    let server = Server::start();
    // The command itself obeys; its child does not.
    let script = "(trap '' TERM; exec sleep 600) & echo $!; trap 'exit 0' TERM; wait; exit 0";
    let ended = run(program_on(
        &server,
        &["lock", "--no-extend", "--ttl", "1500ms", "job", "--", "sh", "-c", script],
    ));
    assert_eq!(ended.code, 79, "{ended:?}");
    ends(ended.stdout.trim_end());
}

#[test]
fn a_lock_that_was_deleted_or_taken_meanwhile_was_lost() {
    need_server!();
    let server = Server::start();
    let first = hold(&server, &[], "job");
    server.command(&["DEL", "job"]);
    first.end().says(79, "it was gone from the nodes before the command ended");

    let first = hold(&server, &[], "job");
    server.command(&["SET", "job", "another", "PX", "60000"]);
    first.end().says(79, "another client took it before the command ended");
    assert_eq!(server.command(&["GET", "job"]).text(), "another");
}

#[test]
fn an_end_in_json_is_one_object() {
    need_server!();
    let server = Server::start();
    let script = "echo out; exit 3";
    let ended =
        run(program_on(&server, &["lock", "--json", "a \"job\"", "--", "sh", "-c", script]));
    assert_eq!((ended.code, &*ended.stdout), (3, "out\n"));
    let line = ended.stderr.strip_suffix('\n').expect("a line");
    let start = r#"{"key":"a \"job\"","keys":["a \"job\""],"outcome":"done","wait_us":"#;
    assert!(line.starts_with(start), "{line}");
    let rest = r#""child_code":3,"child_signal":null,"exit_code":3,"error":null}"#;
    assert!(
        line.ends_with(&format!(r#","fence":null,"slot":null,"extensions":0,"lost":null,{rest}"#)),
        "{line}"
    );
    assert!(!line.contains('\n'), "{line}");

    let first = hold(&server, &[], "job");
    let busy = run(program_on(&server, &["lock", "--json", "-n", "-E", "9", "job", "--", "true"]));
    assert_eq!((busy.code, &*busy.stdout), (9, ""));
    assert!(busy.stderr.contains(r#""outcome":"busy""#), "{busy:?}");
    assert!(
        busy.stderr
            .contains(r#""hold_us":null,"fence":null,"slot":null,"extensions":0,"lost":null,"#)
            && busy.stderr.contains(r#""child_code":null"#),
        "{busy:?}"
    );
    assert!(busy.stderr.contains(r#""exit_code":9,"error":"lock \"job\" is held by "#), "{busy:?}");
    drop(first);
}

#[test]
fn a_lock_that_was_lost_keeps_others_out_for_its_delay() {
    need_server!();
    let server = Server::start();
    let lock = ["lock", "--no-extend", "--ttl", "1s"];
    let sleeps = ["job", "--", "sleep", "600"];
    let delay = ["--lock-delay", "1m"];
    let lost = run(program_on(&server, &[&lock[..], &delay, &sleeps].concat()));
    lost.says(79, "its time ended before the command did");
    let left = server.command(&["PTTL", "job"]).int();
    assert!((30_000..=61_000).contains(&left), "{left}");
    run(program_on(&server, &["lock", "-n", "job", "--", "true"])).says(75, "is held by");
    // It is free at once behind a command that has ended.
    let other = ["other", "--", "true"];
    let ended = run(program_on(&server, &[&lock[..], &delay, &other].concat()));
    assert_eq!((ended.code, server.command(&["EXISTS", "other"]).int()), (0, 0), "{ended:?}");
}
