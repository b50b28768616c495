//! Running the program under a watchdog.

#![expect(clippy::expect_used, reason = "a set-up that fails must fail its test on the spot")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::process::tied;
use support::{Fleet, Server, Watchdog, eventually};

use crate::stream::Stream;

/// Longer than any run here takes, also while the machine is building.
const RUN_PATIENCE: Duration = Duration::from_secs(30);

/// What the program looks at, and a test must not inherit.
const VARIABLES: [&str; 7] = [
    "QUORLOCK_NODES",
    "REDIS_URL",
    "REDIS_PASSWORD",
    "QUORLOCK_FENCE",
    "QUORLOCK_SLOT",
    "QUORLOCK_TOKEN",
    "QUORLOCK_KEY",
];

/// The program with these arguments, in an environment without nodes.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = with_signals(env!("CARGO_BIN_EXE_quorlock"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// A program to which a signal means what it means by default. A build server may run us in the
/// background, where some are ignored; children inherit that, and a shell cannot take it back.
fn with_signals(program: &str) -> Command {
    if cfg!(not(target_os = "linux")) {
        return tied(Path::new(program));
    }
    let mut command = tied(Path::new("/usr/bin/env"));
    command.args(["--default-signal=HUP,INT,QUIT,TERM", program]);
    command
}

/// The program with these arguments, on this server.
pub(crate) fn program_on(server: &Server, args: &[&str]) -> Command {
    let mut command = program(args);
    command.env("QUORLOCK_NODES", format!("redis://{}", server.addr()));
    command
}

/// The program with these arguments, on these servers.
pub(crate) fn program_on_all(fleet: &Fleet, args: &[&str]) -> Command {
    let mut command = program(args);
    command.env("QUORLOCK_NODES", fleet.urls().join(","));
    command
}

/// A shell's line on a terminal of its own, which is shown on stdout; nothing where there is no
/// `script` that gives it one.
pub(crate) fn on_terminal(line: &str) -> Option<Command> {
    let found = Command::new("script").arg("--version").output();
    // Other systems' has no versions.
    found.ok().filter(|found| found.status.success())?;
    let mut command = tied(Path::new("script"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.args(["-q", "-e", "-c", line, "/dev/null"]).stdin(Stdio::piped());
    Some(command)
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run(command: Command) -> Ended {
    Running::start(command).end()
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As a shell tells it: 128 and the number for a signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Checks the code, and that stderr is one line of ours with these words.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.starts_with("quorlock: ") && self.stderr.contains(words), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }

    /// The one object that `--json` wrote.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let object = serde_json::from_str(&self.stderr);
        object.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A program that runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: Command) -> Self {
        Self::spawn(command, Stdio::piped(), Stdio::piped())
    }

    /// Starts it with a stderr of the test's own: nothing that it says there is in its end.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(crate) fn start_with_stderr(command: Command, stderr: Stdio) -> Self {
        Self::spawn(command, Stdio::piped(), stderr)
    }

    /// Starts it with a stdout of the test's own: nothing that it says there is in its end.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(crate) fn start_with_stdout(command: Command, stdout: Stdio) -> Self {
        Self::spawn(command, stdout, Stdio::piped())
    }

    #[track_caller]
    fn spawn(mut command: Command, stdout: Stdio, stderr: Stdio) -> Self {
        command.stdout(stdout).stderr(stderr);
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map_or_else(Stream::empty, Stream::read);
        let stderr = child.stderr.take().map_or_else(Stream::empty, Stream::read);
        Self { child, stdin, stdout, stderr }
    }

    /// The next line on stdout, without its end.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.stdout.until("\n").trim_end().into()
    }

    /// The next line on stderr, without its end.
    #[track_caller]
    pub(crate) fn error_line(&self) -> String {
        self.stderr.until("\n").trim_end().into()
    }

    /// Waits for a question on stdout, which ends with these words and not with its line.
    #[track_caller]
    pub(crate) fn asks(&self, words: &str) {
        self.stdout.until(words);
    }

    /// Waits for the next line on stderr, which must be ours and have these words.
    #[track_caller]
    pub(crate) fn complains(&self, words: &str) {
        let line = self.stderr.until("\n");
        assert!(line.starts_with("quorlock: ") && line.contains(words), "{words}: {line}");
    }

    /// Writes to its stdin, which must be piped.
    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is piped");
        stdin.write_all(text.as_bytes()).expect("the program reads");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it has not been waited for");
    }

    /// Whether the program handles this signal by now.
    #[cfg(target_os = "linux")]
    pub(crate) fn handles(&self, signal: Signal) -> bool {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal.as_raw() - 1) & 1 == 1
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }

    /// Closes its stdin, and waits for its end. What was read of its streams before is not in what
    /// it said.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        drop(self.stdin.take());
        let watchdog = Watchdog::with_patience("the program to end", RUN_PATIENCE);
        while !self.has_ended() {
            watchdog.pause();
        }
        let status = self.child.wait().expect("it has ended");
        let signalled = || std::os::unix::process::ExitStatusExt::signal(&status).map(|n| 128 + n);
        let code = status.code().or_else(signalled).expect("a code or a signal");
        // Both end with the program, for what it started has ended before.
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `quorlock lock` with `options` around `cat`, and returns when `key` is held; it ends when
/// [`Running::end`] closes its stdin.
#[track_caller]
pub(crate) fn hold(server: &Server, options: &[&str], key: &str) -> Running {
    let args = [&["lock"], options, &[key, "--", "cat"]].concat();
    holding(program_on(server, &args))
}

/// Starts a program whose command is `cat`, and returns when that runs.
#[track_caller]
pub(crate) fn holding(mut command: Command) -> Running {
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    // The echo says that the command runs; the lock is held by then.
    running.write("runs\n");
    assert_eq!(running.line(), "runs");
    running
}

/// Waits until no key is left on the server: a release is confirmed by a majority only.
#[track_caller]
pub(crate) fn empties(server: &Server) {
    eventually("all keys to be gone", || server.command(&["DBSIZE"]).int() == 0);
}

/// Waits until the process has ended; one that was not reaped counts as ended.
#[track_caller]
pub(crate) fn ends(pid: &str) {
    eventually("a process to end", || {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
            return true;
        };
        status.lines().any(|line| line.starts_with("State:") && line.contains('Z'))
    });
}
