//! Passwords: taken from the environment, and shown nowhere.

use support::{Fleet, Server, need_process, need_server, skip, test_name};

use crate::run::{Running, on_terminal, program, run};

/// With every character that means something in a URL.
const PASSWORD: &str = "canary@:/?#[]%41,& \"'=+ü";

/// No output shows this.
const CANARY: &str = "canary";

#[test]
fn the_password_comes_from_the_environment() {
    need_process!();
    let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = Server::builder().password(PASSWORD).args(keeps).start();
    let url = format!("redis://{}", server.addr());
    for args in [&["lock", "job", "--", "true"][..], &["status", "job"]] {
        let mut command = program(args);
        command.env("REDIS_URL", &url).env("REDIS_PASSWORD", PASSWORD);
        let ended = run(command);
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{args:?}");
        assert!(!ended.stdout.contains(CANARY), "{ended:?}");
    }
}

#[test]
fn it_can_be_asked_for_on_the_terminal_which_does_not_show_it() {
    need_server!();
    let server = Server::builder().password(PASSWORD).start();
    let quorlock = env!("CARGO_BIN_EXE_quorlock");
    let line = format!("{quorlock} lock --askpass job -- echo mine");
    let Some(mut command) = on_terminal(&line) else {
        return skip::skip(test_name!(), "there is no `script` of util-linux");
    };
    command.env("QUORLOCK_NODES", format!("redis://{}", server.addr()));
    command.env("REDIS_PASSWORD", "not this one");
    let mut running = Running::start(command);
    running.asks("Password: ");
    running.write(&format!("{PASSWORD}\n"));
    let ended = running.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("mine"), "{ended:?}");
    assert!(!ended.stdout.contains(CANARY), "{ended:?}");
}

#[test]
fn a_wrong_password_is_told_and_not_shown() {
    need_server!();
    let server = Server::builder().password("right").start();
    let fleet = Fleet::start_with(3, |_, builder| builder.password("right"));
    let addresses = |servers: &[&Server]| -> Vec<String> {
        servers.iter().map(|server| server.addr().to_string()).collect()
    };
    let quorum = [&fleet[0], &fleet[1], &fleet[2]];
    for nodes in [addresses(&[&server]), addresses(&quorum)] {
        let bare: Vec<String> = nodes.iter().map(|addr| format!("redis://{addr}")).collect();
        let with: Vec<String> =
            nodes.iter().map(|addr| format!("redis://:canary@{addr}")).collect();
        for command in
            [&["lock", "job", "--", "true"][..], &["lock", "--json", "job", "--", "true"]]
        {
            for (urls, password) in [(&bare, Some(PASSWORD)), (&with, None), (&bare, None)] {
                let mut program = program(command);
                program.env("QUORLOCK_NODES", urls.join(","));
                if let Some(password) = password {
                    program.env("REDIS_PASSWORD", password);
                }
                let ended = run(program);
                assert_eq!(ended.code, 77, "{ended:?}");
                assert!(ended.stderr.contains("check the"), "{ended:?}");
                assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
            }
        }
        let mut status = program(&["status", "job"]);
        status.env("QUORLOCK_NODES", with.join(","));
        let ended = run(status);
        assert_eq!(ended.code, 77, "{ended:?}");
        assert!(ended.stdout.contains("WRONGPASS"), "{ended:?}");
        assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
    }
}

#[test]
fn a_url_that_cannot_be_right_is_not_repeated() {
    for url in ["redis://:canary@h:x", "ftp://:canary@h", "redis://:p?canary@h", "redis://canary@h"]
    {
        let ended = run(program(&["lock", "--node", url, "job", "--", "true"]));
        assert_eq!(ended.code, 78, "{ended:?}");
        assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
    }
    // What stands before the password is no reason to show it either.
    let mut command = program(&["lock", "--node", "redis://h:x", "job", "--", "true"]);
    command.env("REDIS_PASSWORD", PASSWORD);
    let ended = run(command);
    ended.says(78, "bad port");
    assert!(!ended.stderr.contains(CANARY), "{ended:?}");
}

