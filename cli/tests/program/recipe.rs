//! Commands that need not run each time: `quorlock cached`, `idempotent` and `limit`.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::scratch::Scratch;
use support::{Fleet, Server, eventually, need_process, need_server};

#[cfg(target_os = "linux")]
use crate::pipe::FullPipe;
use crate::run::{Ended, Running, ends, program, program_on, program_on_all, run};

const CACHED: [&str; 4] = ["cached", "--ttl", "1h", "job"];
const IDEMPOTENT: [&str; 2] = ["idempotent", "job"];

/// The words of a command of ours around a shell's script.
fn around<'a>(words: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [words, &["--", "sh", "-c", script]].concat()
}

fn on(server: &Server, words: &[&str], script: &str) -> Ended {
    run(program_on(server, &around(words, script)))
}

#[track_caller]
fn gives(ended: &Ended, code: i32, stdout: &str) {
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (code, stdout, ""), "{ended:?}");
}

/// Six at once, on a quorum: how often the script has run, which writes a line each time.
#[track_caller]
fn runs_once_of_six(words: &[&str]) {
    let (fleet, scratch) = (Fleet::start(3), Scratch::new());
    let log = scratch.path().join("log");
    let script = format!("echo ran >>{}; sleep 0.2; echo \"$QUORLOCK_KEY\"", log.display());
    let command = || program_on_all(&fleet, &around(words, &script));
    let all: Vec<_> = (0..6).map(|_| Running::start(command())).collect();
    for ended in all.into_iter().map(Running::end) {
        gives(&ended, 0, "job\n");
    }
    gives(&run(command()), 0, "job\n");
    assert_eq!(std::fs::read_to_string(log).unwrap_or_default(), "ran\n");
}

#[test]
fn of_all_that_ask_at_once_one_runs_it_and_all_have_its_output() {
    need_process!();
    runs_once_of_six(&CACHED);
}

#[test]
fn an_output_is_kept_as_it_is_and_that_of_a_failure_is_not() {
    need_server!();
    let server = Server::start();
    gives(&on(&server, &CACHED, "echo no; exit 3"), 3, "no\n");
    gives(&on(&server, &CACHED, "kill -TERM $$"), 128 + 15, "");
    gives(&on(&server, &CACHED, "printf 'a\\0b\\n\\n'"), 0, "a\0b\n\n");
    gives(&on(&server, &CACHED, "exit 3"), 0, "a\0b\n\n");
    let none = ["cached", "--ttl", "1h", "none"];
    gives(&on(&server, &none, "true"), 0, "");
    gives(&on(&server, &none, "echo some"), 0, "");
}

#[test]
fn an_output_that_is_over_is_given_while_the_command_fails() {
    need_server!();
    let server = Server::start();
    let words = ["cached", "--ttl", "100ms", "--stale", "1h", "job"];
    gives(&on(&server, &words, "echo first"), 0, "first\n");
    eventually("the output to be over", || {
        let ended = on(&server, &words, "echo no; exit 3");
        assert_eq!((ended.code, &*ended.stdout), (0, "first\n"), "{ended:?}");
        ended.stderr.contains("\"job\": the command ended with 3; the output of before is given")
    });
    let long = on(&server, &words, "head -c 5000000 /dev/zero | tr '\\0' x");
    assert_eq!((long.code, long.stdout.len()), (0, 5_000_000), "and nothing of before");
    assert_eq!(long.stderr, "quorlock: \"job\": more than 4 MiB, which is not kept\n");
    eventually("a new output", || on(&server, &words, "echo second").stdout == "second\n");
}

#[test]
fn what_is_too_long_is_passed_on_and_not_kept() {
    need_server!();
    let server = Server::start();
    let long = "head -c 5000000 /dev/zero | tr '\\0' x; exit";
    let cached = on(&server, &CACHED, long);
    assert_eq!((cached.code, cached.stdout.len()), (0, 5_000_000));
    assert_eq!(cached.stderr, "quorlock: \"job\": more than 4 MiB, which is not kept\n");
    assert_eq!(on(&server, &CACHED, "echo short").stdout, "short\n");
    let server = Server::start();
    let first = on(&server, &IDEMPOTENT, &format!("{long} 7"));
    assert_eq!((first.code, first.stdout.len(), &*first.stderr), (7, 5_000_000, ""));
    on(&server, &IDEMPOTENT, long).says(7, "\"job\": its output was not kept");
}

