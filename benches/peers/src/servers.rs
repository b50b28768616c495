//! The nodes: real servers on loopback, without persistence, dead when dropped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::contest::Failure;
use crate::support::{Fleet, Reply, Server, tools};

/// The running servers.
pub(crate) struct Servers {
    fleet: Fleet,
    program: PathBuf,
}

impl Servers {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> Result<Self, Failure> {
        let program = find()?;
        let fleet = Fleet::start_with(count, |_, server| server.program(&program));
        Ok(Self { fleet, program })
    }

    /// Their URLs, in order.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.fleet.urls()
    }

    /// Their addresses, in order.
    pub(crate) fn addrs(&self) -> Vec<SocketAddr> {
        self.fleet.iter().map(Server::addr).collect()
    }

    /// Loads a script on every node; returns its digest.
    pub(crate) fn load(&self, script: &str) -> Result<Vec<u8>, Failure> {
        let replies = self.fleet.command(&["SCRIPT", "LOAD", script]);
        match replies.first() {
            Some(Reply::Bulk(digest)) => Ok(digest.clone()),
            other => Err(format!("no node loads a script: {other:?}").into()),
        }
    }

    /// Their program and its version.
    pub(crate) fn version(&self) -> String {
        let (kind, [major, minor, patch]) = self.fleet[0].version();
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        format!("{kind} {major}.{minor}.{patch} ({program})")
    }

    /// Waits until no node has a key, letting `settle` bring in what is still under way. Where
    /// keys do not go, returns how many are left on all nodes together, and removes them.
    pub(crate) fn left_behind(
        &self,
        patience: Duration,
        mut settle: impl FnMut() -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let began = clock::now();
        loop {
            settle()?;
            let left: u64 = self.fleet.iter().map(keys).sum::<Result<_, _>>()?;
            if left == 0 {
                return Ok(0);
            }
            if began.elapsed() > patience {
                self.fleet.command(&["FLUSHALL"]);
                return Ok(left);
            }
        }
    }
}

/// How many keys a server has.
fn keys(server: &Server) -> Result<u64, Failure> {
    match server.command(&["DBSIZE"]) {
        Reply::Int(count) => Ok(u64::try_from(count)?),
        other => Err(format!("a server does not count its keys: {other:?}").into()),
    }
}

/// The program: by the variable, on the path, or among those that `tests/servers` fetched.
fn find() -> Result<PathBuf, Failure> {
    const NAMES: [&str; 2] = ["redis-server", "valkey-server"];
    if let Some(path) = std::env::var_os("QUORLOCK_SERVER").map(PathBuf::from) {
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!("QUORLOCK_SERVER names no file: {}", path.display()).into()),
        };
    }
    let on_path = NAMES.iter().find_map(|name| tools::on_path(name));
    let found = on_path.or_else(|| fetched(&NAMES).into_iter().next());
    found.ok_or_else(|| "no redis-server or valkey-server (run tests/servers)".into())
}

/// The fetched ones, the newest first.
fn fetched(names: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut homes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    homes.sort_unstable_by(|a, b| b.cmp(a));
    let programs =
        homes.iter().flat_map(|home| names.iter().map(|name| home.join("bin").join(name)));
    programs.filter(|path| path.is_file()).collect()
}
