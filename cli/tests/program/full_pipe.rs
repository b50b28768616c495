//! A stderr or stdout that takes nothing: a pipe that is full while the program runs.
//!
//! Nothing that the program says may delay what it does for the lock and the command.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use support::scratch::Scratch;
use support::script::Script;
use support::scripted::Scripted;
use support::{Server, Watchdog, eventually, need_process, need_server, skip, test_name};

use crate::pipe::{FILLER, FullPipe};
use crate::run::{Ended, Running, empties, ends, hold, on_terminal, program, program_on};
use crate::stream::Stream;

/// Does not obey TERM, and prints its process id.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.01; done";

/// How many lines the program keeps for a stderr that takes none, and the one being written.
const LINES_KEPT: usize = 16 + 1;

/// Runs it with a stderr that is full all the time, and checks that it was.
#[track_caller]
fn run_into_full(command: std::process::Command) -> Ended {
    let (pipe, stderr) = FullPipe::new();
    let ended = Running::start_with_stderr(command, stderr).end();
    assert!(pipe.is_full(), "the pipe has lost something: {ended:?}");
    ended
}

#[test]
fn a_command_that_lost_its_lock_is_ended_though_stderr_is_full() {
    need_server!();
    for options in [&[][..], &["--json"], &["--on-lost", "kill"]] {
        let server = Server::start();
        let args = [&["lock", "--ttl", "2s"], options, &["job", "--", "sh", "-c", STUBBORN]];
        let (pipe, stderr) = FullPipe::new();
        let running = Running::start_with_stderr(program_on(&server, &args.concat()), stderr);
        let pid = running.line();
        server.pause();
        // By itself, so after its command: it waits for that before it gives this code.
        assert_eq!(running.end().code, 79, "{options:?}");
        ends(&pid);
        assert!(pipe.is_full(), "{options:?}");
    }
}

#[test]
fn the_commands_own_code_comes_through_a_full_stderr() {
    need_server!();
    let server = Server::start();
    let args = ["lock", "--json", "job", "--", "sh", "-c", "exit 3"];
    assert_eq!(run_into_full(program_on(&server, &args)).code, 3);
    empties(&server);
}

#[test]
fn the_programs_codes_come_through_a_full_stderr() {
    need_server!();
    let server = Server::start();
    let held = hold(&server, &[], "held");
    let on_server: [(&[&str], i32); 3] = [
        (&["lock", "-n", "held", "--", "true"], 75),
        (&["lock", "job", "--", "no-such-command"], 127),
        (&["lock", "job", "--", "/etc/passwd"], 126),
    ];
    for (args, code) in on_server {
        assert_eq!(run_into_full(program_on(&server, args)).code, code, "{args:?}");
    }
    let elsewhere: [(&[&str], i32); 3] =
        [(&["nothing"], 64), (&["lock", "job", "--", "true"], 78), (&["status", "job"], 78)];
    for (args, code) in elsewhere {
        assert_eq!(run_into_full(program(args)).code, code, "{args:?}");
    }
    assert_eq!(held.end().code, 0);
    empties(&server);
}

#[test]
fn a_signal_ends_the_wait_for_a_lock_though_stderr_is_full() {
    need_server!();
    let server = Server::start();
    let held = hold(&server, &[], "job");
    let args = ["lock", "--verbose", "-w", "1h", "job", "--", "true"];
    let (pipe, stderr) = FullPipe::new();
    let waiting = Running::start_with_stderr(program_on(&server, &args), stderr);
    // The first is the holder's. The second is refused, and a line says so before the third.
    eventually("the second try of the one that waits", || server.calls().of("set") > 2);
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.end().code, 128 + 15);
    assert!(pipe.is_full());
    assert_eq!(held.end().code, 0);
    empties(&server);
}

/// A server that refuses every other extension: each makes the program say one line.
fn alternating() -> Scripted {
    let extensions = AtomicUsize::new(0);
    Scripted::start(Script::greeting().answer_all(move |command| {
        let reply = match &*command[0].to_ascii_uppercase() {
            b"SET" => "+OK\r\n",
            _ if !is_extension(command) => ":1\r\n",
            _ if extensions.fetch_add(1, Ordering::Relaxed) % 2 == 0 => "-BUSY a script\r\n",
            _ => ":1\r\n",
        };
        reply.into()
    }))
}

/// An extension has a TTL behind the key and the value, a release has not.
fn is_extension(command: &[Vec<u8>]) -> bool {
    command[0].eq_ignore_ascii_case(b"EVALSHA") && command.len() > 5
}