/// As `quorlock cached … | head -0`.
#[cfg(target_os = "linux")]
#[test]
fn where_none_reads_its_output_it_is_kept() {
    need_server!();
    let server = Server::start();
    let (pipe, writer) = FullPipe::new();
    drop(pipe);
    let command = program_on(&server, &around(&CACHED, "echo kept"));
    assert_eq!(Running::start_with_stdout(command, writer).end().code, 0);
    gives(&on(&server, &CACHED, "echo new"), 0, "kept\n");
}

#[test]
fn a_signal_goes_to_the_command_and_ends_one_that_waits_for_it() {
    need_process!();
    for words in [&CACHED[..], &IDEMPOTENT] {
        let fleet = Fleet::start(3);
        let start = |script| {
            let mut command: Command = program_on_all(&fleet, &around(words, script));
            command.stdin(Stdio::piped());
            Running::start(command)
        };
        let runs =
            start("trap 'echo told; exit 5' TERM; echo runs >&2; while :; do sleep 0.05; done");
        assert_eq!(runs.error_line(), "runs");
        let waits = start("echo no");
        eventually("it to wait", || {
            waits.handles(Signal::TERM) && !fleet.keys_left("{").is_empty()
        });
        waits.signal(Signal::TERM);
        waits.end().says(128 + 15, "ended by signal 15 while waiting");
        runs.signal(Signal::TERM);
        let ended = runs.end();
        assert_eq!((ended.code, &*ended.stdout), (5, "told\n"), "{ended:?}");
    }
}

#[test]
fn of_all_that_are_asked_for_at_once_one_is_done() {
    need_process!();
    runs_once_of_six(&IDEMPOTENT);
}

#[test]
fn what_was_done_is_repeated_with_its_code() {
    need_server!();
    let server = Server::start();
    gives(&on(&server, &IDEMPOTENT, "echo no; exit 3"), 3, "no\n");
    gives(&on(&server, &IDEMPOTENT, "echo yes"), 3, "no\n");
    let other = ["idempotent", "--prefix", "p:", "job"];
    gives(&on(&server, &other, "echo yes"), 0, "yes\n");
    let left = server.command(&["PTTL", "job/outcome"]).int();
    assert!((86_000_000..=86_400_000).contains(&left), "{left}");
    assert_eq!(server.command(&["EXISTS", "p:job/outcome"]).int(), 1);
}

#[test]
fn what_was_begun_and_not_ended_is_not_begun_again() {
    need_server!();
    let server = Server::start();
    let killed = on(&server, &IDEMPOTENT, "echo begun; kill -KILL $$");
    killed.says(128 + 9, "signal 9 ended the command");
    assert_eq!(killed.stdout, "begun\n");
    on(&server, &IDEMPOTENT, "echo yes").says(80, "\"job\" was begun before, and whether it was");
    // It was not begun: it may be.
    let missing = ["idempotent", "missing", "--", "/no/such/program"];
    assert_eq!(run(program_on(&server, &missing)).code, 127);
    gives(&on(&server, &missing[..2], "echo yes"), 0, "yes\n");
}

#[test]
fn no_more_run_than_may() {
    need_server!();
    let server = Server::start();
    let two = ["limit", "--rate", "2/1h", "job"];
    for _ in 0..2 {
        gives(&on(&server, &two, "echo ran; exit 3"), 3, "ran\n");
    }
    on(&server, &two, "echo ran").says(75, "\"job\" is at its limit; it may run in ");
    let other_code = [&two[..], &["-E", "9"]].concat();
    on(&server, &other_code, "echo ran").says(9, "\"job\" is at its limit");
    let together = ["limit", "--rate", "2/1h", "--count", "2", "--burst", "3", "other"];
    gives(&on(&server, &together, "true"), 0, "");
    on(&server, &together, "true").says(75, "\"other\" is at its limit");
    // Of a wait of an hour it waits for what it takes.
    let waits = ["limit", "--rate", "5/s", "--burst", "1", "-w", "1h", "third"];
    for _ in 0..3 {
        gives(&on(&server, &waits, "echo ran"), 0, "ran\n");
    }
}

