//! Runs a command whose output is kept, and passes signals on to it.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Mutex, mpsc};

use rustix::process::Signal;

use crate::exit::Failure;
use crate::lock::{Child, Ended};
use crate::output;
use crate::signals::{self, Signals};

/// The longest output that is kept.
pub(super) const LONGEST: usize = 4 << 20;

/// How much of a longer one is passed on at once.
const PIECE: usize = 64 << 10;

/// How many signals wait for the command to be told of them.
const SIGNALS: usize = 16;

/// A command that may be run, or need not be.
pub(super) struct Captured<'a> {
    command: &'a [OsString],
    key: &'a OsStr,
    runs: Cell<bool>,
    pass: mpsc::Sender<Signal>,
    passed: Mutex<mpsc::Receiver<Signal>>,
}

/// What a command has come to.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    /// What it wrote to its stdout; none where that was too long to be kept, and is on ours.
    pub(super) output: Option<Vec<u8>>,
}

impl<'a> Captured<'a> {
    pub(super) fn new(command: &'a [OsString], key: &'a OsStr) -> Self {
        let (pass, passed) = mpsc::channel(SIGNALS);
        Self { command, key, runs: Cell::new(false), pass, passed: Mutex::new(passed) }
    }

    /// Does the work in which the command may be run. A signal that comes while it is not ends the
    /// work.
    pub(super) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut signals = Signals::listen()?;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                signal = signals.next() => {
                    if !self.runs.get() {
                        let what = format!("ended by signal {} while waiting", signal.as_raw());
                        return Err(Failure::new(signals::cause(signal), what));
                    }
                    // A command that has not heard of so many hears of no more.
                    let _ = self.pass.try_send(signal);
                }
            }
        }
    }

    /// Runs it to its end.
    pub(super) async fn run(&self) -> Result<Outcome, Failure> {
        let mut passed = self.passed.lock().await;
        let told = [("QUORLOCK_KEY", self.key.to_owned())];
        let (mut child, stdout) = Child::start_captured(self.command, &told)?;
        let _running = Running::begin(&self.runs);
        let mut output = std::pin::pin!(collect(stdout));
        let mut collected = None;
        let ended = loop {
            tokio::select! {
                read = &mut output, if collected.is_none() => collected = Some(read?),
                ended = child.wait(), if collected.is_some() => break ended?,
                Some(signal) = passed.recv() => child.forward(signal),
            }
        };
        Ok(Outcome { ended, output: collected.flatten() })
    }
}

/// While the command runs.
struct Running<'a>(&'a Cell<bool>);

impl<'a> Running<'a> {
    fn begin(runs: &'a Cell<bool>) -> Self {
        runs.set(true);
        Self(runs)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Reads to the end; passes on what is longer than can be kept.
async fn collect(mut stdout: impl AsyncRead + Unpin) -> Result<Option<Vec<u8>>, Failure> {
    let mut kept = Vec::new();
    let mut is_kept = true;
    loop {
        let read = stdout.read_buf(&mut kept).await;
        let read = read.map_err(|error| Failure::internal("cannot read the command", &error))?;
        is_kept &= kept.len() <= LONGEST;
        if !is_kept {
            output::write(std::mem::replace(&mut kept, Vec::with_capacity(PIECE))).await?;
        }
        if read == 0 {
            return Ok(is_kept.then_some(kept));
        }
    }
}
