//! Runs a command whose output is kept, and passes signals on to it.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};

use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;
use tokio::sync::{Mutex, mpsc};

use rustix::process::Signal;

use crate::exit::{Cause, Failure};
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
    stage: Cell<Stage>,
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
        Self { command, key, stage: Cell::new(Stage::Waits), pass, passed: Mutex::new(passed) }
    }

    /// Does the work in which the command may be run. A signal that comes before the command runs
    /// ends the work; so does the second one that comes when it has ended: what it has come to is
    /// to be stored then.
    pub(super) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut signals = Signals::listen()?;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                signal = signals.next() => match self.stage.get() {
                    // A command that has not heard of so many hears of no more.
                    Stage::Runs => drop(self.pass.try_send(signal)),
                    Stage::HasEnded => self.stage.set(Stage::Waits),
                    Stage::Waits => {
                        let what = format!("ended by signal {} while waiting", signal.as_raw());
                        return Err(Failure::new(signals::cause(signal), what));
                    }
                },
            }
        }
    }

    /// Runs it to its end, and to that of its output. Where others have that still, when it has
    /// ended itself, a signal ends the wait for them.
    pub(super) async fn run(&self) -> Result<Outcome, Failure> {
        let mut passed = self.passed.lock().await;
        let told = [("QUORLOCK_KEY", self.key.to_owned())];
        let (mut child, stdout) = Child::start_captured(self.command, &told)?;
        let _running = Running::begin(&self.stage);
        let output = Output::default();
        let mut reading = std::pin::pin!(output.read(stdout));
        let (mut is_read, mut ended) = (false, None);
        while ended.is_none() || !is_read {
            tokio::select! {
                read = &mut reading, if !is_read => {
                    read?;
                    is_read = true;
                }
                end = child.wait(), if ended.is_none() => ended = Some(end?),
                Some(signal) = passed.recv() => match ended {
                    None => child.forward(signal),
                    Some(_) => is_read = true,
                },
            }
        }
        let nothing = || Failure::new(Cause::Internal, "the command has no end");
        Ok(Outcome { ended: ended.ok_or_else(nothing)?, output: output.kept() })
    }
}

/// Whether the command runs.
#[derive(Clone, Copy)]
enum Stage {
    /// Not yet, or it is not run at all.
    Waits,
    Runs,
    HasEnded,
}

/// While the command runs.
struct Running<'a>(&'a Cell<Stage>);

impl<'a> Running<'a> {
    fn begin(stage: &'a Cell<Stage>) -> Self {
        stage.set(Stage::Runs);
        Self(stage)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(Stage::HasEnded);
    }
}

/// What a command has written so far.
#[derive(Default)]
struct Output {
    bytes: RefCell<Vec<u8>>,
    is_too_long: Cell<bool>,
}

impl Output {
    /// Reads to the end, and passes on what is longer than can be kept, while any one reads ours.
    async fn read(&self, mut stdout: ChildStdout) -> Result<(), Failure> {
        let mut piece = Vec::with_capacity(PIECE);
        loop {
            let read = stdout.read_buf(&mut piece).await;
            let read =
                read.map_err(|error| Failure::internal("cannot read the command", &error))?;
            self.bytes.borrow_mut().append(&mut piece);
            self.is_too_long.set(self.is_too_long.get() || self.bytes.borrow().len() > LONGEST);
            let is_passed_on = self.is_too_long.get();
            let is_over = read == 0 || is_passed_on && !output::write(self.bytes.take()).await?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// All of it, unless it is too long.
    fn kept(&self) -> Option<Vec<u8>> {
        (!self.is_too_long.get()).then(|| self.bytes.take())
    }
}
