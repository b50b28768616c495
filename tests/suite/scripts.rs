//! The scripts on a server that is not as they expect it: whatever goes wrong, no lock is set, and
//! no key but a node's epoch is ever without an expiry.

use support::{Reply, Server, need_server};

const RELEASE: &str = include_str!("../../src/lock/script/release.lua");
const EXTEND: &str = include_str!("../../src/lock/script/extend.lua");
const ACQUIRE: &str = concat!(
    include_str!("../../src/lease/script/standing.lua"),
    include_str!("../../src/lock/script/acquire.lua")
);
const INITIALISE: &str = include_str!("../../src/lease/script/initialise.lua");

const OWN: &str = "abc 30000";
const SCRIPTS: [(&str, &str); 5] = [
    ("release", RELEASE),
    ("extend", EXTEND),
    ("acquire", ACQUIRE),
    ("look", INITIALISE),
    ("write", INITIALISE),
];

/// The script's command, with this TTL.
fn command(name: &str, script: &str, ttl: &str) -> Vec<String> {
    command_below(name, script, ttl, "30000")
}

fn command_below(name: &str, script: &str, ttl: &str, longest: &str) -> Vec<String> {
    let args: &[&str] = match name {
        "release" => &["1", "k", "v"],
        "extend" => &["1", "k", "v", ttl],
        "acquire" => &["3", "epoch", "quarantine", "k", "v", ttl, longest, "abc"],
        act => &["2", "epoch", "quarantine", act, longest, "abc"],
    };
    ["EVAL", script].iter().chain(args).map(|word| (*word).to_owned()).collect()
}

/// Keys without expiry that are not the epoch, and whether there is a lock with the value `v`.
fn left(server: &Server) -> (Vec<String>, bool) {
    let keys = server.command(&["KEYS", "*"]).array().into_iter().map(|key| key.text());
    let immortal =
        keys.filter(|key| key != "epoch" && server.command(&["PTTL", key]) == Reply::Int(-1));
    (immortal.collect(), server.command(&["GET", "k"]) == Reply::bulk("v"))
}

fn reason(code: i64, millis: i64) -> Reply {
    Reply::Array(vec![Reply::Int(code), Reply::Int(millis)])
}

#[test]
fn acquire_grants_only_on_its_own_epoch_and_out_of_quarantine() {
    need_server!();
    let server = Server::start();
    let run = || server.command(&command("acquire", ACQUIRE, "10000"));
    assert_eq!(run(), reason(2, 30_000), "an empty node");
    assert_eq!(server.command(&["GET", "epoch"]), Reply::bulk(OWN));
    let Reply::Array(again) = run() else { panic!("it is in quarantine") };
    assert!(again[0] == Reply::Int(2) && (1..=30_000).contains(&again[1].int()), "{again:?}");
    server.command(&["DEL", "quarantine"]);
    assert_eq!(run(), Reply::Int(1));
    assert!((1..=10_000).contains(&server.command(&["PTTL", "k"]).int()));
    assert_eq!(run(), Reply::Int(-1));

    server.command(&["SET", "epoch", "other 30000"]);
    assert_eq!(run(), reason(2, 30_000), "another process, whose lock still stands");
    server.command(&["SET", "epoch", "abc 9000"]);
    server.command(&["DEL", "quarantine"]);
    assert_eq!(run(), reason(3, 9_000));
    assert_eq!(server.command(&["EXISTS", "quarantine"]), Reply::Int(0), "nothing was written");
    let (immortal, _) = left(&server);
    assert!(immortal.is_empty(), "{immortal:?}");
}

#[test]
fn initialise_looks_without_writing_and_writes_without_a_quarantine() {
    need_server!();
    let server = Server::start();
    let run = |act| server.command(&command(act, INITIALISE, ""));
    assert_eq!(run("look"), Reply::Int(0));
    assert_eq!(server.command(&["DBSIZE"]), Reply::Int(0));
    server.command(&command("acquire", ACQUIRE, "10000"));
    assert_eq!(run("look"), Reply::Int(0), "in quarantine");
    assert_eq!(run("write"), Reply::Int(1));
    assert_eq!(run("look"), Reply::Int(1));
    assert_eq!(server.command(&command("acquire", ACQUIRE, "10000")), Reply::Int(1));
    server.command(&["SET", "epoch", "abc 9000"]);
    for act in ["look", "write"] {
        assert_eq!(run(act), reason(3, 9_000));
    }
}

