//! Finding the programs that tests run: servers, `redis-cli`, PostgreSQL, MariaDB, a Python with
//! redis-py.
//!
//! Order: the environment variable that names it, the path, what `tests/servers` fetched; of the
//! two databases the last alone. A variable that names nothing is an error and never a skip, for it
//! was set on purpose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::skip::{NO_MARIADB, NO_PROCESS, NO_PYTHON, servers_are_required};

/// What the tests' servers are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Processes of this program.
    Process(PathBuf),
    /// Nodes inside this process: where there is no program, or they are asked for by
    /// `QUORLOCK_SERVER=in-process`.
    InProcess,
}

impl Kind {
    /// Whether it was built with TLS.
    pub(crate) fn speaks_tls(&self) -> bool {
        match self {
            Self::Process(program) => speaks_tls(program),
            Self::InProcess => false,
        }
    }
}

/// What a server is to be, or why there is none.
pub fn find_kind() -> Result<Kind, String> {
    match find_server() {
        Ok(program) => Ok(Kind::Process(program)),
        Err(why) if why == NO_PROCESS || !servers_are_required() => {
            if cfg!(feature = "in-process") { Ok(Kind::InProcess) } else { Err(why) }
        }
        Err(why) => Err(why),
    }
}

/// The program to run as a server, or why there is none.
pub fn find_server() -> Result<PathBuf, String> {
    if std::env::var_os("QUORLOCK_SERVER").is_some_and(|value| value == "in-process") {
        return Err(NO_PROCESS.to_owned());
    }
    find("QUORLOCK_SERVER", &["redis-server", "valkey-server"])
}

/// The `redis-cli` (or `valkey-cli`) program, or why there is none.
pub fn find_redis_cli() -> Result<PathBuf, String> {
    find("QUORLOCK_REDIS_CLI", &["redis-cli", "valkey-cli"])
}

/// The `postgres` program that `tests/servers` fetched, or why there is none. One on the path may
/// be without the programs that belong beside it.
pub fn find_postgres() -> Result<PathBuf, String> {
    let found = fetched(&["postgres"]).into_iter().next();
    found.ok_or_else(|| "no postgres (run tests/servers all)".into())
}

/// The `mariadbd` program that `tests/servers` fetched, or why there is none.
pub fn find_mariadb() -> Result<PathBuf, String> {
    if std::env::var_os("QUORLOCK_MARIADB").is_some_and(|value| value == "none") {
        return Err(NO_MARIADB.to_owned());
    }
    let found = fetched(&["mariadbd"]).into_iter().next();
    found.ok_or_else(|| "no mariadbd (run tests/servers all, where apt-get is)".into())
}

/// A Python that can `import redis`, as a command ready for arguments, or why there is none.
pub fn find_python() -> Result<Command, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let usable = |path: &PathBuf| {
        let import = ["-c", "import redis.lock"];
        let probe = python(path).args(import).stdout(Stdio::null()).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    };
    let found = FOUND.get_or_init(|| {
        if std::env::var_os("QUORLOCK_PYTHON").is_some_and(|value| value == "none") {
            return Err(NO_PYTHON.to_owned());
        }
        let path = find("QUORLOCK_PYTHON", &["python3", "python"])?;
        let why = || format!("{} has no redis-py (run tests/servers)", path.display());
        if usable(&path) { Ok(path) } else { Err(why()) }
    });
    found.as_ref().map(|path| python(path)).map_err(String::clone)
}

/// Every server there is, each once, the default first: for tests that must pass on all versions.
pub fn all_servers() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = find_server().into_iter().collect();
    all.extend(fetched(&["valkey-server", "redis-server"]));
    let mut seen = Vec::new();
    all.retain(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    all
}

/// A server's program that speaks TLS itself, or why there is none: only some are built so.
pub fn find_tls_server() -> Result<PathBuf, String> {
    let found = all_servers().into_iter().find(|program| speaks_tls(program));
    found.ok_or_else(|| "no server that was built with TLS (run tests/servers all)".into())
}

/// Whether a server's program was built with TLS.
fn speaks_tls(program: &Path) -> bool {
    static KNOWN: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(program.to_owned()).or_insert_with(|| {
        // What cannot speak it says so before it looks at the port, which is not to be opened.
        let args = ["--port", "0", "--tls-port", "1", "--tls-cert-file", "/none"];
        let said = Command::new(program).args(args).stdin(Stdio::null()).output();
        said.is_ok_and(|said| {
            String::from_utf8_lossy(&said.stdout).contains("Failed to configure TLS")
        })
    })
}

/// The first of `names` that the variable, the path or the fetched servers have.
fn find(variable: &str, names: &[&str]) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(variable).map(PathBuf::from) {
        assert!(path.is_file(), "{variable} names no file: {}", path.display());
        return Ok(path);
    }
    let found = names.iter().find_map(|name| on_path(name));
    let found = found.or_else(|| fetched(names).into_iter().next());
    found.ok_or_else(|| format!("no {} (run tests/servers, or set {variable})", names.join(" or ")))
}

/// The program `name` in the directories of `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|dir| dir.join(&name)).find(|file| file.is_file())
}

/// The programs called one of `names` that `tests/servers` fetched: Valkey first, newest first.
fn fetched(names: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(fetched_root()) else { return Vec::new() };
    let mut homes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    homes.sort_unstable_by(|a, b| b.cmp(a));
    let programs = homes.iter().flat_map(|home| names.iter().map(|n| home.join("bin").join(n)));
    programs.filter(|path| path.is_file()).collect()
}

/// Where `tests/servers` puts what it fetches, whatever `CARGO_TARGET_DIR` says.
fn fetched_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The workspace is where `tests/run` is.
    let root = package.ancestors().find(|folder| folder.join("tests/run").is_file());
    root.unwrap_or(package).join("target").join("servers")
}

/// `path` as a command that also sees the fetched redis-py.
fn python(path: &Path) -> Command {
    let mut command = Command::new(path);
    let own = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let fetched = std::iter::once(fetched_root().join("python"));
    let all = std::env::split_paths(&own).filter(|dir| !dir.as_os_str().is_empty()).chain(fetched);
    if let Ok(joined) = std::env::join_paths(all) {
        command.env("PYTHONPATH", joined);
    }
    command
}
