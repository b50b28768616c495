//! Five servers, and nothing left of them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use support::need_process;
use support::scratch::Scratch;

use crate::run::{Running, program, run};

/// The demo with this server, and a temporary directory of its own.
fn demo(server: &Path, temporary: &Scratch) -> Command {
    let mut command = program(&["demo"]);
    command.env("QUORLOCK_SERVER", server).env("TMPDIR", temporary.path());
    command
}

/// What is left in a directory.
fn left(directory: &Scratch) -> Option<usize> {
    std::fs::read_dir(directory.path()).ok().map(Iterator::count)
}

#[test]
fn it_names_five_nodes_and_the_quorum_and_leaves_nothing() {
    let server = need_process!();
    let temporary = Scratch::new();
    let ended = run(demo(&server, &temporary));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    for name in ["a", "b", "c", "d", "e"] {
        assert!(ended.stdout.contains(&format!(" {name} 127.0.0.1:")), "{name}: {ended:?}");
    }
    for words in ["3 of 5", "µs", "node d is killed", "node e hangs", "granted by a, b, c: 3 of 5"]
    {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
    assert!(!ended.stdout.contains('\x1b'), "no styles in a pipe: {ended:?}");
    assert_eq!(left(&temporary), Some(0));
}

/// A server as Debian ships it: one program that does its work by the name it is called by, with a
/// link for each of its names. Returns the link.
fn multi_call(server: &Path, home: &Scratch) -> PathBuf {
    let by_name = format!(
        "#!/bin/sh\ncase ${{0##*/}} in redis-server) exec '{}' \"$@\" ;; esac\n\
         echo \"Usage: $0 <rdb-file-name>\"\nexit 1",
        server.display()
    );
    // Another process writes it: while this one has it open, a child of another test may be, too,
    // and what is open for writing cannot be run.
    let write = "echo \"$1\" >redis-check-rdb && chmod +x redis-check-rdb";
    let mut shell = Command::new("sh");
    let written = shell.args(["-c", write, "sh", &by_name]).current_dir(home.path()).status();
    assert!(written.is_ok_and(|ended| ended.success()), "{}", home.path().display());
    let link = home.path().join("redis-server");
    assert!(symlink("redis-check-rdb", &link).is_ok(), "{}", link.display());
    link
}

#[test]
fn a_server_is_started_by_the_name_it_was_found_under() {
    let server = need_process!();
    let (temporary, home) = (Scratch::new(), Scratch::new());
    let link = multi_call(&server, &home);
    let mut on_path = demo(&link, &temporary);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(home.path().to_owned()).chain(std::env::split_paths(&path));
    on_path.env_remove("QUORLOCK_SERVER").env("PATH", std::env::join_paths(path).unwrap());
    for command in [demo(&link, &temporary), on_path] {
        let ended = run(command);
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        assert!(ended.stdout.contains(" e 127.0.0.1:"), "{ended:?}");
    }
}

#[test]
fn a_signal_ends_it_in_good_order() {
    let server = need_process!();
    let temporary = Scratch::new();
    let running = Running::start(demo(&server, &temporary));
    // The servers run.
    while !running.line().contains(" e 127.0.0.1:") {}
    running.signal(Signal::TERM);
    running.end().says(128 + 15, "the servers are removed");
    assert_eq!(left(&temporary), Some(0));
}

#[test]
fn without_a_server_it_runs_on_nodes_of_its_own_and_says_so() {
    let empty = Scratch::new();
    // Not tied to us, for what ties it is on the path.
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
    command.arg("demo").env("PATH", empty.path()).env_remove("QUORLOCK_SERVER");
    command.current_dir(empty.path());
    let ended = run(command);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    for words in [
        "no server's program, but nodes inside this process",
        " a 127.0.0.1:",
        "node d is killed",
        "node e hangs",
        "granted by a, b, c: 3 of 5",
        "all stopped and removed",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
    assert!(!ended.stdout.contains("SIG"), "{ended:?}");
    run(demo(Path::new("/nowhere"), &empty)).says(78, "QUORLOCK_SERVER names no server");
}
