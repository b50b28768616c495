//! Locks that are released by a native command, where the server has it.
//!
//! On nodes of this process that pose as such servers, and on each real one there is.

mod beside;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Node, NodeBuilder, Reaction, When};
use quorlock::{Event, Extend, Locker, Observer, Release};
use support::in_process::{self, Inside};
use support::wait::eventually_async;
use support::{Server, acl, need_process, tools};

use crate::{connected, quorum, single};

const TTL: Duration = Duration::from_secs(10);

pub(crate) fn valkey(version: &str) -> Inside {
    serve(Node::builder().valkey(version))
}

fn serve(builder: NodeBuilder) -> Inside {
    in_process::serve(builder).unwrap()
}

pub(crate) fn url(node: &Inside) -> String {
    node.url().unwrap()
}

/// Servers that have rejected the command, and what they said.
#[derive(Default)]
struct Rejections(Mutex<Vec<String>>);

impl Observer for Rejections {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::NativeRejected { node, error, .. } = event {
            self.0.lock().unwrap().push(format!("{node}: {error}"));
        }
    }
}

async fn cycle(locker: &Locker, key: &str) {
    assert!(locker.lock(key).await.unwrap().release().await.unwrap().is_released());
}

#[tokio::test]
async fn each_node_of_a_quorum_gets_the_command_that_it_has() {
    let nodes = [
        valkey("9.1.2"),
        valkey("8.1.0"),
        serve(Node::builder().redis("8.2.3")),
        serve(Node::builder().valkey("9.0.0").without("delifeq")),
        serve(Node::builder().valkey("9.0.0").user("default", "on nopass ~* &* +@all -delifeq")),
    ];
    let locker = connected(quorum(nodes.iter().map(url))).await;
    let health = locker.health();
    let natives: Vec<bool> = health.iter().map(|node| node.deletes_natively).collect();
    assert_eq!(natives, [true, false, false, false, false]);
    for round in 1..=3 {
        cycle(&locker, "k").await;
        drop(locker.lock("k").await.unwrap());
        let released = |node: &Inside| (node.calls("delifeq"), node.calls("release"));
        // A minority may be late with all of it, the acquisition too: no key does not say released.
        eventually_async("each node has released twice a round", async || {
            nodes.iter().all(|node| released(node).0 + released(node).1 >= 2 * round)
        })
        .await;
        assert_eq!(released(&nodes[0]), (2 * round, 0));
        for node in &nodes[1..] {
            assert_eq!(released(node), (0, 2 * round));
        }
    }
}

#[tokio::test]
async fn native_commands_are_not_sent_where_they_are_not_wanted() {
    let node = valkey("9.1.2");
    let locker = connected(single(url(&node)).native_commands(false)).await;
    assert!(!locker.health()[0].deletes_natively);
    cycle(&locker, "k").await;
    assert_eq!(
        (node.calls("delifeq"), node.calls("may_delifeq"), node.calls("release")),
        (0, 0, 1)
    );
}

/// Released, expired, taken, and a value of another type: what a release finds is told as ever.
#[tokio::test]
async fn a_release_finds_the_same_by_either_command() {
    for native in [true, false] {
        let node = valkey("9.1.2");
        let builder = single(url(&node)).native_commands(native).auto_extend(Extend::Off);
        let locker = connected(builder).await;
        let found = async |change: &[&[&str]]| {
            let guard = locker.lock("k").await.unwrap();
            change.iter().for_each(|words| drop(node.command(*words)));
            let found = guard.release().await.unwrap();
            node.command(["DEL", "k"]);
            found
        };
        assert!(found(&[]).await.is_released());
        assert!(matches!(found(&[&["DEL", "k"]]).await, Release::Expired));
        assert!(matches!(found(&[&["SET", "k", "w"]]).await, Release::Taken));
        let other_type = found(&[&["DEL", "k"], &["RPUSH", "k", "v"]]).await;
        assert!(matches!(other_type, Release::Taken), "{other_type:?}");
    }
}

/// It says that it is a Valkey of today, and does not know the command.
#[tokio::test]
async fn a_proxy_that_promises_too_much_is_found_out_once_and_nothing_is_left() {
    for (answer, words) in [(UNKNOWN, "unknown command"), (NOPERM, "no permissions to run")] {
        let node = valkey("9.1.2");
        node.add(When::before("delifeq").then(Reaction::Answer(answer.into())));
        let rejections = Arc::new(Rejections::default());
        let locker = connected(single(url(&node)).observer(rejections.clone())).await;
        assert!(locker.health()[0].deletes_natively);
        // None of them awaits an answer.
        let keys: Vec<String> = (0..8).map(|key| format!("k{key}")).collect();
        let mut guards = Vec::new();
        for key in &keys {
            guards.push(locker.lock(key).await.unwrap());
        }
        drop(guards);
        let is_left = || keys.iter().any(|key| node.value(key).is_some());
        eventually_async("what was refused is done", async || !is_left()).await;
        let told = rejections.0.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(words), "{told:?}");
        assert!(!locker.health()[0].deletes_natively);
        cycle(&locker, "k").await;
        assert_eq!(node.calls("delifeq"), 0);
        assert_eq!(node.calls("release"), keys.len() as u64 + 1);
    }
}

const UNKNOWN: &str = "-ERR unknown command 'DELIFEQ', with args beginning with: 'k'\r\n";
const NOPERM: &str = "-NOPERM User default has no permissions to run the 'delifeq' command\r\n";

