//! A node inside this process answers as a real server does, command by command.

use crate::support::{Port, Reply, Server, in_process, need_process};

const RELEASE: &str = include_str!("../../src/lock/script/release.lua");
const EXTEND: &str = include_str!("../../src/lock/script/extend.lua");
const ACQUIRE: &str = include_str!("../../src/lock/script/acquire.lua");
const INITIALISE: &str = include_str!("../../src/lock/script/initialise.lua");

/// Commands in lines, or between bars.
fn commands(text: &'static str) -> Vec<Vec<&'static str>> {
    let lines = text.split(['\n', '|']).map(|line| line.split_whitespace().collect());
    lines.filter(|words: &Vec<&str>| !words.is_empty()).collect()
}

/// What is said, in this order, on one connection.
fn conversation() -> Vec<Vec<&'static str>> {
    let plain = "
        PING | PING hello | ECHO hello | GET | GET a b | FOO | SET k | CLIENT DANCE | SELECT x
        SELECT 99 | SELECT 3 | SET k three | SELECT 0 | GET k | SET k v NX PX 60000 | SET k w NX
        SET k w XX GET | SET none w XX | SET k w NX XX | SET k w PX | SET k w PX 0 | SET k w PX -1
        SET k w PX x | SET k w PX 1.5 | SET k w PX 9223372036854775807 | SET k w EX 1 PX 1
        SET k w KEEPTTL EX 1 | SET k w FOO | GET k | TTL k | SET k x EX 60 | TTL k | PERSIST k
        PTTL k | PERSIST k | PTTL none | PEXPIRE none 9 | PEXPIRE k x | PEXPIRE k 60000 | TTL k
        EXISTS k k none | TYPE k | TYPE none | STRLEN k | INCR k | SET n 41 | INCR n | GET n
        PEXPIRE n -1 | EXISTS n | HSET h f v g w | HSET h f | GET h | TYPE h | INCR h
        SET h v NX PX 9 | RPUSH l a b | TYPE l | GET l | DEL h l none | UNLINK k | DBSIZE
        SET a 1 | SET b 2 | KEYS b* | KEYS none* | SCRIPT EXISTS ffff | EVALSHA ffff 0
        EVALSHA ffff x | EVALSHA ffff 1 | EVALSHA ffff -1 | AUTH wrong | CLIENT KILL ID x
        CLIENT KILL ID 99999 | CLIENT SETNAME me | CLIENT GETNAME | CLIENT SETNAME a\u{1} | HELLO 4
        HELLO x | CONFIG GET maxmemory | CONFIG SET maxmemory 1 | SET a 2 | DEL a
        CONFIG SET maxmemory 0 | FLUSHDB | DBSIZE | SET a 1 | FLUSHALL | DBSIZE";
    let mut said = commands(plain);
    for state in [&["DEL", "k"][..], &["SET", "k", "v", "PX", "60000"], &["HSET", "k", "f", "v"]] {
        for script in [RELEASE, EXTEND] {
            for value in ["other", "v"] {
                said.push(vec!["FLUSHALL"]);
                said.push(state.to_vec());
                said.push(vec!["EVAL", script, "1", "k", value, "90000"]);
                said.push(vec!["TTL", "k"]);
            }
        }
    }
    let epochs = ["abc 30000", "def 30000", "abc 9000", "none at all", "abc", " 30000"];
    for epoch in epochs.map(|epoch| vec!["SET", "e", epoch]).into_iter().chain([vec!["DEL", "e"]]) {
        for act in ["acquire", "look", "write"] {
            for quarantine in [&["DEL", "q"][..], &["SET", "q", "for ever"], &["RPUSH", "q", "a"]] {
                said.extend([vec!["FLUSHALL"], epoch.clone(), quarantine.to_vec()]);
                for _ in 0..2 {
                    said.push(match act {
                        "acquire" => {
                            vec!["EVAL", ACQUIRE, "3", "e", "q", "k", "v", "10000", "30000", "abc"]
                        }
                        act => vec!["EVAL", INITIALISE, "2", "e", "q", act, "30000", "abc"],
                    });
                    said.extend([vec!["GET", "e"], vec!["TTL", "q"], vec!["TTL", "k"]]);
                }
            }
        }
    }
    for ttl in ["", "x", "0", "-1", "1.5", "1e9", "30001"] {
        said.extend([vec!["FLUSHALL"], vec!["SET", "e", "abc 30000"], vec!["SET", "k", "v"]]);
        said.push(vec!["EVAL", ACQUIRE, "3", "e", "q", "l", "v", ttl, "30000", "abc"]);
        said.push(vec!["EVAL", INITIALISE, "2", "e", "q", "look", ttl, "abc"]);
        said.push(vec!["DBSIZE"]);
    }
    said
}

/// What only the latest servers know.
const LATEST: &str = "
    SET k v PX 60000 | DELIFEQ k w | DELIFEQ k v | DELIFEQ k v | DELIFEQ k | HSET h f v
    DELIFEQ h v | SET h v IFEQ v | SET k v IFEQ v | SET k v | SET k w IFEQ x | SET k w IFEQ v GET
    SET k x IFEQ w PX 60000 | TTL k | SET k y IFEQ x KEEPTTL | TTL k | SET k y IFEQ y NX | GET k";

/// What matters of a reply: of an error its first word, for the rest differs by version; of a time
/// left not its last milliseconds.
fn essence(reply: Reply) -> Reply {
    match reply {
        Reply::Error(text) => {
            Reply::Error(text.split_whitespace().next().unwrap_or_default().to_owned())
        }
        Reply::Array(parts) => match parts[..] {
            [Reply::Int(2), Reply::Int(millis)] => {
                Reply::Array(vec![Reply::Int(2), Reply::Int((millis + 999) / 1_000)])
            }
            _ => Reply::Array(parts),
        },
        reply => reply,
    }
}

#[test]
fn a_node_answers_as_a_server_does() {
    need_process!();
    let (server, port) = (Server::start(), Port::claim());
    let node = in_process::start(&port, &[]).expect("the port is ours");
    let mut theirs = server.connect().unwrap();
    let mut ours = crate::support::Client::connect(port.addr()).unwrap();
    let mut differences = Vec::new();
    let knows_latest = server.command(&["DELIFEQ", "none", "v"]) == Reply::Int(0);
    let latest = if knows_latest { commands(LATEST) } else { Vec::new() };
    for words in conversation().into_iter().chain(latest) {
        let theirs = essence(theirs.call(&words).unwrap());
        let ours = essence(ours.call(&words).unwrap());
        let shown: Vec<String> = words.iter().map(|word| word.chars().take(40).collect()).collect();
        if ours != theirs {
            differences.push(format!("{shown:?}: {ours:?}, and a server: {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(node.calls("acquire"), 2 * 21 + 7);
}
