//! The command: its environment, its streams, signals to it, and our death.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use support::{Server, Watchdog, eventually, need_server};

use crate::run::{Running, empties, ends, hold, program_on, run};

#[test]
fn the_environment_tells_about_the_lock() {
    need_server!();
    let server = Server::start();
    let script = "echo \"$QUORLOCK_KEY|$QUORLOCK_TOKEN|$QUORLOCK_DEADLINE_MS|\
                  ${QUORLOCK_FENCE-none}\"; cat";
    let args = ["lock", "--prefix", "p:", "--owner", "me", "a job", "--", "sh", "-c", script];
    let mut command = program_on(&server, &args);
    command.env("QUORLOCK_KEY", "of another").env("QUORLOCK_FENCE", "1").stdin(Stdio::piped());
    let running = Running::start(command);
    let line = running.line();
    let told: Vec<&str> = line.split('|').collect();

    assert_eq!((told[0], told[3]), ("a job", "none"));
    assert_eq!(told[1], server.command(&["GET", "p:a job"]).text());
    assert!(told[1].contains("@me@"), "{line}");
    let deadline: u128 = told[2].parse().expect("milliseconds");
    #[expect(clippy::disallowed_methods, reason = "the deadline is told by the wall clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(deadline > now && deadline <= now + 10_000, "{deadline} at {now}");
    assert_eq!(running.end().code, 0);
}

#[test]
fn its_fence_is_told_and_rises() {
    need_server!();
    let server = Server::start();
    let mut last = 0;
    for keys in [&["job"][..], &["--key", "job", "--key", "other"], &["job"]] {
        let words = [&["lock", "--fenced", "--json"], keys, &["--", "printenv", "QUORLOCK_FENCE"]];
        let ended = run(program_on(&server, &words.concat()));
        let fence: u64 = ended.stdout.trim().parse().expect("a number");
        assert!(fence > last, "{fence} behind {last}");
        assert!(ended.stderr.contains(&format!("\"fence\":{fence},")), "{ended:?}");
        last = fence;
    }
    let plain = run(program_on(&server, &["lock", "--json", "job", "--", "true"]));
    assert!(plain.stderr.contains("\"fence\":null"), "{plain:?}");
}

#[test]
fn its_streams_are_its_own() {
    need_server!();
    let server = Server::start();
    let script = "cat; echo to-stderr >&2";
    let mut command = program_on(&server, &["lock", "job", "--", "sh", "-c", script]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.write("in and\nout again");
    let ended = running.end();
    assert_eq!((&*ended.stdout, &*ended.stderr), ("in and\nout again", "to-stderr\n"));
}

#[test]
fn no_shell_stands_between() {
    need_server!();
    let server = Server::start();
    let ended = run(program_on(&server, &["lock", "job", "--", "echo", "$HOME; *", "--json"]));
    assert_eq!((ended.code, &*ended.stdout), (0, "$HOME; * --json\n"));
}

#[test]
fn signals_are_passed_on_to_the_command_and_its_children() {
    need_server!();
    let server = Server::start();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::USR1, "USR1"), (Signal::HUP, "HUP")] {
        // A grandchild, which only a signal to the whole group reaches.
        let inner =
            format!("trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.01; done");
        let outer = format!("trap 'wait; exit 3' {name}; sh -c \"$INNER\" & wait; wait");
        let mut command = program_on(&server, &["lock", "job", "--", "sh", "-c", &outer]);
        command.env("INNER", inner);
        let running = Running::start(command);
        assert_eq!(running.line(), "ready");
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.code, &*ended.stdout), (3, "got\n"), "{name}: {}", ended.stderr);
        empties(&server);
    }
}

#[test]
fn a_second_interrupt_kills() {
    need_server!();
    if ignores_interrupts() {
        // A shell started us in the background: then INT is not ours to handle, and stays ignored.
        return;
    }
    let server = Server::start();
    let script = "trap '' INT; echo ready; while :; do sleep 0.01; done";
    let mut running =
        Running::start(program_on(&server, &["lock", "job", "--", "sh", "-c", script]));
    assert_eq!(running.line(), "ready");
    // Two at once count as one; so until it ends.
    let watchdog = Watchdog::new("a command that ignores INT to be killed");
    while !running.has_ended() {
        running.signal(Signal::INT);
        watchdog.pause();
    }
    assert_eq!(running.end().code, 128 + 9);
    empties(&server);
}

/// Whether this process ignores INT, which its children inherit.
fn ignores_interrupts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 0b10 != 0
}

#[test]
fn a_signal_while_waiting_ends_the_wait_and_leaves_nothing() {
    need_server!();
    let server = Server::start();
    let first = hold(&server, &[], "job");
    let token = server.command(&["GET", "job"]).text();
    let second = Running::start(program_on(&server, &["lock", "-w", "1h", "job", "--", "true"]));
    // The first, the second, and the connection that asks.
    eventually("the second to connect", || {
        server.info("connected_clients").is_some_and(|count| count.parse::<u32>() == Ok(3))
    });
    second.signal(Signal::TERM);
    second.end().says(128 + 15, "signal 15 while waiting");
    assert_eq!(server.command(&["GET", "job"]).text(), token);
    assert_eq!(first.end().code, 0);
    empties(&server);
}

#[test]
#[cfg(target_os = "linux")]
fn the_command_dies_with_us() {
    need_server!();
    let server = Server::start();
    let script = "echo $$; while :; do sleep 0.01; done";
    let running = Running::start(program_on(&server, &["lock", "job", "--", "sh", "-c", script]));
    let pid = running.line();
    running.signal(Signal::KILL);
    ends(&pid);
    assert_eq!(running.end().code, 128 + 9);
    // No process was left to release it: it ends with its TTL.
    assert_eq!(server.command(&["EXISTS", "job"]).int(), 1);
}