/// Waits until the program has asked for so many extensions.
#[track_caller]
fn wait_for_extensions(server: &Scripted, count: usize) {
    let watchdog = Watchdog::with_patience("extensions", std::time::Duration::from_secs(30));
    while extensions(server) < count {
        watchdog.pause();
    }
}

fn extensions(server: &Scripted) -> usize {
    server.commands().iter().filter(|command| is_extension(command)).count()
}

/// `quorlock lock` around `cat` on an [`alternating`] server.
fn locking(server: &Scripted) -> std::process::Command {
    let mut command = program(&["lock", "--ttl", "2s", "job", "--", "cat"]);
    command.env("QUORLOCK_NODES", format!("redis://{}", server.addr())).stdin(Stdio::piped());
    command
}

#[test]
fn lines_that_a_full_stderr_did_not_take_are_counted_when_it_drains() {
    let server = alternating();
    let (pipe, stderr) = FullPipe::new();
    let mut running = Running::start_with_stderr(locking(&server), stderr);
    running.write("runs\n");
    assert_eq!(running.line(), "runs");
    // The lock is kept meanwhile. Each line stands before the next extension is sent.
    wait_for_extensions(&server, LINES_KEPT + 4);
    assert!(pipe.is_full(), "it is not read yet");

    let stderr = pipe.drain();
    let written = stderr.until(" dropped, for stderr took none\n");
    assert_eq!(running.end().code, 0);
    // Each extension made one line; the last one's answer may have come too late for it.
    let (written, extensions) = (written.trim_start_matches(FILLER), extensions(&server));
    let lines: Vec<&str> = written.lines().chain(stderr.rest().leak().lines()).collect();
    let dropped: Vec<usize> = lines.iter().filter_map(|line| dropped(line)).collect();
    assert_eq!(dropped.len(), 1, "they are counted once: {lines:?}");
    let told = lines.len() - 1 + dropped[0];
    assert!(dropped[0] >= 3 && (told..=told + 1).contains(&extensions), "{extensions}: {lines:?}");
}

/// How many lines the program says that it has dropped.
fn dropped(line: &str) -> Option<usize> {
    line.strip_prefix("quorlock: ")?.split_once(" lines were dropped")?.0.parse().ok()
}

#[test]
fn a_full_stderr_that_does_not_block_is_waited_for_as_well() {
    let server = alternating();
    let (reader, mut writer) = UnixStream::pair().expect("two sockets");
    writer.set_nonblocking(true).expect("a socket takes options");
    while writer.write(&[FILLER as u8; 512]).is_ok() {}
    let stderr = Stdio::from(std::os::fd::OwnedFd::from(writer));
    let running = Running::start_with_stderr(locking(&server), stderr);
    // Three lines at least have found no room.
    wait_for_extensions(&server, 4);
    let stderr = Stream::read(reader);
    let first = stderr.until("\n");
    assert_eq!(running.end().code, 0);
    let lines = first.lines().count() + stderr.rest().lines().count();
    let extensions = extensions(&server);
    assert!((lines..=lines + 1).contains(&extensions), "{lines} lines, {extensions} extensions");
}

/// Under `stty tostop` a terminal stops a process that writes from the background: all its threads,
/// but not its command, which leads a group of its own.
#[test]
fn a_terminal_that_stops_background_writers_does_not_keep_the_command_alive() {
    need_server!();
    let server = Server::start();
    let dir = Scratch::new();
    let told = dir.path().join("told");
    let quorlock = env!("CARGO_BIN_EXE_quorlock");
    let line = format!(
        "stty tostop; set -m; {quorlock} lock --ttl 2s job -- sh -c \"$STUBBORN\" \
         </dev/null >{} & wait $!",
        told.display()
    );
    let Some(mut command) = on_terminal(&line) else {
        return skip::skip(test_name!(), "there is no `script` of util-linux");
    };
    command.env("QUORLOCK_NODES", format!("redis://{}", server.addr())).env("STUBBORN", STUBBORN);
    let running = Running::start(command);
    let pid = || std::fs::read_to_string(&told).unwrap_or_default();
    eventually("the command to run", || pid().ends_with('\n'));
    server.pause();
    let ended = running.end();
    assert_eq!(ended.code, 79, "{ended:?}");
    ends(pid().trim_end());
}

#[test]
fn a_signal_ends_the_demo_though_stdout_is_full() {
    let server = need_process!();
    let (pipe, stdout) = FullPipe::new();
    let mut command = program(&["demo"]);
    command.env("QUORLOCK_SERVER", server);
    let running = Running::start_with_stdout(command, stdout);
    eventually("the demo to listen for signals", || running.handles(Signal::TERM));
    running.signal(Signal::TERM);
    running.end().says(128 + 15, "the servers are removed");
    assert!(pipe.is_full());
}
