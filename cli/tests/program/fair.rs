//! Commands that run in the order in which they came: `quorlock lock --fair` and `--fair-strict`.

use std::process::Stdio;

use support::{Fleet, Reply, eventually, need_process};

use crate::run::{Running, holding, program, program_on_all, run};

#[test]
fn commands_run_in_the_order_in_which_they_came() {
    need_process!();
    run_in_order("--fair", 1);
}

/// Each stands on each of the nodes.
#[test]
fn commands_in_strict_order_run_in_the_order_in_which_they_came() {
    need_process!();
    run_in_order("--fair-strict", 3);
}

/// `queues`: in how many of them each one waits.
fn run_in_order(fair: &str, queues: i64) {
    let fleet = Fleet::start(3);
    let held = holding(program_on_all(&fleet, &["lock", fair, "job", "--", "cat"]));
    let words = ["lock", fair, "-w", "1h", "job", "--", "sh", "-c", "echo runs; cat"];
    let waiting = [1, 2, 3].map(|place: i64| {
        let mut command = program_on_all(&fleet, &words);
        command.stdin(Stdio::piped());
        let running = Running::start(command);
        eventually("it to stand in the queue", || {
            let counts = fleet.command(&["ZCARD", "{job}:quorlock:queue"]);
            counts.iter().map(Reply::int).sum::<i64>() == place * queues
        });
        running
    });
    assert_eq!(held.end().code, 0);
    for next in waiting {
        assert_eq!(next.line(), "runs");
        assert_eq!(next.end().code, 0);
    }
}

#[test]
fn what_stands_in_no_queue_is_refused_in_one_line() {
    let node = "--node=redis://127.0.0.1:1";
    for options in [&["-n", "job"][..], &["--key", "a", "--key", "b"]] {
        let words = [&["lock", node, "--fair"], options, &["--", "true"]].concat();
        let ended = run(program(&words));
        assert!(ended.code == 64 && ended.stderr.contains("--fair"), "{ended:?}");
    }
    for options in [&["-n"][..], &["--shared"], &["--slots", "2"], &["--fair"]] {
        let words = [&["lock", node, "--fair-strict"], options, &["job", "--", "true"]].concat();
        let ended = run(program(&words));
        assert!(ended.code == 64 && ended.stderr.contains("--fair-strict"), "{ended:?}");
    }
}
