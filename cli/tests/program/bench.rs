//! Measuring on a user's own nodes: what is printed, what is asserted, and what is not touched.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use support::scratch::Scratch;
use support::{Fleet, Port, Server, need_process, need_server};

use crate::run::{Ended, Running, program, run};
use crate::schema::faults;

/// As short as a measurement can be: these tests are about everything but the figures.
const SHORT: [&str; 3] = ["bench", "--duration", "200ms"];

fn bench_on(urls: &[String], args: &[&str]) -> Command {
    let mut command = program(&[&SHORT, args].concat());
    command.env("QUORLOCK_NODES", urls.join(","));
    command
}

fn bench(fleet: &Fleet, args: &[&str]) -> Ended {
    run(bench_on(&fleet.urls(), args))
}

#[test]
fn it_shows_ourselves_beside_the_floor_and_leaves_nothing() {
    need_process!();
    let fleet = Fleet::start(3);
    let ended = bench(&fleet, &["--callers", "1,8"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let mut lines = ended.stdout.lines();
    let heading = "3 nodes, 2 needed; current runtime; closed loop; 200 ms";
    assert_eq!(lines.next(), Some(heading), "{ended:?}");
    for title in ["1 caller ", "8 callers "] {
        let table: Vec<&str> = lines.by_ref().skip_while(|line| !line.starts_with(title)).collect();
        assert!(table[0].ends_with("ours         floor  ratio"), "{ended:?}");
        for (line, name) in table[1..].iter().zip(["acquire p50", "acquire p90", "acquire p99"]) {
            assert_eq!((line.contains(name), line.matches("µs").count()), (true, 2), "{ended:?}");
        }
        lines = ended.stdout.lines();
    }
    for server in &fleet {
        assert_eq!(server.command(&["DBSIZE"]).int(), 0);
        let calls = server.calls();
        let (set, released) = (calls.of("set"), calls.releases());
        assert!(set > 0 && set == released, "each grant is released: {set} and {released}");
        let natively = calls.of("delifeq");
        assert!(natively == 0 || natively == set, "the floor deletes as ourselves: {natively}");
    }
}

#[test]
fn its_object_is_as_the_schema_says() {
    need_process!();
    let fleet = Fleet::start(1);
    let schema: Value = serde_json::from_str(&run(program(&["bench", "--schema"])).stdout).unwrap();
    let args = ["--json", "--runtime", "multi", "--callers", "2", "--rate", "500"];
    let ended = bench(&fleet, &[&args[..], &["--assert", "p50<10s"]].concat());
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1);
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(faults(&schema, &object), Vec::<String>::new());
    assert_eq!((&object["loop"], &object["rate"]), (&"open".into(), &500.into()));
    assert_eq!(object["nodes"][0]["node"], fleet[0].addr().to_string());
    assert_eq!(object["assertions"][0]["holds"], true);
    // Two rounds of a third of half the time; none of their starts is lost.
    let ours = &object["rows"][0]["ours"];
    let counts = ["cycles", "errors", "never_started"].map(|name| ours[name].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 32, "{ended:?}");
    assert!(counts[0] > 0, "{ended:?}");

    // The check sees a member that is missing, and one of another type.
    let mut broken = object.clone();
    broken["rows"][0]["floor"].as_object_mut().unwrap().remove("acquire_p99_9_ns");
    assert_eq!(faults(&schema, &broken).len(), 1);
    broken = object.clone();
    broken["needed"] = "one".into();
    assert_eq!(faults(&schema, &broken).len(), 1);
}

#[test]
fn an_assertion_that_fails_is_told_with_its_figure() {
    need_process!();
    let fleet = Fleet::start(1);
    let asserting = |what: &[&str]| bench(&fleet, &[&["--callers", "1"], what].concat());
    let ended = asserting(&["--assert", "p50<10s,p99.9<=10s", "--assert", "cycles>0"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let ended = asserting(&["--assert", "max<10s,p99<1us"]);
    ended.says(99, "assertion p99<1us failed: ");
    assert!(ended.stderr.ends_with(" µs with 1 caller\n"), "{ended:?}");
    assert!(ended.stdout.contains("acquire p99"), "the table is shown all the same: {ended:?}");
}

#[test]
fn nodes_that_hold_keys_are_not_touched() {
    need_process!();
    let fleet = Fleet::start(3);
    fleet[1].command(&["SET", "order", "42"]);
    let chart = Scratch::new();
    let file = chart.path().join("chart.svg");
    let args = ["--chart", file.to_str().unwrap()];
    let ended = bench(&fleet, &args);
    ended.says(78, &format!("{} holds 1 key and may be in use", fleet[1].addr()));
    assert!(ended.stderr.contains("--force") && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(fleet.keys_left(""), [(1, "order".to_owned())]);
    for (server, set) in fleet.iter().zip([0, 1, 0]) {
        let calls = server.calls();
        // By the first name before 7.0, by the second since.
        assert_eq!((calls.of("script"), calls.of("script|load")), (0, 0));
        assert_eq!((calls.of("set"), calls.releases(), calls.of("eval")), (set, 0, 0));
    }
    assert!(!file.exists(), "no chart of nothing");

    let forced = bench(&fleet, &[&["--force"], &args[..]].concat());
    assert_eq!((forced.code, &*forced.stderr), (0, ""), "{forced:?}");
    assert!(fleet[1].calls().of("set") > 1);
    assert_eq!(fleet.keys_left(""), [(1, "order".to_owned())]);
    let drawn = std::fs::read_to_string(file).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert_eq!(drawn.matches("<polyline").count(), 4, "two contestants in two panels");
}

#[test]
fn keys_of_another_database_count_too() {
    need_server!();
    let server = Server::start();
    server
        .connect()
        .and_then(|mut client| {
            client.call(&["SELECT", "7"])?;
            client.call(&["SET", "order", "42"])
        })
        .unwrap();
    run(bench_on(&[server.url()], &[])).says(78, "holds 1 key ");
}

#[test]
fn a_signal_ends_it_in_good_order() {
    need_server!();
    let fleet = Fleet::start(3);
    let mut long = program(&["bench", "--duration", "1m"]);
    long.env("QUORLOCK_NODES", fleet.urls().join(","));
    let running = Running::start(long);
    support::eventually("the measurement to run", || fleet[0].calls().of("set") > 100);
    running.signal(Signal::TERM);
    running.end().says(128 + 15, "stopped early");
    assert_eq!(fleet.keys_left(""), []);
    let calls = fleet[2].calls();
    assert_eq!(calls.of("set"), calls.releases());
}

#[test]
fn the_floor_logs_in_as_the_url_says() {
    need_process!();
    let server = Server::builder().user("me", "on >p@ss ~* +@all").start();
    let addr = server.addr();
    let socket = server.socket_path();
    for url in [
        format!("redis://me:p%40ss@{addr}/3"),
        format!("redis://me:p%40ss@{addr}/3?protocol=2"),
        format!("unix://me:p%40ss@{}?db=3", socket.display()),
    ] {
        let before = server.calls().of("select");
        let ended = run(bench_on(&[url], &["--callers", "1", "--json"]));
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        let object: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(object["rows"][0]["floor"]["cycles"].as_u64() > Some(0), "{ended:?}");
        // Ourselves, the floor, the count and the sweep.
        assert!(server.calls().of("select") >= before + 4, "{ended:?}");
        assert!(!ended.stdout.contains("p@ss") && !ended.stdout.contains("p%40ss"));
    }
}

#[test]
fn what_cannot_be_measured_is_told_in_one_line() {
    need_process!();
    let fleet = Fleet::start_with(3, |_, builder| builder.password("right"));
    let bare = |server: &Server| format!("redis://:canary@{}", server.addr());
    let denied = run(bench_on(&fleet.iter().map(bare).collect::<Vec<_>>(), &[]));
    denied.says(77, "no quorum: 0 of 3 nodes answered, 2 needed");
    assert!(!denied.stderr.contains("canary"), "{denied:?}");

    fleet[0].stop();
    bench(&fleet, &[]).says(69, "cannot count the keys on ");
    let forced = bench(&fleet, &["--force", "--callers", "1"]);
    assert_eq!((forced.code, &*forced.stderr), (0, ""), "a majority is enough: {forced:?}");
    fleet[1].stop();
    bench(&fleet, &[]).says(69, "no quorum: 1 of 3 nodes answered, 2 needed");
    bench(&fleet, &["--force"]).says(69, "no quorum: ");
    assert_eq!(fleet[2].command(&["DBSIZE"]).int(), 0);
}

#[test]
fn what_cannot_be_right_is_refused_before_anything_is_sent() {
    let port = Port::claim();
    let node = format!("redis://{}", port.addr());
    for what in ["p99", "p98<1ms", "p99<1", "p99>1ms", "cycles<5", "", "p50<1ms,,"] {
        let ended = run(program(&["bench", "--node", &node, "--assert", what]));
        ended.says(64, "as in 'p99<1ms'");
    }
    let cases: [&[&str]; 6] = [
        &["--callers", "0"],
        &["--callers", "4097"],
        &["--duration", "99ms"],
        &["--rate", "0"],
        &["--runtime", "none"],
        &["surplus"],
    ];
    for case in cases {
        let ended = run(program(&[&["bench", "--node", &node], case].concat()));
        assert_eq!((ended.code, &*ended.stdout), (64, ""), "{case:?}: {ended:?}");
    }
    run(program(&["bench"])).says(78, "give --node redis://host:port");
    run(program(&["bench", "--node", "redis://h?x=1"])).says(78, "unknown parameter");
}
