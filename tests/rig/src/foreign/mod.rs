//! Other libraries as clients: how each is started. They read the same command line as ours, and
//! write the same lines.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::tools;

/// Before every key, for all clients: the one that `pottery` puts there by itself.
pub(crate) const PREFIX: &str = "redlock:";

/// The libraries that can be asked for.
pub(crate) const LIBRARIES: [&str; 3] = ["rslock", "pottery", "node-redlock"];

/// Why this library cannot run here, if it cannot.
pub(crate) fn lacks(library: &str) -> Option<Failure> {
    match library {
        "pottery" => tools::pottery().err(),
        "node-redlock" => tools::node().err(),
        "rslock" => None,
        other => {
            let known = LIBRARIES.join(", ");
            Some(format!("`{other}` is no library that the rig knows: {known}").into())
        }
    }
}

/// The command for a client, still without its own arguments; `place` wraps a program.
pub(crate) fn command(
    library: &str,
    own: &Path,
    place: impl Fn(&Path) -> Command,
) -> Result<Command, Failure> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/foreign");
    Ok(match library {
        "pottery" => {
            let python = tools::pottery()?;
            let mut command = place(Path::new(python.get_program()));
            command.envs(python.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.arg(scripts.join("pottery_client.py"));
            command
        }
        "node-redlock" => {
            let (node, packages) = tools::node()?;
            let mut command = place(&node);
            command.arg(scripts.join("node_redlock_client.cjs"));
            command.arg("--packages").arg(packages);
            command
        }
        _ => {
            let mut command = place(own);
            command.arg("client");
            command
        }
    })
}
