//! What the figures depend on: the machine and the versions.

use std::path::Path;
use std::process::Command;

use crate::contest::Failure;

/// The peers, in the versions that are to be measured.
const PINNED: [(&str, &str); 4] =
    [("redis", "1.8.1"), ("rslock", "0.10.0"), ("fred", "10.1.0"), ("rustis", "0.27.2")];

/// What else the record names.
const NAMED: [&str; 5] = ["redis", "rslock", "fred", "rustis", "tokio"];

/// The machine in a line.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    // Behind the version stands whose build it is.
    let kernel = kernel.split('-').next().unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches(|c: char| c == ':' || c.is_whitespace());
    format!("{cores} cores, {model}, {} {kernel}", std::env::consts::OS)
}

/// How busy the machine has been in the last minute.
pub(crate) fn load() -> String {
    read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}

/// The compiler, by its own word, and the commit, by git's.
pub(crate) fn source() -> String {
    let rustc = ask("rustc", &["--version"]);
    let commit = ask("git", &["describe", "--always", "--dirty"]);
    format!("{rustc}, commit {commit}")
}

/// The versions in the lock file. A peer in another than the one that is meant is a failure.
pub(crate) fn versions() -> Result<String, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = std::fs::read_to_string(path)?;
    for (name, meant) in PINNED {
        if !locked(&lock, name).contains(&meant) {
            return Err(format!("`{name}` is not locked to {meant}").into());
        }
    }
    let tell = |name| format!("{name} {}", locked(&lock, name).join(" and "));
    Ok(NAMED.map(tell).join(", "))
}

/// The versions of a package in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("name = \"{name}\"\nversion = \"");
    lock.split(&head).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn ask(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_tells_versions() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n\
                    [[package]]\nname = \"ab\"\nversion = \"3\"\n\n\
                    [[package]]\nname = \"a\"\nversion = \"2\"\n";
        assert_eq!(locked(lock, "a"), ["1.2", "2"]);
        assert!(locked(lock, "b").is_empty());
    }

    #[test]
    fn the_peers_are_the_pinned_ones() {
        versions().unwrap();
    }
}
