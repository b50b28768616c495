//! Who holds a key.

use support::server::Builder;
use support::{Fleet, need_process, need_server};

use crate::run::{Ended, hold, program, run};

fn status(fleet: &Fleet, args: &[&str]) -> Ended {
    let mut command = program(&[&["status"], args].concat());
    command.env("QUORLOCK_NODES", fleet.urls().join(","));
    run(command)
}

#[test]
fn each_node_is_told_and_then_the_majority() {
    need_server!();
    let fleet = Fleet::start(3);
    let value = format!("{}@me@host:1", "ab".repeat(20));
    for server in [&fleet[0], &fleet[2]] {
        server.command(&["SET", "job", &value, "PX", "60000"]);
    }
    fleet[1].stop();
    let ended = status(&fleet, &["job", "free"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 10, "{ended:?}");
    let line = |at: usize, name: &str, words: &str| {
        assert!(lines[at].contains(name) && lines[at].contains(words), "{ended:?}");
    };
    line(0, "\"job\"", "");
    line(1, &fleet[0].addr().to_string(), "held by me@host:1, ");
    line(2, &fleet[1].addr().to_string(), "refused the connection");
    line(3, &fleet[2].addr().to_string(), "held by me@host:1, ");
    line(4, "majority", "held by me@host:1, ");
    line(4, "majority", "(2 of 3 nodes answered, 2 needed)");
    line(5, "\"free\"", "");
    line(9, "majority", "free (2 of 3");
}

#[test]
fn nodes_that_may_forget_are_warned_of_where_they_are_relied_on() {
    need_process!();
    let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
    let everysec = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let fleet = Fleet::start_with(3, |node, builder: Builder| match node {
        0 => builder,
        1 => builder.args(keeps),
        _ => builder.args(everysec),
    });
    let ended = status(&fleet, &["job"]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (0, 1), "{ended:?}");
    for (node, words) in [(0, " (appendonly no,"), (2, " (appendonly yes, appendfsync everysec,")] {
        let named = format!("{}{words}", fleet[node].addr());
        assert!(ended.stderr.contains(&named), "{ended:?}");
    }
    assert!(!ended.stderr.contains(&fleet[1].addr().to_string()), "{ended:?}");
    let ended = status(&fleet, &["job", "--longest-ttl", "60s"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let ended = status(&fleet, &["job", "--json"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
}

#[test]
fn parts_and_foreign_values_are_no_majority() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[0].command(&["SET", "split", "one", "PX", "60000"]);
    fleet[1].command(&["SET", "split", "two", "PX", "60000"]);
    fleet.command(&["HSET", "hash", "field", "value"]);
    let ended = status(&fleet, &["split", "hash"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("no client holds a majority (3 of 3"), "{ended:?}");
    assert!(ended.stdout.contains("no lock: holds a hash, without expiry"), "{ended:?}");
}

#[test]
fn without_a_majority_it_cannot_be_told() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[0].stop();
    fleet[1].pause();
    let ended = status(&fleet, &["job"]);
    assert_eq!(ended.code, 69, "{ended:?}");
    assert!(ended.stdout.contains("no quorum: 1 of 3 nodes answered, 2 needed"), "{ended:?}");
}

#[test]
fn in_json_each_key_is_an_object() {
    need_server!();
    let fleet = Fleet::start(1);
    let first = hold(&fleet[0], &["--owner", "me"], "job");
    let ended = status(&fleet, &["--json", "job", "fr\"ee"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let node = fleet[0].addr();
    let held = format!(r#"{{"key":"job","nodes":[{{"node":"{node}","state":"held","owner":"me@"#);
    assert!(lines[0].starts_with(&held), "{ended:?}");
    assert!(
        lines[0].contains(r#""majority":{"state":"held","answered":1,"needed":1,"owner":"me@"#)
    );
    let free = [
        r#"{"key":"fr\"ee","nodes":[{"node":""#,
        &node.to_string(),
        r#"","state":"free"}],"majority":{"state":"free","answered":1,"needed":1},"fence":null}"#,
    ];
    assert_eq!(lines[1..], [free.concat()]);
    drop(first);
}

#[test]
fn a_fence_is_shown_that_a_majority_has() {
    need_server!();
    let fleet = Fleet::start(3);
    let shown = || (status(&fleet, &["job"]).stdout, status(&fleet, &["job", "--json"]).stdout);
    fleet[0].command(&["SET", "{job}:quorlock:fence", "42"]);
    let (table, json) = shown();
    assert!(!table.contains("fence") && json.contains(",\"fence\":null}"), "{table}{json}");
    fleet[2].command(&["SET", "{job}:quorlock:fence", "43"]);
    let (table, json) = shown();
    let last = table.lines().last().unwrap_or_default();
    assert!(last.trim_start().starts_with("fence ") && last.ends_with(" 42"), "{table}");
    assert!(json.contains(",\"fence\":42}"), "{json}");
}
