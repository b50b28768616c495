//! Child processes that are killed when this process dies.
//!
//! Linux kills a process when its parent dies, if the process itself asks for it, between `fork`
//! and `exec`. To run code there takes `unsafe`; to be started once more does not. So on Linux we
//! start ourselves as `quorlock __exec PARENT COMMAND…`, which asks for it and then becomes the
//! command: the same process, the same id. Elsewhere the command is started as it is.
//!
//! The kernel ties the child to the *thread* that started it. Ours is the main thread.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::Access;

use crate::exit::{Cause, Failure};
use crate::words;

#[cfg(target_os = "linux")]
pub(crate) use shim::run_if_asked;

/// `program` as a command that the kernel kills when we die, where the system supports that.
pub(crate) fn command(program: &OsStr) -> Command {
    #[cfg(target_os = "linux")]
    if let Some(command) = shim::command(program) {
        return command;
    }
    Command::new(program)
}

/// Why a command did not start, with the exit code that shells use for it.
pub(crate) fn refusal(program: &OsStr, error: &io::Error) -> Failure {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => Cause::NotFound,
        _ => Cause::CannotRun,
    };
    Failure::new(cause, format!("cannot run {}: {error}", words::quoted(program)))
}

/// Whether a command is there and may be run, as far as that can be told before it is.
pub(crate) fn check(command: &[OsString]) -> Result<(), Failure> {
    let Some(program) = command.first() else { return Ok(()) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = match program.as_bytes().contains(&b'/') {
        true => vec![program.into()],
        false => std::env::split_paths(&path).map(|directory| directory.join(program)).collect(),
    };
    let is_file = |place: &&PathBuf| place.is_file();
    let Some(found) = places.iter().find(is_file) else {
        return Err(refusal(program, &io::ErrorKind::NotFound.into()));
    };
    let may_be_run = |place: &PathBuf| rustix::fs::access(place, Access::EXEC_OK).is_ok();
    match places.iter().filter(is_file).any(may_be_run) {
        true => Ok(()),
        false => Err(refusal(found.as_os_str(), &io::ErrorKind::PermissionDenied.into())),
    }
}

#[cfg(target_os = "linux")]
mod shim {
    use std::convert::Infallible;
    use std::ffi::{OsStr, OsString};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    use crate::exit::{Cause, Failure};
    use crate::output;

    /// The hidden first argument.
    const ASKED: &str = "__exec";

    /// Ourselves, also when our file has been replaced or removed since we started.
    const OURSELVES: &str = "/proc/self/exe";

    /// Ourselves, asked to become `program`; nothing where there is no `/proc`.
    pub(super) fn command(program: &OsStr) -> Option<Command> {
        Path::new(OURSELVES).exists().then(|| {
            let parent = std::process::id().to_string();
            let mut command = Command::new(OURSELVES);
            command.arg0("quorlock").arg(ASKED).arg(parent).arg(program);
            command
        })
    }

    /// Becomes the command if the first argument asks for it. Returns only if that fails, with the
    /// exit code, or if it was not asked for.
    pub(crate) fn run_if_asked() -> Option<u8> {
        let mut args = std::env::args_os().skip(1);
        if args.next()? != ASKED {
            return None;
        }
        let parent = args.next().and_then(|id| id.into_string().ok()?.parse::<i32>().ok());
        let (Some(parent), Some(program)) = (parent, args.next()) else {
            let what = "__exec is for quorlock itself; use `quorlock lock`";
            return Some(output::fail(&Failure::new(Cause::Usage, what)));
        };
        let Err(failure) = become_command(parent, &program, args);
        Some(output::fail(&failure))
    }

    fn become_command(
        parent: i32,
        program: &OsStr,
        args: impl Iterator<Item = OsString>,
    ) -> Result<Infallible, Failure> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| Failure::internal("cannot tie the command to us", &error.into()))?;
        // A parent that died before we asked sends nothing any more.
        if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
            let what = "quorlock died while it started the command";
            return Err(Failure::new(Cause::Internal, what));
        }
        Err(super::refusal(program, &Command::new(program).args(args).exec()))
    }
}
