//! Several keys, all or none, by `--key`.

use std::process::Stdio;

use support::{Fleet, Server, need_server};

use crate::run::{Ended, Running, empties, hold, holding, program, program_on, run};

/// Runs `true` under these keys, without waiting.
fn on(server: &Server, keys: &[&str]) -> Ended {
    run(program_on(server, &[&["lock", "-n"], keys, &["--", "true"]].concat()))
}

#[test]
fn several_keys_are_held_while_the_command_runs() {
    need_server!();
    let server = Server::start();
    let running = holding(program_on(&server, &["lock", "--key=b", "--key", "a", "--", "cat"]));
    let value = |key: &str| server.command(&["GET", key]).text();
    assert!(value("a").contains('@') && value("a") == value("b"));
    for held in ["a", "b"] {
        on(&server, &[held]).says(75, &format!("lock \"{held}\" is held by "));
        // Of several, the one that is in the way is named.
        on(&server, &["--key", "c", "--key", held]).says(75, &format!("lock \"{held}\" is held"));
    }
    assert_eq!(on(&server, &["--key", "c", "--key", "d"]).code, 0);
    assert_eq!(running.end().code, 0);
    empties(&server);

    let plain = hold(&server, &[], "b");
    on(&server, &["--key", "a", "--key", "b"]).says(75, "lock \"b\" is held by ");
    assert_eq!(server.command(&["EXISTS", "a"]).int(), 0, "all or none");
    assert_eq!(plain.end().code, 0);
}

#[test]
fn one_key_option_is_the_same_as_the_key_alone() {
    need_server!();
    let server = Server::start();
    let script = "echo \"$QUORLOCK_KEY|$QUORLOCK_TOKEN\"; cat";
    let args = ["lock", "--key", "job", "--", "sh", "-c", script];
    let mut command = program_on(&server, &args);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    let told = running.line();
    assert_eq!(told, format!("job|{}", server.command(&["GET", "job"]).text()));
    assert_eq!(running.end().code, 0);
}

#[test]
fn the_environment_and_the_report_have_every_key() {
    need_server!();
    let server = Server::start();
    let script = "echo \"$QUORLOCK_KEY\"; echo \"$QUORLOCK_TOKEN\"";
    let keys = ["lock", "--json", "--key", "b c", "--key", "a"];
    let ended = run(program_on(&server, &[&keys[..], &["--", "sh", "-c", script]].concat()));
    let told: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!((&told[..2], ended.code), (&["b c", "a"][..], 0), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["keys"], serde_json::json!(["b c", "a"]), "{json}");
    assert!(json["key"].is_null() && json["outcome"] == "done", "{json}");
    // Its token releases nothing, and says so.
    let mut release = program_on(&server, &["release", "a"]);
    release.env("QUORLOCK_TOKEN", told[2]);
    run(release).says(64, "the token is that of a lock of several keys");

    let json = run(program_on(&server, &["lock", "--json", "job", "--", "true"])).json();
    assert_eq!((&json["key"], &json["keys"]), (&"job".into(), &serde_json::json!(["job"])));
}

#[test]
fn the_options_of_one_key_are_those_of_several() {
    need_server!();
    let fleet = Fleet::start(3);
    let on_all = |args: &[&str]| {
        let mut command = program(&[&["lock", "--key", "a", "--key", "b"], args].concat());
        command.env("QUORLOCK_NODES", fleet.urls().join(","));
        command
    };
    let script = "trap 'echo told; exit 0' TERM; echo runs; sleep 600 & wait";
    let running = Running::start(on_all(&["--ttl", "3s", "--", "sh", "-c", script]));
    assert_eq!(running.line(), "runs");
    for server in fleet.iter() {
        server.command(&["DEL", "b"]);
    }
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (79, "told\n"), "{ended:?}");
    assert!(ended.stderr.starts_with("quorlock: lock \"a\", \"b\" was lost: "), "{ended:?}");
    fleet.iter().for_each(empties);

    assert_eq!(run(on_all(&["-n", "--min-hold", "20s", "--", "true"])).code, 0);
    for key in ["a", "b"] {
        let kept = fleet.iter().filter(|node| node.command(&["PTTL", key]).int() > 10_000).count();
        assert!(kept >= 2, "{key} is kept on {kept} nodes");
    }
    let busy = run(on_all(&["--json", "-w", "200ms", "-E", "7", "--", "true"]));
    let error = busy.json()["error"].to_string();
    assert!(busy.code == 7 && error.contains("is held by"), "{busy:?}");
}

#[test]
fn what_is_wrong_with_the_keys_is_told_in_one_line() {
    need_server!();
    let server = Server::start();
    let said = |keys: &[&str]| {
        let ended = on(&server, keys);
        assert_eq!((ended.code, ended.stderr.lines().count()), (64, 1), "{ended:?}");
        ended.stderr
    };
    assert_eq!(
        said(&["--key", "a", "job"]),
        "error: \"job\" stands beside --key; write --key before each key\n"
    );
    assert!(said(&["--key", "a", "--key", "a"]).contains("\"a\" was given twice; give it once"));
    let many: Vec<String> = (0..65).map(|key| format!("--key={key}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(said(&many).contains("65 keys were given; one lock takes at most 64"));
    for args in [&["--key", "a", "echo", "hi"][..], &["--key", "a", "true"], &["--key", "a"]] {
        let ended = run(program_on(&server, &[&["lock"], args].concat()));
        assert!(ended.code == 64 && ended.stderr.contains("two dashes"), "{ended:?}");
    }
    let help = run(program(&["lock", "--help"])).stdout;
    assert!(help.contains("--key <KEY>") && help.contains("has a line for each"), "{help}");
}