#[tokio::test]
async fn who_awaits_a_release_that_was_refused_is_told_what_the_script_finds() {
    let node = valkey("9.1.2");
    node.add(When::before("delifeq").then(Reaction::Answer(NOPERM.into())));
    let locker = connected(single(url(&node))).await;
    let guard = locker.lock("k").await.unwrap();
    node.command(["SET", "k", "w"]);
    assert!(matches!(guard.release().await.unwrap(), Release::Taken));
    node.command(["DEL", "k"]);
    cycle(&locker, "k").await;
}

/// The same name leads to an older server, and to a newer one again.
#[tokio::test]
async fn a_server_of_another_version_is_asked_anew_by_the_next_connection() {
    let port = support::Port::claim();
    let start = |version| serve(Node::builder().valkey(version).port(port.number()));
    let mut node = start("9.1.2");
    let locker = connected(single(url(&node)).reconnect(TTL / 5_000, TTL / 1_000)).await;
    for (version, is_native) in [("8.1.0", false), ("9.0.3", true), ("7.2.4", false)] {
        let held = locker.lock("k").await.unwrap();
        drop(node);
        node = start(version);
        let health = || locker.health().remove(0);
        eventually_async("the other version is met", async || {
            let server = health().server.and_then(|server| server.version);
            health().is_connected() && server.as_deref() == Some(version)
        })
        .await;
        assert_eq!(health().deletes_natively, is_native, "{version}");
        drop(held);
        cycle(&locker, "l").await;
        let released = (node.calls("delifeq") > 0, node.calls("release") > 0);
        assert!(if is_native { released.0 } else { released == (false, true) }, "{released:?}");
    }
}

#[tokio::test]
async fn a_dropped_lock_whose_connection_ends_is_undone_by_the_next_one() {
    let node = valkey("9.1.2");
    node.add(When::before("delifeq").nth(1).then(Reaction::Cut { after_bytes: 0 }));
    let locker = connected(single(url(&node)).reconnect(TTL / 5_000, TTL / 1_000)).await;
    drop(locker.lock("k").await.unwrap());
    eventually_async("it is undone", async || node.value("k").is_none()).await;
    assert_eq!((node.calls("delifeq"), node.calls("release")), (0, 1));
}

/// The servers there are that know the command.
fn servers() -> impl Iterator<Item = PathBuf> {
    tools::all_servers().into_iter().filter(|program| {
        let (kind, [major, ..]) = Server::builder().program(program).start().version();
        kind == "valkey" && major >= 9
    })
}

/// What a server has counted as failed or refused, and logged as forbidden.
fn complaints(server: &Server) -> BTreeSet<String> {
    let stats = ["commandstats", "errorstats"].map(|it| server.command(&["INFO", it]).text());
    let is_one = |line: &str| {
        let is_zero = |name| line.contains(&format!("{name}=0"));
        let is_clean = is_zero("failed_calls") && is_zero("rejected_calls");
        line.starts_with("errorstat_") || line.starts_with("cmdstat_") && !is_clean
    };
    let lines = stats.iter().flat_map(|text| text.lines()).filter(|line| is_one(line));
    // Of a line that stays, only its name: how often an optional step was refused does not matter.
    let mut found: BTreeSet<String> =
        lines.map(|line| line.split(':').next().unwrap().to_owned()).collect();
    let log = server.command(&["ACL", "LOG"]).array();
    let objects = log.into_iter().map(|entry| entry.array()[7].text());
    found.extend(objects.map(|object| format!("acl: {object}")));
    found
}

/// With all rights, and with those that were the least before there was such a command.
#[tokio::test]
async fn a_server_is_given_no_reason_to_complain() {
    need_process!();
    for program in servers() {
        for login in ["", "frugal:pw"] {
            let mut all = Vec::new();
            for native in [false, true] {
                let server = Server::builder().program(&program).user("frugal", &acl::least());
                let server = server.start();
                let builder = single(server.url_as(login)).native_commands(native);
                let locker = connected(builder).await;
                let is_native = locker.health()[0].deletes_natively;
                assert_eq!(is_native, native && login != "frugal:pw");
                let cycles = (0..20).map(|task| {
                    let locker = locker.clone();
                    tokio::spawn(async move {
                        for _ in 0..500 {
                            cycle(&locker, &format!("k{task}")).await;
                        }
                    })
                });
                for cycles in cycles.collect::<Vec<_>>() {
                    cycles.await.unwrap();
                }
                let calls = server.calls();
                let expected = if is_native { (10_000, 0) } else { (0, 10_000) };
                assert_eq!((calls.of("delifeq"), calls.of("evalsha")), expected);
                all.push(complaints(&server));
            }
            assert_eq!(all[1], all[0], "{login}");
            assert!(login == "frugal:pw" || all[1].is_empty(), "{all:?}");
        }
    }
}

/// A right that is given, and taken away again while the connection stands.
#[tokio::test]
async fn a_user_who_loses_the_right_to_the_command_goes_on_with_the_script() {
    need_process!();
    for program in servers() {
        let rules = format!("{} +delifeq", acl::least());
        let server = Server::builder().program(program).user("tried", &rules).start();
        let rejections = Arc::new(Rejections::default());
        let builder = single(server.url_as("tried:pw")).observer(rejections.clone());
        let locker = connected(builder).await;
        assert!(locker.health()[0].deletes_natively);
        cycle(&locker, "k").await;
        server.command(&["ACL", "SETUSER", "tried", "-delifeq"]);
        cycle(&locker, "k").await;
        drop(locker.lock("k").await.unwrap());
        eventually_async("it is released", async || server.command(&["EXISTS", "k"]).int() == 0)
            .await;
        assert_eq!(rejections.0.lock().unwrap().len(), 1);
        let calls = server.calls();
        assert_eq!((calls.of("delifeq"), calls.rejected("delifeq")), (1, 1));
    }
}
