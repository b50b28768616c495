//! The programs that `tests/rig/tools` fetches into `target/rig`, and the servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::skip::NO_PYTHON;
use support::tools::{all_servers, on_path};

use crate::Failure;

/// `nft`, from the path or fetched.
pub(crate) fn nft() -> Result<PathBuf, Failure> {
    let fetched = Some(home().join("nft/bin/nft")).filter(|path| path.is_file());
    on_path("nft").or(fetched).ok_or_else(|| "no `nft` (run tests/rig/tools)".into())
}

/// A Python that can `import pottery`.
pub(crate) fn pottery() -> Result<Command, Failure> {
    if std::env::var_os("QUORLOCK_PYTHON").is_some_and(|value| value == "none") {
        return Err(NO_PYTHON.into());
    }
    let python = on_path("python3").ok_or("no python3")?;
    let mut command = Command::new(python);
    command.env("PYTHONPATH", home().join("python"));
    let mut probe = Command::new(command.get_program());
    probe.env("PYTHONPATH", home().join("python")).args(["-c", "import pottery"]);
    let works = probe.output().is_ok_and(|output| output.status.success());
    works.then_some(command).ok_or_else(|| "no pottery for python3 (run tests/rig/tools)".into())
}

/// Node, and where its packages are.
pub(crate) fn node() -> Result<(PathBuf, PathBuf), Failure> {
    let node = on_path("node").ok_or("no node")?;
    let packages = home().join("node");
    let there = packages.join("node_modules/redlock").is_dir();
    there.then_some((node, packages)).ok_or_else(|| "no redlock (run tests/rig/tools)".into())
}

/// The server of this kind, or at this path.
pub(crate) fn server(kind: &str) -> Result<PathBuf, Failure> {
    let folder = match kind {
        "valkey-9.1" => "/valkey-9.1",
        "redis-8.2" => "/redis-8.2",
        "redis-7.0" => "/redis-debian",
        "redis-6.2" => "/redis-6.2",
        path if Path::new(path).is_file() => return Ok(path.into()),
        other => return Err(format!("`{other}` is no kind of server, and no program").into()),
    };
    let servers = all_servers();
    let found = servers.iter().find(|path| path.to_string_lossy().contains(folder));
    found.cloned().ok_or_else(|| format!("no {kind} (run tests/servers all)").into())
}

/// Where things are fetched to and built.
pub(crate) fn home() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("tests/run").is_file());
    root.unwrap_or(package).join("target/rig")
}
