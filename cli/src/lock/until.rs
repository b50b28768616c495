//! `--until`: acquires the lock unless a line of the shell succeeds.

use std::ffi::OsStr;
use std::mem;
use std::process::Stdio;

use quorlock::recipe::Until;
use quorlock::{LockGuard, LockRequest};

use crate::exit::{Cause, Failure};
use crate::{tied, words};

/// The shell that runs the line.
const SHELL: &str = "/bin/sh";

/// Fails as skipped if the line succeeds.
pub(super) async fn look(line: &OsStr) -> Result<(), Failure> {
    match succeeds(line).await {
        Ok(true) => Err(skipped(line)),
        Ok(false) => Ok(()),
        Err(Refused(failure)) => Err(failure),
    }
}

/// The lock, unless the line succeeds under it. It has not before.
pub(super) async fn acquire_unless_done(
    request: LockRequest,
    line: &OsStr,
) -> Result<LockGuard, Failure> {
    let mut is_known = true;
    let look = || {
        let is_known = mem::take(&mut is_known);
        async move { Ok((!is_known && succeeds(line).await?).then_some(())) }
    };
    match request.until(look).await {
        Ok(Until::Held(guard)) => Ok(guard),
        Ok(Until::Found(())) => Err(skipped(line)),
        Err(Refused(failure)) => Err(failure),
    }
}

fn skipped(line: &OsStr) -> Failure {
    let what = format!("{} succeeds: there is nothing to do", words::quoted(line));
    Failure::new(Cause::Skipped, what)
}

/// Why there is no lock, or no look.
struct Refused(Failure);

impl From<quorlock::Error> for Refused {
    fn from(error: quorlock::Error) -> Self {
        Self(Failure::of_options(error))
    }
}

/// Whether the line succeeds. Its stdout is discarded.
async fn succeeds(line: &OsStr) -> Result<bool, Refused> {
    let shell = OsStr::new(SHELL);
    let mut command = tied::command(shell);
    command.arg("-c").arg(line).stdin(Stdio::null()).stdout(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let status = command.kill_on_drop(true).status().await;
    let status = status.map_err(|error| Refused(tied::refusal(shell, &error)))?;
    Ok(status.success())
}