#[test]
fn a_url_in_the_wrong_place_is_not_repeated_with_its_login() {
    for url in [
        "redis://me:p@canary ü@h:6379",
        "redis://h:6379?password=canary",
        "redis://me:canary?a=b@canary",
    ] {
        for args in [
            &["bench", url][..],
            &[url],
            &["lock", "job", url, "--", "true"],
            &["lock", "--ttl", url, "job", "--", "true"],
            &["lock", "--on-lost", url, "job", "--", "true"],
            &["lock", &format!("--{url}"), "job", "--", "true"],
            &["status", &format!("--nodes={url}"), "job"],
        ] {
            let ended = run(program(args));
            assert_eq!(ended.code, 64, "{ended:?}");
            assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
        }
    }
}

/// The random values that a server was told, each by its beginning.
fn values(server: &Server) -> Vec<String> {
    let commands = server.command(&["SLOWLOG", "GET", "1000"]).array();
    let words = commands.into_iter().flat_map(|entry| entry.array().swap_remove(3).array());
    let words = words.map(|word| word.text());
    let is_value = |word: &String| {
        let (value, owner) = word.split_at_checked(40).unwrap_or_default();
        owner.starts_with('@') && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    words.filter(is_value).map(|word| word[..12].to_owned()).collect()
}

#[test]
fn no_output_shows_a_password_or_a_random_value() {
    need_process!();
    let fleet = Fleet::start_with(3, |_, server| {
        let memory = ["--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000"];
        server.args(memory).password(PASSWORD)
    });
    let theirs = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00@them";
    fleet.command(&["SET", "theirs", theirs, "PX", "600000"]);
    fleet.command(&["SET", "foreign", "canary"]);
    let urls = |login: &str| -> String {
        let urls: Vec<_> = fleet.iter().map(|s| format!("redis://{login}{}", s.addr())).collect();
        urls.join(",")
    };
    let gone = "redis://:canary@127.0.0.1:1,redis://:canary@no-such-name.invalid";
    let mut shown = Vec::new();
    for nodes in [urls(""), urls(":canary@"), urls("me:canary@"), gone.into()] {
        for how in [&[][..], &["--json"], &["--verbose"], &["--json", "--verbose"]] {
            for (key, wait) in [("ours", "5s"), ("theirs", "300ms"), ("foreign", "0")] {
                let command = ["lock", "--wait", wait, key];
                let mut program = program(&[&command[..], how, &["--", "true"]].concat());
                program.env("QUORLOCK_NODES", &nodes).env("REDIS_PASSWORD", PASSWORD);
                shown.push(run(program));
            }
        }
        for args in [&["status", "ours", "theirs", "foreign"][..], &["status", "--json", "theirs"]]
        {
            let mut program = program(args);
            program.env("QUORLOCK_NODES", &nodes).env("REDIS_PASSWORD", PASSWORD);
            shown.push(run(program));
        }
    }
    for how in ["--json", "--verbose"] {
        let mut program = program(&["lock", "--ttl", "1s", how, "lost", "--", "sleep", "20"]);
        program.env("QUORLOCK_NODES", urls("")).env("REDIS_PASSWORD", PASSWORD);
        let running = Running::start(program);
        support::eventually("the lock to be held", || fleet.holders("lost").len() == 3);
        fleet.command(&["DEL", "lost"]);
        shown.push(running.end());
    }
    let codes: Vec<i32> = shown.iter().map(|ended| ended.code).collect();
    for code in [0, 69, 75, 77, 79] {
        assert!(codes.contains(&code), "no program ended with {code}: {codes:?}");
    }
    let mut canaries: Vec<String> = fleet.iter().flat_map(values).collect();
    assert!(canaries.len() > 10, "{canaries:?}");
    canaries.extend([CANARY.to_owned(), theirs[..12].to_owned()]);
    for ended in shown {
        let text = format!("{ended:?}");
        let canary = canaries.iter().find(|canary| text.contains(canary.as_str()));
        assert_eq!(canary, None, "{ended:?}");
    }
}
