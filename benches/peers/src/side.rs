//! Another process that takes part: this program, started again, and told over a pipe what to do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::contest::Failure;
use crate::servers::Nodes;

/// One process.
pub(crate) struct Side {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Side {
    /// Starts it as what `word` says, on the command line, and as this contestant.
    pub(crate) fn start(word: &str, name: &str, nodes: &Nodes) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([word, name]).args(&nodes.urls);
        Self::of(command)
    }

    /// Starts another program that is told and says the same.
    pub(crate) fn of(mut command: Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or("a process without pipes")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    pub(crate) fn say(&mut self, what: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{what}")?)
    }

    /// What it says next.
    pub(crate) fn hear_line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// When it did what it was told, in nanoseconds of the machine's clock.
    pub(crate) fn hear(&mut self) -> Result<u64, Failure> {
        let line = self.hear_line()?;
        line.parse().map_err(|_| format!("a contestant said `{line}`").into())
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Its input ends with this, and so does it; what it leaves behind ends with the servers.
        let _ = self.kill();
    }
}
