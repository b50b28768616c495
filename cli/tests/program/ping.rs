//! How far the nodes are, and what they are.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use support::{Fleet, Port, Script, Scripted, Server, need_process, need_server};

use crate::run::{Ended, Running, program, run};
use crate::schema::faults;

/// As short as it can be: these tests are about everything but the figures.
const SHORT: [&str; 5] = ["ping", "--count", "20", "--interval", "0"];

fn ping_on(urls: &[String], args: &[&str]) -> Command {
    let mut command = program(&[&SHORT, args].concat());
    command.env("QUORLOCK_NODES", urls.join(","));
    command
}

fn ping(fleet: &Fleet, args: &[&str]) -> Ended {
    run(ping_on(&fleet.urls(), args))
}

fn object(ended: &Ended) -> Value {
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn each_node_has_its_round_trips_and_says_what_it_is() {
    need_process!();
    let fleet = Fleet::start_with(3, |number, builder| match number {
        0 => builder.args(["--appendonly", "yes", "--appendfsync", "always"]),
        1 => builder.args(["--save", "3600", "1"]),
        _ => builder,
    });
    let ended = ping(&fleet, &[]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert!(!ended.stdout.contains('\x1b'), "no colours where there is no terminal: {ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "3 nodes, 2 needed; 20 pings to each, 0 µs apart", "{ended:?}");
    let heads: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(heads, ["node", "p50", "µs", "p99", "µs", "p99.9", "µs", "max", "µs", "lost"]);
    for (line, server) in lines[3..].iter().zip(&fleet) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((cells[0], cells[5]), (&*server.addr().to_string(), "0"), "{ended:?}");
        let figures: Vec<f64> =
            cells[1..5].iter().map(|cell| cell.replace(',', "").parse().unwrap()).collect();
        assert!(figures[0] > 0.0 && figures.is_sorted(), "{ended:?}");
    }
    let (kind, [major, minor, patch]) = fleet[0].version();
    let is = format!("  {kind} {major}.{minor}.{patch}, master, standalone, RESP3");
    assert_eq!(lines.iter().filter(|line| line.ends_with(&is)).count(), 3, "{ended:?}");
    for words in [
        "persistence       appendonly yes, appendfsync always, no snapshots",
        "persistence       appendonly no, save 3600 1",
        "persistence       appendonly no, no snapshots",
    ] {
        assert_eq!(ended.stdout.matches(words).count(), 1, "{words}: {ended:?}");
    }
    assert_eq!(ended.stdout.matches("maxmemory-policy  noeviction").count(), 3, "{ended:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("clock  ")).count(), 3, "{ended:?}");
    for server in &fleet {
        assert_eq!(server.command(&["DBSIZE"]).int(), 0);
    }
}

#[test]
fn its_object_is_as_the_schema_says() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[1].stop();
    let schema: Value = serde_json::from_str(&run(program(&["ping", "--schema"])).stdout).unwrap();
    let ended = ping(&fleet, &["--json"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let object = object(&ended);
    assert_eq!(faults(&schema, &object), Vec::<String>::new());
    assert_eq!((&object["answered"], &object["needed"]), (&2.into(), &2.into()));
    assert_eq!((&object["count"], &object["interval_us"]), (&20.into(), &0.into()));
    let nodes = object["nodes"].as_array().unwrap();
    assert_eq!(nodes[0]["node"], fleet[0].addr().to_string());
    assert_eq!((&nodes[0]["state"], &nodes[0]["fault"]), (&"connected".into(), &Value::Null));
    assert_eq!((&nodes[0]["rtt"]["sent"], &nodes[0]["rtt"]["answered"]), (&20.into(), &20.into()));
    assert_eq!(nodes[0]["server"]["run_id"], fleet[0].info("run_id").unwrap());
    assert_eq!(nodes[0]["server"]["protocol"], 3);
    assert!(nodes[0]["server"]["clock"]["ahead_us"].as_i64().unwrap().abs() < 1_000_000);
    assert_eq!((&nodes[1]["state"], &nodes[1]["rtt"]), (&"down".into(), &Value::Null));
    assert_eq!(nodes[1]["fault"], "refused the connection");

    // The check sees a member that is missing, and one of another type.
    let mut broken = object.clone();
    broken["nodes"][0]["rtt"].as_object_mut().unwrap().remove("p99_9_ns");
    assert_eq!(faults(&schema, &broken).len(), 1);
    broken = object.clone();
    broken["nodes"][0]["server"]["protocol"] = 4.into();
    assert_eq!(faults(&schema, &broken).len(), 1);
}

#[test]
fn a_node_that_evicts_is_warned_of() {
    need_process!();
    let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
    let evicts = ["--maxmemory-policy", "volatile-ttl"];
    let server = Server::builder().args(keeps).args(evicts).start();
    let warning = format!(
        "{} deletes keys when its memory is full (maxmemory-policy volatile-ttl), a lock that is \
         held among them; set noeviction",
        server.addr()
    );
    let ended = run(ping_on(&[server.url()], &[]));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert!(ended.stdout.ends_with(&format!("\nwarning: {warning}\n")), "{ended:?}");
    let ended = run(ping_on(&[server.url()], &["--json"]));
    assert_eq!(object(&ended)["nodes"][0]["warnings"][0], warning);
}

#[test]
fn nodes_that_may_forget_are_warned_of_once() {
    need_server!();
    let fleet = Fleet::start(3);
    let ended = ping(&fleet, &[]);
    let warnings: Vec<&str> =
        ended.stdout.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!((ended.code, warnings.len()), (0, 1), "{ended:?}");
    for node in &fleet {
        assert!(warnings[0].contains(&node.addr().to_string()), "{ended:?}");
    }
    let ended = ping(&fleet, &["--json"]);
    let warnings = object(&ended)["nodes"][2]["warnings"].to_string();
    assert!(warnings.contains(" (appendonly no, no snapshots): set appendonly yes"), "{warnings}");
    let ended = ping(&fleet, &["--longest-ttl", "60s"]);
    assert!(!ended.stdout.contains("warning"), "{ended:?}");
}

#[test]
fn what_may_not_be_asked_is_not_told() {
    need_server!();
    let server = Server::builder().user("bare", "on >pw ~* -@all +set +get").start();
    let url = format!("redis://bare:pw@{}?protocol=2", server.addr());
    let ended = run(ping_on(&[url], &[]));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert_eq!(ended.stdout.matches("not told").count(), 3, "{ended:?}");
    assert!(ended.stdout.contains("a server of a version that it does not tell"), "{ended:?}");
    assert!(ended.stdout.contains("RESP2"), "{ended:?}");
}

#[test]
fn without_a_majority_the_table_says_which_and_one_line_says_so() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[0].stop();
    fleet[1].pause();
    let ended = ping(&fleet, &[]);
    ended.says(69, "no quorum: 1 of 3 nodes answered, 2 needed; ");
    for words in ["refused the connection", "was silent for "] {
        assert!(ended.stdout.contains(words) && ended.stderr.contains(words), "{ended:?}");
    }
    assert!(ended.stdout.contains(&format!("\n{}", fleet[2].addr())), "{ended:?}");
}

#[test]
fn a_refused_login_is_told_and_never_shown() {
    need_server!();
    let server = Server::builder().password("right").start();
    let wrong = format!("redis://:canary@{}", server.addr());
    let ended = run(ping_on(&[wrong], &[]));
    ended.says(77, "said WRONGPASS (check the user and the password)");
    assert!(!format!("{ended:?}").contains("canary"), "{ended:?}");
    let none = format!("redis://{}?protocol=2", server.addr());
    run(ping_on(&[none], &["--json"])).says(77, "said NOAUTH (check the password)");
}

#[test]
fn a_replica_is_shown_and_not_counted() {
    need_server!();
    let master = Server::start();
    let replica = Server::builder().replica_of(&master).start();
    let ended = run(ping_on(&[replica.url()], &["--json"]));
    ended.says(69, "is a replica (give its master's address)");
    assert_eq!(object(&ended)["nodes"][0]["server"]["role"], "replica");
}

/// What hangs while it is measured costs one deadline, and is counted as lost.
#[test]
fn pings_without_an_answer_are_lost() {
    let hangs = |command: &[Vec<u8>]| command[0].eq_ignore_ascii_case(b"PING");
    let server = Scripted::start_sequence([
        Script::greeting(),
        Script::greeting().expect_where("PING", hangs).reply("+PONG\r\n").expect("PING").stall(),
    ]);
    let ended = run(ping_on(&[server.url()], &["--json"]));
    ended.says(69, "did not answer");
    let rtt = &object(&ended)["nodes"][0]["rtt"];
    assert_eq!((&rtt["sent"], &rtt["answered"]), (&20.into(), &0.into()), "{ended:?}");
    assert_eq!(rtt["p50_ns"], Value::Null);
}

#[test]
fn a_signal_ends_it_and_shows_what_came_so_far() {
    need_server!();
    let server = Server::start();
    let mut long = program(&["ping", "--count", "1000000", "--json"]);
    long.env("QUORLOCK_NODES", server.url());
    let running = Running::start(long);
    let pinged = || server.calls().of("ping") > 0;
    server.command(&["CONFIG", "RESETSTAT"]);
    support::eventually("the measurement to run", pinged);
    running.signal(Signal::INT);
    let ended = running.end();
    ended.says(128 + 2, "stopped early");
    let rtt = &object(&ended)["nodes"][0]["rtt"];
    assert!(rtt["sent"].as_u64() < Some(1_000_000), "{ended:?}");
}

#[test]
fn what_cannot_be_right_is_refused_before_anything_is_sent() {
    let port = Port::claim();
    let node = format!("redis://{}", port.addr());
    let cases: [&[&str]; 4] =
        [&["--count", "0"], &["--count", "x"], &["--interval", "-1s"], &["surplus"]];
    for case in cases {
        let ended = run(program(&[&["ping", "--node", &node], case].concat()));
        assert_eq!((ended.code, &*ended.stdout), (64, ""), "{case:?}: {ended:?}");
    }
    run(program(&["ping"])).says(78, "give --node redis://host:port");
    run(program(&["ping", "--node", "redis://h?x=1"])).says(78, "unknown parameter");
    run(program(&["ping", "--node", &node])).says(69, "refused the connection");
}

#[test]
fn a_clock_that_is_far_from_ours_is_warned_of() {
    let nodes = [0, 20_000].map(|ahead| {
        let node = support::in_process::serve(quorlock::testing::Node::builder()).unwrap();
        node.step_clock(ahead);
        node
    });
    let urls = nodes.each_ref().map(|node| node.url().unwrap());
    let ended = run(ping_on(&urls, &[]));
    let warnings = ended.stdout.lines().filter(|line| line.contains("fenced lock"));
    let warnings: Vec<&str> = warnings.collect();
    let named = format!("{} (20.0 s ahead", nodes[1].addr().unwrap());
    assert!(matches!(warnings[..], [warning] if warning.contains(&named)), "{ended:?}");
}
