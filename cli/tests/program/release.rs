//! Ending a lock from outside.

use support::{Fleet, Reply, Server, need_server};

use crate::run::{Ended, hold, program, run};

fn release(fleet: &Fleet, args: &[&str]) -> Ended {
    let mut command = program(&[&["release"], args].concat());
    command.env("QUORLOCK_NODES", fleet.urls().join(","));
    run(command)
}

fn value(number: u8) -> String {
    format!("{}@me@host:1", format!("{number:02x}").repeat(20))
}

/// Has all nodes hold this value under `job`.
fn set(fleet: &Fleet, value: &str) {
    for node in fleet {
        node.command(&["SET", "job", value, "PX", "60000"]);
    }
}

fn keys(fleet: &Fleet) -> usize {
    let held = |node: &&Server| node.command(&["EXISTS", "job"]) == Reply::Int(1);
    fleet.iter().filter(|node| node.is_running()).filter(held).count()
}

#[test]
fn a_token_ends_its_own_lock_and_no_other() {
    need_server!();
    let fleet = Fleet::start(3);
    set(&fleet, &value(1));
    let ended = release(&fleet, &["job", &value(2)]);
    assert_eq!((ended.code, ended.stdout.as_str()), (75, ""), "{ended:?}");
    assert!(ended.stderr.contains("is held by another token"), "{ended:?}");
    assert_eq!(keys(&fleet), 3);

    let ended = release(&fleet, &["job", &value(1)]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert_eq!(ended.stdout, "\"job\"  released\n");
    assert_eq!(keys(&fleet), 0);

    let ended = release(&fleet, &["--json", "job", &value(1)]);
    assert_eq!(ended.code, 79, "{ended:?}");
    assert_eq!(ended.stdout, "{\"key\":\"job\",\"release\":\"expired\"}\n");
    assert!(ended.stderr.contains("had ended before"), "{ended:?}");

    for node in &fleet {
        node.stop();
    }
    assert_eq!(release(&fleet, &["job", &value(1)]).code, 69);
}

#[test]
fn force_ends_the_lock_of_any_holder() {
    need_server!();
    let fleet = Fleet::start(3);
    set(&fleet, &value(1));
    fleet[1].stop();
    let ended = release(&fleet, &["--force", "job"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let words = "\"job\"  deleted on 2 of 3 nodes; before: held by me@host:1, ";
    assert!(ended.stdout.starts_with(words), "{ended:?}");
    let words = "(2 of 3 nodes answered, 2 needed)\n";
    assert!(ended.stdout.ends_with(words), "{ended:?}");
    assert_eq!(keys(&fleet), 0);

    let ended = release(&fleet, &["--force", "--json", "job"]);
    let start =
        "{\"key\":\"job\",\"release\":\"forced\",\"before\":\"free\",\"owner\":null,\"nodes\":[";
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.starts_with(start) && ended.stdout.contains("\"free\""), "{ended:?}");
    assert!(ended.stdout.contains("\"unknown\""), "{ended:?}");

    fleet[0].stop();
    assert_eq!(release(&fleet, &["--force", "job"]).code, 69);
}

#[test]
fn what_no_lock_wrote_is_left_as_it_is() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[2].command(&["HSET", "job", "field", "value"]);
    let ended = release(&fleet, &["--force", "job"]);
    assert_eq!((ended.code, &*ended.stdout), (78, ""), "{ended:?}");
    assert!(ended.stderr.contains("that no lock wrote (a hash, without expiry)"), "{ended:?}");
    assert_eq!(keys(&fleet), 1);
}

#[test]
fn a_missing_right_is_told_as_such() {
    need_server!();
    let server = Server::builder().user("me", "on >pw ~* +@all -evalsha -eval").start();
    let mut command = program(&["release", "job", &value(1)]);
    command.env("QUORLOCK_NODES", server.url_as("me:pw"));
    let ended = run(command);
    assert_eq!((ended.code, &*ended.stdout), (77, ""), "{ended:?}");
    assert!(ended.stderr.contains("said NOPERM"), "{ended:?}");
}

#[test]
fn the_token_of_a_running_command_ends_its_lock() {
    need_server!();
    let fleet = Fleet::start(1);
    let holder = hold(&fleet[0], &["--on-lost", "ignore"], "job");
    let Reply::Bulk(token) = fleet[0].command(&["GET", "job"]) else { panic!("it is held") };
    let mut command = program(&["release", "job"]);
    command.env("QUORLOCK_NODES", fleet.urls().join(","));
    // Others cannot see it there.
    command.env("QUORLOCK_TOKEN", std::str::from_utf8(&token).unwrap());
    let ended = run(command);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(keys(&fleet), 0);
    drop(holder);
}

#[test]
fn a_command_without_its_dashes_is_told_where_they_stand() {
    for args in [&["lock", "job", "echo", "hi"][..], &["lock", "job"], &["lock", "job", "-x"]] {
        let ended = run(program(args));
        assert_eq!(ended.code, 64, "{ended:?}");
        assert!(ended.stderr.contains("quorlock lock job -- echo hi"), "{ended:?}");
    }
    let ended = run(program(&["lock", "job", "-x", "--", "true"]));
    assert!(!ended.stderr.contains("two dashes"), "{ended:?}");
}

#[test]
fn a_command_line_that_says_neither_token_nor_force_is_wrong() {
    for args in [&["job"][..], &["--force"], &["--force", "job", "token"], &["job", ""]] {
        let ended = run(program(&[&["release"], args].concat()));
        assert_eq!((ended.code, &*ended.stdout), (64, ""), "{ended:?}");
    }
}
