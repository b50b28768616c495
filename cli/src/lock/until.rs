//! `--until`: acquires the lock unless a line of the shell succeeds.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;

use quorlock::recipe::Until;
use quorlock::{LockGuard, LockRequest};

use crate::exit::{Cause, Failure};
use crate::{tied, words};

/// The shell that runs the line.
const SHELL: &str = "/bin/sh";

/// The lock, unless the line succeeds before it is asked for, or under it.
pub(super) async fn acquire_unless_done(
    request: LockRequest,
    line: &OsString,
) -> Result<LockGuard, Failure> {
    let look = || async { Ok(succeeds(line).await?.then_some(())) };
    match request.until(look).await {
        Ok(Until::Held(guard)) => Ok(guard),
        Ok(Until::Found(())) => {
            let what = format!("{} succeeds: there is nothing to do", words::quoted(line));
            Err(Failure::new(Cause::Skipped, what))
        }
        Err(Refused(failure)) => Err(failure),
    }
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