#[test]
fn every_script_meets_every_wrong_type() {
    need_server!();
    let server = Server::start();
    for (name, script) in SCRIPTS {
        for key in ["epoch", "quarantine", "k"] {
            for wrong in [&["HSET", key, "a", "b"][..], &["RPUSH", key, "a"], &["SET", key, "x"]] {
                server.command(&["FLUSHALL"]);
                server.command(&["SET", "epoch", OWN]);
                server.command(&["DEL", key]);
                server.command(wrong);
                let before = server.command(&["KEYS", "*"]).array().len();
                let reply = server.command(&command(name, script, "10000"));
                let (mut immortal, locked) = left(&server);
                let what = format!("{name}, {wrong:?}: {reply:?}");
                assert!(!locked, "{what}");
                immortal.retain(|left| left != key);
                assert!(immortal.is_empty(), "{what}: {immortal:?}");
                assert_eq!(server.command(&["KEYS", "*"]).array().len(), before, "{what}");
                if name == "acquire" {
                    let expected = if key == "k" { Reply::Int(-1) } else { reason(4, 0) };
                    assert_eq!(reply, expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn every_script_meets_what_is_no_number() {
    need_server!();
    let server = Server::start();
    let wrong = ["", "x", "0", "-1", "1.5", "1e9", "nan", "inf", "9223372036854775807"];
    for (name, script) in SCRIPTS {
        for ttl in wrong {
            server.command(&["FLUSHALL"]);
            server.command(&["SET", "epoch", OWN]);
            let reply = server.command(&command(name, script, ttl));
            let (immortal, locked) = left(&server);
            assert!(!locked && immortal.is_empty(), "{name} {ttl:?}: {reply:?} {immortal:?}");
        }
    }
    // A quarantine that cannot be set leaves no epoch behind, or the node would be in service.
    for longest in wrong {
        server.command(&["FLUSHALL"]);
        let reply = server.command(&command_below("acquire", ACQUIRE, "0", longest));
        assert!(matches!(reply, Reply::Error(_)), "{longest:?}: {reply:?}");
        assert_eq!(server.command(&["DBSIZE"]), Reply::Int(0), "{longest:?}");
    }
}

#[test]
fn every_script_meets_every_right_that_is_missing() {
    need_server!();
    let mut builder = Server::builder();
    let commands = ["get", "set", "del", "pttl", "pexpire", "eval"];
    for denied in commands {
        builder = builder.user(denied, &format!("on nopass ~* +@all -{denied}"));
    }
    for key in ["epoch", "quarantine", "k"] {
        let keys = ["epoch", "quarantine", "k"].map(|name| format!("~{name}"));
        let keys: Vec<_> = keys.into_iter().filter(|name| name[1..] != *key).collect();
        builder = builder.user(key, &format!("on nopass +@all {}", keys.join(" ")));
    }
    let server = builder.start();
    // A missing right, a state of the node: in service, new, of another process, in quarantine.
    let states: [&[&[&str]]; 4] = [
        &[&["SET", "epoch", OWN]],
        &[],
        &[&["SET", "epoch", "other 30000"]],
        &[&["SET", "epoch", OWN], &["SET", "quarantine", "abc", "PX", "30000"]],
    ];
    for (name, script) in SCRIPTS {
        for user in commands.into_iter().chain(["epoch", "quarantine", "k"]) {
            for state in states {
                server.command(&["FLUSHALL"]);
                state.iter().for_each(|command| drop(server.command(command)));
                let mut client = server.connect().unwrap();
                assert_eq!(client.call(&["AUTH", user, ""]).unwrap(), Reply::ok());
                let reply = client.call(&command(name, script, "10000")).unwrap();
                let (immortal, locked) = left(&server);
                let granted = name == "acquire" && reply == Reply::Int(1);
                let what = format!("{name} without {user} on {state:?}: {reply:?}");
                assert_eq!(locked, granted, "{what}");
                assert!(immortal.is_empty(), "{what}: {immortal:?}");
                // An epoch of this process without a quarantine is a node in service.
                let serves = server.command(&["GET", "epoch"]) == Reply::bulk(OWN)
                    && server.command(&["EXISTS", "quarantine"]) == Reply::Int(0);
                let served = state.len() == 1 && state[0][2] == OWN;
                assert!(!serves || served || name == "write", "{what}: it came into service");
            }
        }
    }
}

#[test]
fn every_script_meets_a_full_memory() {
    need_server!();
    let server = Server::builder().args(["--maxmemory-policy", "noeviction"]).start();
    for (name, script) in SCRIPTS {
        for state in [&["SET", "epoch", OWN][..], &["SET", "unrelated", "x", "PX", "60000"]] {
            server.command(&["CONFIG", "SET", "maxmemory", "0"]);
            server.command(&["FLUSHALL"]);
            server.command(state);
            server.command(&["CONFIG", "SET", "maxmemory", "1"]);
            let reply = server.command(&command(name, script, "10000"));
            let (immortal, locked) = left(&server);
            assert!(!locked && immortal.is_empty(), "{name} {state:?}: {reply:?} {immortal:?}");
            if name == "acquire" {
                assert!(reply.text().contains("OOM"), "{reply:?}");
            }
        }
    }
}
