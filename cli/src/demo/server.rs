//! Finding a server's program: named by the environment, on the path, or fetched for the tests. If
//! there is none, the demo uses nodes inside this process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::exit::{Cause, Failure};

/// Names the program to run.
const VARIABLE: &str = "QUORLOCK_SERVER";

const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// Where `tests/run` puts what it fetches, below the directory we are called in.
const FETCHED: &str = "target/servers";

/// The variable's value that asks for nodes inside this process.
const INSIDE: &str = "in-process";

/// What the demo's nodes are.
#[derive(Debug)]
pub(crate) enum Server {
    /// Processes of a program that runs here.
    Program {
        program: PathBuf,
        /// Its kind and version: `Valkey 9.1.2`.
        name: String,
    },
    /// Nodes inside this process.
    Inside,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, .. } => f.write_str(name),
            Self::Inside => f.write_str("no server's program, but nodes inside this process,"),
        }
    }
}

/// The first program that runs, or nodes inside this process.
pub(crate) fn find() -> Result<Server, Failure> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        if path == INSIDE {
            return Ok(Server::Inside);
        }
        let what = format!("{VARIABLE} names no server that runs here: {}", path.to_string_lossy());
        return probe(path.into()).ok_or_else(|| Failure::new(Cause::Configuration, what));
    }
    let mut candidates = on_path().into_iter().chain(fetched(Path::new(FETCHED)));
    Ok(candidates.find_map(probe).unwrap_or(Server::Inside))
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// `target/servers/NAME/bin/…`, in an order that does not depend on the file system.
fn fetched(root: &Path) -> Vec<PathBuf> {
    // Absolute, for the servers run in a directory of their own.
    let Ok(root) = root.canonicalize() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut homes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    homes.sort_unstable_by(|a, b| b.cmp(a));
    let files = homes.iter().flat_map(|home| NAMES.map(|name| home.join("bin").join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// Asks the program for its version: one that was built for another machine, or lacks its
/// libraries, does not answer.
fn probe(program: PathBuf) -> Option<Server> {
    // Absolute, because the servers run in another directory. Symlinks are not resolved: on some
    // systems one binary behaves by the name that it is called by.
    let program = std::path::absolute(&program).unwrap_or(program);
    let mut asked = Command::new(&program);
    let output = asked.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| Server::Program { name: name(&text), program })
}

/// `Redis server v=7.0.15 sha=…` is `Redis 7.0.15`.
fn name(version: &str) -> String {
    let kind = if version.starts_with("Valkey") { "Valkey" } else { "Redis" };
    let number = version.split_whitespace().find_map(|word| word.strip_prefix("v="));
    let known = |number: &&str| number.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    match number.filter(known) {
        Some(number) => format!("{kind} {number}"),
        None => kind.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        assert_eq!(name("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc"), "Redis 7.0.15");
        assert_eq!(name("Valkey server v=9.1.2 sha=0"), "Valkey 9.1.2");
        assert_eq!(name("Redis v=\x1b[2J"), "Redis");
        assert_eq!(name(""), "Redis");
    }
}