/// It is the command's own process that a shell waits for.
#[test]
fn a_limited_command_takes_our_place() {
    need_server!();
    let server = Server::start();
    let script = "trap 'exit 5' TERM; echo runs; while :; do sleep 0.05; done";
    let running =
        Running::start(program_on(&server, &around(&["limit", "--rate=1/s", "job"], script)));
    assert_eq!(running.line(), "runs");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 5);
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let refused = |words: &[&str], code: i32, reason: &str| {
        let ended = run(program(words));
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.contains(reason), "{ended:?}");
    };
    let node = "--node=redis://127.0.0.1:1";
    let echo = ["--", "echo", "hi"];
    refused(&["cached", node, "--ttl=1h", "job", "echo"], 64, "quorlock cached --ttl 5m page");
    refused(&["idempotent", node, "job", "echo"], 64, "quorlock idempotent mail:7");
    refused(&["limit", node, "--rate=5/s", "job", "echo"], 64, "quorlock limit --rate 5/s mail");
    refused(&[&["cached", node, "job"], &echo[..]].concat(), 64, "--ttl");
    refused(&[&["cached", "--ttl=1h", "job"], &echo[..]].concat(), 78, "no nodes; give --node");
    refused(&[&["limit", node, "job"], &echo[..]].concat(), 64, "--rate");
    let limit = |rate: &'static str| [&["limit", node, "--rate", rate, "job"], &echo[..]].concat();
    refused(&limit("5"), 64, "write a number and a time, as in 10/1m or 5/s");
    refused(&limit("5000000/s"), 64, "no more than one a microsecond");
    refused(&[&["limit", node, "--rate=2/s", "--count=3", "job"], &echo[..]].concat(), 64, "never");
    // The port of no server.
    refused(&limit("5/s"), 69, "127.0.0.1:1");
}

#[test]
fn what_stands_under_the_key_already_is_left_as_it_is() {
    need_server!();
    let server = Server::start();
    let limit = ["limit", "--rate=5/s", "job"];
    let names = [(&limit[..], "job/limit"), (&CACHED, "job/output"), (&IDEMPOTENT, "job/outcome")];
    for (words, name) in names {
        server.command(&["RPUSH", name, "theirs"]);
        on(&server, words, "echo ran").says(78, "the first node refused: ");
        assert_eq!(server.command(&["LLEN", name]).int(), 1);
        server.command(&["DEL", name]);
        server.command(&["SET", name, "theirs"]);
        on(&server, words, "echo ran").says(78, "the first node refused: ");
        assert_eq!(server.command(&["GET", name]).text(), "theirs");
    }
}

/// Each makes what is missing, by hand; with `--until` one does.
#[test]
fn what_another_has_done_under_the_lock_is_not_done_again() {
    need_process!();
    for (until, made) in [(true, 1), (false, 4)] {
        let (fleet, scratch) = (Fleet::start(3), Scratch::new());
        let page = scratch.path().join("page");
        let (look, script) = (
            format!("echo looked; test -e {}", page.display()),
            format!("sleep 0.1; echo made >>{}", page.display()),
        );
        let options: &[&str] = if until { &["lock", "--until", &look] } else { &["lock"] };
        let words = [options, &["-w", "1h", "--json", "job"]].concat();
        let all: Vec<_> = (0..4)
            .map(|_| Running::start(program_on_all(&fleet, &around(&words, &script))))
            .collect();
        let ended: Vec<_> = all.into_iter().map(Running::end).collect();
        assert!(ended.iter().all(|ended| ended.code == 0 && ended.stdout.is_empty()), "{ended:?}");
        let skipped = ended.iter().filter(|ended| ended.json()["outcome"] == "skipped").count();
        let page = std::fs::read_to_string(page).unwrap_or_default();
        assert_eq!(page.lines().count(), made);
        assert_eq!(skipped, 4 - made, "{ended:?}");
    }
}

/// As a program that starts another one, which goes on.
#[test]
fn a_command_whose_output_others_have_still_can_be_ended() {
    need_process!();
    let server = Server::start();
    let script = "sleep 600 2>/dev/null & echo $! >&2; echo $$ >&2; echo done; exit 3";
    let running = Running::start(program_on(&server, &around(&IDEMPOTENT, script)));
    let [left, command] = [running.error_line(), running.error_line()];
    ends(&command);
    running.signal(Signal::HUP);
    let ended = running.end();
    let left = left.parse().ok().and_then(Pid::from_raw).unwrap_or_else(|| panic!("{left}"));
    // It may have ended already: by the signal, which goes to all that the command has started.
    let _ = kill_process(left, Signal::KILL);
    assert_eq!((ended.code, &*ended.stdout), (3, "done\n"), "{ended:?}");
}
