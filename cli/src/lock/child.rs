//! The command's process.
//!
//! It leads a process group of its own, so that signals also reach the processes that it starts. If
//! our stdin is a terminal, it stays in our group instead, as under `env` or `nice`: a background
//! group that reads from its terminal is stopped, and moving it to the foreground and back would be
//! job control, which is the shell's work. The terminal then sends INT and QUIT to the whole group;
//! we send other signals to the command's process only, because the group may hold other processes.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};

use tokio::process::ChildStdout;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::exit::{Cause, Failure};
use crate::tied;

/// What a command may be told of its lock, in its environment.
const TOLD: [&str; 5] =
    ["QUORLOCK_KEY", "QUORLOCK_TOKEN", "QUORLOCK_DEADLINE_MS", "QUORLOCK_FENCE", "QUORLOCK_SLOT"];

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    id: Pid,
    /// Whether it leads a group of its own.
    leads: bool,
    /// Whether an INT has come before.
    interrupted: bool,
}

impl Child {
    /// Starts the command, without a shell, and tells it this in its environment.
    pub(crate) fn start(
        command: &[OsString],
        told: &[(&'static str, OsString)],
    ) -> Result<Self, Failure> {
        Self::start_with(command, told, Stdio::inherit())
    }

    /// As [`start`](Self::start), but its stdout comes to us.
    pub(crate) fn start_captured(
        command: &[OsString],
        told: &[(&'static str, OsString)],
    ) -> Result<(Self, ChildStdout), Failure> {
        let mut child = Self::start_with(command, told, Stdio::piped())?;
        match child.process.stdout.take() {
            Some(stdout) => Ok((child, stdout)),
            None => Err(Failure::new(Cause::Internal, "the command has no stdout")),
        }
    }

    fn start_with(
        command: &[OsString],
        told: &[(&'static str, OsString)],
        stdout: Stdio,
    ) -> Result<Self, Failure> {
        let Some((program, rest)) = command.split_first() else {
            return Err(Failure::new(Cause::Usage, "no command was given"));
        };
        let leads = !io::stdin().is_terminal();
        let mut command = tied::command(program);
        command.args(rest).stdout(stdout);
        // One that is not told could be inherited from an enclosing lock.
        for name in TOLD {
            command.env_remove(name);
        }
        command.envs(told.iter().map(|(name, value)| (name, value)));
        if leads {
            command.process_group(0);
        }
        let mut command = tokio::process::Command::from(command);
        // If this function or the supervision fails early.
        command.kill_on_drop(true);
        let process = command.spawn().map_err(|error| tied::refusal(program, &error))?;
        let id = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let Some(id) = id else {
            return Err(Failure::new(Cause::Internal, "the command has no process id"));
        };
        Ok(Self { process, id, leads, interrupted: false })
    }

    /// Waits for its end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub(crate) async fn wait(&mut self) -> Result<Ended, Failure> {
        let ended = self.process.wait().await;
        ended.map(Ended).map_err(|error| Failure::internal("cannot wait for the command", &error))
    }

    /// Passes on a signal that came to us.
    pub(crate) fn forward(&mut self, signal: Signal) {
        let from_terminal = !self.leads && matches!(signal, Signal::INT | Signal::QUIT);
        if signal == Signal::INT && std::mem::replace(&mut self.interrupted, true) {
            self.send(Signal::KILL);
        } else if !from_terminal {
            self.send(signal);
        }
    }

    /// Sends a signal to its group, or to itself where it shares ours.
    pub(crate) fn send(&self, signal: Signal) {
        // It fails only if all of it has ended already, and the next wait returns that.
        let _ = if self.leads {
            kill_process_group(self.id, signal)
        } else {
            kill_process(self.id, signal)
        };
    }

    /// Kills what its group still holds after its own end.
    pub(crate) fn kill_rest(&self) {
        if self.leads {
            self.send(Signal::KILL);
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended(ExitStatus);

impl Ended {
    /// Its exit code, or 128 and the number of the signal that ended it.
    pub(crate) fn code(self) -> u8 {
        let signalled = || self.signal().map(|signal| signal.saturating_add(128));
        let code = self.0.code().or_else(signalled);
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
    }

    /// Whether the command was run, by its exit code. On Linux our own helper process starts the
    /// command and exits with 126 or 127 if that fails. A command may also exit with these itself.
    pub(crate) fn has_run(self) -> bool {
        !matches!(self.code(), 126 | 127)
    }

    /// The signal that ended it.
    pub(crate) fn signal(self) -> Option<i32> {
        self.0.signal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        let code = |raw: i32| Ended(ExitStatus::from_raw(raw)).code();
        assert_eq!(code(0), 0);
        assert_eq!(code(42 << 8), 42);
        assert_eq!(code(15), 128 + 15);
        assert_eq!(code(9 | 0x80), 128 + 9, "with a core dump");
    }
}
