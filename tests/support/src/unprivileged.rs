//! Databases refuse to run as root: there they run as another user.

use std::path::Path;
use std::process::Command;

use crate::process::tied;

/// The user that runs databases when the tests run as root.
const USER: u32 = 65_534;

/// Gives a directory to that user, if we are root.
#[track_caller]
pub(crate) fn give(directory: &Path) {
    if is_root() {
        std::os::unix::fs::chown(directory, Some(USER), Some(USER)).expect("we are root");
    }
}

/// A command for `program`, which dies with us, as that user where we are root.
pub(crate) fn command(program: &Path) -> Command {
    if !is_root() {
        return tied(program);
    }
    let mut command = Command::new("setpriv");
    let user = USER.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--pdeathsig", "KILL"]);
    command.arg("--").arg(program);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
